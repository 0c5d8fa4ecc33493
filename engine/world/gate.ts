// The readings that a plan assumes of a gate: one per period, all passing or all failing.
import { evaluateCondition } from '../../policies/condition/condition.ts';
import type { GateDefinition } from '../../policies/definition.ts';
import type { Assumptions } from '../plan/assumptions.ts';
import type { GateReading } from '../snapshot.ts';

/** Values that are tried before those that the condition itself names. */
const plainValues: readonly number[] = [0, 1, 0.5, 100, 1e9, -1, -1e9];

/**
 * The readings of a gate from `fromMs`, its initial delay being over, up to `nowMs`, every period. Only the last ones are made, as many as the
 * gate can count. The value is one for which the gate's condition answers as assumed; when none is found, the readings are errors that say so.
 */
export function modelReadings(
  gate: GateDefinition,
  fromMs: number,
  nowMs: number,
  assumption: Assumptions['gates'],
): readonly GateReading[] {
  if (nowMs < fromMs) return [];
  const periods = gate.everyMs > 0 ? Math.floor((nowMs - fromMs) / gate.everyMs) : 0;
  const counted = Math.max(gate.consecutive, gate.failureLimit);
  const value = assumedValue(gate, assumption, nowMs);
  const readings: GateReading[] = [];
  for (let period = Math.max(0, periods - counted); period <= periods; period += 1) {
    const atMs = fromMs + period * gate.everyMs;
    if (value !== undefined) readings.push({ atMs, result: 'value', value });
    else readings.push({ atMs, result: 'error', message: `no value was found for which gate ${gate.name} would ${assumption}` });
  }
  return readings;
}

/** A value for which the condition answers as assumed; conditions on the time are asked at this instant. */
function assumedValue(gate: GateDefinition, assumption: Assumptions['gates'], nowMs: number): number | undefined {
  const candidates = [...plainValues, ...numbersIn(gate.pass).flatMap((number) => [number, number + 1, number - 1])];
  return candidates.find((value) => {
    const answer = evaluateCondition(gate.pass, { value }, { nowMs });
    return answer.kind === 'value' && answer.isTrue === (assumption === 'pass');
  });
}

function numbersIn(condition: unknown): readonly number[] {
  if (typeof condition === 'number') return [condition];
  if (typeof condition !== 'object' || condition === null) return [];
  return Object.values(condition).flatMap(numbersIn);
}
