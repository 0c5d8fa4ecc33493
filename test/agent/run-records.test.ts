import { describe, expect, it } from 'vitest';
import { RunRecorder } from '../../agent/published/run-records.ts';
import { ledgerOf } from '../kit/questions.ts';
import { status } from '../kit/virtual-env.ts';
import { type Turning, writersWorld } from './writers-kit.ts';

interface RunObject {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly id: string;
    readonly outcome: string;
    readonly endedAt?: string;
    readonly took?: number;
    readonly steps: readonly unknown[];
  };
}

const runs = 'rolloutruns.rollout-group.dev';

function setup(plurals: readonly string[] = ['rolloutruns'], world = writersWorld(plurals)) {
  const { env, server } = world;
  const results: string[] = [];
  const start = () => {
    const records = new RunRecorder({
      env,
      config: { publishEveryMs: 5000, kubernetesTimeoutMs: 5000 },
      mayWrite: () => true,
      onWrite: (result) => results.push(result),
    });
    records.listener.leadershipChanged?.({ isLeader: true });
    const turn = async (turning: Turning, afterMs = 10_000, historyLimit = 10): Promise<void> => {
      const { group, ...report } = world.report(turning);
      records.listener.turnEnded({ ...report, group: { ...group, rollout: { ...group.rollout, historyLimit } } });
      await env.advance(afterMs);
    };
    return { records, turn };
  };
  const all = (): readonly RunObject[] =>
    server
      .list(runs)
      .map((object) => object as unknown as RunObject)
      .sort((a, b) => (a.spec.id < b.spec.id ? -1 : 1));
  const outcomes = (): readonly string[] => all().map(({ spec }) => spec.outcome);
  return { ...world, ...start(), start, all, outcomes, results };
}

