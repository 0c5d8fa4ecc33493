// Gathers the inputs of one decision for a turn: first the ledger, then the objects, so that the objects are not older than the claims.

import { compareResourceVersions } from '../../cluster/request/resource.ts';
import { withPossiblePreparations } from '../../engine/decide/preparations.ts';
import { longestDelayMs, observeLedger, writingEpoch } from '../../engine/ledger/ledger.ts';
import type { ObservedPod } from '../../engine/observe/objects.ts';
import { isUnknown, type Known, type Ledger, type RevisionView, type Snapshot, type UnreadObject } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { policiesFor } from '../../policies/join.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { GateReader } from '../gates/gate-reader.ts';
import type { MetricReader } from '../gates/metric-reader.ts';
import type { Leadership } from '../leadership.ts';
import type { ActivePolicies } from '../policies/policies.ts';
import type { Caches, FreshObjects } from '../watched/caches.ts';
import { type CacheView, type ChangedObject, Freshness } from '../watched/freshness.ts';
import type { PinWebhook } from '../watched/pin-webhook.ts';
import type { ReadSource, ReplicaSources } from '../watched/replica-sources.ts';
import { withCommits } from './commits.ts';
import { contradicted, deletedObjects, type FreshRead, readFresh } from './direct-reads.ts';
import { openTimes } from './ledger-changes.ts';
import { type Ledgers, LedgerUnusable } from './ledgers.ts';
import { Refusals } from './refusals.ts';
import { knownSnapshot, withRevisions } from './snapshot.ts';

/** The state of a group between its turns, for one leadership. */
export interface GroupMemory {
  readonly freshness: Freshness;
  /** The ledger; absent until it is read. `current` differs from `stored` only by changes that need not be stored. */
  ledger?: { readonly stored: Ledger; readonly current: Ledger } | undefined;
  /** The epoch with which the ledger of this group is written; at least the epoch of the Lease. */
  epoch?: number;
  /** True if the next turn must read the objects past the caches. */
  needsDirectRead: boolean;
  /** The time since which the caches have been behind the writes to the group (monotonic). */
  behindSinceMs?: number | undefined;
  /** The time at which the objects were last read past the caches (monotonic). */
  freshMs?: number;
  /** True if the last decision waits or is blocked. */
  isWaiting: boolean;
  /** The UIDs of objects whose disruption the API server confirmed. */
  confirmed: ReadonlySet<string>;
  /** The UIDs of objects whose disruption this process requested. */
  sent: ReadonlySet<string>;
  /** The claims that this process wrote or tried to write, as text. */
  announced: ReadonlySet<string>;
  /** The time since which this process has known each claim, by the text of the claim (monotonic). */
  readonly knownSinceMs: Map<string, number>;
  readonly refusals: Refusals;
  /** The number of turns in a row in which a budget denied an eviction. */
  budgetDenials: number;
  /** The ControllerRevisions that were read, by UID of the StatefulSet and name. The template of a ControllerRevision never changes. */
  revisions: ReadonlyMap<string, RevisionView>;
  /** The time at which the commit of a run was last read (monotonic). */
  commitsAskedMs?: number;
  /** The number of turns in a row whose decision became stale before all its actions were sent. */
  staleDecisions: number;
}

export interface GatherParts {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'agentNamespace' | 'kubernetesTimeoutMs' | 'commitsFrom'>;
  readonly caches: Pick<Caches, 'observe' | 'ageMs' | 'statefulSet' | 'hasSeen' | 'written' | 'lookUp' | 'relist' | 'shared'>;
  readonly policies: () => ActivePolicies | undefined;
  readonly sources: Pick<ReplicaSources, 'read'>;
  readonly pinWebhook: Pick<PinWebhook, 'problems'>;
  readonly ledgers: Pick<Ledgers, 'read'>;
  /** If absent, gates have no readings. */
  readonly gates?: Pick<GateReader, 'readings'>;
  /** If absent, metric inputs have no readings. */
  readonly metrics?: Pick<MetricReader, 'readings'>;
  readonly leadership: Pick<Leadership, 'epoch'>;
}

