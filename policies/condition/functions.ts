// The operators that json-logic-js lacks, and replacements for its operators that grow without limit or return NaN.

import { durationMs } from '../duration.ts';
import { instantMs } from '../instant.ts';
import { evaluationNowMs, spend, spendSearch, spendText, stop } from './evaluation.ts';

/** Limits of the text and lists that a condition builds. */
const builtTextLength = 16_384;
const builtListLength = 10_000;

/** Functions by operator name. All are pure and do not read the data. */
export const conditionFunctions: Readonly<Record<string, (...args: readonly unknown[]) => unknown>> = {
  '+': (...args) =>
    finite(
      '+',
      args.map(toFloat).reduce((sum, value) => sum + value, 0),
    ),
  '*': (...args) =>
    args.length === 1
      ? args[0]
      : finite(
          '*',
          args.map(toFloat).reduce((product, value) => product * value),
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
  age: (value) => evaluationNowMs() - (typeof value === 'number' ? value : toInstant(value)),
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
  // Each part matches as far to the left as possible. If any placement matches, the leftmost one does.
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
