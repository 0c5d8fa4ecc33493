// The operators that json-logic-js lacks, and those of its own that would grow without bound or return NaN where they cannot answer.

import { durationMs } from '../duration.ts';
import { instantMs } from '../instant.ts';
import { evaluationNowMs, spend, spendSearch, spendText, stop } from './evaluation.ts';

/** How long text and lists may become that a condition builds. */
const builtTextLength = 16_384;
const builtListLength = 10_000;

/** By name, as in the table of operators. All pure; none looks at the data. */
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

/** Whether the whole text matches; `*` stands for any number of characters, everything else for itself. */
function matchesGlob(value: string, pattern: string): boolean {
  spendSearch(value.length, pattern.length);
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return value === pattern;
  if (!value.startsWith(first)) return false;
  // Each part as far to the left as possible: if any placement fits, that one does.
  let position = first.length;
  for (const part of rest) {
    const found = value.indexOf(part, position);
    if (found === -1) return false;
    position = found + part.length;
  }
  return value.length - last.length >= position && value.endsWith(last);
}

/** `+` and `*` take text that begins with a number for that number, as classic JsonLogic does. */
function toFloat(value: unknown): number {
  return typeof value === 'number' ? value : Number.parseFloat(String(value));
}

/** JSON has no negative zero, and neither has the dialect: adding 0 makes it 0. */
function finite(operator: string, value: number): number {
  return Number.isFinite(value) ? value + 0 : stop(`the result of ${operator} is no finite number`);
}

function requireNumber(operator: string, value: unknown): number {
  return typeof value === 'number' ? value : stop(`${operator} takes numbers`);
}

function requireText(operator: string, value: unknown): string {
  return typeof value === 'string' ? value : stop(`${operator} takes text`);
}

function toInstant(value: unknown): number {
  return instantMs(requireText('instant', value)) ?? stop(`${JSON.stringify(value)} is no instant with an offset`);
}

function isIn(item: unknown, container: unknown): boolean {
  if (Array.isArray(container)) {
    spend(1 + (container.length >> 6));
    return container.includes(item);
  }
  // Empty text contains nothing, not even empty text: classic JsonLogic asks whether there is a container first.
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
