// Collects the constants of conditions, and the values next to them at which a comparison can change.
import { evaluateCondition } from '../policies/condition/condition.ts';
import type { GateDefinition } from '../policies/definition.ts';
import { parseDuration } from '../policies/duration.ts';
import { isRecord } from '../policies/values/is-record.ts';

interface Literals {
  readonly numbers: readonly number[];
  /** Texts that are no durations, without the paths of variables. */
  readonly texts: readonly string[];
  readonly durationsMs: readonly number[];
}

/** Returns the constants of a condition, each once. */
export function literalsOf(condition: unknown): Literals {
  const found = constantsOf(condition);
  const texts = found.filter((value) => typeof value === 'string');
  return {
    numbers: distinct(found.filter((value) => typeof value === 'number')),
    texts: distinct(texts.filter((text) => parseDuration(text) === undefined)),
    durationsMs: distinct(texts.flatMap((text) => parseDuration(text) ?? [])),
  };
}

function constantsOf(value: unknown): readonly (number | string)[] {
  if (typeof value === 'number' || typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(constantsOf);
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([operator, part]) => (/^(?:var|val|has|known|missing)$/.test(operator) ? [] : constantsOf(part)));
}

function distinct<T>(values: readonly T[]): readonly T[] {
  return [...new Set(values)];
}

/** The maximum number of values that are tried for one number. */
const maxValues = 12;

/** Returns each number with a value below and above it, sorted; at most 12 values. */
export function thresholdsOf(numbers: readonly number[]): readonly number[] {
  const around = numbers.flatMap((number) => {
    const step = Number.isInteger(number) ? 1 : Math.abs(number) / 2;
    return [number - step, number, number + step];
  });
  return [...distinct(around)].sort((a, b) => a - b).slice(0, maxValues);
}

/** Returns readings at which the gate passes; undefined if no usual value does. */
export function passingReadings({ pass, consecutive }: GateDefinition, nowMs: number): number[] | undefined {
  const candidates = [0, 1, 100, 1_000_000, -1, ...thresholdsOf(literalsOf(pass).numbers)];
  const value = candidates.find((candidate) => {
    const answer = evaluateCondition(pass, { value: candidate }, nowMs);
    return answer.kind === 'value' && answer.isTrue;
  });
  return value === undefined ? undefined : Array.from({ length: Math.min(100, consecutive) }, () => value);
}
