// Starts admission and builds its snapshots: caches and policies, with ledgers and objects from the quorum if a disruption is possible.

import { sleep } from '../../cluster/env.ts';
import { compareResourceVersions, type KubernetesObject } from '../../cluster/request/resource.ts';
import type { Judgement } from '../../engine/decision.ts';
import { protectiveLabels } from '../../engine/judge/protection.ts';
import { longestDelayMs, observeLedger } from '../../engine/ledger/ledger.ts';
import type { Claim, Departure, Known, Ledger, Snapshot, UnreadObject } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { messageOf } from '../../policies/error-message.ts';
import { policiesFor } from '../../policies/join.ts';
import { traitsOf } from '../../policies/strategies.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { MetricReader } from '../gates/metric-reader.ts';
import { type ActivePolicies, PolicySource } from '../policies/policies.ts';
import type { Degradation } from '../report.ts';
import { areCachesCurrent, contradicted, type FreshRead, readFresh } from '../turn/direct-reads.ts';
import { openTimes } from '../turn/ledger-changes.ts';
import { LedgerChanged, Ledgers } from '../turn/ledgers.ts';
import { knownSnapshot } from '../turn/snapshot.ts';
import { type Caches, concernsPolicies, type FreshObjects, type SharedWatches, startCaches } from '../watched/caches.ts';
import { createDenials, type Denials, type DeniedSubject } from './denials.ts';
import { Departures, UnprotectedSets } from './departures.ts';
import { readInputs } from './published-metrics.ts';

/** A group by its name. */
interface GuardedGroup {
  readonly namespace: string;
  readonly name: string;
}

/** A StatefulSet by its name. */
interface ProtectedSet {
  readonly namespace: string;
  readonly statefulSet: string;
}

interface GuardParts {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'agentNamespace' | 'identity'>;
  readonly caches: Pick<
    Caches,
    'observe' | 'ageMs' | 'statefulSet' | 'manifests' | 'written' | 'isSettled' | 'degradations' | 'lookUp' | 'hasSeen' | 'relist'
  >;
  /** undefined until they were worked out once. */
  readonly policies: () => ActivePolicies | undefined;
  /** The metric inputs that this process reads; absent where it reads none. What is missing there is taken from what is published. */
  readonly metrics?: Pick<MetricReader, 'readings'>;
}

/** By which groups, and members by their labels, are known. */
const tellingWatches: ReadonlySet<string> = new Set(['watch/statefulsets', 'watch/rolloutgroups']);
/** Limits each request to the API server: the webhook's own deadline is a few seconds. */
const longestRequestMs = 2_000;
/** Timeout of reading departures, and of the cache check in a namespace without groups: most decisions are possible without them. */
const longestDeparturesMs = 1_000;
/** A cache that was silent for longer does not count if a disruption is possible. */
const longestSilenceMs = 10_000;
/** Longest wait for a watch to deliver a write, and the interval of the checks. */
const longestLagMs = 1_000;
const lookAgainMs = 100;
/** A working watch delivers an event within this time, because the server sends bookmarks every minute. */
const longestUnheardMs = 120_000;

/**
 * The guard of the webhook (`Guard` of webhook/env.ts), from the agent's caches. It needs no Lease: guards and the leading agent meet in the
 * ledgers. A ledger of a snapshot stands for the stored ledger when it is passed to `store`.
 */
export class AdmissionGuard {
  readonly #parts: GuardParts;
  readonly #ledgers: Ledgers;
  readonly #departures: Departures;
  readonly #denials: Denials;
  readonly #unprotected: UnprotectedSets;
  /** By group: since when each claim has been known here. One that is stored here is known since then. */
  readonly #knownSinceMs = new Map<string, Map<string, number>>();
  readonly #storedAs = new WeakMap<Ledger, Ledger>();

