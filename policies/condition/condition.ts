// Evaluates conditions: JsonLogic with the value *unknown*. The result is unknown exactly when evaluation reads an unknown value.
import jsonLogic, { type RulesLogic } from 'json-logic-js';
import { evaluating, spend } from './evaluation.ts';
import { conditionFunctions } from './functions.ts';
import { ourPrefix, prepare, sizeOf } from './prepare.ts';
import { isKnown, isThere, missing, read, readList, requireKnown } from './reading.ts';
import { checkShape } from './shape.ts';

type ConditionResult =
  | {
      readonly kind: 'value';
      readonly value: unknown;
      /** The truth of JsonLogic: false, 0, empty text, null and the empty list are false. */
      readonly isTrue: boolean;
      /** The variables that the answer depends on, sorted; `group.zones[].ready` is a field of the elements of a list. */
      readonly reads: readonly string[];
    }
  | {
      readonly kind: 'unknown';
      /** The unknown variable; empty if the condition itself is at fault. */
      readonly paths: readonly string[];
      readonly reason?: string;
    };

interface EvaluationOptions {
  /** The instant of the evaluation, in milliseconds since 1970-01-01T00:00:00Z; `age` measures from it. */
  readonly nowMs: number;
}

/**
 * Evaluates a condition over plain data and never throws. The result is unknown, with the reason, if the condition is not well-formed,
 * exceeds the step limit, or has an operator that cannot be applied to its values. `if`, `and`, `or` and the iterators evaluate only the
 * arguments that they need. In the data, `{ unknown: reason }` marks a value that could not be read. Prepared conditions are cached by
 * identity, so condition objects must not change.
 */
export function evaluateCondition(condition: unknown, data: unknown, options: EvaluationOptions): ConditionResult {
  const prepared = preparedOf(condition);
  if (prepared.problem !== undefined) return { kind: 'unknown', paths: [], reason: prepared.problem };
  registerOperators();
  const outcome = evaluating(options.nowMs, () => {
    spend(prepared.size);
    return applyLogic(prepared.logic, data);
  });
  if (outcome.kind === 'undecided') return { kind: 'unknown', paths: outcome.paths, reason: outcome.reason };
  return { kind: 'value', value: outcome.value, isTrue: jsonLogic.truthy(outcome.value), reads: outcome.reads };
}

interface Prepared {
  readonly logic: unknown;
  readonly size: number;
  /** The reason why the condition cannot be evaluated. */
  readonly problem?: string;
}

const preparedConditions = new WeakMap<object, Prepared>();

function preparedOf(condition: unknown): Prepared {
  if (typeof condition !== 'object' || condition === null) return prepareAnew(condition);
  const known = preparedConditions.get(condition);
  if (known) return known;
  const prepared = prepareAnew(condition);
  preparedConditions.set(condition, prepared);
  return prepared;
}

function prepareAnew(condition: unknown): Prepared {
  const [problem] = checkShape(condition);
  if (problem) return { logic: undefined, size: 0, problem: problem.message };
  return { logic: prepare(condition), size: sizeOf(condition) };
}

/** Passes a prepared condition to json-logic-js; the only place that converts our types to the types of the library. */
function applyLogic(logic: unknown, data: unknown): unknown {
  return jsonLogic.apply(logic as RulesLogic, data);
}

let isRegistered = false;

/** Adds our operators to the table of the library under a prefix, so that other users of the library see no change. */
function registerOperators(): void {
  if (isRegistered) return;
  for (const [name, code] of Object.entries(conditionFunctions)) jsonLogic.add_operation(ourPrefix + name, code);
  for (const [name, code] of Object.entries(readers)) jsonLogic.add_operation(ourPrefix + name, code);
  isRegistered = true;
}

type Reader = (this: unknown, label: string | null, ...args: readonly unknown[]) => unknown;

/** Operators that read the data, which json-logic-js passes as `this`. */
const readers: Readonly<Record<string, Reader>> = {
  read(label, path, fallback) {
    return read(this, label ?? undefined, path, fallback);
  },
  readList(label, path, fallback) {
    return readList(this, label ?? undefined, path, fallback);
  },
  has(label, path) {
    return isThere(this, label ?? undefined, path);
  },
  known(label, path) {
    return isKnown(this, label ?? undefined, path);
  },
  missing(prefix, ...paths) {
    return missing(this, prefix ?? undefined, Array.isArray(paths[0]) ? paths[0] : paths);
  },
  missing_some(prefix, fewest, paths) {
    const asked: readonly unknown[] = Array.isArray(paths) ? paths : [paths];
    const absent = missing(this, prefix ?? undefined, asked);
    return asked.length - absent.length >= Number(fewest) ? [] : absent;
  },
  whole(label, value) {
    requireKnown(value, label ?? '');
    return value;
  },
};
