// Builds the snapshots by which the webhooks judge requests: from caches and policies, and from quorum reads where a cache may be too old.

import { sleep, within } from '../../cluster/env.ts';
import { StaleCache } from '../../cluster/request/failure.ts';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import type { Judgement } from '../../engine/decision.ts';
import { protectiveLabels } from '../../engine/judge/protection.ts';
import { longestDelayMs, observeLedger } from '../../engine/ledger/ledger.ts';
import {
  type Claim,
  type Departure,
  type Known,
  type Ledger,
  type Snapshot,
  type UnreadObject,
  unknownBecause,
} from '../../engine/snapshot.ts';
import type { SeenSet } from '../../engine/strategies/pinned/placement.ts';
import { type Member, memberKey, membersOf } from '../../install/scope.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { messageOf } from '../../policies/error-message.ts';
import { policiesFor } from '../../policies/join.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { firstByKey } from '../../policies/values/group-by.ts';
import { getOrCreate } from '../../policies/values/map.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { MetricReader } from '../gates/metric-reader.ts';
import { type ActivePolicies, PolicySource } from '../policies/policies.ts';
import type { Degradation } from '../report.ts';
import { areCachesCurrent, contradicted, distinct, type FreshRead, missesChange, readFresh } from '../turn/direct-reads.ts';
import { openTimes } from '../turn/ledger-changes.ts';
import { LedgerChanged, type LedgerIdentity, Ledgers } from '../turn/ledgers.ts';
import { knownSnapshot } from '../turn/snapshot.ts';
import { type Caches, concernsPolicies, type FreshObjects, type SharedWatches, startCaches } from '../watched/caches.ts';
import type { PinWebhook } from '../watched/pin-webhook.ts';
import { Departures, UnprotectedSets } from './departures.ts';
import { type JudgedSubject, judgementReporter, type ReportJudgement } from './judgement-events.ts';
import { readInputs } from './published-metrics.ts';

interface GuardParts {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'agentNamespace' | 'identity' | 'namespaces'>;
  readonly caches: Pick<
    Caches,
    | 'observe'
    | 'ageMs'
    | 'statefulSet'
    | 'manifests'
    | 'shared'
    | 'written'
    | 'isSettled'
    | 'degradations'
    | 'lookUp'
    | 'hasSeen'
    | 'relist'
  >;
  /** Returns undefined until the policies have been read once. */
  readonly policies: () => ActivePolicies | undefined;
  /** The metric readings of this process; absent if it reads no metrics. Missing readings come from published decisions. */
  readonly metrics?: Pick<MetricReader, 'readings'>;
  /** The state of the webhook on pod creation; absent if this process does not watch it. */
  readonly pinWebhook?: Pick<PinWebhook, 'problems'>;
}

/** The watches of the kinds that can define groups. */
const groupWatches: ReadonlySet<string> = new Set(['watch/statefulsets', 'watch/rolloutgroups']);
const unreadGroups: UnreadObject = { kind: 'Group', unknown: 'a kind that defines groups could not be read' };
/** The longest timeout of a request to the API server, because a webhook must answer within a few seconds. */
const longestRequestMs = 2_000;
/** The longest timeout of a read of the departures, which few decisions need. */
const longestDeparturesMs = 1_000;
/**
 * The longest time without a watch event after which a cache still counts as current. It also limits how long a StatefulSet counts as one
 * without a group after a group with this StatefulSet was created.
 */
const longestSilenceMs = 10_000;
/** The longest wait for the watches to deliver the latest writes, and the pause between two checks. */
const longestLagMs = 1_000;
const cacheCheckMs = 100;

/**
 * Implements the guards of webhook/env.ts on the agent's caches. It needs no Lease, because the guards and the leading agent coordinate
 * through the ledgers. `store` also accepts as `base` the ledger of a snapshot, whose claims the snapshot has brought up to date.
 */
