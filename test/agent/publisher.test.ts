import { describe, expect, it } from 'vitest';
import { GroupObjects } from '../../agent/published/group-objects.ts';
import { DecisionPublisher } from '../../agent/published/publisher.ts';
import type { TurnReport } from '../../agent/report.ts';
import { decideGroup } from '../../engine/decide/decide.ts';
import { readPublished } from '../../engine/publish/read.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { defaultConfig } from '../kit/agent-process.ts';
import { group } from '../kit/groups.ts';
import { ObjectsServer } from '../kit/objects-server.ts';
import { snapshotOf } from '../kit/snapshots.ts';
import { status, virtualEnv } from '../kit/virtual-env.ts';

const mapRef = ['configmaps', 'mimir', 'rollout-status-ingester'] as const;
const emptyLedger = { namespace: 'mimir', claims: [], downscales: [], preparations: [] };
const groups = 'rolloutgroups.rollout-group.dev';
const groupRef = [groups, 'mimir', 'ingester'] as const;

function setup({ hasKind = true, memory = { run: undefined } as Memory } = {}) {
  const warnings: string[] = [];
  const quiet = () => undefined;
  const virtual = virtualEnv();
  const server = new ObjectsServer(virtual, hasKind ? ['rolloutgroups'] : []);
  const env = {
    ...virtual,
    pods: { call: () => Promise.reject(new Error('no pods')) },
    log: { debug: quiet, info: quiet, warn: (message: string) => warnings.push(message), error: quiet },
  };
  const publisher = new DecisionPublisher({
    env,
    config: {
      publishEveryMs: 5000,
      identity: 'me',
      kubernetesTimeoutMs: 5000,
      agentNamespace: 'rollout-group',
      lease: defaultConfig.lease,
    },
    objects: new GroupObjects(env, 5000),
    mayWrite: () => true,
  });
  publisher.listener.leadershipChanged?.({ isLeader: true, epoch: 1 });
  /** A turn of the group when so many pods of zone a are at the new revision. */
  const turn = (updated: number, name = 'ingester'): void => publisher.listener.turnEnded(report(updated, env.clock.nowMs(), name, memory));
  const published = () => {
    const object = server.get(...groupRef) ?? server.get(...mapRef);
    const { status: objectStatus, data } = (object ?? {}) as { status?: { decision?: unknown }; data?: { decision: string } };
    const value = objectStatus?.decision ?? (data === undefined ? undefined : JSON.parse(data.decision));
    const decision = readPublished(value);
    return isUnknown(decision) ? undefined : decision;
  };
  const updatedPods = (): number | undefined => published()?.zones[0]?.updated;
  return { server, env, publisher, turn, published, updatedPods, warnings, memory };
}

/** The run that a ledger would keep from turn to turn. */
interface Memory {
  run: RunState | undefined;
}

function report(updated: number, nowMs: number, name: string, memory: Memory): TurnReport {
  const one = group({ name });
  const set = `${name}-zone-a`;
  const podChanges = { [set]: Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision: ordinal < updated ? 'new' : 'old' }])) };
  const ledger = { ...emptyLedger, group: name, ...(memory.run === undefined ? {} : { run: memory.run }) };
  const snapshot = snapshotOf({
    ledgers: [ledger],
    nowMs,
    groups: [one],
    everySet: { replicas: 3, status: { updateRevision: 'new' } },
    podChanges: podChanges as never,
  });
  const decision = decideGroup(snapshot, one);
  memory.run = decision.run;
  return { group: one, snapshot, decision, performed: [], startedMs: nowMs, durationMs: 5 };
}

