// Defines the eager operators of conditions, with the types of their arguments and results for the check of conditions.
import { didYouMean } from '../text/did-you-mean.ts';
import { any, boolean, type ConditionType, commonType, describeType, duration, instant, listOf, number, text } from './types.ts';

export interface Argument {
  readonly type: ConditionType;
  readonly node: unknown;
}

/** A function that reports the wrong type of the argument at this index. */
type Report = (index: number, message: string, hint?: string) => void;

/** A function that returns the type of the result, or `any` if a mistake hides it: outer operators then report no second problem. */
export type Signature = (args: readonly Argument[], report: Report) => ConditionType;

type Kind = ConditionType['kind'];

const ordered: readonly Kind[] = ['number', 'instant', 'duration'];
const scalars: readonly Kind[] = ['number', 'instant', 'duration', 'text', 'boolean'];

/** An operator: its name, the least and the most arguments (Infinity means no limit), and for eager operators the signature. */
export type OperatorRow = readonly [name: string, minArguments: number, maxArguments: number, signature?: Signature];

export const unlimited: number = Number.POSITIVE_INFINITY;

/** The operators that evaluate all arguments first. A signature may assume that the number of arguments is right. */
export const eagerOperators: readonly OperatorRow[] = [
  ['==', 2, 2, equality],
  ['!=', 2, 2, equality],
  ['===', 2, 2, equality],
  ['!==', 2, 2, equality],
  ['!', 1, 1, () => boolean],
  ['!!', 1, 1, () => boolean],
  ['>', 2, 2, ordering],
  ['>=', 2, 2, ordering],
  ['<', 2, 3, ordering],
  ['<=', 2, 3, ordering],
  ['substr', 2, 3, takes([['text'], ['number'], ['number']], text)],
  ['+', 1, unlimited, sum],
  ['-', 1, 2, difference],
  ['*', 2, unlimited, product],
  ['/', 2, 2, quotient],
  ['%', 2, 2, takes([['number'], ['number']], number)],
  ['min', 1, unlimited, outermost],
  ['max', 1, unlimited, outermost],
  ['in', 2, 2, membership],
  ['cat', 1, unlimited, (args, report) => (allOf(args, scalars, report) ? text : any)],
  ['merge', 1, unlimited, (args) => listOf(args.map(({ type }) => (type.kind === 'list' ? type.of : type)).reduce(commonType))],
  ['startsWith', 2, 2, takes([['text'], ['text']], boolean)],
  ['endsWith', 2, 2, takes([['text'], ['text']], boolean)],
  ['glob', 2, 2, takes([['text'], ['text']], boolean)],
  ['percentOf', 2, 2, takes([['number'], ['number']], number)],
  ['age', 1, 1, takes([['instant']], duration)],
];

/** Returns a hint that shows how to write a literal of the type duration or instant; undefined for other types. */
export function literalHint(type: ConditionType): string | undefined {
  if (type.kind === 'duration') return 'write a duration as { "duration": "6h" }';
  if (type.kind === 'instant') return 'write an instant as { "instant": "2026-01-15T10:00:00Z" }';
  return undefined;
}

function takes(kinds: readonly (readonly Kind[])[], returns: ConditionType): Signature {
  return (args, report) => (args.every((argument, index) => isOf(argument, kinds[index] ?? [], index, report)) ? returns : any);
}

function allOf(args: readonly Argument[], kinds: readonly Kind[], report: Report): boolean {
  return args.every((argument, index) => isOf(argument, kinds, index, report));
}

function isOf({ type }: Argument, kinds: readonly Kind[], index: number, report: Report): boolean {
  if (type.kind === 'any' || kinds.includes(type.kind)) return true;
  const expected = kinds.map((kind) => describeType({ kind }));
  report(
    index,
    `The argument is ${describeType(type)}; ${expected.join(', ').replace(/, ([^,]*)$/, ' or $1')} is expected`,
    nullHint(type),
  );
  return false;
}

function nullHint(type: ConditionType): string | undefined {
  return type.kind === 'nothing' ? 'use has or known; an absent value is unknown, never null' : undefined;
}

/** Returns the type that all arguments have. Reports the first argument of another type and returns `any`. */
function allSame(args: readonly Argument[], report: Report): ConditionType {
  const first = args.find(({ type }) => type.kind !== 'any')?.type ?? any;
  for (const [index, { type }] of args.entries()) {
    if (type.kind === 'any' || type.kind === first.kind) continue;
    const message = `The argument is ${describeType(type)}; the other arguments are ${describeType(first)}`;
    report(index, message, literalHint(first) ?? literalHint(type));
    return any;
  }
  return first;
}

