// Turns a checked condition into what json-logic-js evaluates: reads and bounded operators in place of its own, a price on every iteration.
import { operators } from './operators.ts';
import { operationOf } from './shape.ts';

/** Prefix of our operators in the table of json-logic-js, which is global to the process. No operator of the dialect begins with it. */
export const ourPrefix = '#';

/** Where `var` looks: the label of the data in the list of reads, or nothing when it is no data (elements of a literal list). */
interface Scope {
  readonly label: string | undefined;
  readonly isReduce: boolean;
}

/** `list`: the elements will be looked at one by one, so an unknown field inside one of them is not read yet. */
type Position = 'value' | 'list';

/** The condition must have passed `checkShape`. */
export function prepare(condition: unknown): unknown {
  return prepareNode(condition, { label: '', isReduce: false }, 'value');
}

/** Nodes of a condition, with one more for each 64 characters of text: what evaluating it once may cost. */
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
    // A computed path passes no check; it is here for the official suite.
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
  // `count` without a condition counts all.
  const price = { [`${ourPrefix}step`]: [prepareNode(body ?? true, inner, 'value'), sizeOf(body)] };
  const elements = prepareNode(list, scope, 'list');
  if (name === 'count') return { [`${ourPrefix}length`]: [{ filter: [elements, price] }] };
  const prepared = { [name]: [elements, price, ...rest.map((argument) => prepareNode(argument, scope, 'value'))] };
  const isWholeRead = name === 'filter' && position === 'value';
  return isWholeRead ? { [`${ourPrefix}whole`]: [inner.label?.slice(0, -'[]'.length) ?? '', prepared] } : prepared;
}

/** The steps of a path that is written out; undefined for a computed one. */
function literalSteps(path: unknown): readonly string[] | undefined {
  if (path === undefined || path === null || path === '') return [];
  return typeof path === 'string' || typeof path === 'number' ? String(path).split('.') : undefined;
}

/** The label of what the steps lead to; null, which passes through json-logic-js unchanged, for what is no data. */
function labelOf(scope: Scope, steps: readonly string[]): string | null {
  if (scope.label === undefined) return null;
  if (!scope.isReduce) return [...(scope.label === '' ? [] : [scope.label]), ...steps].join('.');
  return steps[0] === 'current' ? [scope.label, ...steps.slice(1)].join('.') : null;
}

function prefixOf(scope: Scope): string | null {
  if (scope.label === undefined || scope.isReduce) return null;
  return scope.label === '' ? '' : `${scope.label}.`;
}

/** What the elements of a list are called: `group.zones[]` for those of `group.zones`, filtered or not. */
function elementLabel(list: unknown, scope: Scope): string | undefined {
  const operation = operationOf(list);
  if (operation?.name === 'filter') return elementLabel(operation.args[0], scope);
  if (operation?.name !== 'var' && operation?.name !== 'val') return undefined;
  const steps = operation.name === 'val' ? operation.args.map(String) : literalSteps(operation.args[0]);
  const label = steps && labelOf(scope, steps);
  return label === undefined || label === null ? undefined : `${label}[]`;
}
