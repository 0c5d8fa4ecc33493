import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { playGenerated } from '../../scripts/soak/generated.ts';
import { countable, withoutFaults } from '../../scripts/soak/search/compare.ts';
import { scenarioOf } from '../../scripts/soak/search/draw.ts';
import type { Scenario } from '../../simulation/scenario.ts';
import type { Answered } from '../../simulation/server/request.ts';
import { defectMessages } from '../../simulation/stage.ts';
import { quietScenario } from './scenarios.ts';

const rollout: Scenario = { ...quietScenario, events: [{ atMs: 20_000, kind: 'setImage', image: 'app:2' }] };

/** A seed with many faults of many classes. */
const faulty = scenarioOf(5);
let drawnRun: ReturnType<typeof playGenerated> | undefined;

/** Returns the run of that seed, which is played once. */
function drawn(): ReturnType<typeof playGenerated> {
  drawnRun ??= playGenerated(faulty);
  return drawnRun;
}

describe('a run', () => {
  it('rolls out a group without faults: each pod once, one record, and then no further action', async () => {
    const result = await playGenerated(rollout);
    expect(result.violations).toEqual([]);
    expect(result.unfinished).toBeUndefined();
    expect(result.writes['delete pods']).toBe(9);
    expect(result.faults).toEqual({});
    expect(result.endState).toMatchObject({
      'ingester-zone-a': '3 replicas of app:2, 3 pods of app:2',
      'ingester-zone-b': '3 replicas of app:2, 3 pods of app:2',
      'ingester-zone-c': '3 replicas of app:2, 3 pods of app:2',
    });
  });

  it('rolls three groups at the same time: two in a namespace, and one with the same names in another', async () => {
    const { group, events } = rollout;
    const others = [
      { namespace: 'mimir', name: 'ingester-cold', group: { ...group, zones: 2 }, events },
      { namespace: 'mimir-dev', name: 'ingester', group: { ...group, kind: 'adopted', podsPerZone: 2 }, events: [] },
    ] as const;
    const result = await playGenerated({ ...rollout, others });
    expect(result.violations).toEqual([]);
    expect(result.unfinished).toBeUndefined();
    expect(result.writes['delete pods']).toBe(15);
    expect(result.endState).toMatchObject({
      'ingester-zone-c': '3 replicas of app:2, 3 pods of app:2',
      'mimir/ingester-cold-zone-b': '3 replicas of app:2, 3 pods of app:2',
      'mimir-dev/ingester-zone-c': '2 replicas of app:1, 2 pods of app:1',
    });
    expect((await playGenerated({ ...rollout, others })).traceHash).toBe(result.traceHash);
  });

  it('is the same each time, told or not, and differs from that of another seed', async () => {
    const first = await drawn();
    const second = await playGenerated(faulty, { keepsTimeline: true });
    expect(second.traceHash).toBe(first.traceHash);
    expect({ ...second, timeline: [] }).toEqual(first);
    expect(second.timeline.length).toBeGreaterThan(100);
    expect((await playGenerated({ ...faulty, seed: 6 })).traceHash).not.toBe(first.traceHash);
  });

  it('is the same with its faults at their places as with the rates that led to them', async () => {
    const first = await drawn();
    const placed = await playGenerated({ ...faulty, rates: {}, faults: first.placed });
    expect(first.placed.length).toBeGreaterThan(20);
    expect(placed.traceHash).toBe(first.traceHash);
    expect(placed.placed).toEqual(first.placed);
  });

  it('names the missing part if there is no time to reach the requested state', async () => {
    const result = await playGenerated({ ...rollout, safetyMs: 40_000, healingMs: 10_000 });
    expect(result.unfinished).toMatch(/^it did not converge within 10 s: ingester-zone-[abc]-\d/);
  });

  it('names the last writer if there is no time to become quiet', async () => {
    const result = await playGenerated({ ...rollout, healingMs: 300_000 });
    expect(result.unfinished).toMatch(/^it never became quiet: /);
  });

  it('injects no fault after the time for faults', async () => {
    const result = await playGenerated({ ...rollout, events: [...rollout.events], safetyMs: 5000, rates: { F1: 1 } });
    expect(result.placed.length).toBeGreaterThan(0);
    expect(result.unfinished).toBeUndefined();
  });

  it('counts events as faults of their classes, and what was hit by crashes', async () => {
    const result = await playGenerated({
      ...rollout,
      agents: 1,
      clockRates: { a: 0.9 },
      events: [
        ...rollout.events,
        { atMs: 30_000, kind: 'podDies', zone: 'a', ordinal: 0 },
        { atMs: 70_000, kind: 'pauseProcess', process: 'a', durationMs: 20_000 },
      ],
      faults: [
        { at: 'a1/act.deletePod#1', port: 'request', fault: { class: 'F11', kind: 'crash', moment: 'afterApply', restartAfterMs: 1000 } },
      ],
    });
    expect(result.violations).toEqual([]);
    expect(result.faults).toEqual({ F11: 1, F12: 1, F13: 1, F17: 1 });
    expect(result.crashes).toEqual({ 'act.deletePod afterApply': 1 });
  });
});