function sentenceStart(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function equality(args: readonly Argument[], report: Report): ConditionType {
  if (!allOf(args, scalars, report)) return boolean;
  if (allSame(args, report).kind === 'text') for (const index of args.keys()) checkChoice(args, index, report);
  return boolean;
}

/** Reports text that never equals the other argument, because the other argument has a fixed list of values. */
function checkChoice(args: readonly Argument[], index: number, report: Report): void {
  const literal = args[index]?.node;
  const other = args[1 - index]?.type;
  if (typeof literal !== 'string' || other?.kind !== 'text' || other.values === undefined || other.values.includes(literal)) return;
  reportChoice(literal, other.values, index, report);
}

function reportChoice(literal: string, values: readonly string[], index: number, report: Report): void {
  const nearest = didYouMean(literal, values);
  const hint = nearest === undefined ? `the values are ${values.join(', ')}` : `did you mean ${JSON.stringify(nearest)}?`;
  report(index, `The variable is never ${JSON.stringify(literal)}`, hint);
}

function outermost(args: readonly Argument[], report: Report): ConditionType {
  return allOf(args, ordered, report) ? allSame(args, report) : any;
}

function ordering(args: readonly Argument[], report: Report): ConditionType {
  if (allOf(args, ordered, report)) allSame(args, report);
  return boolean;
}

function kindsOf(args: readonly Argument[]): string {
  return args.map(({ type }) => type.kind).join(' ');
}

function sum(args: readonly Argument[], report: Report): ConditionType {
  if (!allOf(args, ordered, report) || args.some(({ type }) => type.kind === 'any')) return any;
  const instants = args.filter(({ type }) => type.kind === 'instant').length;
  if (instants === 0) return allSame(args, report);
  const isMoved = instants === 1 && args.every(({ type }) => type.kind === 'instant' || type.kind === 'duration');
  if (isMoved) return instant;
  report(0, 'Only durations can be added to an instant', literalHint(duration));
  return any;
}

function difference(args: readonly Argument[], report: Report): ConditionType {
  if (!allOf(args, args.length === 1 ? ['number', 'duration'] : ordered, report) || args.some(({ type }) => type.kind === 'any'))
    return any;
  if (args.length === 1) return args[0]?.type ?? any;
  if (kindsOf(args) === 'instant instant') return duration;
  if (kindsOf(args) === 'instant duration') return instant;
  return allSame(args, report);
}

function product(args: readonly Argument[], report: Report): ConditionType {
  if (!allOf(args, ['number', 'duration'], report) || args.some(({ type }) => type.kind === 'any')) return any;
  const durations = args.filter(({ type }) => type.kind === 'duration').length;
  if (durations <= 1) return durations === 0 ? number : duration;
  report(1, 'A duration cannot be multiplied by a duration');
  return any;
}

function quotient(args: readonly Argument[], report: Report): ConditionType {
  if (!allOf(args, ['number', 'duration'], report) || args.some(({ type }) => type.kind === 'any')) return any;
  if (kindsOf(args) === 'duration number') return duration;
  return allSame(args, report).kind === 'any' ? any : number;
}

function membership(args: readonly Argument[], report: Report): ConditionType {
  const [item, container] = args;
  if (!item || !container || !isOf(container, ['list', 'text'], 1, report)) return boolean;
  if (container.type.kind === 'text') isOf(item, ['text'], 0, report);
  if (container.type.kind === 'list') checkMember(item, container, report);
  return boolean;
}

function checkMember(item: Argument, container: Argument, report: Report): void {
  if (container.type.kind !== 'list' || !isOf(item, scalars, 0, report)) return;
  const { of } = container.type;
  const { type } = item;
  if (type.kind !== 'any' && of.kind !== 'any' && type.kind !== of.kind) {
    report(0, `${sentenceStart(describeType(type))} is never in this list: each item is ${describeType(of)}`, literalHint(type));
  }
  if (type.kind !== 'text' || type.values === undefined || !Array.isArray(container.node)) return;
  for (const literal of container.node) {
    if (typeof literal === 'string' && !type.values.includes(literal)) reportChoice(literal, type.values, 1, report);
  }
}
