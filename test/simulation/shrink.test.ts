import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PlacedFault } from '../../simulation/faults/fault.ts';
import type { Scenario } from '../../simulation/scenario.ts';
import { type Attempt, fewest, shrink } from '../../simulation/shrink.ts';
import { quietScenario } from './scenarios.ts';

const lost = (at: string): PlacedFault => ({ at, port: 'request', fault: { class: 'F1', kind: 'lost', isSilent: false } });
const replyLost = (at: string): PlacedFault => ({ at, port: 'request', fault: { class: 'F2', kind: 'replyLost', isSilent: true } });

/** What rates lead to in these tests: forty faults, of which one matters. */
const recorded: readonly PlacedFault[] = [
  ...Array.from({ length: 39 }, (_, index) => lost(`b1/lease.renew#${index + 1}`)),
  replyLost('a1/act.deletePod#2'),
];

const failing: Scenario = {
  ...quietScenario,
  agents: 3,
  clockRates: { a: 1.2 },
  group: { ...quietScenario.group, zones: 4, podsPerZone: 5, gate: 'flipping', minReadySeconds: 5 },
  rates: { F1: 0.1, F2: 0.02 },
  events: [
    { atMs: 10_000, kind: 'setImage', image: 'app:2', zones: ['a', 'd'] },
    { atMs: 20_000, kind: 'podDies', zone: 'd', ordinal: 1 },
    { atMs: 30_000, kind: 'crash', process: 'c', restartAfterMs: 1000 },
    { atMs: 90_000, kind: 'podFails', zone: 'b', ordinal: 0, forMs: 5000 },
  ],
};

/** Fails as long as the reply to that delete is lost while an image is rolled out in a group of at least two zones. */
function attempt(scenario: Scenario): Attempt {
  const placed = Object.keys(scenario.rates).length > 0 ? recorded : scenario.faults;
  const isRolled = scenario.events.some(({ kind, atMs }) => kind === 'setImage' && atMs < scenario.safetyMs);
  const fails =
    isRolled && scenario.group.zones >= 2 && placed.some(({ at }) => at === 'a1/act.deletePod#2') && scenario.safetyMs >= 47_500;
  return { placed, ...(fails ? { failure: 'S7', failedAtMs: 47_123 } : {}) };
}

describe('shrink', () => {
  it('leaves what the failure needs', async () => {
    const { scenario, isCutShort } = await shrink(failing, 'S7', async (candidate) => attempt(candidate));
    expect(isCutShort).toBe(false);
    expect(scenario).toEqual({
      ...quietScenario,
      agents: 1,
      group: { ...quietScenario.group, zones: 2, podsPerZone: 1 },
      safetyMs: 48_000,
      events: [{ atMs: 10_000, kind: 'setImage', image: 'app:2', zones: ['a'] }],
      faults: [replyLost('a1/act.deletePod#2')],
    });
  });

  it('leaves out the other groups that the failure does not need, and their events', async () => {
    const [first, second] = ['one', 'two'].map((name) => ({ namespace: 'mimir', name, group: failing.group, events: failing.events }));
    if (first === undefined || second === undefined) throw new Error('there are two groups');
    const isNeeded = ({ others = [] }: Scenario): boolean =>
      others.some(({ name, events }) => name === 'two' && events.some(({ kind }) => kind === 'podDies'));
    const { scenario } = await shrink({ ...failing, others: [first, second] }, 'S7', async (candidate) => {
      const { failure, ...rest } = attempt(candidate);
      return { ...rest, ...(isNeeded(candidate) && failure !== undefined ? { failure } : {}) };
    });
    expect(scenario.others).toEqual([{ ...second, events: [{ atMs: 20_000, kind: 'podDies', zone: 'd', ordinal: 1 }] }]);
    const { scenario: alone } = await shrink({ ...failing, others: [first] }, 'S7', async (candidate) => attempt(candidate));
    expect(alone.others).toBeUndefined();
  });

  it('takes no other failure for the one that was found', async () => {
    // With less than three agents it fails as well, otherwise.
    const { scenario } = await shrink(failing, 'S7', async (candidate) =>
      candidate.agents < 3 ? { ...attempt(candidate), failure: 'S1' } : attempt(candidate),
    );
    expect(scenario.agents).toBe(3);
  });

  it('keeps the rates that matter when the faults at their places alone do not do it', async () => {
    const { scenario } = await shrink(failing, 'S7', async (candidate) => ({
      placed: recorded,
      ...(candidate.rates.F2 === undefined ? {} : { failure: 'S7' }),
    }));
    expect(scenario.rates).toEqual({ F2: 0.02 });
    expect(scenario.faults).toEqual([]);
  });

  it('runs no more often than it may, and says when there was more to try', async () => {
    let runs = 0;
    const shrunk = await shrink(
      failing,
      'S7',
      async (candidate) => {
        runs += 1;
        return attempt(candidate);
      },
      12,
    );
    expect(runs).toBe(12);
    expect(shrunk.isCutShort).toBe(true);
    expect(attempt(shrunk.scenario).failure).toBe('S7');
  });

  it('keeps the given objects', async () => {
    const given = { namespace: 'mimir', name: 'ingester', statefulSets: ['ingester-zone-a'], objects: [], policies: [], changes: [] };
    const { scenario } = await shrink({ ...failing, given }, 'S7', async (candidate) => attempt(candidate));
    expect(scenario.group).toEqual(failing.group);
    expect(scenario.given).toEqual(given);
  });

  it('refuses to shrink what does not fail so', async () => {
    await expect(shrink(quietScenario, 'S7', async (candidate) => attempt(candidate))).rejects.toThrow(
      'expected the failure S7, found no failure',
    );
  });
});

it('keeps what is needed and nothing else, in the same order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.integer({ min: 0, max: 60 }), { maxLength: 40 }), fc.func(fc.boolean()), async (items, isNeeded) => {
      const needed = items.filter((item) => isNeeded(item));
      const found = await fewest(items, async (kept) => needed.every((item) => kept.includes(item)));
      expect(found).toEqual(needed);
    }),
  );
});

it('answers something that is still so when what is needed depends on the rest', async () => {
  // Either 7 and 9 together, or at least ten of them.
  const isSo = (kept: readonly number[]): boolean => (kept.includes(7) && kept.includes(9)) || kept.length >= 10;
  const found = await fewest(
    Array.from({ length: 30 }, (_, index) => index),
    async (kept) => isSo(kept),
  );
  expect(isSo(found)).toBe(true);
  for (const item of found) expect(isSo(found.filter((other) => other !== item))).toBe(false);
});

it('asks far less often than there are subsets', async () => {
  let asked = 0;
  await fewest(
    Array.from({ length: 256 }, (_, index) => index),
    async (kept) => {
      asked += 1;
      return kept.includes(100) && kept.includes(200);
    },
  );
  expect(asked).toBeLessThan(60);
});

it('keeps everything unless less is enough', async () => {
  expect(await fewest([1, 2, 3], async () => false)).toEqual([1, 2, 3]);
});