export interface Gathered {
  readonly snapshot: Snapshot;
  /** The ledger compared with the objects; unknown if the stored ledger cannot be used. */
  readonly ledger: Known<Ledger>;
  readonly epoch: number;
  /** The objects from which zones mirror their replicas. */
  readonly sources: readonly ReadSource[];
  /** The snapshot contains every change of StatefulSets and pods up to this time (monotonic). */
  readonly asOfMs: number;
  /** The objects that were read past the caches; undefined if no object was read in this way. */
  readonly fresh?: FreshRead | undefined;
}

export function newMemory(caches: CacheView): GroupMemory {
  return {
    freshness: new Freshness(caches),
    needsDirectRead: true,
    isWaiting: false,
    confirmed: new Set(),
    sent: new Set(),
    announced: new Set(),
    knownSinceMs: new Map(),
    refusals: new Refusals(),
    budgetDenials: 0,
    revisions: new Map(),
    staleDecisions: 0,
  };
}

/** The longest wait for the caches to contain the writes to the group. After it, the objects are read past the caches. */
export const longestWaitMs = 5_000;

/** Returns whether the turn must wait until the caches contain the last writes to the group. After 5 s a direct read replaces the wait. */
export function mustWait(memory: GroupMemory, nowMs: number): boolean {
  if (memory.needsDirectRead || !memory.freshness.hasStaleCache()) {
    memory.behindSinceMs = undefined;
    return false;
  }
  memory.behindSinceMs ??= nowMs;
  if (nowMs - memory.behindSinceMs < longestWaitMs) return true;
  memory.behindSinceMs = undefined;
  memory.needsDirectRead = true;
  return false;
}

/** The interval of direct reads of a waiting group, because a watch can lose the only change for which the group waits. */
export const directReadIntervalMs = 300_000;

/** Gathers the inputs. Rejects if the ledger or the objects cannot be read, or if this process does not lead. */
export async function gather(parts: GatherParts, group: GroupDefinition, memory: GroupMemory): Promise<Gathered> {
  const { env, config, caches } = parts;
  const stored = await currentLedger(parts, group, memory);
  const askedMs = env.clock.monotonicMs();
  const isDue = memory.isWaiting && memory.freshMs !== undefined && askedMs - memory.freshMs >= directReadIntervalMs;
  const isFresh = memory.needsDirectRead || isDue;
  const [sources, fresh] = await Promise.all([
    parts.sources.read(group),
    isFresh ? readFresh(env, group, { timeoutMs: config.kubernetesTimeoutMs, nodes: caches.observe(group.namespace).nodes }) : undefined,
  ]);
  if (fresh !== undefined) {
    noteFresh(memory, [...fresh.read, ...deletedObjects(fresh, group.namespace, caches)], askedMs);
    for (const kind of contradicted(fresh, group.namespace, caches)) caches.relist(kind, group.namespace);
  }
  const asOfMs = fresh === undefined ? env.clock.monotonicMs() - caches.ageMs(group.namespace) : askedMs;
  const read = { sources, asOfMs, fresh };
  const unread = isUnknown(stored)
    ? [{ kind: 'Ledger' as const, namespace: group.namespace, name: group.name, unknown: stored.unknown }]
    : [];
  const refusedWrites = memory.refusals.writes(askedMs);
  const seen = snapshotFrom(parts, group, { sources, fresh, unread });
  const snapshot = refusedWrites.length === 0 ? seen : { ...seen, refusedWrites };
  const epoch = memory.epoch ?? 0;
  if (isUnknown(stored)) return { snapshot, ledger: stored, epoch, ...read };
  const bound = policiesFor(snapshot.policies, group, config.agentNamespace);
  // If this process wrote a claim but did not send its action, the claim has no effect and is left out. The epoch of a claim does not show
  // which process wrote it, because without a Lease two processes may use the same epoch.
  const claims = stored.claims.filter((claim) => !memory.announced.has(canonicalJson(claim)) || memory.sent.has(claim.uid));
  const open = claims.length === stored.claims.length ? stored : { ...stored, claims };
  const observed = observeLedger(open, snapshot, {
    keepDownscalesMs: longestDelayMs(group, bound),
    openForMs: openTimes(memory.knownSinceMs, stored.claims, askedMs),
  });
  const ledger = withPossiblePreparations(observed, group, snapshot.nowMs);
  const inputs = await withCommits(parts, group, memory, { snapshot: { ...snapshot, ledgers: [ledger] }, run: ledger.run });
  return { snapshot: await withRevisions({ env, timeoutMs: config.kubernetesTimeoutMs }, group, memory, inputs), ledger, epoch, ...read };
}

