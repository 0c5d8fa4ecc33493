// Converts counts and percentages of waves and budgets into whole numbers of pods.
import type { ScheduleDefinition, WaveAmount } from '../policies/definition.ts';
import type { CountOrPercent } from '../policies/schema/scalars.ts';

/**
 * Returns how many pods of a zone must be updated to complete a wave. Percentages are rounded up. In a zone of several pods, less than 100
 * percent leaves at least one pod outdated.
 */
export function waveTarget(amount: WaveAmount, replicas: number): number {
  if ('pods' in amount) return Math.min(amount.pods, replicas);
  if ('stage' in amount) return stageTarget(amount.schedule, amount.stage, replicas);
  if (amount.percent <= 0) return 0;
  if (amount.percent >= 100) return replicas;
  const rounded = Math.max(1, Math.ceil((amount.percent * replicas) / 100));
  return replicas > 1 ? Math.min(rounded, replicas - 1) : Math.min(rounded, replicas);
}

/**
 * Returns how many pods of a zone must be updated to complete a stage of a schedule. The number is rounded up and grows with each stage, up
 * to `replicas`. `linear` adds `step`, `geometric` adds `factor` times the last addition, `exponential` multiplies the total by `factor`.
 */
export function stageTarget(schedule: ScheduleDefinition, stage: number, replicas: number): number {
  const start = shareOf(schedule.start, replicas);
  if (schedule.kind === 'linear') return Math.min(replicas, start + stage * shareOf(schedule.step, replicas));
  let target = 0;
  let grown = 0;
  for (let index = 0; index <= stage && target < replicas; index += 1) {
    // The factor is in tenths. Whole numbers keep the powers of the factor exact, so the division by powers of ten comes last.
    const power = BigInt(10) ** BigInt(index);
    grown = Number((BigInt(start) * BigInt(schedule.tenths) ** BigInt(index) + power - 1n) / power);
    target = Math.max(target + 1, schedule.kind === 'geometric' ? target + grown : grown);
  }
  return Math.min(replicas, target);
}

function shareOf(amount: CountOrPercent, replicas: number): number {
  if (typeof amount === 'number') return Math.max(1, amount);
  return Math.max(1, Math.ceil((Number(amount.slice(0, -1)) * replicas) / 100));
}

/** Returns how many pods of a zone may be unavailable: a count unchanged, a percentage rounded down but at least 1. */
export function unavailableLimit(limit: CountOrPercent, replicas: number): number {
  if (typeof limit === 'number') return limit;
  return Math.max(1, Math.floor((Number(limit.slice(0, -1)) * replicas) / 100));
}

/** Returns ordinals as ascending ranges: `0-3,5`. */
export function ordinalRanges(ordinals: readonly number[]): string {
  const sorted = [...ordinals].sort((a, b) => a - b);
  const ranges: string[] = [];
  for (let start = 0; start < sorted.length; ) {
    let end = start;
    while (end + 1 < sorted.length && sorted[end + 1] === (sorted[end] ?? 0) + 1) end += 1;
    ranges.push(start === end ? `${sorted[start]}` : `${sorted[start]}-${sorted[end]}`);
    start = end + 1;
  }
  return ranges.join(',');
}

/** Returns the ordinals of ranges such as `0-3,5`; undefined if they do not ascend or are more than `most`. Never builds a longer list. */
export function ordinalsIn(ranges: string, most: number): readonly number[] | undefined {
  const ordinals: number[] = [];
  let last = -1;
  for (const range of ranges.split(',')) {
    const [first = 0, end = first] = range.split('-').map(Number);
    if (first <= last || end < first || ordinals.length + (end - first) + 1 > most) return undefined;
    for (let ordinal = first; ordinal <= end; ordinal += 1) ordinals.push(ordinal);
    last = end;
  }
  return ordinals;
}

/** Returns the ordinals of ranges; [] for an empty text, for another text, and for more ordinals than a zone can have. Users may write them. */
export function ordinalsOf(ranges: string): readonly number[] {
  return ranges === '' ? [] : (ordinalsIn(ranges, 100_000) ?? []);
}
