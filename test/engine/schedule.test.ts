import { describe, expect, it } from 'vitest';
import { stageTarget } from '../../engine/amount.ts';
import { decideGroup } from '../../engine/decide/decide.ts';
import type { ScheduleDefinition } from '../../policies/definition.ts';
import { scheduledWaves } from '../../policies/resolve/group.ts';
import type { ScheduleSpec } from '../../policies/schema/rollout-group.ts';
import { type GroupOverrides, group } from '../kit/groups.ts';
import { ago, hourMs, ledgerOf, outdatedSets, runOf, updatedPods } from '../kit/questions.ts';
import { podsIn } from '../kit/rolls.ts';
import { snapshotOf } from '../kit/snapshots.ts';

/** Every stage of a zone, cumulative. */
function stages(schedule: ScheduleDefinition, replicas: number): readonly number[] {
  const all = Array.from({ length: 60 }, (_, stage) => stageTarget(schedule, stage, replicas));
  return all.slice(0, all.indexOf(replicas) + 1);
}

const linear = (step: number | `${number}%`): ScheduleDefinition => ({ kind: 'linear', start: step, step });
const geometric = (tenths: number): ScheduleDefinition => ({ kind: 'geometric', start: 1, tenths });
const exponential = (tenths: number): ScheduleDefinition => ({ kind: 'exponential', start: 1, tenths });

describe('the stages of a schedule', () => {
  it.each([
    [3, [1, 2, 3], [1, 3], [1, 3], [1, 3], [1, 2, 3], [1, 3], [1, 3]],
    [5, [2, 4, 5], [1, 3, 5], [1, 4, 5], [1, 3, 5], [1, 2, 4, 5], [1, 3, 5], [1, 5]],
    [10, [3, 6, 9, 10], [1, 3, 7, 10], [1, 4, 10], [1, 3, 6, 10], [1, 2, 4, 8, 10], [1, 3, 9, 10], [1, 10]],
    [20, [5, 10, 15, 20], [1, 3, 7, 15, 20], [1, 4, 13, 20], [1, 3, 6, 10, 16, 20], [1, 2, 4, 8, 16, 20], [1, 3, 9, 20], [1, 10, 20]],
    [
      100,
      [25, 50, 75, 100],
      [1, 3, 7, 15, 31, 63, 100],
      [1, 4, 13, 40, 100],
      [1, 3, 6, 10, 16, 24, 36, 54, 80, 100],
      [1, 2, 4, 8, 16, 32, 64, 100],
      [1, 3, 9, 27, 81, 100],
      [1, 10, 100],
    ],
  ])('of %s pods grow strictly and end with all', (replicas, ...expected) => {
    const schedules = [linear('25%'), geometric(20), geometric(30), geometric(15), exponential(20), exponential(30), exponential(100)];
    expect(schedules.map((schedule) => stages(schedule, replicas))).toEqual(expected);
  });

  it('are as many for a thousand pods as the powers say', () => {
    expect(stages(geometric(15), 1000)).toHaveLength(16);
    expect(stages(exponential(20), 1000)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]);
  });

  it('never go down when replicas change', () => {
    for (const schedule of [linear('25%'), linear(3), geometric(15), exponential(30)]) {
      for (let replicas = 1; replicas < 60; replicas += 1) {
        for (let stage = 0; stage < 12; stage += 1) {
          const target = stageTarget(schedule, stage, replicas);
          expect(target).toBeGreaterThanOrEqual(Math.min(replicas, stage + 1));
          expect(stageTarget(schedule, stage, replicas + 1)).toBeGreaterThanOrEqual(target);
        }
      }
    }
  });
});

describe('the waves of a schedule', () => {
  const zones = group({ zones: ['a', 'b', 'c'] }).zones;
  const spec = (overrides: Partial<ScheduleSpec>): ScheduleSpec => ({
    kind: 'exponential',
    start: 1,
    factor: 4,
    soak: '30m',
    ...overrides,
  });

  it('are the first zone in stages that soak, then the others whole', () => {
    const waves = scheduledWaves(spec({}), zones);
    expect(waves.map(({ name, zones: of, after }) => `${name} ${of.join(',')} ${after.soakMs / 60_000}m`)).toEqual([
      'stage-1 a 30m',
      'stage-2 a 30m',
      'stage-3 a 30m',
      'stage-4 a 30m',
      'stage-5 a 30m',
      'stage-6 a 30m',
      'rest b,c 0m',
    ]);
    expect(waves.at(-2)?.amount).toEqual({ percent: 100 });
  });

  it('have no second part where there is one zone, and never more than a group may have waves', () => {
    expect(scheduledWaves(spec({}), zones.slice(0, 1)).at(-1)?.name).toBe('stage-6');
    expect(scheduledWaves(spec({ kind: 'linear', step: 1 }), zones)).toHaveLength(99);
    expect(scheduledWaves(spec({ kind: 'linear', start: '25%', step: '25%' }), zones)).toHaveLength(5);
  });
});

describe('a wave that has no pod which an earlier one has not', () => {
  const waves = scheduledWaves({ kind: 'exponential', start: 1, factor: 4, soak: '30m' }, group({ zones: ['a', 'b'] }).zones);
  const overrides: GroupOverrides = { zones: ['a', 'b'], rollout: { waves } };

  /** Zone a has three pods, all of them new; the wave of this index was just begun. */
  function begun(index: number) {
    const of = group(overrides);
    const target = { a: 'rev-2', b: 'rev-2' };
    const run = runOf({
      target,
      previous: { a: 'rev-1', b: 'rev-1' },
      wave: index,
      waveStartedMs: ago(1000),
      lastDisruptionMs: ago(hourMs),
    });
    const statefulSets = outdatedSets(['a', 'b']);
    return decideGroup(snapshotOf({ groups: [of], statefulSets, ledgers: [ledgerOf({ run })], ...podsIn({ a: updatedPods() }) }), of);
  }

  it('does not soak once more', () => {
    expect(begun(1).waits.map(({ rule }) => rule)).toEqual(['soak']);
    expect(begun(2).run?.wave).toBe(6);
    expect(begun(2).actions.map((action) => ('pod' in action ? action.pod : action.kind))).toEqual(['ingester-zone-b-2']);
  });
});