  constructor(parts: GuardParts) {
    this.#parts = parts;
    const { env, config } = parts;
    this.#ledgers = new Ledgers(env, {
      timeoutMs: longestRequestMs,
      mayUseMemory: () => false,
      mayWrite: () => true,
      onDegraded: () => undefined,
    });
    this.#departures = new Departures(env, longestDeparturesMs);
    this.#denials = createDenials(env, config);
    this.#unprotected = new UnprotectedSets(env.clock);
  }

  // Another webhook may have written during the same request, so policies are read again too.
  async snapshot(namespace: string, groups: readonly GuardedGroup[], timeoutMs: number): Promise<Snapshot> {
    const endMs = this.#parts.env.clock.monotonicMs() + Math.min(longestLagMs, timeoutMs / 2);
    for (;;) {
      const seen = await this.#trySnapshot(namespace, groups, timeoutMs);
      if (seen !== undefined) return seen;
      if (this.#parts.env.clock.monotonicMs() + lookAgainMs > endMs) {
        throw new Error('the watch cache is behind the API server');
      }
      await sleep(this.#parts.env, lookAgainMs);
    }
  }

  isSettled(): boolean {
    return this.#parts.caches.isSettled() && this.#parts.policies() !== undefined;
  }

  /** Returns every protected StatefulSet: members of groups, and those with protecting labels. Undefined while unknown. */
  members(): readonly ProtectedSet[] | undefined {
    const groups = this.#seenGroups();
    if (groups === undefined) return undefined;
    const ofGroups = groups.flatMap(setsOf);
    const byLabels = this.#parts.caches
      .manifests()
      .flatMap(({ metadata: { namespace = '', name, labels = {} } }) =>
        protectiveLabels.some((label) => labels[label] !== undefined) ? [{ namespace, statefulSet: name }] : [],
      );
    return [...new Map([...ofGroups, ...byLabels].map((one) => [`${one.namespace}/${one.statefulSet}`, one])).values()];
  }

  /** Returns every StatefulSet of a group with the strategy `pinned`. Undefined while unknown. */
  pinned(): readonly ProtectedSet[] | undefined {
    return this.#seenGroups()
      ?.filter((group) => traitsOf(group).pinsPods)
      .flatMap(setsOf);
  }

  /** Returns the known groups of a namespace; unknown until policies and objects have been read. */
  groups(namespace: string): Known<readonly GroupDefinition[]> {
    const now = this.#parts.caches.isSettled() ? this.#parts.policies() : undefined;
    if (now === undefined) return { unknown: 'policies and objects were not read yet' };
    return now.groups.filter((group) => group.namespace === namespace);
  }

  /** Returns the UID of a StatefulSet as it was last seen. */
  uidOf(namespace: string, statefulSet: string): string | undefined {
    return this.#parts.caches.statefulSet(namespace, statefulSet)?.view.uid;
  }

  /** As it is stored, from the quorum. Rejects when it cannot be read, or is not understood. */
  ledger({ namespace, name }: GuardedGroup): Promise<Ledger> {
    return this.#ledgers.read({ namespace, name });
  }

  async store(group: GuardedGroup, base: Ledger, next: Ledger): Promise<boolean> {
    const stored = this.#storedAs.get(base) ?? base;
    if (stored === next) return true;
    try {
      await this.#ledgers.write(group, stored, next);
    } catch (error) {
      if (error instanceof LedgerChanged) return false;
      throw error;
    }
    this.#agesOf(group, next);
    return true;
  }

  keep(namespace: string, left: readonly Departure[]): Promise<void> {
    return this.#departures.keep(namespace, left);
  }

  readPast(
    kind: 'statefulSet' | 'pod',
    { metadata: { namespace = '', name, resourceVersion = '', deletionTimestamp } }: KubernetesObject,
  ): void {
    if (deletionTimestamp !== undefined || !this.#parts.caches.hasSeen(kind, namespace, resourceVersion)) return;
    const known = this.#parts.caches.lookUp(kind, namespace, name);
    const isOlder = known !== undefined && (compareResourceVersions(known.resourceVersion, resourceVersion) ?? 0) < 0;
    if (known === undefined || isOlder) this.#parts.caches.relist(kind, namespace);
  }

  denied(judgement: Judgement, subject: DeniedSubject): void {
    const uid = this.#parts.caches.statefulSet(subject.namespace, subject.statefulSet)?.view.uid;
    this.#denials.denied(judgement, uid === undefined ? subject : { ...subject, uid });
  }

  #agesOf({ namespace, name }: GuardedGroup, { claims }: Ledger): (claim: Claim) => number {
    const key = `${namespace}/${name}`;
    const sinceMs = this.#knownSinceMs.get(key) ?? new Map<string, number>();
    this.#knownSinceMs.set(key, sinceMs);
    return openTimes(sinceMs, claims, this.#parts.env.clock.monotonicMs());
  }

  /** Builds the snapshot; undefined while the watch cache is behind the API server. */
  async #trySnapshot(namespace: string, groups: readonly GuardedGroup[], timeoutMs: number): Promise<Snapshot | undefined> {
    const { env, config, caches, metrics: own } = this.#parts;
    const now = this.#parts.policies();
    if (now === undefined) throw new Error('policies were not read yet');
    const inputs = { env, agentNamespace: config.agentNamespace, own, timeoutMs: Math.min(longestRequestMs, timeoutMs) };
    const known = now.groups.filter((group) => groups.some((one) => one.namespace === group.namespace && one.name === group.name));
    // The ledgers first, then the objects: what is seen is not older than what was announced.
    const [stored, departed, metrics] = await Promise.all([
      readLedgers(this.#ledgers, known),
      readDepartures(this.#departures, namespace),
      readInputs(inputs, known, now.policies),
    ]);
    const hasClaims = stored.some(({ ledger }) => ledger !== undefined && ledger.claims.length > 0);
    const isNeeded = known.length > 0 && (hasClaims || caches.ageMs(namespace) > longestSilenceMs);
    const fresh = isNeeded ? await readObjects(env, known, { caches, timeoutMs }) : undefined;
    if (!(await isSnapshotCurrent(this.#parts, namespace, { fresh, timeoutMs, hasGroups: known.length > 0 }))) return undefined;
    const seen = knownSnapshot({ ...this.#parts, policies: () => now }, namespace, {
      fresh,
      metrics,
      unread: stored.flatMap(({ problem }) => problem ?? []),
    });
    const free = this.#unprotected.update(namespace, seen, departed);
    const observed = stored.flatMap(({ group, ledger }) => {
      if (ledger === undefined) return [];
      const next = observeLedger(ledger, seen, {
        keepDownscalesMs: longestDelayMs(group, policiesFor(seen.policies, group, this.#parts.config.agentNamespace)),
        openForMs: this.#agesOf(group, ledger),
      });
      this.#storedAs.set(next, ledger);
      return [next];
    });
    return { ...seen, ledgers: observed, departures: departed, unprotected: free };
  }

  /** Returns the groups; undefined if a kind with further groups cannot be watched. */
  #seenGroups(): readonly GroupDefinition[] | undefined {
    // A kind that cannot be read may protect more than is known.
    const isBlind = this.#parts.caches
      .degradations()
      .some(({ id, reason }) => tellingWatches.has(id) && (reason === 'forbidden' || reason === 'unreachable'));
    return this.#parts.caches.isSettled() && !isBlind ? this.#parts.policies()?.groups : undefined;
  }
}

function setsOf({ namespace, zones }: GroupDefinition): readonly ProtectedSet[] {
  return zones.map(({ statefulSet }) => ({ namespace, statefulSet }));
}

interface StoredLedger {
  readonly group: GroupDefinition;
  readonly ledger?: Ledger;
  readonly problem?: UnreadObject;
}

async function readLedgers(ledgers: Pick<Ledgers, 'read'>, groups: readonly GroupDefinition[]): Promise<readonly StoredLedger[]> {
  return await Promise.all(
    groups.map(async (group): Promise<StoredLedger> => {
      const { namespace, name } = group;
      try {
        return { group, ledger: await ledgers.read({ namespace, name }) };
      } catch (error) {
        return { group, problem: { kind: 'Ledger', namespace, name, unknown: messageOf(error) } };
      }
    }),
  );
}

async function readDepartures(departures: Departures, namespace: string): Promise<Known<readonly Departure[]>> {
  try {
    return await departures.read(namespace);
  } catch (error) {
    return { unknown: messageOf(error) };
  }
}

/** Reads every object of the groups from the quorum. A cache that contradicts the result is listed again. */
async function readObjects(
  env: AgentEnv,
  groups: readonly GroupDefinition[],
  { caches, timeoutMs }: { readonly caches: GuardParts['caches']; readonly timeoutMs: number },
): Promise<FreshObjects> {
  const reads: FreshRead[] = [];
  for (const group of groups) {
    const { nodes } = caches.observe(group.namespace);
    const read = await readFresh(env, group, { timeoutMs: Math.min(longestRequestMs, timeoutMs), nodes });
    for (const kind of contradicted(read, group.namespace, caches)) caches.relist(kind, group.namespace);
    reads.push(read);
  }
  return {
    statefulSets: new Map(reads.flatMap(({ statefulSets }) => [...statefulSets])),
    pods: [...new Map(reads.flatMap(({ pods }) => pods.map((pod) => [pod.uid, pod] as const))).values()],
    nodes: new Map(reads.flatMap(({ nodes }) => [...(nodes ?? [])])),
  };
}

/** Reports whether the caches match what people wrote. A request without a group accepts older caches, also while the server is down. */
async function isSnapshotCurrent(
  parts: GuardParts,
  namespace: string,
  { fresh, timeoutMs, hasGroups }: { readonly fresh: FreshObjects | undefined; readonly timeoutMs: number; readonly hasGroups: boolean },
): Promise<boolean> {
  const isCurrent = areCachesCurrent(parts, namespace, {
    fresh,
    longestAgeMs: hasGroups ? longestSilenceMs : longestUnheardMs,
    timeoutMs: Math.min(hasGroups ? longestRequestMs : longestDeparturesMs, timeoutMs),
  });
  return await (hasGroups ? isCurrent : isCurrent.catch(() => true));
}

export interface Admission {
  readonly guard: AdmissionGuard;
  readonly followed: SharedWatches;
  /** Ends every watch. */
  readonly stop: () => void;
}

/** Starts watching. Never throws: failed reads are retried, and `guard.isSettled` reports when everything is known. */
export function startAdmission(
  env: AgentEnv,
  config: Pick<AgentConfig, 'namespaces' | 'agentNamespace' | 'policySources' | 'areIntentsStamped' | 'identity'>,
  /** Hears of what is missing, each time when something of it changes. */
  onDegraded: (degradations: readonly Degradation[]) => void = () => undefined,
): Admission {
  let told = '[]';
  const tell = (): void => {
    const now = [...caches.degradations(), policies.degradation()].filter((degradation) => degradation !== undefined);
    const text = JSON.stringify(now);
    if (text === told) return;
    told = text;
    onDegraded(now);
  };
  const caches = startCaches(env, config, (change) => {
    if (concernsPolicies(change)) policies.refresh();
    if (change.kind === 'state') tell();
  });
  const policies = new PolicySource({ env, config, caches, onChange: () => undefined, onState: tell });
  policies.refresh();
  return {
    guard: new AdmissionGuard({ env, config, caches, policies: () => policies.upToDate() }),
    followed: caches.shared,
    stop: () => {
      policies.stop();
      caches.stop();
    },
  };
}
