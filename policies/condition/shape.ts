// Defines the operators and limits of conditions, and checks the shape that evaluation requires.
import type { FindingCode } from '../findings/codes.ts';
import { didYouMean } from '../text/did-you-mean.ts';
import { defined } from '../values/defined.ts';
import type { Path } from '../yaml/document.ts';
import { eagerOperators, type OperatorRow, type Signature, unlimited } from './signatures.ts';

export interface ConditionProblem {
  readonly code: FindingCode;
  /** The keys and indices from the condition to the place of the problem. */
  readonly path: Path;
  /** The message: one sentence without a full stop, subject first. */
  readonly message: string;
  readonly hint?: string;
}

export const conditionLimits = { depth: 32, nodes: 500, textLength: 4096, listLength: 256 } as const;

/** Returns the only operator of an object and its arguments; undefined if the node is not an operation. */
export function operationOf(
  node: unknown,
): { readonly name: string; readonly args: readonly unknown[]; readonly isList: boolean } | undefined {
  if (typeof node !== 'object' || node === null || Array.isArray(node)) return undefined;
  const [entry, ...more] = Object.entries(node);
  if (entry === undefined || more.length > 0) return undefined;
  const [name, value] = entry;
  return { name, args: Array.isArray(value) ? value : [value], isList: Array.isArray(value) };
}

/** Returns the problems that prevent evaluation; empty if the condition is safe to evaluate. */
export function checkShape(condition: unknown): readonly ConditionProblem[] {
  const walk: Walk = { problems: [], nodeCount: 0, isStopped: false };
  visit(walk, condition, []);
  return walk.problems;
}

interface Walk {
  readonly problems: ConditionProblem[];
  nodeCount: number;
  /** True after a limit of the whole condition was exceeded: one finding reports it, and the check ends. */
  isStopped: boolean;
}

function visit(walk: Walk, node: unknown, path: Path, depth = 1): void {
  if (walk.isStopped) return;
  walk.nodeCount += 1;
  if (walk.nodeCount > conditionLimits.nodes) stop(walk, 'RG3008', [], `The condition has more than ${conditionLimits.nodes} nodes`);
  else if (depth > conditionLimits.depth) stop(walk, 'RG3009', path, `The condition is nested more than ${conditionLimits.depth} deep`);
  else if (typeof node === 'string') visitText(walk, node, path);
  else if (Array.isArray(node)) visitList(walk, node, path, depth);
  else if (typeof node === 'object' && node !== null) visitOperation(walk, node, path, depth);
  else if (node !== null && typeof node !== 'boolean' && !Number.isFinite(node)) {
    walk.problems.push({ code: 'RG3005', path, message: 'The literal is not a finite number, text, boolean or null' });
  }
}

function stop(walk: Walk, code: FindingCode, path: Path, message: string): void {
  walk.isStopped = true;
  walk.problems.push({ code, path, message });
}

function visitText(walk: Walk, node: string, path: Path): void {
  if (node.length <= conditionLimits.textLength) return;
  const message = `The text has ${node.length} characters; at most ${conditionLimits.textLength} are allowed`;
  walk.problems.push({ code: 'RG3010', path, message });
}

function visitList(walk: Walk, node: readonly unknown[], path: Path, depth: number): void {
  if (node.length > conditionLimits.listLength) {
    const message = `The list has ${node.length} items; at most ${conditionLimits.listLength} are allowed`;
    walk.problems.push({ code: 'RG3011', path, message });
    return;
  }
  for (const [index, item] of node.entries()) visit(walk, item, [...path, index], depth + 1);
}

function visitOperation(walk: Walk, node: object, path: Path, depth: number): void {
  const names = Object.keys(node);
  const operation = operationOf(node);
  if (!operation) {
    const message =
      names.length === 0 ? 'The object has no operator' : `The object has ${names.length} operators: ${names.slice(0, 4).join(', ')}`;
    walk.problems.push({ code: 'RG3003', path, message });
    return;
  }
  if (!operators.has(operation.name)) walk.problems.push(unknownOperator(operation.name, path));
  // The length limit and the extra depth of lists do not apply to a list of arguments.
  for (const [index, argument] of operation.args.entries()) {
    visit(walk, argument, operation.isList ? [...path, operation.name, index] : [...path, operation.name], depth + 1);
  }
}

function unknownOperator(name: string, path: Path): ConditionProblem {
  const place = [...path, name];
  const reason = excludedOperators.get(name);
  const shown = JSON.stringify(name.slice(0, 64));
  if (reason !== undefined) return { code: 'RG3002', path: place, message: `The operator ${shown} is not supported: ${reason}` };
  const nearest = didYouMean(name.slice(0, 64), [...operators.keys()]);
  const message = `The operator ${shown} does not exist`;
  return { code: 'RG3001', path: place, message, ...(nearest === undefined ? {} : { hint: `did you mean ${JSON.stringify(nearest)}?` }) };
}

/**
 * The way in which an operator evaluates its arguments. `reference`: the arguments are the path of a variable. `iterator`: the second
 * argument is evaluated for each element of the first. `lazy`: arguments from the left, until the result is certain. `eager`: all arguments
 * before the operator. `literal`: one text, which is checked before the evaluation.
 */
type OperatorForm = 'reference' | 'iterator' | 'lazy' | 'eager' | 'literal';

export interface Operator {
  readonly form: OperatorForm;
  readonly minArguments: number;
  /** The maximum number of arguments; Infinity means no limit. */
  readonly maxArguments: number;
  /** Checks the types of the arguments; only for eager operators. */
  readonly signature?: Signature;
}

/** The operators by name: those of classic JsonLogic, and additions for rollouts. */
export const operators: ReadonlyMap<string, Operator> = new Map([
  ...operatorsOf('reference', [
    ['var', 1, 2],
    ['missing', 1, unlimited],
    ['missing_some', 2, 2],
    ['val', 1, unlimited],
    ['has', 1, unlimited],
    ['known', 1, unlimited],
  ]),
  ...operatorsOf('lazy', [
    ['if', 2, unlimited],
    ['?:', 3, 3],
    ['and', 1, unlimited],
    ['or', 1, unlimited],
  ]),
  ...operatorsOf('iterator', [
    ['map', 2, 2],
    ['filter', 2, 2],
    ['all', 2, 2],
    ['some', 2, 2],
    ['none', 2, 2],
    ['reduce', 3, 3],
    ['count', 1, 2],
  ]),
  ...operatorsOf('eager', eagerOperators),
  ...operatorsOf('literal', [
    ['duration', 1, 1],
    ['instant', 1, 1],
  ]),
]);

function operatorsOf(form: OperatorForm, rows: readonly OperatorRow[]): (readonly [string, Operator])[] {
  return rows.map(([name, minArguments, maxArguments, signature]) => [
    name,
    { form, minArguments, maxArguments, ...defined({ signature }) },
  ]);
}

/** The operators that JsonLogic or its dialects have and conditions exclude, each with the reason. */
const excludedOperators: ReadonlyMap<string, string> = new Map([
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
