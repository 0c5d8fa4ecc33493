// Checks conditions before they are used: operators, numbers of arguments, types and variables. All problems of one condition at once.

import type { FindingCode } from '../findings/codes.ts';
import { instantMs } from '../instant.ts';
import { duration as durationSchema } from '../schema/scalars.ts';
import { defined } from '../values/defined.ts';
import { type Operator, operators } from './operators.ts';
import { elementType, resolve, type Scope, writtenSteps } from './references.ts';
import { type ConditionPath, type ConditionProblem, checkShape, operationOf } from './shape.ts';
import { type Argument, literalHint, signatures } from './signatures.ts';
import {
  any,
  boolean,
  type ConditionType,
  commonType,
  describeType,
  duration,
  instant,
  listOf,
  number,
  record,
  text,
  typeAt,
} from './types.ts';
import { messageVariables } from './variables.ts';

export type { ConditionProblem } from './shape.ts';

interface CheckOptions {
  /** What the condition may read: `ruleVariables(…)` or `gateVariables`. */
  readonly variables: ConditionType;
}

/**
 * Everything that is wrong with a condition, its shape before its types; empty for a good one. A condition that passes is undecided
 * only where a variable is not known, a division has no result, or a list is so long that the steps run out.
 */
export function checkCondition(condition: unknown, { variables }: CheckOptions): readonly ConditionProblem[] {
  const shape = checkShape(condition);
  // Too large or too deep: the rest would be noise, and costs as much as the limit is there to save.
  if (shape.some(({ code }) => code === 'RG3008' || code === 'RG3009')) return shape;
  const check: Check = { problems: [...shape], hasReference: false };
  const type = typeOf(check, condition, { type: variables, root: variables }, []);
  if (check.problems.length === 0 && !check.hasReference) {
    check.problems.push({ code: 'RG3012', path: [], message: 'The condition reads no variable, so that it always has the same answer' });
  } else if (check.problems.length === 0 && type.kind !== 'boolean' && type.kind !== 'any') {
    const message = `The condition is ${describeType(type)}, not true or false`;
    check.problems.push({ code: 'RG3005', path: [], message, hint: 'compare it with something' });
  }
  return check.problems;
}

/** The variables of a message that do not exist, each once; it would show them as `unknown`. */
export function checkMessage(message: string, { variables }: CheckOptions): readonly ConditionProblem[] {
  const scope: Scope = { type: variables, root: variables };
  return [...new Set(messageVariables(message))].flatMap((path) => {
    const steps = path.split('.');
    const found = resolve(steps, scope);
    const type = typeAt(variables, steps);
    // In a message, unlike in `var`, the rest of a path may be a label with dots.
    if ('kind' in found || (!('kind' in type) && type.isDottedKey)) return [];
    return [{ code: 'RG3006' as const, path: [], ...found }];
  });
}

interface Check {
  readonly problems: ConditionProblem[];
  hasReference: boolean;
}

/** An operation at its place. */
interface Operation {
  readonly name: string;
  readonly args: readonly unknown[];
  readonly path: ConditionPath;
  readonly pathOf: (index: number) => ConditionPath;
}

function report(check: Check, code: FindingCode, path: ConditionPath, message: string, hint?: string): void {
  check.problems.push({ code, path, message, ...defined({ hint }) });
}

function typeOf(check: Check, node: unknown, scope: Scope, path: ConditionPath): ConditionType {
  if (Array.isArray(node)) {
    const types = node.map((item, index) => typeOf(check, item, scope, [...path, index]));
    return listOf(types.length === 0 ? any : types.reduce(commonType));
  }
  const found = operationOf(node);
  if (!found) return literalType(node);
  const operator = operators.get(found.name);
  const place = [...path, found.name];
  const operation: Operation = { ...found, path: place, pathOf: (index) => (found.isList ? [...place, index] : place) };
  // What is inside an operator that does not exist is checked all the same.
  if (!operator) {
    for (const [index, argument] of found.args.entries()) typeOf(check, argument, scope, operation.pathOf(index));
    return any;
  }
  return hasArity(check, operation, operator) ? operationType(check, operation, operator, scope) : any;
}

function literalType(node: unknown): ConditionType {
  if (typeof node === 'number') return number;
  if (typeof node === 'string') return text;
  if (typeof node === 'boolean') return boolean;
  return node === null ? { kind: 'nothing' } : any;
}

function hasArity(check: Check, { name, args, path }: Operation, { fewest, most }: Operator): boolean {
  if (args.length >= fewest && args.length <= most) return true;
  const expected = fewest === most ? `${fewest}` : most === Number.POSITIVE_INFINITY ? `at least ${fewest}` : `${fewest} to ${most}`;
  report(
    check,
    'RG3004',
    path,
    `The operator ${JSON.stringify(name)} takes ${expected} ${expected.endsWith('1') ? 'argument' : 'arguments'}, not ${args.length}`,
  );
  return false;
}

