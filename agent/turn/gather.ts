// Gathers the inputs of one decision: first the ledger, then the objects, so that the objects are not older than the claims.

import { compareResourceVersions } from '../../cluster/request/resource.ts';
import { takenOver } from '../../engine/decide/preparations.ts';
import { longestDelayMs, observeLedger } from '../../engine/ledger/ledger.ts';
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
import { type CacheView, Freshness } from '../watched/freshness.ts';
import type { ReadSource, ReplicaSources } from '../watched/replica-sources.ts';
import { contradicted, type FreshRead, readFresh } from './direct-reads.ts';
import { openTimes } from './ledger-changes.ts';
import { type Ledgers, LedgerUnusable } from './ledgers.ts';
import { Refusals } from './refusals.ts';
import { knownSnapshot, withRevisions } from './snapshot.ts';

/** The state of a group between its turns, for one leadership. */
export interface GroupMemory {
  readonly freshness: Freshness;
  /** `current` differs from `stored` only by changes that need not be stored. Absent until the ledger is read. */
  ledger?: { readonly stored: Ledger; readonly current: Ledger } | undefined;
  /** The leadership under which this group is written; at least that of the Lease. */
  epoch?: number;
  /** The next turn reads the objects past the caches. */
  needsDirectRead: boolean;
  /** Monotonic: since when the caches have been behind. */
  behindSinceMs?: number | undefined;
  /** Monotonic: when the objects were last read past the caches. */
  freshMs?: number;
  /** The last decision waits for something to change. */
  isWaiting: boolean;
  /** UIDs of objects whose disruption the server confirmed. */
  confirmed: ReadonlySet<string>;
  /** UIDs of objects whose disruption this process has asked for. */
  sent: ReadonlySet<string>;
  /** The claims that this process wrote or tried to write, as text. */
  announced: ReadonlySet<string>;
  /** Monotonic: since when this process has known each claim, by its text. */
  readonly knownSinceMs: Map<string, number>;
  readonly forbidden: Refusals;
  /** Evictions in a row that a budget refused. */
  refusals: number;
  /** ControllerRevisions that were read, by StatefulSet and name: they never change. */
  revisions: ReadonlyMap<string, RevisionView>;
  /** Turns in a row whose decision had been overtaken before its first request. */
  overtaken: number;
}

export interface GatherParts {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'agentNamespace' | 'kubernetesTimeoutMs'>;
  readonly caches: Pick<Caches, 'observe' | 'ageMs' | 'statefulSet' | 'hasSeen' | 'written' | 'lookUp' | 'relist'>;
  readonly policies: () => ActivePolicies | undefined;
  readonly sources: Pick<ReplicaSources, 'read'>;
  readonly ledgers: Pick<Ledgers, 'read'>;
  /** Absent: gates have no readings. */
  readonly gates?: Pick<GateReader, 'readings'>;
  /** Absent: metric inputs have no readings. */
  readonly metrics?: Pick<MetricReader, 'readings'>;
  readonly leadership: Pick<Leadership, 'epoch'>;
}

export interface Gathered {
  readonly snapshot: Snapshot;
  /** The ledger compared with the objects; unknown if the stored ledger cannot be used. */
  readonly ledger: Known<Ledger>;
  readonly epoch: number;
  readonly sources: readonly ReadSource[];
  /** Monotonic: the snapshot contains every change of StatefulSets and pods up to this instant. */
  readonly asOfMs: number;
  /** The objects as they were read past the caches, if they were. */
  readonly fresh?: FreshRead | undefined;
}

/** Returns the memory of a group without earlier turns. */
export function newMemory(caches: CacheView): GroupMemory {
  return {
    freshness: new Freshness(caches),
    needsDirectRead: true,
    isWaiting: false,
    confirmed: new Set(),
    sent: new Set(),
    announced: new Set(),
    knownSinceMs: new Map(),
    forbidden: new Refusals(),
    refusals: 0,
    revisions: new Map(),
    overtaken: 0,
  };
}

/** States how long the caches may be behind the group's own writes before the objects are read past them. */
const patienceMs = 5_000;

/** Reports whether the caches still show a state before the group's own last writes. After some time the group is read past them instead. */
export function mustWait(memory: GroupMemory, nowMs: number): boolean {
  if (memory.needsDirectRead || !memory.freshness.hasStaleCache()) {
    memory.behindSinceMs = undefined;
    return false;
  }
  memory.behindSinceMs ??= nowMs;
  if (nowMs - memory.behindSinceMs < patienceMs) return true;
  memory.behindSinceMs = undefined;
  memory.needsDirectRead = true;
  return false;
}