export class AdmissionGuard {
  readonly #parts: GuardParts;
  readonly #ledgers: Ledgers;
  readonly #departures: Departures;
  readonly #reportJudgement: ReportJudgement;
  readonly #unprotected: UnprotectedSets;
  /** The time at which this process first saw or stored each claim, by group. */
  readonly #knownSinceMs = new Map<string, Map<string, number>>();
  readonly #storedAs = new WeakMap<Ledger, Ledger>();
  /** The running checks of the caches, by namespace. */
  readonly #checks = new Map<string, Promise<boolean>>();

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
    this.#reportJudgement = judgementReporter(env, config);
    this.#unprotected = new UnprotectedSets(env.clock);
  }

  // A watch may deliver a changed policy between two attempts at a snapshot, so each attempt reads the policies again.
  async snapshot(namespace: string, groups: readonly LedgerIdentity[], timeoutMs: number): Promise<Snapshot> {
    const endMs = this.#parts.env.clock.monotonicMs() + Math.min(longestLagMs, timeoutMs / 2);
    for (;;) {
      const seen = await this.#trySnapshot(namespace, groups, timeoutMs);
      if (seen !== undefined) return seen;
      if (this.#parts.env.clock.monotonicMs() + cacheCheckMs > endMs) throw new StaleCache('the watch cache is behind the API server');
      await sleep(this.#parts.env, cacheCheckMs);
    }
  }

  isSettled(): boolean {
    return this.#parts.caches.isSettled() && this.#parts.policies() !== undefined;
  }

  /** Returns every member of a group and every StatefulSet with a protective label; undefined while the groups are unknown. */
  members(): readonly Member[] | undefined {
    const groups = this.#seenGroups();
    if (groups === undefined) return undefined;
    const ofGroups = membersOf(groups);
    const byLabels = this.#parts.caches
      .manifests()
      .flatMap(({ metadata: { namespace = '', name, labels = {} } }) =>
        protectiveLabels.some((label) => labels[label] !== undefined) ? [{ namespace, statefulSet: name }] : [],
      );
    return firstByKey([...ofGroups, ...byLabels], memberKey);
  }

  /** Returns every member of a group with the strategy `pinned`; undefined while the groups are unknown. */
  pinned(): readonly Member[] | undefined {
    const groups = this.#seenGroups();
    return groups && membersOf(groups.filter((group) => traitsOf(group).pinsPods));
  }

  /** Returns the known groups of a namespace; unknown until policies and objects have been read. */
  groups(namespace: string): Known<readonly GroupDefinition[]> {
    const active = this.#parts.caches.isSettled() ? this.#parts.policies() : undefined;
    if (active === undefined) return { unknown: 'policies and objects were not read yet' };
    return active.groups.filter((group) => group.namespace === namespace);
  }

  /** Reports whether a kind that defines groups cannot be read, for example until the agent gets the right to list it. */
  #hasUnreadGroups(): boolean {
    return this.#parts.caches
      .degradations()
      .some(({ id, reason }) => groupWatches.has(id) && (reason === 'forbidden' || reason === 'unreachable'));
  }

  /** Returns every group of a namespace; unknown if the namespace is not watched, and while the groups are unknown. */
  everyGroup(namespace: string): Known<readonly GroupDefinition[]> {
    const isWatched = this.#parts.config.namespaces?.includes(namespace) !== false;
    const groups = isWatched ? this.#seenGroups() : undefined;
    return groups?.filter((group) => group.namespace === namespace) ?? { unknown: 'the agent does not know every group of the namespace' };
  }

  statefulSet(namespace: string, name: string): SeenSet | undefined {
    const { uid, status } = this.#parts.caches.statefulSet(namespace, name)?.view ?? {};
    return uid === undefined || status === undefined ? undefined : { uid, updateRevision: status.updateRevision };
  }

  /** Returns the stored ledger from a quorum read. Rejects if the ledger cannot be read or parsed. */
  ledger({ namespace, name }: LedgerIdentity): Promise<Ledger> {
    return this.#ledgers.read({ namespace, name });
  }

  async store(group: LedgerIdentity, base: Ledger, next: Ledger): Promise<boolean> {
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
    const { caches } = this.#parts;
    if (deletionTimestamp !== undefined || !missesChange(caches, kind, { namespace, name, resourceVersion })) return;
    caches.relist(kind, namespace);
  }

  report(judgement: Judgement, subject: JudgedSubject): void {
    const uid = this.#parts.caches.statefulSet(subject.namespace, subject.statefulSet)?.view.uid;
    this.#reportJudgement(judgement, uid === undefined ? subject : { ...subject, uid });
  }

  #agesOf({ namespace, name }: LedgerIdentity, { claims }: Ledger): (claim: Claim) => number {
    const key = `${namespace}/${name}`;
    return openTimes(
      getOrCreate(this.#knownSinceMs, key, () => new Map()),
      claims,
      this.#parts.env.clock.monotonicMs(),
    );
  }

  /** Builds the snapshot; undefined while the watch cache is behind the API server. */
  async #trySnapshot(namespace: string, groups: readonly LedgerIdentity[], timeoutMs: number): Promise<Snapshot | undefined> {
    const { env, config, caches, metrics: own } = this.#parts;
    const active = this.#parts.policies();
    if (active === undefined) throw new Error('policies were not read yet');
    const inputs = { env, agentNamespace: config.agentNamespace, own, timeoutMs: Math.min(longestRequestMs, timeoutMs) };
    const known = active.groups.filter((group) => groups.some((one) => one.namespace === group.namespace && one.name === group.name));
    // Ledgers are read before objects, so that the objects are at least as new as the claims.
    const [stored, departed, metrics] = await Promise.all([
      readLedgers(this.#ledgers, known),
      this.#departures.read(namespace).catch(unknownBecause),
      readInputs(inputs, known, active.policies),
    ]);
    const hasClaims = stored.some(({ ledger }) => ledger !== undefined && ledger.claims.length > 0);
    const isNeeded = known.length > 0 && (hasClaims || caches.ageMs(namespace) > longestSilenceMs);
    const fresh = isNeeded ? await readObjects(env, known, { caches, timeoutMs }) : undefined;
    if (!(await this.#areCachesCurrent(namespace, fresh, timeoutMs))) return undefined;
    const seen = knownSnapshot({ ...this.#parts, policies: () => active }, namespace, {
      fresh,
      metrics,
      unread: [...stored.flatMap(({ problem }) => problem ?? []), ...(this.#hasUnreadGroups() ? [unreadGroups] : [])],
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
    const problems = this.#parts.pinWebhook?.problems(known);
    return { ...seen, ledgers: observed, departures: departed, unprotected: free, ...problems };
  }

  /**
   * Returns whether the caches are current. Requests without fresh objects share the lists of one check per namespace. So a check has the
   * longest timeout, also if the request that started it has less time. Rejects if the check takes longer than this request has time.
   */
  async #areCachesCurrent(namespace: string, fresh: FreshObjects | undefined, timeoutMs: number): Promise<boolean> {
    const check = (): Promise<boolean> =>
      areCachesCurrent(this.#parts, namespace, { fresh, longestAgeMs: longestSilenceMs, timeoutMs: longestRequestMs });
    const started =
      fresh === undefined ? getOrCreate(this.#checks, namespace, () => check().finally(() => this.#checks.delete(namespace))) : check();
    let isCurrent: boolean | undefined;
    const answered = started.then((answer) => {
      isCurrent = answer;
    });
    await within(this.#parts.env, timeoutMs, answered);
    if (isCurrent === undefined) throw new StaleCache('the watch cache was not compared with the API server in time');
    return isCurrent;
  }

  /** Returns the groups; undefined before the caches are filled, and while an unreadable kind may define further groups. */
  #seenGroups(): readonly GroupDefinition[] | undefined {
    return this.#parts.caches.isSettled() && !this.#hasUnreadGroups() ? this.#parts.policies()?.groups : undefined;
  }
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

/** Reads StatefulSets, pods and unready nodes of the groups with quorum reads. Lists a kind again if its cache contradicts the result. */
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
    pods: distinct(reads.flatMap(({ pods }) => pods)),
    nodes: new Map(reads.flatMap(({ nodes }) => [...(nodes ?? [])])),
  };
}

export interface Admission {
  readonly guard: AdmissionGuard;
  readonly followed: SharedWatches;
  readonly stop: () => void;
}

/** Starts the watches and the guard. Never throws: failed reads are retried. `guard.isSettled` returns true when all sources are known. */
export function startAdmission(
  env: AgentEnv,
  config: Pick<AgentConfig, 'namespaces' | 'agentNamespace' | 'policySources' | 'areIntentsStamped' | 'identity'>,
  /** Receives all current degradations whenever one of them may have changed. */
  onDegraded: (degradations: readonly Degradation[]) => void = () => undefined,
): Admission {
  const reportDegradations = (): void =>
    onDegraded([...caches.degradations(), policies.degradation()].filter((degradation) => degradation !== undefined));
  const caches = startCaches(env, config, (change) => {
    if (concernsPolicies(change)) policies.refresh();
    if (change.kind === 'state') reportDegradations();
  });
  const policies = new PolicySource({ env, config, caches, onChange: () => undefined, onState: reportDegradations });
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
