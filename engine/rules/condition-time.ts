// When a condition that reads the time answers otherwise, if nothing but time passes.
import { evaluateCondition } from '../../policies/condition/condition.ts';

/** Later changes are left to be found by a later look. */
const horizonMs = 400 * 24 * 3_600_000;

/** Returns whether the condition reads the variable `now` or the operator `age`. */
export function readsTime(condition: unknown): boolean {
  return /"(?:now|age)"/.test(JSON.stringify(condition ?? ''));
}

/**
 * The instant from which on the condition answers otherwise than at `nowMs` with the same data; undefined when it reads no time, or nothing
 * changes within 400 days. The next change is found exactly where the time is compared once; a condition that is true now and then may
 * change before.
 */
export function changesAtMs(condition: unknown, data: Readonly<Record<string, unknown>>, nowMs: number): number | undefined {
  if (!readsTime(condition)) return undefined;
  const answerAt = (atMs: number): boolean | undefined => {
    const answer = evaluateCondition(condition, { ...data, now: atMs }, { nowMs: atMs });
    return answer.kind === 'value' ? answer.isTrue : undefined;
  };
  const current = answerAt(nowMs);
  let same = nowMs;
  for (let aheadMs = 1000; aheadMs <= horizonMs; aheadMs *= 2) {
    if (answerAt(nowMs + aheadMs) !== current) return firstOther(same, nowMs + aheadMs, (atMs) => answerAt(atMs) === current);
    same = nowMs + aheadMs;
  }
  return undefined;
}

/** Halves the span from an instant of the same answer to one of another until they are neighbours. */
function firstOther(same: number, other: number, isSame: (atMs: number) => boolean): number {
  let [low, high] = [same, other];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (isSame(middle)) low = middle;
    else high = middle;
  }
  return high;
}