function operationType(check: Check, operation: Operation, operator: Operator, scope: Scope): ConditionType {
  switch (operator.form) {
    case 'reference':
      return referenceType(check, operation, scope);
    case 'iterator':
      return iteratorType(check, operation, scope);
    case 'lazy':
      return lazyType(check, operation, scope);
    case 'literal':
      return literalOperatorType(check, operation);
    case 'eager': {
      // It measures from the instant of the evaluation.
      if (operation.name === 'age') check.hasReference = true;
      const args = operation.args.map((node, index): Argument => ({ node, type: typeOf(check, node, scope, operation.pathOf(index)) }));
      const signature = signatures.get(operation.name);
      return signature?.(args, (index, message, hint) => report(check, 'RG3005', operation.pathOf(index), message, hint)) ?? any;
    }
  }
}

function referenceType(check: Check, operation: Operation, scope: Scope): ConditionType {
  // Inside an iterator the element is read; whether that is data depends on the list, whose own variable counts.
  if (scope.iterator === undefined) check.hasReference = true;
  const { name, args } = operation;
  if (name === 'missing' || name === 'missing_some') return missingType(check, operation, scope);
  const isWhole = name === 'val' || (name !== 'var' && args.length > 1);
  const found = variableType(check, name === 'var' ? args.slice(0, 1) : args, isWhole, scope, operation.pathOf(0));
  if (name === 'has' || name === 'known') return boolean;
  if (name === 'val' || args.length < 2) return found;
  const fallback = typeOf(check, args[1], scope, operation.pathOf(1));
  if (found.kind === 'any' || fallback.kind === 'any' || found.kind === fallback.kind) return commonType(found, fallback);
  const message = `The default is ${describeType(fallback)}; the variable is ${describeType(found)}`;
  report(check, 'RG3005', operation.pathOf(1), message, literalHint(found));
  return found;
}

function variableType(check: Check, args: readonly unknown[], isWhole: boolean, scope: Scope, path: ConditionPath): ConditionType {
  const steps = writtenSteps(args, isWhole);
  if (!steps) {
    report(check, 'RG3007', path, 'The path of the variable is computed');
    return any;
  }
  const found = resolve(steps, scope);
  if ('kind' in found) return found;
  report(check, 'RG3006', path, found.message, found.hint);
  return any;
}

function missingType(check: Check, { name, args, pathOf }: Operation, scope: Scope): ConditionType {
  const isSome = name === 'missing_some';
  const [first] = args;
  if (isSome && typeof first !== 'number')
    report(check, 'RG3005', pathOf(0), 'The argument is how many must be present; a number is expected');
  const listIndex = isSome ? 1 : 0;
  const list = args[listIndex];
  if (Array.isArray(list))
    for (const [index, item] of list.entries()) variableType(check, [item], false, scope, [...pathOf(listIndex), index]);
  else if (isSome) variableType(check, [list], false, scope, pathOf(1));
  else for (const [index, item] of args.entries()) variableType(check, [item], false, scope, pathOf(index));
  return listOf(text);
}

function iteratorType(check: Check, { name, args, pathOf }: Operation, scope: Scope): ConditionType {
  const list = typeOf(check, args[0], scope, pathOf(0));
  const element = elementType(list);
  if (!element) {
    report(check, 'RG3005', pathOf(0), `The argument is ${describeType(list)}; a list is expected`);
    return any;
  }
  const initial = name === 'reduce' ? typeOf(check, args[2], scope, pathOf(2)) : any;
  const inner = name === 'reduce' ? record({ current: element, accumulator: initial }) : element;
  const body = args.length > 1 ? typeOf(check, args[1], { type: inner, root: scope.root, iterator: name }, pathOf(1)) : any;
  if (name === 'map') return listOf(body);
  if (name === 'filter') return listOf(element);
  if (name === 'count') return number;
  return name === 'reduce' ? commonType(initial, body) : boolean;
}

function lazyType(check: Check, { name, args, pathOf }: Operation, scope: Scope): ConditionType {
  const types = args.map((argument, index) => typeOf(check, argument, scope, pathOf(index)));
  if (name === 'and' || name === 'or') return types.reduce(commonType);
  // Every second one is an answer, and so is a last one without a partner; without that the answer can be null.
  const answers = types.filter((_, index) => index % 2 === 1 || (index === types.length - 1 && index > 0));
  return types.length % 2 === 0 ? any : answers.reduce(commonType);
}

function literalOperatorType(check: Check, { name, args, pathOf }: Operation): ConditionType {
  const [written] = args;
  if (name === 'duration') {
    if (durationSchema.safeParse(written).success) return duration;
    report(check, 'RG3005', pathOf(0), 'The argument is no duration', 'a duration is text such as 30s, 12h, 1h30m or 7d');
    return duration;
  }
  if (typeof written === 'string' && instantMs(written) !== undefined) return instant;
  report(check, 'RG3005', pathOf(0), 'The argument is no instant', 'an instant is text with an offset, such as 2026-01-15T10:00:00Z');
  return instant;
}
