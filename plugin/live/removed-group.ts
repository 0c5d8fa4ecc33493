// A group that nothing defines any more: what to say of it, and what becomes of its StatefulSets when it said that they are handed back.
import { decodeLedger, ledgerKey, ledgerName } from '../../engine/ledger/ledger-document.ts';
import { releaseGraceMs } from '../../engine/release/release.ts';
import { isUnknown, type ReleaseTerms } from '../../engine/snapshot.ts';
import { instantText } from '../../policies/instant.ts';
import { definitionNames, itemsOf, type Listing, textIn } from '../cluster-snapshot/listing.ts';
import { exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import type { LiveGroup } from './groups.ts';
import { type GroupName, nameOf } from './target.ts';

type Defined = Pick<Listing, 'groups' | 'documents'>;

/** The terms under which its StatefulSets are handed back, as far as its ledger can be read; undefined when they stay as they are. */
function releaseTerms({ groups, documents }: Defined, { namespace, group }: GroupName): ReleaseTerms | undefined {
  // It is back, and its ledger does not say so yet.
  if (itemsOf(groups).some(({ metadata }) => metadata.namespace === namespace && metadata.name === group)) return undefined;
  const object = itemsOf(documents).find(({ metadata }) => metadata.namespace === namespace && metadata.name === ledgerName(group));
  const ledger = object === undefined ? undefined : decodeLedger(textIn(object, ledgerKey), { namespace, group });
  return ledger === undefined || isUnknown(ledger) ? undefined : ledger.release;
}

const howToStop = 'to stop it, define the group again: kubectl apply -f FILE';

/** Of a group that is not there; undefined when its StatefulSets stay as they are. */
export function releaseFailure(listing: Defined, name: GroupName): Failure | undefined {
  const terms = releaseTerms(listing, name);
  if (terms === undefined) return undefined;
  return new Failure({
    exitCode: exitCodes.notFound,
    what: `${nameOf(name)} is not there any more, and is being released: nothing defines it, and it said onPolicyDeleted: release`,
    why: releaseText(terms),
    todo: howToStop,
  });
}

/** Whether none of the groups that are watched is there any more; false while what defines them cannot be read. */
export function areGone({ groups, listing }: { readonly groups: readonly LiveGroup[]; readonly listing: Listing }): boolean {
  return groups.length === 0 && !definitionNames.some((name) => isUnknown(listing[name] ?? []));
}

/** Of one that was there when somebody began to watch it. */
export function goneFailure(listing: Defined, name: GroupName): Failure {
  const released = releaseFailure(listing, name);
  return released ?? new Failure({ exitCode: exitCodes.notFound, what: `${nameOf(name)} is not there any more` });
}

/** What is shown of it is what was published last, when the agent has seen that nothing defines it any more. */
export function releaseLines(listing: Defined, name: GroupName): readonly string[] {
  const terms = releaseTerms(listing, name);
  if (terms?.goneMs === undefined) return [];
  return [`nothing defines ${nameOf(name)} any more, and it is being released: ${releaseText(terms)}; ${howToStop}`];
}

/** Which StatefulSets are handed back, when, and how one follows the other. */
function releaseText({ zones, released = [], goneMs }: ReleaseTerms): string {
  const left = zones.filter(({ zone }) => !released.includes(zone));
  const names = left.map(({ statefulSet }) => statefulSet);
  const before = zones.filter(({ zone }) => released.includes(zone)).map(({ statefulSet }) => statefulSet);
  const done = before.length === 0 ? '' : `${before.join(', ')} went back to the StatefulSet controller; `;
  if (left.length === 0) return `${done}every zone was handed back`;
  const all = names.length === 1 ? `that of ${names[0]}` : `those of ${names.join(', ')}, zone by zone`;
  const wholeness = zones.length === 1 ? '' : ', each when the other zones are whole';
  if (before.length > 0) return `${done}the partition becomes 0 next, ${all}${wholeness}`;
  const when = goneMs === undefined ? 'a minute after the agent has seen it' : `at ${instantText(goneMs + releaseGraceMs)} at the earliest`;
  return `the first partition becomes 0 ${when}, ${all}${wholeness}`;
}
