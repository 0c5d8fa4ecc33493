// Starts and stops the parts of the agent: caches, policies, leader election, readers of gates and metrics, and the loop of turns.

import { within } from '../cluster/env.ts';
import { messageOf } from '../policies/error-message.ts';
import { getOrCreate } from '../policies/values/map.ts';
import { AdmissionGuard } from './admission/guard.ts';
import type { AgentConfig } from './config.ts';
import type { AgentEnv } from './env.ts';
import { GateReader } from './gates/gate-reader.ts';
import { MetricReader } from './gates/metric-reader.ts';
import { seenPods } from './gates/pods.ts';
import { Leadership } from './leadership.ts';
import { type NextTurn, TurnLoop } from './loop.ts';
import { type ActivePolicies, PolicySource } from './policies/policies.ts';
import { GroupRemovals, sourceStates } from './release/group-removals.ts';
import { OrphanSearch } from './release/orphans.ts';
import { type ReleaseParts, takeReleaseTurn } from './release/release-turn.ts';
import type { Degradation, TurnListener, TurnReport } from './report.ts';
import { type GroupMemory, newMemory } from './turn/gather.ts';
import { Ledgers } from './turn/ledgers.ts';
import { type TurnParts, takeTurn } from './turn/turn.ts';
import { groupKey, removedKeys, WakeIndex } from './wake-index.ts';
import { type CacheChange, type Caches, concernsPolicies, type SharedWatches, startCaches } from './watched/caches.ts';
import { PinWebhook } from './watched/pin-webhook.ts';
import { ReplicaSources } from './watched/replica-sources.ts';

/** The longest timeout of a read in a turn, regardless of the flags, because a waiting turn cannot react to events. */
const longestReadMs = 30_000;
const longestActMs = 5_000;
/** The time for which turns may still run after the agent begins to stop. */
const longestEndMs = 15_000;

/**
 * Runs from its construction until `stop`. Never throws: it reports degradations to the listeners and retries. The guard reads and writes
 * through `admissionEnv`.
 */
export class Agent {
  /** The guard for the webhooks of this process. It uses the caches of the agent, whether this process leads or not. */
  readonly guard: AdmissionGuard;
  /** The watches that other parts of the process may follow. */
  readonly followed: SharedWatches;
  readonly #env: AgentEnv;
  readonly #config: AgentConfig;
  readonly #listeners: readonly TurnListener[];
  readonly #readTimeoutMs: number;
  readonly #actTimeoutMs: number;
  readonly #index = new WakeIndex();
  readonly #memories = new Map<string, GroupMemory>();
  readonly #changes: ReturnType<typeof countChanges>;
  readonly #loop: TurnLoop;
  readonly #caches: Caches;
  readonly #sources: ReplicaSources;
  readonly #pinWebhook: PinWebhook;
  readonly #policies: PolicySource;
  readonly #leadership: Leadership;
  readonly #ledgers: Ledgers;
  readonly #orphans: OrphanSearch;
  readonly #gates: GateReader;
  readonly #metrics: MetricReader;
  readonly #turnParts: TurnParts;
  readonly #releaseParts: ReleaseParts;
  readonly #removals: GroupRemovals;
  #isReady = false;
  #isStopping = false;
  #stopped: Promise<void> | undefined;

