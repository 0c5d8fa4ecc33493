// Builds the messages about a group whose definition was removed, and about the release of its StatefulSets.
import { releaseGraceMs } from '../../engine/release/release.ts';
import { isUnknown, type ReleaseTerms } from '../../engine/snapshot.ts';
import { instantText } from '../../policies/instant.ts';
import { definitionNames, itemsOf, type Listing } from '../cluster-snapshot/listing.ts';
import { ledgerOf } from '../cluster-snapshot/snapshot.ts';
import { type Failure, notFoundFailure } from '../failure.ts';
import type { LiveGroup } from './groups.ts';
import { type GroupName, nameOf } from './target.ts';

type Defined = Pick<Listing, 'groups' | 'documents'>;

/** Returns the release terms in the ledger; undefined if the StatefulSets are not being released or the ledger cannot be read. */
function releaseTerms({ groups, documents }: Defined, { namespace, group }: GroupName): ReleaseTerms | undefined {
  // A group that was defined again is not released, even if its ledger still says so.
  if (itemsOf(groups).some(({ metadata }) => metadata.namespace === namespace && metadata.name === group)) return undefined;
  const ledger = ledgerOf(documents, namespace, group);
  return isUnknown(ledger) ? undefined : ledger.release;
}

const howToStop = 'to stop the release, define the group again: kubectl apply -f FILE';

/** Returns the failure for a removed group that is being released; undefined without a release. */
export function releaseFailure(listing: Defined, name: GroupName): Failure | undefined {
  const terms = releaseTerms(listing, name);
  if (terms === undefined) return undefined;
  return notFoundFailure(`${nameOf(name)} was deleted and is being released (onPolicyDeleted: release)`, {
    why: releaseText(terms),
    todo: howToStop,
  });
}

/** Reports whether all watched groups were removed. Returns false if a definition cannot be read. */
export function areAllRemoved({ groups, listing }: { readonly groups: readonly LiveGroup[]; readonly listing: Listing }): boolean {
  return groups.length === 0 && !definitionNames.some((name) => isUnknown(listing[name] ?? []));
}

/** Returns the failure for a group that was removed while it was watched. */
export function removedFailure(listing: Defined, name: GroupName): Failure {
  const released = releaseFailure(listing, name);
  return released ?? notFoundFailure(`${nameOf(name)} was deleted`);
}

/** Returns the note that a removed group is being released; no note before the agent noticed the removal. */
export function releaseLines(listing: Defined, name: GroupName): readonly string[] {
  const terms = releaseTerms(listing, name);
  if (terms?.goneMs === undefined) return [];
  return [`the definition of ${nameOf(name)} was deleted, and the group is being released: ${releaseText(terms)}; ${howToStop}`];
}

function releaseText({ zones, released = [], goneMs }: ReleaseTerms): string {
  const left = zones.filter(({ zone }) => !released.includes(zone));
  const names = left.map(({ statefulSet }) => statefulSet);
  const before = zones.filter(({ zone }) => released.includes(zone)).map(({ statefulSet }) => statefulSet);
  const done = before.length === 0 ? '' : `${before.join(', ')} ${before.length === 1 ? 'is' : 'are'} released; `;
  if (left.length === 0) return `${done}every zone is released`;
  const partitions = names.length === 1 ? `the partition of ${names[0]}` : `the partitions of ${names.join(', ')}`;
  const order = names.length === 1 ? '' : ', one zone after the other';
  const condition = zones.length === 1 ? '' : `,${names.length === 1 ? '' : ' each'} when all pods of the other zones are available`;
  if (before.length > 0) return `${done}the agent next sets ${partitions} to 0${order}${condition}`;
  const when =
    goneMs === undefined ? 'a minute after it notices the deletion' : `at ${instantText(goneMs + releaseGraceMs)} at the earliest`;
  return `the agent sets ${partitions} to 0 ${when}${order}${condition}`;
}