describe('records of runs', () => {
  it('begin with a rollout, grow with its steps and end with it', async () => {
    const { turn, all, outcomes, replaced } = setup();
    await turn({ updated: [3, 3], target: 'old' });
    expect(all()).toEqual([]);
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    expect(outcomes()).toEqual(['running']);
    const steps = all()[0]?.spec.steps.length ?? 0;
    await turn({ updated: [3, 0], performed: [replaced('b', 0)] });
    expect(all()[0]?.spec.steps.length).toBeGreaterThan(steps);
    await turn({ updated: [3, 3] });
    expect(all()).toEqual([expect.objectContaining({ spec: expect.objectContaining({ outcome: 'completed', took: expect.any(Number) }) })]);
  });

  it('are superseded by the next, and both are kept', async () => {
    const { turn, outcomes, replaced } = setup();
    await turn({ updated: [3, 3], target: 'old' });
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] }, 0);
    await turn({ updated: [0, 0], target: 'newer', performed: [replaced('a', 0)] });
    expect([...outcomes()].sort()).toEqual(['running', 'superseded']);
  });

  it('continue after a restart, without a write during a wait', async () => {
    const first = setup();
    await first.turn({ updated: [3, 3], target: 'old' });
    await first.turn({ updated: [0, 0], performed: [first.replaced('a', 0)] });
    const writes = first.server.writes().length;
    const second = first.start();
    for (let count = 0; count < 5; count += 1) await second.turn({ updated: [1, 0] }, 60_000);
    expect(first.server.writes().length).toBe(writes);
    await second.turn({ updated: [3, 3] });
    expect(first.outcomes()).toEqual(['completed']);
  });

  it('are bounded: the oldest finished records are deleted', async () => {
    const { turn, all } = setup();
    await turn({ updated: [3, 3], target: 'r0' });
    for (let count = 1; count <= 13; count += 1) {
      await turn({ updated: [0, 0], target: `r${count}` });
      await turn({ updated: [3, 3], target: `r${count}` });
    }
    expect(all()).toHaveLength(10);
    const ends = all().map(({ spec }) => spec.endedAt ?? '');
    await turn({ updated: [0, 0], target: 'r14' });
    await turn({ updated: [3, 3], target: 'r14' });
    expect(all().map(({ spec }) => spec.endedAt)).not.toContain([...ends].sort()[0]);
  });

  it('follow the limit of the group, also if the limit changes', async () => {
    const { turn, all } = setup();
    const runs = async (count: number, historyLimit: number) => {
      for (let run = 1; run <= count; run += 1) {
        await turn({ updated: [0, 0], target: `r${historyLimit}-${run}` }, 10_000, historyLimit);
        await turn({ updated: [3, 3], target: `r${historyLimit}-${run}` }, 10_000, historyLimit);
      }
      return all().length;
    };
    await turn({ updated: [3, 3], target: 'r0' });
    expect([await runs(4, 3), await runs(1, 1), await runs(3, 3)]).toEqual([3, 1, 3]);
  });

  it('above the limit are deleted, also if a leader died before it deleted them', async () => {
    const { turn, all, server, start, records } = setup();
    await turn({ updated: [3, 3], target: 'r0' });
    for (const target of ['r1', 'r2']) {
      await turn({ updated: [0, 0], target });
      // Every deletion is lost with the leader.
      server.fault = ({ method }) => (method === 'DELETE' ? status(503, 'ServiceUnavailable') : undefined);
      await turn({ updated: [3, 3], target }, 10_000, 1);
    }
    records.listener.leadershipChanged?.({ isLeader: false });
    server.fault = undefined;
    expect(all()).toHaveLength(2);
    const writes = server.writes().length;
    await start().turn({ updated: [3, 3], target: 'r2' }, 10_000, 1);
    expect(all()).toHaveLength(1);
    expect(server.writes()).toHaveLength(writes + 1);
  });

  it('are not written for a run that was decided but never stored', async () => {
    const { env, server, report, records } = setup();
    const { decision, ...rest } = report({ updated: [0, 0] });
    records.listener.turnEnded({ ...rest, ...(decision === undefined ? {} : { decision }), ledger: ledgerOf() });
    await env.advance(10_000);
    expect(decision?.run?.outcome).toBe('running');
    expect(server.writes()).toEqual([]);
  });

  it('are skipped if the kind is not installed, and written once it is', async () => {
    const { turn, env, server, warnings, replaced } = setup([]);
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    await turn({ updated: [1, 0], performed: [replaced('a', 1)] });
    expect(env.requests).toHaveLength(1);
    expect(server.writes()).toEqual([]);
    expect(warnings).toEqual([]);
    await turn({ updated: [1, 0] }, 300_000);
    await turn({ updated: [1, 0] });
    expect(env.requests).toHaveLength(2);
  });

  it('wait until the earlier records are read', async () => {
    const { turn, server, outcomes, env, replaced } = setup();
    server.fault = () => status(429, 'TooManyRequests');
    await turn({ updated: [3, 3], target: 'old' });
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    expect(outcomes()).toEqual([]);
    server.fault = undefined;
    await env.advance(6000);
    expect(outcomes()).toEqual(['running']);
  });

  it.each<[string, (records: ReturnType<typeof setup>['records']) => unknown]>([
    ['the agent ends', (records) => records.close()],
    ['somebody else leads', ({ listener }) => listener.leadershipChanged?.({ isLeader: false })],
  ])('that could not be read are not read again when %s', async (_when, happen) => {
    const { turn, server, records, env } = setup();
    server.fault = () => status(429, 'TooManyRequests');
    await turn({ updated: [3, 3], target: 'old' }, 100);
    const asked = env.requests.length;
    await happen(records);
    expect(env.timerCount()).toBe(0);
    await env.advance(60_000);
    expect(env.requests).toHaveLength(asked);
  });

  it('are written again after another client changed or deleted them', async () => {
    const { turn, server, all, replaced } = setup();
    await turn({ updated: [3, 3], target: 'old' });
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    const name = all()[0]?.metadata.name ?? '';
    server.change(runs, 'mimir', name, { spec: { outcome: 'cancelled' } });
    await turn({ updated: [1, 0], performed: [replaced('a', 1)] });
    expect(all()[0]?.spec).toMatchObject({ outcome: 'running' });
    server.remove(runs, 'mimir', name);
    await turn({ updated: [3, 3] });
    expect(all()[0]?.spec).toMatchObject({ outcome: 'completed' });
  });

  it('handle a lost answer as an unknown result', async () => {
    const { turn, server, outcomes, replaced } = setup();
    let lost = 0;
    server.fault = ({ method, json }) => {
      if (method !== 'POST' || lost > 0) return undefined;
      lost += 1;
      server.put(runs, json as never);
      return { lost: 'reply' };
    };
    await turn({ updated: [3, 3], target: 'old' });
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    expect(outcomes()).toEqual(['running']);
    expect(lost).toBe(1);
  });

  it('are tried again after failures, and written at the hand-over', async () => {
    const { turn, records, env, server, outcomes, warnings, replaced } = setup();
    await turn({ updated: [3, 3], target: 'old' });
    server.fault = ({ method }) => (method === 'POST' ? status(500, 'InternalError') : undefined);
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] }, 100);
    expect(warnings).toEqual(['run could not be recorded']);
    server.fault = undefined;
    records.beginHandOver();
    records.listener.leadershipChanged?.({ isLeader: false });
    await env.finish(records.close());
    expect(outcomes()).toEqual(['running']);
  });

  it('are not written again into a namespace that is deleted', async () => {
    const { turn, env, server, warnings, replaced } = setup();
    await turn({ updated: [3, 3], target: 'old' });
    let refused = 0;
    server.fault = ({ method }) => {
      if (method !== 'POST') return undefined;
      refused += 1;
      return status(403, 'Forbidden', 'forbidden', { causes: [{ reason: 'NamespaceTerminating' }] });
    };
    await turn({ updated: [0, 0], performed: [replaced('a', 0)] });
    await env.advance(3_600_000);
    expect([refused, warnings]).toEqual([1, []]);
  });
});
