import { describe, expect, it } from 'vitest';
import type { GateAnswer } from '../../../agent/env.ts';
import { createGateServer, gateQuery, gateSource, gateSpec } from '../../../scripts/soak/groups/gate-server.ts';
import type { GateServerOptions } from '../../../simulation/cluster/world.ts';
import type { Faults, GateFault, PlacedFault } from '../../../simulation/faults/fault.ts';
import { drawnFaults, placedFaults, recordedFaults } from '../../../simulation/faults/source.ts';
import type { GateAnswered } from '../../../simulation/oracles/oracle.ts';
import { Agents } from '../../../simulation/process/agents.ts';
import { runStartMs } from '../../../simulation/process/clock.ts';
import { gateHttp } from '../../../simulation/process/pods.ts';
import { createScheduler, type Scheduler } from '../../../simulation/scheduler.ts';
import { createTrace } from '../../../simulation/trace.ts';
import { shareOf } from '../../kit/share.ts';
import { lifeWith, modelCluster } from './lives.ts';

function gateServerOf({ nowMs }: Pick<Scheduler, 'nowMs'>, options: Partial<GateServerOptions> = {}) {
  const usual = { gate: 'passing' as const, seed: 1, nowMs, wallMs: () => runStartMs + nowMs(), flipsUntilMs: 200_000 };
  return createGateServer({ ...usual, ...options });
}

const placed = (at: string, kind: GateFault['kind']): PlacedFault => ({ at, port: 'gate', fault: { class: 'F22', kind } });

describe('the port of gates', () => {
  const question = {
    source: gateSource,
    query: gateQuery,
    namespace: 'mimir',
    everyMs: 5_000,
    timeoutMs: 5_000,
    site: 'gate.read',
  };

  function port(...faults: readonly PlacedFault[]) {
    const found = lifeWith(...faults);
    const gates = gateHttp({ life: found.life, server: gateServerOf(found.scheduler) });
    const ended: (readonly [number, GateAnswer | string])[] = [];
    const ask = (more: object = {}): void => {
      gates.query({ ...question, ...more }).then(
        (answer) => ended.push([found.scheduler.nowMs(), answer]),
        (error: Error) => ended.push([found.scheduler.nowMs(), error.message]),
      );
    };
    return { ...found, ask, ended };
  }

  it('takes time to answer, and each fault finds its place', async () => {
    const { ask, ended, scheduler } = port(placed('a1/gate.read#2', 'unauthorized'));
    ask();
    await scheduler.runUntil(10_000);
    ask();
    await scheduler.runUntil(20_000);
    expect(ended.map(([, answer]) => (typeof answer === 'string' ? answer : answer.status))).toEqual([200, 401]);
    expect(ended[0]?.[0]).toBeGreaterThan(0);
  });

  it('says when nothing comes', async () => {
    const { ask, ended, scheduler, life } = port(placed('a1/gate.read#1', 'hang'));
    ask();
    await scheduler.runUntil(10_000);
    expect(ended).toEqual([[5_000, 'no answer within 5000 ms']]);
    expect(life.open.requests).toBe(0);
  });

  it('never answers a process that has died', async () => {
    const fault = { class: 'F11', kind: 'crash', moment: 'afterApply', restartAfterMs: 1_000 } as const;
    const { ask, ended, scheduler, changes } = port({ at: 'a1/gate.read#1', port: 'request', fault });
    ask();
    await scheduler.runUntil(20_000);
    expect(ended).toEqual([]);
    expect(changes).toHaveLength(1);
  });
});

const zones = ['a', 'b', 'c'];
const setName = (zone: string): string => `ingester-zone-${zone}`;