describe('publishing a decision', () => {
  it('writes the status of the RolloutGroup where there is one', async () => {
    const { server, turn, env, updatedPods } = setup();
    const metadata = { namespace: 'mimir', name: 'ingester' };
    server.put(groups, { metadata, spec: {} });
    server.put(groups, { metadata, spec: { kept: true }, status: { stale: 1 } });
    turn(1);
    await env.advance(100);
    expect(updatedPods()).toBe(1);
    expect(server.get(...groupRef)).toMatchObject({
      spec: { kept: true },
      status: { updatedPods: expect.any(Number) },
    });
    expect(server.get(...groupRef)).not.toHaveProperty('status.stale');
    expect(server.get(...mapRef)).toBeUndefined();
  });

  it('names the generation from which it was decided, also if only the generation is new', async () => {
    const { server, publisher, env, memory } = setup();
    const metadata = { namespace: 'mimir', name: 'ingester' };
    server.put(groups, { metadata, spec: {} });
    server.put(groups, { metadata, spec: { newer: true } });
    const observedAfter = async (generation: number) => {
      const told = report(3, env.clock.nowMs(), 'ingester', memory);
      publisher.listener.turnEnded({ ...told, group: { ...told.group, generation } });
      await env.advance(6_000);
      return (server.get(...groupRef) as { status?: { observedGeneration?: number } }).status?.observedGeneration;
    };
    // The first settles what only the beginning of a run says.
    await observedAfter(1);
    expect([await observedAfter(1), await observedAfter(2)]).toEqual([1, 2]);
  });

  it('updates the pod count for an autoscaler without a new decision, because pods terminate after replicas were written', async () => {
    const { server, publisher, env, memory } = setup();
    server.put(groups, { metadata: { namespace: 'mimir', name: 'ingester' }, spec: {} });
    const replicas = () => (server.get(...groupRef) as { status?: { replicas?: number } } | undefined)?.status?.replicas;
    const turnWith = async (count: number): Promise<void> => {
      const told = report(3, env.clock.nowMs(), 'ingester', memory);
      const statefulSets = told.snapshot.statefulSets.map((set) => ({ ...set, status: { ...set.status, replicas: count } }));
      publisher.listener.turnEnded({ ...told, snapshot: { ...told.snapshot, statefulSets } });
      await env.advance(6_000);
    };
    // The first settles what only the beginning of a run says.
    await turnWith(4);
    await turnWith(4);
    expect(replicas()).toBe(4);
    await turnWith(3);
    expect(replicas()).toBe(3);
  });

  it.each([true, false])('writes a ConfigMap if the group is not an object (kind installed: %s)', async (hasKind) => {
    const { server, turn, env, updatedPods } = setup({ hasKind });
    turn(1);
    await env.advance(100);
    expect(updatedPods()).toBe(1);
    expect(server.get(...mapRef)?.metadata.labels).toEqual({ 'rollout-group.dev/document': 'decision' });
  });

  it('reports the changed and the restored webhooks of a quiet group too', async () => {
    const { publisher, turn, env, published } = setup();
    turn(3);
    await env.advance(10_000);
    const said = async (...all: readonly (readonly [id: string, message: string])[]) => {
      publisher.listener.degraded?.(all.map(([id, message]) => ({ id, message, reason: 'invalid' })));
      await env.advance(10_000);
      return published()?.unenforced;
    };
    expect(await said(['watch/pods', 'pods cannot be watched'])).toBeUndefined();
    expect(await said(['webhook/namespaces/loki', 'another namespace'])).toBeUndefined();
    expect(await said(['webhook/namespaces/mimir', 'the label is gone'])).toBe('the label is gone');
    expect(await said(['webhook/configurations', 'rules were changed'])).toBe('rules were changed');
    expect(await said()).toBeUndefined();
  });

  it('writes once in five seconds, and then only the last state', async () => {
    const { server, turn, env, updatedPods } = setup();
    for (const updated of [0, 1, 2]) {
      turn(updated);
      await env.advance(1000);
    }
    expect(updatedPods()).toBe(0);
    await env.advance(2500);
    expect(updatedPods()).toBe(2);
    expect(server.writes()).toHaveLength(2);
  });

  it('names the last actions also if a turn without any precedes the write', async () => {
    const { publisher, env, published, memory } = setup();
    const [pod] = report(0, env.clock.nowMs(), 'ingester', memory).snapshot.pods;
    const evict = { kind: 'evictPod', zone: 'a', pod, reason: 'outdated' } as never;
    const atMs = env.clock.nowMs();
    publisher.listener.turnEnded({ ...report(0, atMs, 'ingester', memory), performed: [{ action: evict, result: 'done' }] as never });
    publisher.listener.turnEnded(report(1, env.clock.nowMs() + 500, 'ingester', memory));
    await env.advance(10_000);
    publisher.listener.turnEnded(report(2, env.clock.nowMs(), 'ingester', memory));
    await env.advance(10_000);
    expect(published()?.actions.map(({ kind, result, atMs }) => ({ kind, result, atMs }))).toEqual([
      { kind: 'evictPod', result: 'done', atMs },
    ]);
  });

  it('writes again what was published before if another value was being written meanwhile', async () => {
    const { server, turn, env, updatedPods } = setup();
    turn(0);
    await env.advance(10_000);
    env.replaceServer(async (request) => {
      const answer = await server.answer(request);
      return request.method !== 'GET' && 'status' in answer ? { ...answer, delayMs: 1000 } : answer;
    });
    turn(1);
    await env.advance(500);
    expect(updatedPods()).toBe(1);
    turn(0);
    await env.advance(20_000);
    expect(updatedPods()).toBe(0);
    const writes = server.writes().length;
    turn(0);
    await env.advance(20_000);
    expect(server.writes()).toHaveLength(writes);
  });

  it('writes nothing if only time passes, also after a restart', async () => {
    const first = setup();
    first.turn(1);
    await first.env.advance(60_000);
    const second = setup({ memory: first.memory });
    const published = first.server.get(...mapRef);
    const [, namespace, name] = mapRef;
    second.server.put('configmaps', { metadata: { name, namespace, labels: published?.metadata.labels }, data: published?.['data'] });
    for (let minute = 0; minute < 10; minute += 1) {
      second.turn(1);
      await second.env.advance(60_000);
    }
    expect(second.server.writes()).toEqual([]);
    const asked = second.env.requests.length;
    second.turn(1);
    await second.env.advance(60_000);
    expect(second.env.requests.length).toBe(asked);
  });

  it('keeps the time since which the group has been in its phase', async () => {
    const { turn, env, published } = setup();
    turn(0);
    await env.advance(6000);
    const since = published()?.phaseSinceMs;
    turn(1);
    await env.advance(6000);
    expect(published()).toMatchObject({ phaseSinceMs: since, leader: 'me' });
  });

  it('is done by the leader only, and a waiting write is dropped when the leadership is lost', async () => {
    const { server, turn, env, publisher } = setup();
    publisher.listener.leadershipChanged?.({ isLeader: false });
    turn(0);
    await env.advance(10_000);
    expect(env.requests).toEqual([]);
    publisher.listener.leadershipChanged?.({ isLeader: true });
    turn(0);
    publisher.listener.leadershipChanged?.({ isLeader: false });
    await env.advance(10_000);
    expect(server.writes()).toEqual([]);
  });

  it('writes a waiting value at the hand-over', async () => {
    const { turn, env, publisher, updatedPods } = setup();
    turn(0);
    await env.advance(100);
    turn(2);
    publisher.beginHandOver();
    publisher.listener.leadershipChanged?.({ isLeader: false });
    await env.finish(publisher.close());
    expect(updatedPods()).toBe(2);
    turn(3);
    await env.advance(60_000);
    expect(updatedPods()).toBe(2);
  });

  it('does not overwrite a later value of the next leader', async () => {
    const { server, turn, env, publisher, published } = setup();
    turn(0);
    await env.advance(100);
    turn(2);
    publisher.beginHandOver();
    publisher.listener.leadershipChanged?.({ isLeader: false });
    const theirs = { ...published(), leader: 'other', decidedMs: env.clock.nowMs() + 1, goal: 'theirs' };
    server.change(...mapRef, { data: { decision: JSON.stringify(theirs) } });
    await env.finish(publisher.close());
    expect(published()?.goal).toBe('theirs');
  });

  it('reads again after another writer, and retries', async () => {
    const { server, turn, env, updatedPods, warnings } = setup();
    turn(0);
    await env.advance(6000);
    let isFirst = true;
    server.fault = ({ method }) => {
      if (method !== 'PUT' || !isFirst) return undefined;
      isFirst = false;
      return status(409, 'Conflict');
    };
    turn(2);
    await env.advance(5000);
    expect(updatedPods()).toBe(2);
    expect(warnings).toEqual([]);
  });

  it('retries after growing pauses, and reports the failure once', async () => {
    const { server, turn, env, updatedPods, warnings } = setup();
    server.fault = () => status(500, 'InternalError');
    turn(1);
    await env.advance(600_000);
    expect(warnings).toEqual(['decision could not be published']);
    expect(env.requests.length).toBeGreaterThan(5);
    expect(env.requests.length).toBeLessThan(20);
    server.fault = undefined;
    await env.advance(300_000);
    expect(updatedPods()).toBe(1);
  });

  it('keeps a ConfigMap of another owner unchanged', async () => {
    const { server, turn, env, warnings } = setup();
    server.put('configmaps', {
      metadata: { namespace: 'mimir', name: 'rollout-status-ingester', labels: { 'rollout-group.dev/document': 'ledger' } },
    });
    turn(1);
    await env.advance(10_000);
    expect(server.writes()).toEqual([]);
    expect(warnings).toEqual(['decision could not be published']);
  });

  it('drops groups that no longer exist', async () => {
    const { server, turn, env, publisher } = setup();
    server.fault = () => status(500, 'InternalError');
    turn(1);
    await env.advance(1000);
    server.fault = undefined;
    publisher.listener.groupsChanged?.([], []);
    await env.advance(600_000);
    expect(server.writes()).toEqual([]);
  });
});
