import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { scenarioOf } from '../../scripts/soak/search/draw.ts';
import { judge } from '../../scripts/soak/search/judge.ts';
import { PlanError, readPlans, readScenario, type StoredPlan, writeScenario } from '../../scripts/soak/search/replay.ts';
import type { Scenario } from '../../simulation/scenario.ts';
import { shareOf } from '../kit/share.ts';
import { quietScenario } from './scenarios.ts';

const faulty: Scenario = {
  ...quietScenario,
  group: { ...quietScenario.group, gate: 'passing', maxUnavailable: '34%' },
  clockRates: { a: 0.5 },
  events: [
    { atMs: 1000, kind: 'setImage', image: 'app:2', zones: ['a', 'b'] },
    { atMs: 2000, kind: 'frontEndRestarts', frontEnd: 1, isCompacted: true },
  ],
  rates: { F1: 0.1 },
  faults: [
    { at: 'a1/act.deletePod#2', port: 'request', fault: { class: 'F11', kind: 'crash', moment: 'afterApply', restartAfterMs: 500 } },
    { at: 'a1/watch.pods#17', port: 'line', fault: { class: 'F8', kind: 'reconnectToPast', behindMs: 30_000 } },
    { at: 'b2/act.preparePod#1', port: 'pod', fault: { class: 'F21', kind: 'lie', byMs: -5000 } },
    { at: 'b2/gate.read#1', port: 'gate', fault: { class: 'F22', kind: 'nan' } },
  ],
};
const faultless: StoredPlan = { name: 'nothing-happens', finds: 'S1', why: 'Nothing was wrong.', ...quietScenario };
const plan: StoredPlan = { name: 'reply-of-a-delete-lost', finds: 'S7', why: 'The pod was deleted a second time.', ...faulty };

function problemOf(text: string): string {
  try {
    readScenario(text, 'some.json');
  } catch (error) {
    expect(error).toBeInstanceOf(PlanError);
    return (error as Error).message;
  }
  throw new Error('it was read');
}

const changed = (change: object): string => writeScenario({ ...faulty, ...change } as Scenario);

describe('scenarios as text', () => {
  it('come back as they were', () => {
    expect(readScenario(writeScenario(faulty), 'some.json')).toEqual(faulty);
    expect(readPlans(writeScenario([plan, faultless]), 'some.json')).toEqual([plan, faultless]);
  });

  it('come back as they were, for any draw', () => {
    for (let seed = 0; seed < 300; seed += 1) {
      const scenario = scenarioOf(seed);
      expect(readScenario(writeScenario(scenario), `seed ${seed}`)).toEqual(scenario);
    }
  });

  it('are formatted as the repository is', () => {
    const folder = mkdtempSync(join('test', 'simulation', '.written-'));
    try {
      writeFileSync(join(folder, 'plans.json'), writeScenario([plan, faultless]));
      writeFileSync(join(folder, 'seed.json'), writeScenario(scenarioOf(3)));
      expect(() =>
        execFileSync(process.execPath, ['node_modules/@biomejs/biome/bin/biome', 'format', folder], { stdio: 'pipe' }),
      ).not.toThrow();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('are read from a list of plans by name', () => {
    const text = writeScenario([faultless, plan]);
    expect(readScenario(text, 'some.json', plan.name)).toEqual(faulty);
    expect(() => readScenario(text, 'some.json', 'other')).toThrow(new PlanError('some.json has no plan other'));
  });

  it('say which plan of a list is wrong', () => {
    const read = (plans: unknown) => () => readPlans(JSON.stringify(plans), 'some.json');
    expect(read({})).toThrow('some.json is not a list of plans');
    expect(read([plan, { ...plan, why: '' }])).toThrow(/^some\.json#reply-of-a-delete-lost cannot be played:\n {2}why: /);
    expect(read([null])).toThrow('some.json#0 cannot be played:');
  });

  it.each([
    ['no JSON', '{', /^some\.json is not JSON: /],
    ['nothing', '{}', /^some\.json cannot be played:\n {2}seed: /],
    ['an event that is not known', changed({ events: [{ atMs: 1, kind: 'explode' }] }), /events\[0\]\.kind: /],
    ['an event without its zone', changed({ events: [{ atMs: 1, kind: 'podDies', ordinal: 0 }] }), /events\[0\]\.zone: /],
    [
      'a zone that is no letter',
      changed({ events: [{ atMs: 1, kind: 'nodeDrained', zone: 'zone-a' }] }),
      /events\[0\]\.zone: expected one lower-case letter/,
    ],
    ['events out of order', changed({ events: [...faulty.events].reverse() }), /events: setImage at 1000 ms comes after a later event/],
    ['a share of more than all', changed({ rates: { F1: 1.5 } }), /rates\.F1: /],
    ['a class that is not known', changed({ rates: { F99: 0.1 } }), /rates/],
    [
      'a fault of another class',
      changed({ faults: [{ ...faulty.faults[3], fault: { class: 'F1', kind: 'nan' } }] }),
      /faults\[0\]\.fault\.class: /,
    ],
    [
      'a place that is none',
      changed({ faults: [{ ...faulty.faults[0], at: 'act.deletePod' }] }),
      /faults\[0\]\.at: expected PROCESS\/SITE#N/,
    ],
    ['a field that is not known', changed({ speed: 2 }), /speed/],
  ])('say where they are wrong: %s', (_, text, problem) => {
    expect(problemOf(text)).toMatch(problem);
  });
});

const file = 'test/simulation/plans/found.json';
const plans = readPlans(readFileSync(file, 'utf8'), file);

describe('stored plans find nothing again', () => {
  it.each(shareOf(plans, 4).map((plan) => [plan.name, plan] as const))('%s', async (_, plan) => {
    const { failure } = await judge(plan, { isRepeated: true, compared: [] });
    expect(failure && `${failure.id}: ${failure.message}`).toBeUndefined();
  });
});
