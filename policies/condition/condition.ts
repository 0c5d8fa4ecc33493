// Evaluates conditions of policies: JsonLogic with *unknown* as a third value.
import type { RulesLogic } from 'json-logic-js';
import jsonLogic from 'json-logic-js';
import { keptByObject } from '../values/map.ts';
import { conditionFunctions, evaluating, isKnown, isThere, missing, read, readList, requireKnown, spend } from './evaluation.ts';
import { checkShape, operationOf, operators } from './shape.ts';

type ConditionResult =
  | {
      readonly kind: 'value';
      readonly value: unknown;
      /** The truth value in JsonLogic: false, 0, empty text, null and the empty list are false. */
      readonly isTrue: boolean;
    }
  | {
      readonly kind: 'unknown';
      /** The unknown variable; empty if the condition itself is at fault. */
      readonly paths: readonly string[];
      readonly reason?: string;
    };

/**
 * Evaluates a condition. Never throws. Returns unknown with the reason if the condition is malformed, exceeds the step limit, has an
 * operator that cannot be applied, or reads an absent or unknown value (`{ unknown: reason }`). Lazy operators evaluate only the arguments
 * that they need. Caches prepared conditions by identity, so conditions must not change. `nowMs` is the instant of the evaluation in
 * milliseconds since 1970-01-01T00:00:00Z; `age` measures from it.
 */
export function evaluateCondition(condition: unknown, data: unknown, nowMs: number): ConditionResult {
  const prepared = preparedOf(condition);
  if (prepared.problem !== undefined) return { kind: 'unknown', paths: [], reason: prepared.problem };
  registerOperators();
  const outcome = evaluating(nowMs, () => {
    spend(prepared.size);
    return jsonLogic.apply(prepared.logic as RulesLogic, data);
  });
  if (outcome.kind === 'undecided') return { kind: 'unknown', paths: outcome.paths, reason: outcome.reason };
  return { kind: 'value', value: outcome.value, isTrue: jsonLogic.truthy(outcome.value) };
}

interface Prepared {
  readonly logic: unknown;
  readonly size: number;
  readonly problem?: string;
}

const prepareOnce: (condition: object) => Prepared = keptByObject(prepareNew);

function preparedOf(condition: unknown): Prepared {
  return typeof condition === 'object' && condition !== null ? prepareOnce(condition) : prepareNew(condition);
}

function prepareNew(condition: unknown): Prepared {
  const [problem] = checkShape(condition);
  if (problem) return { logic: undefined, size: 0, problem: problem.message };
  return { logic: prepareNode(condition, { label: '', isReduce: false }, 'value'), size: sizeOf(condition) };
}

let isRegistered = false;

/** Adds our operators to the table of the library under a prefix, so that other users of the library see no change. */
function registerOperators(): void {
  if (isRegistered) return;
  for (const [name, code] of Object.entries({ ...conditionFunctions, ...readers })) jsonLogic.add_operation(ourPrefix + name, code);
  isRegistered = true;
}

type Reader = (this: unknown, ...args: readonly unknown[]) => unknown;

/** Returns an operator that reads the data. json-logic-js passes the data as `this`. */
function reader(code: (data: unknown, label: string | undefined, path: unknown, fallback?: unknown) => unknown): Reader {
  return function (label, path, fallback) {
    return code(this, typeof label === 'string' ? label : undefined, path, fallback);
  };
}

const readers: Readonly<Record<string, Reader>> = {
  read: reader(read),
  readList: reader(readList),
  has: reader(isThere),
  known: reader(isKnown),
  missing(...paths) {
    return missing(this, Array.isArray(paths[0]) ? paths[0] : paths);
  },
  missing_some(fewest, paths) {
    const asked: readonly unknown[] = Array.isArray(paths) ? paths : [paths];
    const absent = missing(this, asked);
    return asked.length - absent.length >= Number(fewest) ? [] : absent;
  },
  whole(label, value) {
    requireKnown(value, String(label));
    return value;
  },
};

/** The prefix of our operators in the table of json-logic-js, which is global to the process. No operator of the dialect starts with it. */
const ourPrefix = '#';

/** The scope in which `var` reads. `label` names the data of the scope; undefined for elements of a literal or computed list. */
interface Scope {
  readonly label: string | undefined;
  readonly isReduce: boolean;
}

/** The use of a value. `list`: an iterator reads the elements later, so an unknown field inside an element does not count yet. */
type Position = 'value' | 'list';

