// The groups that a verb is about: read once, or anew with each change in the cluster.

import { isUnknown } from '../../engine/snapshot.ts';
import type { Cluster } from '../connection.ts';
import { forbiddenFailure } from '../connection-failure.ts';
import { exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { type LiveGroup, type LiveWorld, liveGroups, readWorld, unpublished } from './groups.ts';
import { definitionNames, evidenceNames, type Listing, listOnce, shownNames, watchListing } from './listing.ts';
import { readReplicaSources } from './replica-sources.ts';
import { unreadParts } from './snapshot.ts';
import { type GroupName, nameOf } from './target.ts';

/** Which groups are meant. */
export interface Scope {
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
  /** Empty for every group. */
  readonly names: readonly GroupName[];
}

/** The named groups; of one namespace as far as that is enough. */
export function scopeOf(names: readonly GroupName[]): Scope {
  const [first] = names;
  const isOne = names.every(({ namespace }) => namespace === first?.namespace);
  return { namespace: isOne ? first?.namespace : undefined, names };
}

export interface ReadGroups {
  /** By namespace and name. */
  readonly groups: readonly LiveGroup[];
  /** What is there and could not be used. */
  readonly problems: readonly string[];
  readonly world: LiveWorld;
  readonly listing: Listing;
}

/** @throws Failure when nothing may be read, or a named group is not there. */
export async function readGroups(cluster: Cluster, scope: Scope): Promise<ReadGroups> {
  const isWanted = wanted(scope);
  const nowMs = cluster.env.clock.nowMs();
  const shown = await listOnce(cluster, shownNames, scope.namespace);
  const first = readWorld(shown, cluster.agentNamespace);
  const missing = unpublished(first, isWanted);
  if (missing.length === 0) return found(scope, { world: first, listing: shown, groups: liveGroups(first, shown, { nowMs, isWanted }) });
  const rest = evidenceNames.filter((name) => !shownNames.includes(name));
  const listing = { ...shown, ...(await listOnce(cluster, rest, scope.namespace)) };
  const world = readWorld(listing, cluster.agentNamespace);
  const replicaSources = await readReplicaSources(cluster, missing);
  return found(scope, { world, listing, groups: liveGroups(world, listing, { nowMs, isWanted, replicaSources }) });
}

/** Everything that judging or deciding about the scope needs, whether an agent published or not. */
export async function readEvidence(cluster: Cluster, scope: Scope): Promise<ReadGroups> {
  const listing = await listOnce(cluster, [...definitionNames, ...evidenceNames], scope.namespace);
  const world = readWorld(listing, cluster.agentNamespace);
  const nowMs = cluster.env.clock.nowMs();
  return found(scope, { world, listing, groups: liveGroups(world, listing, { nowMs, isWanted: wanted(scope) }) });
}

/** Long enough for a burst of changes, too short to be seen. */
const gatherMs = 50;

/**
 * Calls back with the groups as they are and after each change, at most every 50 ms. Reads once beforehand, so that what cannot be read at
 * all is thrown and not waited for. A group that goes away is left out.
 */
export async function watchGroups(cluster: Cluster, scope: Scope, onGroups: (read: ReadGroups) => void): Promise<() => void> {
  const { env } = cluster;
  const first = await readGroups(cluster, scope);
  const isWanted = wanted(scope);
  const replicaSources = await readReplicaSources(cluster, unpublished(first.world, isWanted));
  let cancel: (() => void) | undefined;
  const tell = (): void => {
    cancel = undefined;
    const listing = watched.current();
    if (shownNames.some((name) => listing[name] === undefined)) return;
    const world = readWorld(listing, cluster.agentNamespace);
    if (unpublished(world, isWanted).length > 0) {
      watched.add(evidenceNames);
      if (evidenceNames.some((name) => watched.current()[name] === undefined)) return;
    }
    const groups = liveGroups(world, listing, { nowMs: env.clock.nowMs(), isWanted, replicaSources });
    onGroups({ groups, world, listing, problems: world.problems });
  };
  const watched = watchListing(cluster, scope.namespace, () => {
    cancel ??= env.timers.after(gatherMs, tell);
  });
  onGroups(first);
  watched.add(shownNames);
  return () => {
    cancel?.();
    watched.stop();
  };
}

function wanted({ names, namespace }: Scope): (name: GroupName) => boolean {
  if (names.length === 0) return (name) => namespace === undefined || name.namespace === namespace;
  const keys = new Set(names.map(nameOf));
  return (name) => keys.has(nameOf(name));
}

function found({ names }: Scope, { groups, world, listing }: Omit<ReadGroups, 'problems'>): ReadGroups {
  const denials = definitionNames.flatMap((name) => {
    const part = listing[name];
    return part !== undefined && isUnknown(part) ? [part.unknown] : [];
  });
  const [denial] = denials;
  const lost = names.filter((name) => !groups.some(({ decision }) => nameOf(decision) === nameOf(name)));
  if (denial !== undefined && (lost.length > 0 || groups.length === 0)) throw forbiddenFailure(denial);
  const [missing] = lost;
  if (missing !== undefined) {
    const unread = unreadParts(listing);
    throw new Failure({
      exitCode: exitCodes.notFound,
      what: `there is no group ${missing.group} in namespace ${missing.namespace}`,
      why:
        unread.length === 0
          ? (world.problems[0] ?? 'no RolloutGroup, no published decision and no labelled StatefulSet names it')
          : `${unread.join(', ')} may not be read`,
      todo: 'see what there is: kubectl rollout-group get -A',
    });
  }
  return { groups, world, listing, problems: world.problems };
}
