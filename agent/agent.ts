// The agent as a whole: caches, policies, leadership and the loop of turns, put together.
import { sleep } from '../cluster/env.ts';
import { messageOf } from '../policies/error-message.ts';
import { type AdmissionGuard, admissionGuard } from './admission/guard.ts';
import type { AgentConfig } from './config.ts';
import type { AgentEnv } from './env.ts';
import { gateReader } from './gates/gate-reader.ts';
import { metricReader } from './gates/metric-reader.ts';
import { seenPods } from './gates/seen-pods.ts';
import { startLeadership } from './leadership.ts';
import { type NextTurn, startLoop } from './loop.ts';
import { startPolicySource } from './policies/policies.ts';
import { followPartings } from './release/group-removals.ts';
import { findOrphans } from './release/orphans.ts';
import { type ReleaseParts, takeReleaseTurn } from './release/release-turn.ts';
import { sourceStates } from './release/source-states.ts';
import type { Degradation, TurnListener } from './report.ts';
import { type GroupMemory, newMemory } from './turn/gather.ts';
import { ledgerStore } from './turn/ledgers.ts';
import { type TurnParts, takeTurn } from './turn/turn.ts';
import { groupKey, WakeIndex } from './wake-index.ts';
import { concernsPolicies, type SharedWatches, startCaches } from './watched/caches.ts';
import { countChanges } from './watched/changes.ts';
import { replicaSources } from './watched/replica-sources.ts';

export interface Agent {
  /** Whether every cache has synced, or is known to be missing or forbidden, and the policies were read once. Never goes back to false. */
  readonly isReady: () => boolean;
  /** What the webhook of this process judges by: over the same caches, whether this process leads or not. */
  readonly guard: AdmissionGuard;
  /** The watches of this process, for whoever else has a use for what they tell. */
  readonly followed: SharedWatches;
  /**
   * Hands over: no new turn and no new request of the acting path, requests under way that change something finish, the Lease is released,
   * watches end. Turns that hang are left behind after 15 s, and the Lease expires by itself if even then something is under way. Calling it
   * twice waits for the same end. Whoever still asks the guard says by `guarded` when that is over: watches go on until it settles, which is
   * not waited for.
   */
  readonly stop: (guarded?: Promise<unknown>) => Promise<void>;
}

/** Of one read in a turn, whatever the flags allow for others: a turn that hangs is one that does not react. */
const longestReadMs = 30_000;
/** Of one request of the acting path. */
const longestActMs = 5_000;

/** How long turns may take to end once the agent is told to. */
const longestEndMs = 15_000;

