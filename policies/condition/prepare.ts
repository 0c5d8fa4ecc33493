// Converts a checked condition to the form that json-logic-js evaluates: our reads and bounded operators, and a price for each iteration.
import { operators } from './operators.ts';
import { operationOf } from './shape.ts';

/** Prefix of our operators in the table of json-logic-js, which is global to the process. No operator of the dialect starts with it. */
export const ourPrefix = '#';

/** The scope in which `var` reads: the label of the data in the list of reads, or undefined for elements of a literal list. */
interface Scope {
  readonly label: string | undefined;
  readonly isReduce: boolean;
}

/** `list`: the elements are read one by one later, so an unknown field inside an element is not read yet. */
type Position = 'value' | 'list';

/** Returns the condition in the form that json-logic-js evaluates. The condition must have passed `checkShape`. */
export function prepare(condition: unknown): unknown {
  return prepareNode(condition, { label: '', isReduce: false }, 'value');
}

/** Returns the cost of one evaluation: the number of nodes, plus one for each 64 characters of text. */
export function sizeOf(node: unknown): number {
  if (typeof node === 'string') return 1 + (node.length >> 6);
  if (typeof node !== 'object' || node === null) return 1;
  return Object.values(node).reduce<number>((sum, part) => sum + sizeOf(part), 1);
}

function prepareNode(node: unknown, scope: Scope, position: Position): unknown {
  if (Array.isArray(node)) return node.map((item) => prepareNode(item, scope, 'value'));
  const operation = operationOf(node);
  if (!operation) return node;
  const { name, args } = operation;
  const form = operators.get(name)?.form;
  if (form === 'reference') return prepareReference(name, args, scope, position);
  if (form === 'iterator') return prepareIterator(name, args, scope, position);
  const prepared = args.map((argument) => prepareNode(argument, scope, 'value'));
  return { [operators.get(name)?.isOurs ? ourPrefix + name : name]: prepared };
}

function prepareReference(name: string, args: readonly unknown[], scope: Scope, position: Position): unknown {
  const ours = ourPrefix + name;
  if (name === 'missing' || name === 'missing_some') {
    return { [ours]: [prefixOf(scope), ...args.map((argument) => prepareNode(argument, scope, 'value'))] };
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

/** Returns the label of the value at the end of the steps; null, which passes through json-logic-js unchanged, if the value is no data. */
function labelOf(scope: Scope, steps: readonly string[]): string | null {
  if (scope.label === undefined) return null;
  if (!scope.isReduce) return [...(scope.label === '' ? [] : [scope.label]), ...steps].join('.');
  return steps[0] === 'current' ? [scope.label, ...steps.slice(1)].join('.') : null;
}

function prefixOf(scope: Scope): string | null {
  if (scope.label === undefined || scope.isReduce) return null;
  return scope.label === '' ? '' : `${scope.label}.`;
}

/** Returns the label of the elements of a list: `group.zones[]` for those of `group.zones`, filtered or not. */
function elementLabel(list: unknown, scope: Scope): string | undefined {
  const operation = operationOf(list);
  if (operation?.name === 'filter') return elementLabel(operation.args[0], scope);
  if (operation?.name !== 'var' && operation?.name !== 'val') return undefined;
  const steps = operation.name === 'val' ? operation.args.map(String) : literalSteps(operation.args[0]);
  const label = steps && labelOf(scope, steps);
  return label === undefined || label === null ? undefined : `${label}[]`;
}
