// The closed list of operators of conditions with their argument counts, and the excluded operators of other dialects with the reason.

/**
 * The evaluation of arguments by an operator. `reference`: the arguments name data. `iterator`: the second argument is evaluated once per
 * element of the first, with the element as its data. `lazy`: arguments are evaluated from the left as far as needed. `eager`: all
 * arguments are evaluated first. `literal`: the argument is text, checked before evaluation.
 */
type OperatorForm = 'reference' | 'iterator' | 'lazy' | 'eager' | 'literal';

export interface Operator {
  readonly form: OperatorForm;
  readonly fewest: number;
  readonly most: number;
  /** True if our function replaces the operator of json-logic-js or adds a missing one. */
  readonly isOurs: boolean;
}

const many = Number.POSITIVE_INFINITY;

/** Operators by name: classic JsonLogic first, then additions for rollouts. */
export const operators: ReadonlyMap<string, Operator> = new Map([
  ...both('reference', true, [
    ['var', 1, 2],
    ['missing', 1, many],
    ['missing_some', 2, 2],
    ['val', 1, many],
    ['has', 1, many],
    ['known', 1, many],
  ]),
  ...both('lazy', false, [
    ['if', 2, many],
    ['?:', 3, 3],
    ['and', 1, many],
    ['or', 1, many],
  ]),
  ...both('iterator', false, [
    ['map', 2, 2],
    ['filter', 2, 2],
    ['all', 2, 2],
    ['some', 2, 2],
    ['none', 2, 2],
    ['reduce', 3, 3],
  ]),
  ...both('iterator', true, [['count', 1, 2]]),
  ...both('eager', false, [
    ['==', 2, 2],
    ['!=', 2, 2],
    ['===', 2, 2],
    ['!==', 2, 2],
    ['!', 1, 1],
    ['!!', 1, 1],
    ['>', 2, 2],
    ['>=', 2, 2],
    ['<', 2, 3],
    ['<=', 2, 3],
    ['substr', 2, 3],
  ]),
  ...both('eager', true, [
    ['+', 1, many],
    ['-', 1, 2],
    ['*', 2, many],
    ['/', 2, 2],
    ['%', 2, 2],
    ['min', 1, many],
    ['max', 1, many],
    ['in', 2, 2],
    ['cat', 1, many],
    ['merge', 1, many],
    ['startsWith', 2, 2],
    ['endsWith', 2, 2],
    ['glob', 2, 2],
    ['percentOf', 2, 2],
    ['age', 1, 1],
  ]),
  ...both('literal', true, [
    ['duration', 1, 1],
    ['instant', 1, 1],
  ]),
]);

type Row = readonly [name: string, fewest: number, most: number];

function both(form: OperatorForm, isOurs: boolean, rows: readonly Row[]): (readonly [string, Operator])[] {
  return rows.map(([name, fewest, most]) => [name, { form, fewest, most, isOurs }] as const);
}

/** Operators of other JsonLogic dialects that are excluded on purpose, with the reason. */
export const excludedOperators: ReadonlyMap<string, string> = new Map([
  ['log', 'it has a side effect'],
  ['method', 'it calls code of the host'],
  ['regex', 'regular expressions can take exponential time; use glob, startsWith or endsWith'],
  ['match', 'regular expressions can take exponential time; use glob, startsWith or endsWith'],
  ['matches', 'regular expressions can take exponential time; use glob, startsWith or endsWith'],
  ['try', 'conditions have no errors to catch; use known to test whether a value could be read'],
  ['throw', 'conditions do not throw; use the effect of the rule'],
  ['exists', 'use has'],
  ['??', 'var takes a default as its second argument'],
  ['get', 'use var or val to read data'],
  ['length', 'use count for the number of elements of a list'],
  ['xor', 'use != and !!'],
  ['now', 'use the variable now'],
  ['random', 'the same state must give the same result'],
  ['fetch', 'declare inputs in spec.inputs'],
  ['eval', 'it runs code'],
]);
