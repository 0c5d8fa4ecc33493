// Whether two published decisions say the same, so that a quiet group is not written again.
import { canonicalJson } from '../hash.ts';
import type { PublishedDecision } from './published.ts';

/** The earliest instant of a wait that is retried moves on with each retry; within this it is the same. */
const earliestToleranceMs = 15 * 60_000;

/** Instants and counts that only age. */
const aging: ReadonlySet<string> = new Set(['decidedMs', 'wakeAtMs', 'atMs', 'readings', 'earliestMs']);

/** A length of time as facts name it: `12m`, `1h30m`, `3d`. */
const lengthOfTime = /\b\d+(?:\.\d+)?(?:ms|s|m|h|d|w)(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w))*\b/g;

/**
 * Whether nothing but time passed between the two: when they were decided, ages in facts, new readings of the same value, actions that were
 * repeated with the same result, and earliest instants that moved by no more than 15 minutes.
 */
export function samePublished(a: PublishedDecision, b: PublishedDecision): boolean {
  return canonicalJson(withoutAges(a)) === canonicalJson(withoutAges(b)) && isSameEarliest(earliestOf(a), earliestOf(b));
}

function withoutAges(value: unknown, key = ''): unknown {
  if (typeof value === 'string') return key === 'fact' || key === 'message' ? value.replace(lengthOfTime, '…') : value;
  if (Array.isArray(value)) return value.map((member) => withoutAges(member));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !aging.has(name))
      .map(([name, member]: [string, unknown]) => [name, withoutAges(member, name)]),
  );
}

/** Of the waits, in their order: the same decisions have the same waits in the same order. */
function earliestOf({ waits }: PublishedDecision): readonly (number | undefined)[] {
  return waits.map(({ earliestMs }) => earliestMs);
}

function isSameEarliest(a: readonly (number | undefined)[], b: readonly (number | undefined)[]): boolean {
  return a.every((instant, index) => {
    const other = b[index];
    if (instant === undefined || other === undefined) return instant === other;
    return Math.abs(instant - other) <= earliestToleranceMs;
  });
}