describe('scenarios that are compared', () => {
  it('keep people and accidents and lose what is done to the agents', () => {
    const plain = withoutFaults({
      ...faulty,
      clockRates: { a: 2 },
      events: [
        { atMs: 1, kind: 'crash', process: 'a', restartAfterMs: 1 },
        { atMs: 2, kind: 'podDies', zone: 'a', ordinal: 0 },
      ],
    });
    expect(plain).toMatchObject({ rates: {}, faults: [], events: [{ kind: 'podDies' }] });
    expect(plain.clockRates).toBeUndefined();
  });

  it('ask for one thing when writes are to be counted, and keep what is done to the agents', () => {
    const simple = countable({
      ...faulty,
      seed: 2,
      events: [
        { atMs: 1, kind: 'setImage', image: 'broken/app:9' },
        { atMs: 2, kind: 'podDies', zone: 'a', ordinal: 0 },
        { atMs: 30_000, kind: 'crash', process: 'a', restartAfterMs: 1 },
      ],
    });
    expect(simple.events.map(({ kind }) => kind)).toEqual(['setImage', 'crash']);
    expect(simple.rates).toEqual(faulty.rates);
  });
});

it('knows what the agent says when it has caught itself, in the words of the agent', () => {
  const root = new URL('../../agent', import.meta.url).pathname;
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const agent = files.map((name) => readFileSync(join(root, name), 'utf8')).join('\n');
  // The last one is what simulation/process/agent-process.ts listens for.
  for (const message of [...defectMessages, 'listener failed']) expect(agent).toContain(`'${message}'`);
});

describe('rare faults', () => {
  it('let one process open no connection while another takes the Lease', async () => {
    const events = [{ atMs: 15_000, kind: 'noConnections', process: 'b', forMs: 60_000 } as const, ...rollout.events];
    const result = await playGenerated({ ...rollout, agents: 2, events }, { keepsTimeline: true });
    expect([result.violations, result.unfinished, result.faults]).toEqual([[], undefined, { F23: 1 }]);
    expect(result.writes['delete pods']).toBe(9);
    expect(result.timeline.map(({ what }) => what)).toContain('the Lease passes from b1 to a1');
  });

  it('delete the namespace of a second group during its rollout, and the first group rolls as usual', async () => {
    const { group, events } = rollout;
    const deleted = { atMs: 26_000, kind: 'terminateNamespace' } as const;
    const others = [{ namespace: 'mimir-dev', name: 'ingester', group, events: [...events, deleted] }];
    const refused: string[] = [];
    const observer = {
      answered: ({ status, namespace, resource }: Answered) => void (status === 403 && refused.push(`${namespace} ${resource}`)),
    };
    const result = await playGenerated({ ...rollout, others }, { observer });
    expect([result.violations, result.unfinished, result.faults]).toEqual([[], undefined, { F25: 1 }]);
    expect(result.endState).toMatchObject({
      'ingester-zone-a': '3 replicas of app:2, 3 pods of app:2',
      'mimir-dev/ingester-zone-a': 'nothing',
    });
    expect(new Set(refused)).toEqual(new Set(['mimir-dev events.events.k8s.io']));
    expect(refused.length).toBeLessThan(40);
  });
});
