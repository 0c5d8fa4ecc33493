// The waves that a schedule is the short form of.
import type { ScheduleDefinition, WaveDefinition, ZoneDefinition } from '../definition.ts';
import { durationMs } from '../duration.ts';
import type { ScheduleSpec } from '../schema/schedule.ts';

/** More than a zone has stages for; those beyond have nothing to add and are passed at once. */
const mostStages = 98;
/** Zones have more pods than this seldom, and then the last stage is larger than the schedule says. */
const manyPods = 1_000;

/**
 * The first zone in stages that grow as the schedule says, each followed by its soak; then the other zones whole, one after the other. So a version that is bad
 * has reached one zone only. How many pods a stage is depends on the replicas of the moment; at most 98 stages, of which the last takes what is left.
 */
export function scheduledWaves(spec: ScheduleSpec, zones: readonly ZoneDefinition[]): readonly WaveDefinition[] {
  const [first, ...others] = zones.map(({ name }) => name);
  if (first === undefined) return [];
  const schedule = scheduleOf(spec);
  const soakMs = spec.soak === undefined ? 0 : durationMs(spec.soak);
  const wave = (name: string, of: readonly string[], amount: WaveDefinition['amount']): WaveDefinition => ({
    name,
    zones: of,
    amount,
    before: { gates: [] },
    after: { soakMs, gates: [] },
  });
  const count = stagesOf(schedule);
  const stages = Array.from({ length: count }, (_, stage) =>
    wave(`stage-${stage + 1}`, [first], stage === count - 1 ? { percent: 100 } : { stage, schedule }),
  );
  const rest = others.length === 0 ? [] : [{ ...wave('rest', others, { percent: 100 }), after: { soakMs: 0, gates: [] } }];
  return [...stages, ...rest];
}

function scheduleOf({ kind, start, step = '100%', factor = 2 }: ScheduleSpec): ScheduleDefinition {
  return kind === 'linear' ? { kind, start, step } : { kind, start, tenths: Math.round(factor * 10) };
}

/** Number of stages of a large zone; percentages give the same number for every zone. */
function stagesOf(schedule: ScheduleDefinition): number {
  let count = 1;
  for (let pods = sizeOf(schedule.start); pods < manyPods && count < mostStages; count += 1) pods = grown(schedule, pods, count);
  return count;
}

function grown(schedule: ScheduleDefinition, pods: number, stage: number): number {
  if (schedule.kind === 'linear') return pods + sizeOf(schedule.step);
  const factor = schedule.tenths / 10;
  return Math.max(pods + 1, schedule.kind === 'exponential' ? pods * factor : pods + sizeOf(schedule.start) * factor ** stage);
}

function sizeOf(amount: ScheduleDefinition['start']): number {
  return typeof amount === 'number' ? Math.max(1, amount) : (Number(amount.slice(0, -1)) * manyPods) / 100;
}