function gatedWorld({ seed = 1, gate = 'passing' as 'passing' | 'flipping', faults = placedFaults([]) as Faults } = {}) {
  const scheduler = createScheduler(seed);
  const { api, workloads } = modelCluster(scheduler);
  for (const zone of zones) workloads.create({ name: setName(zone) });
  const waves = zones.map((zone) => ({ name: `zone-${zone}`, zones: [zone], percent: 100, after: { gates: [gateSpec.name] } }));
  const members = { zones: zones.map((name) => ({ name, statefulSet: setName(name) })) };
  api.put('rolloutgroups.rollout-group.dev', {
    metadata: { name: 'ingester', namespace: 'mimir' },
    spec: { members, replicas: { leader: true }, gates: [gateSpec], rollout: { strategy: 'onDelete', rotateBy: 'delete', waves } },
  });
  const asked: GateAnswered[] = [];
  const trace = createTrace();
  const agents = new Agents({
    scenario: { seed, agents: 2 },
    scheduler,
    server: api.server,
    frontEnds: 1,
    faults,
    namespaces: ['mimir'],
    podAnswer: () => undefined,
    podCalled: () => undefined,
    touch: () => undefined,
    gateServer: gateServerOf(scheduler, { gate, seed, answered: (answer) => asked.push(answer) }),
    note: (...parts) => trace.note(scheduler.nowMs(), ...parts),
  });
  const updated = (zone: string): number =>
    api.list('pods', 'mimir').filter(({ metadata: { name }, ...pod }) => {
      return name.startsWith(`${setName(zone)}-`) && JSON.stringify(pod).includes('"image":"app:2"');
    }).length;
  const end = async () => {
    let leaks: Awaited<ReturnType<typeof agents.end>> | undefined;
    void agents.end().then((left) => {
      leaks = left;
    });
    await scheduler.runUntil(scheduler.nowMs() + 40_000, () => leaks !== undefined);
    agents.close();
    return leaks;
  };
  return {
    scheduler,
    agents,
    asked,
    updated,
    end,
    trace: trace.hash,
    rollAll: () => {
      for (const zone of zones) workloads.setImage(setName(zone), 'app:2');
    },
    isRolled: () => zones.every((zone) => updated(zone) === 3),
  };
}

describe('agents with a gated group', () => {
  it('roll zone after zone, each after three good readings in a row, and ask nothing when they are done', async () => {
    const one = gatedWorld({ gate: 'flipping', seed: 3 });
    await one.scheduler.runUntil(10_000);
    one.rollAll();
    const begun: string[] = [];
    for (let second = 10; second < 600 && !one.isRolled(); second += 1) {
      await one.scheduler.runUntil(second * 1_000);
      for (const zone of zones) {
        if (begun.includes(zone) || one.updated(zone) === 0) continue;
        begun.push(zone);
        if (zone !== 'a') expect(one.asked.slice(-3).map(({ isGood }) => isGood)).toEqual([true, true, true]);
      }
    }
    expect(begun).toEqual(zones);
    expect(one.asked.some(({ isGood }) => !isGood)).toBe(true);
    await one.scheduler.runUntil(650_000);
    const count = one.asked.length;
    await one.scheduler.runUntil(1_200_000);
    expect(one.asked).toHaveLength(count);
    expect(await one.end()).toEqual([]);
    expect(one.agents.defects()).toEqual([]);
  });

  it.each(['empty', 'nan', 'stale', 'partial', 'flip', 'unauthorized', 'hang'] as const)(
    'block while every answer is wrong: %s',
    async (kind) => {
      let isWrong = true;
      const faults: Faults = { ...placedFaults([]), ofGate: () => (isWrong ? { class: 'F22', kind } : undefined) };
      const one = gatedWorld({ faults });
      await one.scheduler.runUntil(10_000);
      one.rollAll();
      await one.scheduler.runUntil(300_000);
      expect(zones.map(one.updated)).toEqual([3, 0, 0]);
      expect(one.asked.length).toBeGreaterThan(40);
      isWrong = false;
      await one.scheduler.runUntil(600_000);
      expect(one.isRolled()).toBe(true);
      expect(await one.end()).toEqual([]);
    },
  );

  it('converge under wrong answers, deaths and pauses, and the same seed gives the same run', async () => {
    const kinds = new Set<string>();
    const run = async (seed: number, source: Faults) => {
      let isOver = false;
      const faults = recordedFaults(source, () => isOver);
      const one = gatedWorld({ seed, gate: 'flipping', faults });
      await one.scheduler.runUntil(10_000);
      one.rollAll();
      await one.scheduler.runUntil(200_000);
      isOver = true;
      one.agents.heal();
      await one.scheduler.runUntil(600_000);
      for (const fault of faults.placed()) if (fault.port === 'gate') kinds.add(fault.fault.kind);
      return {
        isRolled: one.isRolled(),
        leaks: await one.end(),
        defects: one.agents.defects(),
        hash: one.trace(),
        placed: faults.placed(),
      };
    };
    const rates = { F1: 0.02, F2: 0.02, F11: 0.005, F12: 0.005, F22: 0.6 };
    for (const seed of shareOf([1, 2, 3, 4], 2)) {
      const first = await run(seed, drawnFaults(seed, rates));
      expect({ seed, isRolled: first.isRolled, leaks: first.leaks, defects: first.defects }).toEqual({
        seed,
        isRolled: true,
        leaks: [],
        defects: [],
      });
      expect((await run(seed, placedFaults(first.placed))).hash).toBe(first.hash);
    }
    // Which kinds are drawn depends on the seeds of the commit.
    expect(kinds.size).toBeGreaterThan(0);
  });
});