/** Starts the agent; it works until it is stopped. Never throws: what is missing is reported to the listeners, and tried again. */
export function startAgent(
  env: AgentEnv,
  config: AgentConfig,
  listeners: readonly TurnListener[],
  /** What the guard reads and writes through; `env` when left out. */
  admissionEnv: AgentEnv = env,
): Agent {
  const readTimeoutMs = Math.min(config.kubernetesTimeoutMs, longestReadMs);
  // Half of the time for which a holder may act after a renewal, so that one renewal that takes long does not stop everything.
  const actTimeoutMs = Math.min(readTimeoutMs, longestActMs, config.lease.renewDeadlineMs / 2);
  const changes = countChanges(env);
  const index = new WakeIndex();
  const memories = new Map<string, GroupMemory>();
  let isReady = false;
  let isStopping = false;
  let stopped: Promise<void> | undefined;

  const loop = startLoop({
    clock: env.clock,
    timers: env.timers,
    random: env.random,
    retryMs: config.retryMs,
    takeTurn: async (key, askedMs) => {
      const group = index.group(key);
      if (group === undefined) return await takeOrphanTurn(key);
      const memory = memories.get(key) ?? newMemory(caches);
      memories.set(key, memory);
      return await takeTurn(parts, group, memory, askedMs);
    },
  });
  loop.setPaused(true);
  const wake = (keys: Iterable<string>): void => {
    for (const key of keys) loop.wake(key);
  };

  /** Of a group that nothing defines any more. */
  const takeOrphanTurn = async (key: string): Promise<NextTurn> => {
    const orphan = orphans.get(key);
    if (orphan === undefined) return {};
    const { isOver = false, ...next } = await takeReleaseTurn(releaseParts, orphan);
    if (isOver) orphans.settle(key);
    return next;
  };

  const caches = startCaches(env, config, (change) => {
    if (concernsPolicies(change)) policies.refresh();
    if (change.kind === 'state') {
      tellDegradations();
      partings.look();
      wake(orphans.keys());
    }
    wake(index.touchedBy(change));
  });
  const sources = replicaSources(env, readTimeoutMs, (key) => wake(index.mirroring(key)));
  const policies = startPolicySource(env, config, caches, {
    onChange: (now) => {
      const changed = index.replace(now);
      partings.look();
      for (const key of memories.keys()) if (index.group(key) === undefined) memories.delete(key);
      sources.follow(now.groups);
      ledgers.keep(now.groups);
      gates.keep(now.groups);
      metrics.follow(now.groups, now.policies);
      tellGroups();
      followGroups();
      wake(changed);
      orphans.look();
    },
    onState: () => {
      tellDegradations();
      partings.look();
      wake(orphans.keys());
    },
  });
  const leadership = startLeadership(env, config, {
    onChange: (isLeader) => {
      // A new leader begins from what is stored, never from memory; so does one that comes back.
      memories.clear();
      gates.clear();
      metrics.clear();
      orphans.clear();
      partings.clear();
      const now = policies.current();
      if (isLeader && now !== undefined) metrics.follow(now.groups, now.policies);
      followGroups();
      loop.setPaused(!isLeader);
      if (isLeader) loop.wakeAll();
      partings.look();
      orphans.look();
    },
    onState: () => {
      tellDegradations();
      tellLeadership();
    },
  });
  const ledgers = ledgerStore(changes.env, {
    timeoutMs: actTimeoutMs,
    mayUseMemory: () => config.lease.mode !== 'required',
    mayWrite: () => leadership.mayAct(actTimeoutMs),
    onDegraded: () => tellDegradations(),
  });
  const orphans = findOrphans({
    env,
    caches,
    timeoutMs: readTimeoutMs,
    groups: () => policies.current()?.groups,
    isLeading: () => isLeading(),
    onChange: () => {
      followGroups();
      wake(orphans.keys());
      tellDegradations();
    },
  });
  const followGroups = (): void => loop.setGroups([...(policies.current()?.groups ?? []).map(groupKey), ...orphans.keys()]);
  const isLeading = (): boolean => !isStopping && leadership.epoch() !== undefined;
  const written = (source: string) => policies.current()?.metricSources.find(({ name }) => name === source);
  const gates = gateReader({
    env,
    clusterDomain: config.clusterDomain,
    seen: (group) => seenPods(group, { clock: env.clock, config, caches, policies: policies.current() }),
    written,
    isLeading,
    onReading: (key) => loop.wake(key),
  });
  const metrics = metricReader({ env, agentNamespace: config.agentNamespace, written, isLeading, onReading: wake });
  const parts: TurnParts = {
    env: changes.env,
    config: { ...config, kubernetesTimeoutMs: readTimeoutMs },
    caches,
    policies: policies.current,
    sources,
    ledgers,
    gates,
    metrics,
    leadership,
    actTimeoutMs,
    isStopping: () => isStopping,
    onReport: (report) => {
      index.noteWaits(report);
      // A turn that failed before its decision says nothing about what is wanted, and one of a group that is gone wants nothing.
      if (report.decision !== undefined && index.group(groupKey(report.group)) !== undefined)
        gates.want(report.group, report.decision.wantedReadings, report.decision.run);
      tell((listener) => listener.turnEnded(report));
    },
  };

  const releaseParts: ReleaseParts = {
    ...parts,
    sourceStates: (now) => sourceStates({ config, hasDirectory: env.policyDirectory !== undefined, caches, policies }, now),
    onReport: (report) => tell((listener) => listener.releaseEnded?.(report)),
  };

  const partings = followPartings({
    env,
    config,
    caches,
    policies: policies.current,
    isLeading,
    sourceStates: releaseParts.sourceStates,
    runOf: (key) => memories.get(key)?.ledger?.current.run,
    onReport: (report) => tell((listener) => listener.groupGone?.(report)),
  });

  const tell = (what: (listener: TurnListener) => void): void => {
    for (const listener of listeners) {
      try {
        what(listener);
      } catch (error) {
        env.log.error('a listener failed', { problem: messageOf(error) });
      }
    }
  };
  const tellDegradations = whenChanged(
    (): readonly Degradation[] =>
      [...caches.degradations(), policies.degradation(), leadership.degradation(), ledgers.degradation(), orphans.degradation()].filter(
        (degradation) => degradation !== undefined,
      ),
    (degradations) => tell((listener) => listener.degraded?.(degradations)),
  );
  const tellLeadership = whenChanged(leadership.state, (state) => tell((listener) => listener.leadershipChanged?.(state)));
  const tellGroups = whenChanged(
    () => ({ groups: policies.current()?.groups ?? [], findings: policies.current()?.findings ?? [] }),
    ({ groups, findings }) => tell((listener) => listener.groupsChanged?.(groups, findings)),
  );

  const endWatches = (): void => {
    policies.stop();
    sources.stop();
    caches.stop();
  };

  const stop = async (guarded: Promise<unknown> | undefined): Promise<void> => {
    isStopping = true;
    gates.stop();
    metrics.stop();
    orphans.clear();
    partings.clear();
    const patience = new AbortController();
    const limit = sleep(env, longestEndMs, patience.signal);
    await Promise.race([loop.stop(), limit]);
    patience.abort();
    if (changes.underWay() === 0) await leadership.release();
    else {
      env.log.error('something that was asked for is still under way; the Lease is left to expire');
      leadership.stop();
    }
    if (guarded === undefined) endWatches();
    else void guarded.then(endWatches, endWatches);
  };
  policies.refresh();
  return {
    guard: admissionGuard({ env: admissionEnv, config, caches, policies: policies.upToDate, metrics }),
    followed: caches.shared,
    isReady: () => {
      isReady ||= caches.isSettled() && policies.current() !== undefined;
      return isReady;
    },
    stop: (guarded) => {
      stopped ??= stop(guarded);
      return stopped;
    },
  };
}

/** Calls back with the value only when it differs from the last one. */
function whenChanged<Value>(current: () => Value, tell: (value: Value) => void): () => void {
  let before: string | undefined;
  return () => {
    const value = current();
    const text = JSON.stringify(value);
    if (text === before) return;
    before = text;
    tell(value);
  };
}
