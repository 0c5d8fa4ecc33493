// Where two recordings of one sequence differ, and how that is told.
import { normalise } from './normalise.ts';
import type { Operation, Recording, Sequence } from './operation.ts';

export interface Difference {
  /** Of the first operation that differs. */
  readonly index: number;
  /** Each `path: one | other`. */
  readonly lines: readonly string[];
  readonly one: unknown;
  readonly other: unknown;
}

/** The first difference; undefined when there is none. */
export function compare(one: Recording, other: Recording): Difference | undefined {
  const ones = normalise(one);
  const others = normalise(other);
  for (let index = 0; index < Math.max(ones.length, others.length); index += 1) {
    const lines = differences(ones[index], others[index], '');
    if (lines.length > 0) return { index, lines, one: ones[index], other: others[index] };
  }
  return undefined;
}

/** For whoever has to find out why: the sequence, where it differs, and both answers. `names` are those of the servers. */
export function tell({ theme, operations }: Sequence, difference: Difference, names: readonly [string, string]): string {
  const requests = operations.map((operation, index) => `${index === difference.index ? '>' : ' '} ${index} ${described(operation)}`);
  return [
    `theme ${theme}:`,
    ...requests,
    `they differ in (${names.join(' | ')}):`,
    ...difference.lines.map((line) => `  ${line}`),
    `${names[0]}: ${JSON.stringify(difference.one)}`,
    `${names[1]}: ${JSON.stringify(difference.other)}`,
  ].join('\n');
}

function described({ method, path, contentType, body, isWatch }: Operation): string {
  const text = body === undefined ? '' : ` ${typeof body === 'string' ? body : JSON.stringify(body)}`;
  return `${isWatch === true ? 'WATCH' : method} ${path}${contentType === undefined ? '' : ` (${contentType})`}${text}`;
}

function differences(one: unknown, other: unknown, path: string): readonly string[] {
  if (isComposed(one) && isComposed(other) && Array.isArray(one) === Array.isArray(other)) {
    const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])];
    return keys.flatMap((key) => differences(one[key], other[key], `${path}.${key}`));
  }
  const [left, right] = [JSON.stringify(one), JSON.stringify(other)];
  return left === right ? [] : [`${path}: ${left} | ${right}`];
}

function isComposed(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