/** Builds the snapshot again with the newer of the gathered and the cached objects. Nodes keep the state of their direct read. */
export function observeAgain(
  parts: GatherParts,
  group: GroupDefinition,
  { freshness }: GroupMemory,
  { sources, fresh }: Gathered,
): Snapshot {
  if (fresh === undefined) return snapshotFrom(parts, group, { sources, fresh, unread: [] });
  const known = freshness.hasStaleCache() ? latest(fresh, parts.caches, group.namespace) : { statefulSets: new Map(), pods: [] };
  return snapshotFrom(parts, group, { sources, fresh: { ...fresh, ...known }, unread: [] });
}

interface SnapshotParts {
  readonly sources: readonly ReadSource[];
  readonly fresh: FreshObjects | undefined;
  readonly unread: readonly UnreadObject[];
}

/** Builds the snapshot without I/O. Throws if the policies have not been read yet. */
function snapshotFrom(parts: GatherParts, group: GroupDefinition, { sources, fresh, unread }: SnapshotParts): Snapshot {
  const replicaSources = sources.map((source) => source.view);
  const inputs = { fresh, unread, replicaSources, gateReadings: parts.gates?.readings(group) ?? [] };
  return { ...knownSnapshot(parts, group.namespace, inputs), ...parts.pinWebhook.problems([group]) };
}

function latest({ statefulSets, pods }: FreshObjects, caches: GatherParts['caches'], namespace: string): FreshObjects {
  const cached = caches.observe(namespace).pods;
  const known = new Map(isUnknown(cached) ? [] : cached.map((pod) => [pod.uid, pod]));
  const isGone = ({ uid, resourceVersion }: ObservedPod): boolean => !known.has(uid) && caches.hasSeen('pod', namespace, resourceVersion);
  return {
    statefulSets: new Map(
      [...statefulSets].map(([name, set]) => {
        const other = caches.statefulSet(namespace, name);
        const isLater = set?.view.uid === other?.view.uid && isNewer(other?.view.resourceVersion, set?.view.resourceVersion);
        return [name, isLater ? other : set];
      }),
    ),
    pods: pods
      .filter((pod) => !isGone(pod))
      .map((pod) => {
        const other = known.get(pod.uid);
        return other !== undefined && isNewer(other.resourceVersion, pod.resourceVersion) ? other : pod;
      }),
  };
}

function isNewer(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && b !== undefined && (compareResourceVersions(a, b) ?? 0) > 0;
}

/** Returns the remembered ledger, or reads the stored one. Rejects if a later leader wrote the stored ledger. */
async function currentLedger({ ledgers, leadership }: GatherParts, group: GroupDefinition, memory: GroupMemory): Promise<Known<Ledger>> {
  const leading = leadership.epoch();
  if (leading === undefined) throw new Error('this process does not lead');
  if (memory.ledger !== undefined) return memory.ledger.current;
  let stored: Ledger;
  try {
    stored = await ledgers.read(group);
  } catch (error) {
    if (error instanceof LedgerUnusable) return { unknown: error.message };
    throw error;
  }
  memory.epoch ??= writingEpoch(stored, leading);
  if ((stored.epoch ?? 0) > memory.epoch) throw new Error('a later leader wrote the ledger');
  memory.ledger = { stored, current: stored };
  return stored;
}

function noteFresh(memory: GroupMemory, seen: readonly ChangedObject[], askedMs: number): void {
  memory.needsDirectRead = false;
  memory.freshMs = askedMs;
  memory.freshness.clear();
  memory.freshness.expect(seen);
}
