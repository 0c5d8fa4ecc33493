// Evaluates one condition for condition.ts: limits the steps, and provides the operators that json-logic-js lacks or does not limit.
import { durationMs } from '../duration.ts';
import { messageOf } from '../error-message.ts';
import { instantMs } from '../instant.ts';
import { isUnknownValue } from './variables.ts';

interface Undecided {
  /** The unknown variable that was read; empty if the evaluation itself was at fault. */
  readonly paths: readonly string[];
  readonly reason: string;
}

interface Evaluation {
  readonly nowMs: number;
  fuel: number;
  undecided?: Undecided;
}

/** The limit of steps of one evaluation, so that no condition delays an admission request. One step takes about a microsecond. */
const fuelPerEvaluation = 20_000;

/** The value that ends an evaluation: thrown through json-logic-js, which has no other early exit, and caught in `evaluating`. */
const stopSignal = Symbol('undecided');

// json-logic-js passes only the arguments and the data to operators, so a variable holds the evaluation. Evaluation is synchronous.
let current: Evaluation | undefined;

type Outcome<Value> = { readonly kind: 'value'; readonly value: Value } | ({ readonly kind: 'undecided' } & Undecided);

/** Runs one evaluation. An error means *undecided*: json-logic-js throws TypeErrors, and an error must not count as permission. */
export function evaluating<Value>(nowMs: number, evaluate: () => Value): Outcome<Value> {
  const outer = current;
  const evaluation: Evaluation = { nowMs, fuel: fuelPerEvaluation };
  current = evaluation;
  try {
    return { kind: 'value', value: evaluate() };
  } catch (error) {
    if (error === stopSignal && evaluation.undecided) return { kind: 'undecided', ...evaluation.undecided };
    const text = messageOf(error);
    return { kind: 'undecided', paths: [], reason: `the condition cannot be evaluated: ${text}` };
  } finally {
    current = outer;
  }
}

function stop(reason: string, path?: string): never {
  if (current) current.undecided = { paths: path === undefined ? [] : [path], reason };
  throw stopSignal;
}

/** Subtracts steps before the work starts, or ends the evaluation if too few steps are left. */
export function spend(steps: number): void {
  if (!current) return;
  current.fuel -= steps;
  if (current.fuel < 0) stop(`the condition needs more than ${fuelPerEvaluation} steps`);
}

/** Subtracts the steps for a value of this many characters: one step, and one more for each 64 characters. */
function spendText(length: number): void {
  spend(1 + (length >> 6));
}

/** Subtracts the steps for a search. The worst case of a search grows with both lengths. */
function spendSearch(textLength: number, patternLength: number): void {
  spend(1 + Math.ceil((textLength * patternLength) / 4096));
}

/** Returns the value of a variable. Ends the evaluation as unknown if the value is unreadable, or absent or null without a default. */
export function read(data: unknown, label: string | undefined, path: unknown, fallback?: unknown): unknown {
  const value = readList(data, label, path, fallback);
  requireKnown(value, label ?? toSteps(path).join('.'));
  return value;
}

/** Returns a list for an iterator. Like `read`, but an unknown value inside an element does not end the evaluation. */
export function readList(data: unknown, label: string | undefined, path: unknown, fallback?: unknown): unknown {
  const steps = paidSteps(path);
  const name = label ?? steps.join('.');
  const value = locate(data, steps);
  if (isUnknownValue(value)) return stop(value.unknown, name);
  if (value !== undefined && value !== null) return value;
  return fallback === undefined ? stop('absent', name) : fallback;
}

/** Reports whether a value exists, readable or not. Ends the evaluation as unknown if a parent of the value could not be read. */
export function isThere(data: unknown, label: string | undefined, path: unknown): boolean {
  const steps = paidSteps(path);
  const parent = locate(data, steps.slice(0, -1));
  if (isUnknownValue(parent)) return stop(parent.unknown, label ?? steps.join('.'));
  const value = locate(parent, steps.slice(-1));
  return value !== undefined && value !== null;
}

/** Reports whether a value exists and could be read. */
export function isKnown(data: unknown, _label: string | undefined, path: unknown): boolean {
  const value = locate(data, paidSteps(path));
  return value !== undefined && value !== null && !isUnknownValue(value);
}

/** Returns the paths whose value is absent, unreadable, null or empty text. */
export function missing(data: unknown, paths: readonly unknown[]): readonly unknown[] {
  return paths.filter((path) => {
    const value = locate(data, paidSteps(path));
    return value === undefined || value === null || value === '' || isUnknownValue(value);
  });
}

/** Ends the evaluation if the value contains an unknown value or a number that is not finite. */
export function requireKnown(value: unknown, name: string): void {
  if (typeof value === 'number' && !Number.isFinite(value)) stop('not a finite number', name);
  spendText(typeof value === 'string' ? value.length : 0);
  if (typeof value !== 'object' || value === null) return;
  if (isUnknownValue(value)) stop(value.unknown, name);
  for (const [key, item] of Object.entries(value)) requireKnown(item, Array.isArray(value) ? `${name}[]` : `${name}.${key}`);
}

/** Returns the steps of a path after their cost is subtracted. */
function paidSteps(path: unknown): readonly string[] {
  const steps = toSteps(path);
  spend(1 + steps.length);
  return steps;
}