/** Returns the number of steps that the nodes cost: one for each node, plus one for each 64 characters of text. */
function sizeOf(node: unknown): number {
  if (typeof node === 'string') return 1 + (node.length >> 6);
  if (typeof node !== 'object' || node === null) return 1;
  return Object.values(node).reduce<number>((sum, part) => sum + sizeOf(part), 1);
}

/** Returns the node in the form that json-logic-js evaluates. The condition must have passed `checkShape`. */
function prepareNode(node: unknown, scope: Scope, position: Position): unknown {
  if (Array.isArray(node)) return node.map((item) => prepareNode(item, scope, 'value'));
  const operation = operationOf(node);
  if (!operation) return node;
  const { name, args } = operation;
  const form = operators.get(name)?.form;
  if (form === 'reference') return prepareReference(name, args, scope, position);
  if (form === 'iterator') return prepareIterator(name, args, scope, position);
  const prepared = args.map((argument) => prepareNode(argument, scope, 'value'));
  return { [Object.hasOwn(conditionFunctions, name) ? ourPrefix + name : name]: prepared };
}

function prepareReference(name: string, args: readonly unknown[], scope: Scope, position: Position): unknown {
  const ours = ourPrefix + name;
  if (name === 'missing' || name === 'missing_some') {
    return { [ours]: args.map((argument) => prepareNode(argument, scope, 'value')) };
  }
  if (name === 'var') {
    const [path, ...fallback] = args;
    const read = ourPrefix + (position === 'list' ? 'readList' : 'read');
    const steps = literalSteps(path);
    const prepared = fallback.map((argument) => prepareNode(argument, scope, 'value'));
    // `checkCondition` rejects computed paths; only the official test suite uses them.
    if (!steps) return { [read]: [null, prepareNode(path, scope, 'value'), ...prepared] };
    return { [read]: [labelOf(scope, steps), steps, ...prepared] };
  }
  const steps = args.length === 1 && name !== 'val' ? (literalSteps(args[0]) ?? []) : args.map(String);
  if (name === 'val') return { [ourPrefix + (position === 'list' ? 'readList' : 'read')]: [labelOf(scope, steps), steps] };
  return { [ours]: [labelOf(scope, steps), steps] };
}

function prepareIterator(name: string, args: readonly unknown[], scope: Scope, position: Position): unknown {
  const [list, body, ...rest] = args;
  const inner: Scope = { label: elementLabel(list, scope), isReduce: name === 'reduce' };
  // `count` without a condition counts all elements.
  const price = { [`${ourPrefix}step`]: [prepareNode(body ?? true, inner, 'value'), sizeOf(body)] };
  const elements = prepareNode(list, scope, 'list');
  if (name === 'count') return { [`${ourPrefix}length`]: [{ filter: [elements, price] }] };
  const prepared = { [name]: [elements, price, ...rest.map((argument) => prepareNode(argument, scope, 'value'))] };
  const isWholeRead = name === 'filter' && position === 'value';
  return isWholeRead ? { [`${ourPrefix}whole`]: [inner.label?.slice(0, -'[]'.length) ?? '', prepared] } : prepared;
}

/** Returns the steps of a literal path; undefined for a computed path. */
function literalSteps(path: unknown): readonly string[] | undefined {
  if (path === undefined || path === null || path === '') return [];
  return typeof path === 'string' || typeof path === 'number' ? String(path).split('.') : undefined;
}

/**
 * Returns the label of the value at the end of the steps; null if the value does not come from the data, such as an element of a literal
 * list. json-logic-js keeps null unchanged.
 */
function labelOf(scope: Scope, steps: readonly string[]): string | null {
  if (scope.label === undefined) return null;
  if (!scope.isReduce) return [...(scope.label === '' ? [] : [scope.label]), ...steps].join('.');
  return steps[0] === 'current' ? [scope.label, ...steps.slice(1)].join('.') : null;
}

/** Returns the label of the elements of a list: `group.zones[]` for the elements of `group.zones`, also after a filter. */
function elementLabel(list: unknown, scope: Scope): string | undefined {
  const operation = operationOf(list);
  if (operation?.name === 'filter') return elementLabel(operation.args[0], scope);
  if (operation?.name !== 'var' && operation?.name !== 'val') return undefined;
  const steps = operation.name === 'val' ? operation.args.map(String) : literalSteps(operation.args[0]);
  const label = steps && labelOf(scope, steps);
  return label === undefined || label === null ? undefined : `${label}[]`;
}