  constructor(env: AgentEnv, config: AgentConfig, listeners: readonly TurnListener[], admissionEnv: AgentEnv = env) {
    this.#env = env;
    this.#config = config;
    this.#listeners = listeners;
    this.#readTimeoutMs = Math.min(config.kubernetesTimeoutMs, longestReadMs);
    // An action is sent only if its timeout ends before the renew deadline. With half of the deadline as timeout, one renewal may be slow.
    this.#actTimeoutMs = Math.min(this.#readTimeoutMs, longestActMs, config.lease.renewDeadlineMs / 2);
    this.#changes = countChanges(env);
    const { clock, timers, random } = env;
    this.#loop = new TurnLoop({ clock, timers, random, retryMs: config.retryMs, takeTurn: (key, askedMs) => this.#takeTurn(key, askedMs) });
    this.#loop.setPaused(true);
    this.#caches = startCaches(env, config, (change) => this.#onCacheChange(change));
    this.#sources = new ReplicaSources(env, this.#readTimeoutMs, (key) => this.#wake(this.#index.mirroring(key)));
    this.#pinWebhook = new PinWebhook(env, config, (pinned) => {
      this.#reportDegradations();
      this.#wake(pinned.map(groupKey));
    });
    this.#policies = new PolicySource({
      env,
      config,
      caches: this.#caches,
      onChange: (now) => this.#onPolicies(now),
      onState: () => this.#onReadability(),
    });
    this.#leadership = new Leadership(env, config, {
      onChange: (isLeader) => this.#onLeadership(isLeader),
      onState: () => {
        this.#reportDegradations();
        this.#reportLeadership();
      },
    });
    this.#ledgers = this.#openLedgers();
    this.#orphans = this.#startOrphanSearch();
    this.#gates = this.#startGates();
    this.#metrics = new MetricReader({
      env,
      agentNamespace: config.agentNamespace,
      written: (source) => this.#metricSource(source),
      isLeading: () => this.#isLeading(),
      onReading: (keys) => this.#wake(keys),
    });
    this.#turnParts = this.#partsOfTurns();
    this.#releaseParts = this.#partsOfReleases();
    this.#removals = this.#startGroupRemovals();
    this.#policies.refresh();
    this.guard = new AdmissionGuard({
      env: admissionEnv,
      config,
      caches: this.#caches,
      policies: () => this.#policies.upToDate(),
      metrics: this.#metrics,
      pinWebhook: this.#pinWebhook,
    });
    this.followed = this.#caches.shared;
  }

  /** Returns true once the policies were read and every cache has synced. Caches of missing and forbidden kinds do not count. */
  isReady(): boolean {
    this.#isReady ||= this.#caches.isSettled() && this.#policies.current() !== undefined;
    return this.#isReady;
  }

  /**
   * Stops the agent: no turn begins, running turns get 15 s to finish, the Lease is released and watches end. If a write or a call to a pod
   * is still in flight, the Lease is left to expire. Watches continue until `guarded` settles, so that webhooks can still use the guard, but
   * `stop` does not wait for `guarded`. Further calls return the same promise.
   */
  stop(guarded?: Promise<unknown>): Promise<void> {
    this.#stopped ??= this.#handOver(guarded);
    return this.#stopped;
  }

  #openLedgers(): Ledgers {
    return new Ledgers(this.#changes.env, {
      timeoutMs: this.#actTimeoutMs,
      mayUseMemory: () => this.#config.lease.mode !== 'required',
      mayWrite: () => this.#leadership.mayAct(this.#actTimeoutMs),
      onDegraded: () => this.#reportDegradations(),
    });
  }

  #startOrphanSearch(): OrphanSearch {
    return new OrphanSearch({
      env: this.#env,
      caches: this.#caches,
      timeoutMs: this.#readTimeoutMs,
      groups: () => this.#policies.current()?.groups,
      isLeading: () => this.#isLeading(),
      onChange: () => {
        this.#setLoopGroups();
        this.#wake(this.#orphans.keys());
        this.#reportDegradations();
      },
    });
  }

  #startGates(): GateReader {
    const [env, config, caches] = [this.#env, this.#config, this.#caches];
    return new GateReader({
      env,
      clusterDomain: config.clusterDomain,
      seen: (group) => seenPods(group, { env, config, caches, policies: () => this.#policies.current() }),
      written: (source) => this.#metricSource(source),
      isLeading: () => this.#isLeading(),
      onReading: (key) => this.#loop.wake(key),
    });
  }

  #partsOfTurns(): TurnParts {
    return {
      env: this.#changes.env,
      config: { ...this.#config, kubernetesTimeoutMs: this.#readTimeoutMs },
      caches: this.#caches,
      policies: () => this.#policies.current(),
      sources: this.#sources,
      pinWebhook: this.#pinWebhook,
      ledgers: this.#ledgers,
      gates: this.#gates,
      metrics: this.#metrics,
      leadership: this.#leadership,
      actTimeoutMs: this.#actTimeoutMs,
      isStopping: () => this.#isStopping,
      onReport: (report) => this.#onReport(report),
    };
  }

  #partsOfReleases(): ReleaseParts {
    const parts = { config: this.#config, caches: this.#caches, policies: this.#policies };
    const hasDirectory = this.#env.policyDirectory !== undefined;
    return {
      ...this.#turnParts,
      sourceStates: (now) => sourceStates({ ...parts, hasDirectory }, now),
      onReport: (report) => this.#notify((listener) => listener.releaseEnded?.(report)),
    };
  }

  #startGroupRemovals(): GroupRemovals {
    return new GroupRemovals({
      env: this.#env,
      config: this.#config,
      caches: this.#caches,
      policies: () => this.#policies.current(),
      isLeading: () => this.#isLeading(),
      sourceStates: this.#releaseParts.sourceStates,
      runOf: (key) => this.#memories.get(key)?.ledger?.current.run,
      onReport: (report) => this.#notify((listener) => listener.groupGone?.(report)),
    });
  }

  async #takeTurn(key: string, askedMs: number): Promise<NextTurn> {
    const group = this.#index.group(key);
    if (group === undefined) return await this.#takeOrphanTurn(key);
    const memory = getOrCreate(this.#memories, key, () => newMemory(this.#caches));
    return await takeTurn(this.#turnParts, group, memory, askedMs);
  }

  /** Takes the turn of a group whose definition was deleted. */
  async #takeOrphanTurn(key: string): Promise<NextTurn> {
    const orphan = this.#orphans.get(key);
    if (orphan === undefined) return {};
    const { isOver = false, ...next } = await takeReleaseTurn(this.#releaseParts, orphan);
    if (isOver) this.#orphans.settle(key);
    return next;
  }

  #onCacheChange(change: CacheChange): void {
    if (concernsPolicies(change)) this.#policies.refresh();
    if (change.kind === 'state') this.#onReadability();
    this.#wake(this.#index.touchedBy(change));
  }

  #onReadability(): void {
    this.#reportDegradations();
    this.#removals.checkRemovals();
    this.#wake(this.#orphans.keys());
  }

  #onPolicies(now: ActivePolicies): void {
    const changed = this.#index.replace(now);
    // This check comes before the memories are deleted, because the report about a removed group contains its run.
    this.#removals.checkRemovals();
    for (const key of removedKeys(this.#memories.keys(), now.groups)) this.#memories.delete(key);
    this.#sources.follow(now.groups);
    this.#pinWebhook.follow(now.groups);
    this.#ledgers.keep(now.groups);
    this.#gates.keep(now.groups);
    this.#metrics.follow(now.groups, now.policies);
    this.#reportGroups();
    this.#setLoopGroups();
    this.#wake(changed);
    this.#orphans.search();
  }

  #onLeadership(isLeader: boolean): void {
    // A new leader starts from the stored state, even if the same process led before.
    this.#memories.clear();
    for (const part of [this.#gates, this.#metrics, this.#orphans, this.#removals]) part.clear();
    const now = this.#policies.current();
    if (isLeader && now !== undefined) this.#metrics.follow(now.groups, now.policies);
    this.#setLoopGroups();
    this.#loop.setPaused(!isLeader);
    if (isLeader) this.#loop.wakeAll();
    this.#removals.checkRemovals();
    this.#orphans.search();
  }

  #onReport(report: TurnReport): void {
    this.#index.noteWaits(report);
    // Without a decision the required readings are unknown. A group without a definition requires no readings.
    if (report.decision !== undefined && this.#index.group(groupKey(report.group)) !== undefined)
      this.#gates.readGates(report.group, report.decision.wantedReadings, report.decision.run);
    this.#notify((listener) => listener.turnEnded(report));
  }

  /** Returns whether this process leads, and certainly holds its Lease for the time of a request. */
  mayWrite(): boolean {
    return this.#leadership.mayAct(this.#actTimeoutMs);
  }

  #isLeading(): boolean {
    return !this.#isStopping && this.#leadership.epoch() !== undefined;
  }

  #metricSource(source: string) {
    return this.#policies.current()?.metricSources.find(({ name }) => name === source);
  }

  #setLoopGroups(): void {
    this.#loop.setGroups([...(this.#policies.current()?.groups ?? []).map(groupKey), ...this.#orphans.keys()]);
  }

  #wake(keys: Iterable<string>): void {
    for (const key of keys) this.#loop.wake(key);
  }

  #notify(call: (listener: TurnListener) => void): void {
    for (const listener of this.#listeners) {
      try {
        call(listener);
      } catch (error) {
        this.#env.log.error('listener failed', { problem: messageOf(error) });
      }
    }
  }

  readonly #reportDegradations = whenChanged(
    (): readonly Degradation[] =>
      [
        ...this.#caches.degradations(),
        this.#pinWebhook.degradation(),
        this.#policies.degradation(),
        this.#leadership.degradation(),
        this.#ledgers.degradation(),
        this.#orphans.degradation(),
      ].filter((degradation) => degradation !== undefined),
    (degradations) => this.#notify((listener) => listener.degraded?.(degradations)),
  );

  readonly #reportLeadership = whenChanged(
    () => this.#leadership.state(),
    (state) => this.#notify((listener) => listener.leadershipChanged?.(state)),
  );

  readonly #reportGroups = whenChanged(
    () => ({ groups: this.#policies.current()?.groups ?? [], findings: this.#policies.current()?.findings ?? [] }),
    ({ groups, findings }) => this.#notify((listener) => listener.groupsChanged?.(groups, findings)),
  );

  async #handOver(guarded: Promise<unknown> | undefined): Promise<void> {
    this.#isStopping = true;
    this.#gates.stop();
    this.#metrics.stop();
    this.#orphans.clear();
    this.#removals.clear();
    await within(this.#env, longestEndMs, this.#loop.stop());
    if (this.#changes.underWay() === 0) await this.#leadership.release();
    else {
      this.#env.log.error('a write or a call to a pod is still in flight; the Lease is left to expire');
      this.#leadership.stop();
    }
    const stopWatches = (): void => {
      for (const part of [this.#policies, this.#sources, this.#pinWebhook, this.#caches]) part.stop();
    };
    if (guarded === undefined) stopWatches();
    else void guarded.then(stopWatches, stopWatches);
  }
}

/** Returns a function that calls `report` with the current value if that value differs from the last reported value. */
function whenChanged<Value>(current: () => Value, report: (value: Value) => void): () => void {
  let before: string | undefined;
  return () => {
    const value = current();
    const text = JSON.stringify(value);
    if (text === before) return;
    before = text;
    report(value);
  };
}

/** Wraps an env so that it counts writes and calls to pods. `underWay` returns the number that have not ended. */
function countChanges(env: AgentEnv): { readonly env: AgentEnv; readonly underWay: () => number } {
  let underWay = 0;
  const counted = async <Answer>(query: () => Promise<Answer>): Promise<Answer> => {
    underWay += 1;
    try {
      return await query();
    } finally {
      underWay -= 1;
    }
  };
  const { kubernetes, pods } = env;
  return {
    env: {
      ...env,
      kubernetes: {
        request: (request) => (request.method === 'GET' ? kubernetes.request(request) : counted(() => kubernetes.request(request))),
        stream: (request, onLine) => kubernetes.stream(request, onLine),
      },
      pods: { call: (request) => counted(() => pods.call(request)) },
    },
    underWay: () => underWay,
  };
}
