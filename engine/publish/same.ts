// Compares two published decisions, so that an unchanged group is not written again.
import type { PublishedDecision } from './published.ts';

/** The earliest instant of a wait that is retried moves on with each retry; within this it is the same. */
const earliestToleranceMs = 15 * 60_000;

/** Instants and counts that only age. */
const aging: ReadonlySet<string> = new Set(['decidedMs', 'wakeAtMs', 'atMs', 'readings', 'earliestMs']);

/** A length of time as facts name it: `12m`, `1h30m`, `3d`. */
const lengthOfTime = /\b\d+(?:\.\d+)?(?:ms|s|m|h|d|w)(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w))*\b/g;

/**
 * Returns whether nothing but time passed between the two: when they were decided, ages in facts, new readings of the same value, actions that were
 * repeated with the same result, and earliest instants that moved by no more than 15 minutes. Readings of metric inputs that others judge by must
 * not grow too old where they are published: `b` is another one when it has a reading that is newer by a third of the age that it may have.
 */
export function samePublished(a: PublishedDecision, b: PublishedDecision): boolean {
  return isSameButAges(a, b) && isSameEarliest(earliestOf(a), earliestOf(b)) && areMetricsFresh(a, b);
}

function areMetricsFresh({ metrics: before = [] }: PublishedDecision, { metrics = [] }: PublishedDecision): boolean {
  return metrics.every(({ atMs, maxAgeMs }, index) => {
    const beforeMs = before[index]?.atMs;
    return atMs === undefined || (beforeMs !== undefined && atMs - beforeMs < maxAgeMs / 3);
  });
}

/** Runs after every turn of every group, so it copies nothing. A member without a value counts as absent, as in JSON. */
function isSameButAges(a: unknown, b: unknown, key = ''): boolean {
  if (typeof a === 'string' && typeof b === 'string')
    return a === b || ((key === 'fact' || key === 'message') && ageless(a) === ageless(b));
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((member, index) => isSameButAges(member, b[index]));
  if (!isObject(a) || !isObject(b)) return a === b || JSON.stringify(a) === JSON.stringify(b);
  return hasAll(a, b) && hasAll(b, a) && Object.keys(a).every((name) => aging.has(name) || isSameButAges(a[name], b[name], name));
}

function ageless(text: string): string {
  return text.replace(lengthOfTime, '…');
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasAll(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(b).every((name) => b[name] === undefined || a[name] !== undefined || aging.has(name));
}

/** Returns the earliest instants of the waits in their order, which is the same for equal decisions. */
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