/** Returns the steps of a path: a list unchanged, text split at its dots, no steps for the data itself. */
function toSteps(path: unknown): readonly string[] {
  if (path === undefined || path === null || path === '') return [];
  return Array.isArray(path) ? path.map(String) : String(path).split('.');
}

/** Returns the value at the end of the steps, the marker of the first unknown value on the way, or undefined. */
function locate(data: unknown, steps: readonly string[]): unknown {
  let value = data;
  for (const step of steps) {
    if (isUnknownValue(value)) return value;
    value = ownProperty(value, step);
  }
  return value;
}

/** Returns an own property. A list has only its elements, text has no properties, and the prototype is not readable. */
function ownProperty(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(name) ? value[Number(name)] : undefined;
  return Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}

/** The most characters of a text that `cat` can build, and the most items of a list that `merge` can build. */
const builtTextLength = 16_384;
const builtListLength = 10_000;

/** The functions that replace operators of json-logic-js or add missing ones, by name. None reads the data. */
export const conditionFunctions: Readonly<Record<string, (...args: readonly unknown[]) => unknown>> = {
  '+': (...args) =>
    finite(
      '+',
      args.reduce<number>((sum, value) => sum + toFloat(value), 0),
    ),
  '*': (...args) =>
    args.length === 1
      ? args[0]
      : finite(
          '*',
          args.reduce<number>((product, value) => product * toFloat(value), 1),
        ),
  '-': (a, b) => finite('-', b === undefined ? -Number(a) : Number(a) - Number(b)),
  '/': (a, b) => finite('/', Number(a) / Number(b)),
  '%': (a, b) => finite('%', Number(a) % Number(b)),
  min: (...args) => finite('min', Math.min(...args.map(Number))),
  max: (...args) => finite('max', Math.max(...args.map(Number))),
  percentOf: (part, whole) => finite('percentOf', (requireNumber('percentOf', part) / requireNumber('percentOf', whole)) * 100),
  in: isIn,
  cat: concatenateText,
  merge: concatenateLists,
  startsWith: (value, prefix) => requireText('startsWith', value).startsWith(requireText('startsWith', prefix)),
  endsWith: (value, suffix) => requireText('endsWith', value).endsWith(requireText('endsWith', suffix)),
  glob: (value, pattern) => matchesGlob(requireText('glob', value), requireText('glob', pattern)),
  duration: (value) => durationMs(requireText('duration', value)),
  instant: toInstant,
  age: (value) => (current?.nowMs ?? Number.NaN) - (typeof value === 'number' ? value : toInstant(value)),
  length: (list) => (Array.isArray(list) ? list.length : 0),
  step: (value, price) => {
    spend(Number(price));
    return value;
  },
};

/** Reports whether the whole text matches; `*` matches any number of characters, every other character matches itself. */
function matchesGlob(value: string, pattern: string): boolean {
  spendSearch(value.length, pattern.length);
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return value === pattern;
  if (!value.startsWith(first)) return false;
  // Each part is matched at its leftmost position. If the pattern matches at all, it matches at these positions.
  let position = first.length;
  for (const part of rest) {
    const found = value.indexOf(part, position);
    if (found === -1) return false;
    position = found + part.length;
  }
  return value.length - last.length >= position && value.endsWith(last);
}

/** Returns the number at the start of a text, as `+` and `*` of classic JsonLogic do. */
function toFloat(value: unknown): number {
  return typeof value === 'number' ? value : Number.parseFloat(String(value));
}

/** Ends the evaluation if the number is not finite. Adding 0 turns negative zero, which JSON lacks, into 0. */
function finite(operator: string, value: number): number {
  return Number.isFinite(value) ? value + 0 : stop(`the result of ${operator} is not a finite number`);
}

function requireNumber(operator: string, value: unknown): number {
  return typeof value === 'number' ? value : stop(`${operator} takes numbers`);
}

function requireText(operator: string, value: unknown): string {
  return typeof value === 'string' ? value : stop(`${operator} takes text`);
}

function toInstant(value: unknown): number {
  return instantMs(requireText('instant', value)) ?? stop(`${JSON.stringify(value)} is not an instant with an offset`);
}

function isIn(item: unknown, container: unknown): boolean {
  if (Array.isArray(container)) {
    spend(1 + (container.length >> 6));
    return container.includes(item);
  }
  // Empty text contains nothing, not even empty text: classic JsonLogic first checks that the container is not empty.
  if (typeof container !== 'string' || container === '') return false;
  const part = String(item);
  spendSearch(container.length, part.length);
  return container.includes(part);
}

function concatenateText(...args: readonly unknown[]): string {
  const result = args.join('');
  if (result.length > builtTextLength) return stop(`the text that cat builds has more than ${builtTextLength} characters`);
  spendText(result.length);
  return result;
}

function concatenateLists(...args: readonly unknown[]): readonly unknown[] {
  const length = args.reduce<number>((sum, item) => sum + (Array.isArray(item) ? item.length : 1), 0);
  if (length > builtListLength) return stop(`the list that merge builds has more than ${builtListLength} items`);
  spend(1 + length);
  return args.flat(1);
}