/** Waiting groups are read directly this often, because a watch can lose the only change that the group waits for. */
export const waitingLookMs = 300_000;

function isLookDue({ isWaiting, freshMs }: GroupMemory, nowMs: number): boolean {
  return isWaiting && freshMs !== undefined && nowMs - freshMs >= waitingLookMs;
}

/** States how long until `mustWait` gives up, at most. */
export const longestWaitMs: number = patienceMs;

/** Gathers the inputs. Rejects when the ledger or the objects cannot be read, and when this process does not lead. */
export async function gather(parts: GatherParts, group: GroupDefinition, memory: GroupMemory): Promise<Gathered> {
  const { env, config, caches } = parts;
  const stored = await currentLedger(parts, group, memory);
  const askedMs = env.clock.monotonicMs();
  const isFresh = memory.needsDirectRead || isLookDue(memory, askedMs);
  const [sources, fresh] = await Promise.all([
    parts.sources.read(group),
    isFresh ? readFresh(env, group, { timeoutMs: config.kubernetesTimeoutMs, nodes: caches.observe(group.namespace).nodes }) : undefined,
  ]);
  if (fresh !== undefined) {
    noteFresh(memory, fresh, askedMs);
    for (const kind of contradicted(fresh, group.namespace, caches)) caches.relist(kind, group.namespace);
  }
  const asOfMs = fresh === undefined ? env.clock.monotonicMs() - caches.ageMs(group.namespace) : askedMs;
  const read = { sources, asOfMs, fresh };
  const unread = isUnknown(stored)
    ? [{ kind: 'Ledger' as const, namespace: group.namespace, name: group.name, unknown: stored.unknown }]
    : [];
  const snapshot = snapshotFrom(parts, group, { sources, fresh, unread });
  const epoch = memory.epoch ?? 0;
  if (isUnknown(stored)) return { snapshot, ledger: stored, epoch, ...read };
  const bound = policiesFor(snapshot.policies, group, config.agentNamespace);
  // A claim that this process wrote and never acted on cannot be in flight. The epoch does not prove that: without a Lease, two processes may
  // have read the same stored epoch.
  const claims = stored.claims.filter((claim) => !memory.announced.has(canonicalJson(claim)) || memory.sent.has(claim.uid));
  const asked = claims.length === stored.claims.length ? stored : { ...stored, claims };
  const ledger = observeLedger(takenOver(asked, group, snapshot), snapshot, {
    keepDownscalesMs: longestDelayMs(group, bound),
    openForMs: openTimes(memory.knownSinceMs, stored.claims, askedMs),
  });
  const looked = { ...snapshot, ledgers: [ledger] };
  return { snapshot: await withRevisions({ env, timeoutMs: config.kubernetesTimeoutMs }, group, memory, looked), ledger, epoch, ...read };
}

/** Returns the gathered objects from the caches, or the newer direct reads. Nodes keep their direct read, which has no version. */
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

interface Looked {
  readonly sources: readonly ReadSource[];
  readonly fresh: FreshObjects | undefined;
  readonly unread: readonly UnreadObject[];
}

/** Builds the snapshot without I/O. Throws until policies were read. */
function snapshotFrom(parts: GatherParts, group: GroupDefinition, { sources, fresh, unread }: Looked): Snapshot {
  const replicaSources = sources.map((source) => source.view);
  return knownSnapshot(parts, group.namespace, { fresh, unread, replicaSources, gateReadings: parts.gates?.readings(group) ?? [] });
}

/** Returns the later state of each object: as it was read, or as the caches have it. */
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

/** Returns the ledger as this process knows it or as it is stored. A ledger of a later leader is never overwritten. */
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
  // A deleted Lease restarts its count; the stored epoch never decreases.
  memory.epoch ??= stored.epoch !== undefined && stored.epoch >= leading ? stored.epoch + 1 : leading;
  if ((stored.epoch ?? 0) > memory.epoch) throw new Error('a later leader wrote the ledger');
  memory.ledger = { stored, current: stored };
  return stored;
}

function noteFresh(memory: GroupMemory, fresh: FreshRead, askedMs: number): void {
  memory.needsDirectRead = false;
  memory.freshMs = askedMs;
  memory.freshness.clear();
  memory.freshness.expect(fresh.read);
}
