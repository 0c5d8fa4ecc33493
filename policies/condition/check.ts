// Checks the operators, argument counts, types and variables of conditions, and the variables of messages.
import { instantMs } from '../instant.ts';
import { duration as durationSchema } from '../schema/scalars.ts';
import { didYouMean } from '../text/did-you-mean.ts';
import { defined } from '../values/defined.ts';
import { firstOf } from '../wording.ts';
import type { Path } from '../yaml/document.ts';
import { type ConditionProblem, checkShape, type Operator, operationOf, operators } from './shape.ts';
import { type Argument, literalHint } from './signatures.ts';
import {
  any,
  boolean,
  type ConditionType,
  commonType,
  describeType,
  duration,
  instant,
  listOf,
  type MissingStep,
  number,
  record,
  text,
  typeAt,
} from './types.ts';
import { messageVariables, variablePaths } from './variables.ts';

export type { ConditionProblem } from './shape.ts';

/**
 * Returns the problems of a condition, shape before types; empty if the condition is valid. `variables` is `gateVariables` or a result of
 * `ruleVariables`.
 */
export function checkCondition(condition: unknown, variables: ConditionType): readonly ConditionProblem[] {
  const shape = checkShape(condition);
  // A condition that is too large or too deep is not checked further: the limit bounds the cost of the check.
  if (shape.some(({ code }) => code === 'RG3008' || code === 'RG3009')) return shape;
  const check: Check = { problems: [...shape], hasReference: false };
  const type = typeOf(check, condition, { type: variables, root: variables }, []);
  if (check.problems.length === 0 && !check.hasReference) {
    check.problems.push({ code: 'RG3012', path: [], message: 'The condition reads no variable, so its result never changes' });
  } else if (check.problems.length === 0 && type.kind !== 'boolean' && type.kind !== 'any') {
    const message = `The condition is ${describeType(type)}, not true or false`;
    check.problems.push({ code: 'RG3005', path: [], message, hint: 'compare it with a value' });
  }
  return check.problems;
}

/** Returns a problem for each variable that a message names but that does not exist: the message would show it as `unknown`. */
export function checkMessage(message: string, variables: ConditionType): readonly ConditionProblem[] {
  const scope: Scope = { type: variables, root: variables };
  return [...new Set(messageVariables(message))].flatMap((path) => {
    const steps = path.split('.');
    const found = resolve(steps, scope);
    const type = typeAt(variables, steps);
    // In a message, unlike in `var`, the rest of a path may be one label key with dots.
    if ('kind' in found || (!('kind' in type) && type.isDottedKey)) return [];
    return [{ code: 'RG3006' as const, path: [], ...found }];
  });
}

interface Check {
  readonly problems: ConditionProblem[];
  hasReference: boolean;
}

interface Operation {
  readonly name: string;
  readonly args: readonly unknown[];
  readonly path: Path;
  readonly pathOf: (index: number) => Path;
}

function reportType(check: Check, path: Path, message: string, hint?: string): void {
  check.problems.push({ code: 'RG3005', path, message, ...defined({ hint }) });
}

function typeOf(check: Check, node: unknown, scope: Scope, path: Path): ConditionType {
  if (Array.isArray(node)) {
    const types = node.map((item, index) => typeOf(check, item, scope, [...path, index]));
    return listOf(types.length === 0 ? any : types.reduce(commonType));
  }
  const found = operationOf(node);
  if (!found) return literalType(node);
  const operator = operators.get(found.name);
  const place = [...path, found.name];
  const operation: Operation = { ...found, path: place, pathOf: (index) => (found.isList ? [...place, index] : place) };
  // The arguments of an unknown operator are checked too.
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

function hasArity(check: Check, { name, args, path }: Operation, { minArguments: min, maxArguments: max }: Operator): boolean {
  if (args.length >= min && args.length <= max) return true;
  const expected = min === max ? `${min}` : max === Number.POSITIVE_INFINITY ? `at least ${min}` : `${min} to ${max}`;
  check.problems.push({
    code: 'RG3004',
    path,
    message: `The operator ${JSON.stringify(name)} takes ${expected} ${expected.endsWith('1') ? 'argument' : 'arguments'}, not ${args.length}`,
  });
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
      // `age` reads the instant of the evaluation, so the condition is not constant.
      if (operation.name === 'age') check.hasReference = true;
      const args = operation.args.map((node, index): Argument => ({ node, type: typeOf(check, node, scope, operation.pathOf(index)) }));
      return operator.signature?.(args, (index, message, hint) => reportType(check, operation.pathOf(index), message, hint)) ?? any;
    }
  }
}

function referenceType(check: Check, operation: Operation, scope: Scope): ConditionType {
  // Inside an iterator, `var` reads the element of a list. Only a variable outside makes the condition depend on data.
  if (scope.iterator === undefined) check.hasReference = true;
  const { name, args } = operation;
  if (name === 'missing' || name === 'missing_some') return missingType(check, operation, scope);
  const isWhole = name === 'val' || (name !== 'var' && args.length > 1);
  const found = variableType(check, writtenSteps(name === 'var' ? args.slice(0, 1) : args, isWhole), scope, operation.pathOf(0));
  if (name === 'has' || name === 'known') return boolean;
  if (name === 'val' || args.length < 2) return found;
  const fallback = typeOf(check, args[1], scope, operation.pathOf(1));
  if (found.kind === 'any' || fallback.kind === 'any' || found.kind === fallback.kind) return commonType(found, fallback);
  const message = `The default is ${describeType(fallback)}; the variable is ${describeType(found)}`;
  reportType(check, operation.pathOf(1), message, literalHint(found));
  return found;
}

function variableType(check: Check, steps: readonly string[] | undefined, scope: Scope, path: Path): ConditionType {
  if (!steps) {
    check.problems.push({ code: 'RG3007', path, message: 'The path of the variable is computed' });
    return any;
  }
  const found = resolve(steps, scope);
  if ('kind' in found) return found;
  check.problems.push({ code: 'RG3006', path, ...found });
  return any;
}

function missingType(check: Check, { name, args, pathOf }: Operation, scope: Scope): ConditionType {
  const isSome = name === 'missing_some';
  const [first] = args;
  if (isSome && typeof first !== 'number')
    reportType(check, pathOf(0), 'The first argument must be the number of variables that must be present');
  const listIndex = isSome ? 1 : 0;
  const list = args[listIndex];
  if (Array.isArray(list))
    for (const [index, item] of list.entries()) variableType(check, writtenSteps([item], false), scope, [...pathOf(listIndex), index]);
  else if (isSome) variableType(check, writtenSteps([list], false), scope, pathOf(1));
  else for (const [index, item] of args.entries()) variableType(check, writtenSteps([item], false), scope, pathOf(index));
  return listOf(text);
}

function iteratorType(check: Check, { name, args, pathOf }: Operation, scope: Scope): ConditionType {
  const list = typeOf(check, args[0], scope, pathOf(0));
  const element = elementType(list);
  if (!element) {
    reportType(check, pathOf(0), `The argument is ${describeType(list)}; a list is expected`);
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
  // `if` takes pairs of a condition and an answer, and a last answer for all other cases. Without the last answer, the result can be null.
  const answers = types.filter((_, index) => index % 2 === 1 || (index === types.length - 1 && index > 0));
  return types.length % 2 === 0 ? any : answers.reduce(commonType);
}

function literalOperatorType(check: Check, { name, args, pathOf }: Operation): ConditionType {
  const [written] = args;
  if (name === 'duration') {
    if (durationSchema.safeParse(written).success) return duration;
    reportType(check, pathOf(0), 'The argument is not a duration', 'a duration is text such as 30s, 12h, 1h30m or 7d');
    return duration;
  }
  if (typeof written === 'string' && instantMs(written) !== undefined) return instant;
  reportType(check, pathOf(0), 'The argument is not an instant', 'an instant is text with an offset, such as 2026-01-15T10:00:00Z');
  return instant;
}

/** The variables that `var` can read at a place of a condition. */
interface Scope {
  readonly type: ConditionType;
  readonly root: ConditionType;
  /** The iterator around the place; only its element can be read. */
  readonly iterator?: string;
}

/** Returns the steps of a literal path; undefined for a computed path. With `isWhole`, each argument is one step, even with dots. */
function writtenSteps(args: readonly unknown[], isWhole: boolean): readonly string[] | undefined {
  if (!args.every((argument) => typeof argument === 'string' || typeof argument === 'number')) return undefined;
  const steps = args.map(String);
  return isWhole ? steps : steps.join('.').split('.');
}

function resolve(steps: readonly string[], scope: Scope): ConditionType | Pick<ConditionProblem, 'message' | 'hint'> {
  const isItself = steps.length === 0 || (steps.length === 1 && steps[0] === '');
  if (isItself)
    return scope.iterator === undefined ? { message: 'The path of the variable is empty', hint: namesHint(scope.type) } : scope.type;
  const found = typeAt(scope.type, steps);
  if ('kind' in found) return found;
  const hint = hintFor(steps, found, scope);
  return { message: `The variable ${quote(steps.join('.'))} does not exist`, ...defined({ hint }) };
}

function hintFor(steps: readonly string[], missing: MissingStep, scope: Scope): string | undefined {
  if (missing.isDottedKey) {
    const whole = [...steps.slice(0, missing.index - 1), steps.slice(missing.index - 1).join('.')];
    return `write { "val": ${JSON.stringify(whole).replaceAll('","', '", "')} }`;
  }
  if (scope.iterator !== undefined && 'kind' in typeAt(scope.root, steps)) {
    return `inside ${scope.iterator} a variable reads the element, which has ${firstOf(missing.names, 12)}`;
  }
  if (steps[0] === 'inputs' && steps[1] === 'metrics' && steps.length === 3) {
    const nearest = didYouMean(steps[2] ?? '', missing.names);
    return nearest === undefined ? 'declare the metric under spec.inputs.metrics' : didYouMeanHint([...steps.slice(0, 2), nearest]);
  }
  const nearest = didYouMean(steps[missing.index] ?? '', missing.names);
  if (nearest !== undefined) return didYouMeanHint([...steps.slice(0, missing.index), nearest, ...steps.slice(missing.index + 1)]);
  const longer = variablePaths(scope.type).filter((path) => path.endsWith(`.${steps.join('.')}`) && !path.includes('[]'));
  if (longer.length > 0) return `did you mean ${longer.map(quote).join(' or ')}?`;
  return missing.names.length === 0 ? undefined : `valid names: ${firstOf(missing.names, 12)}`;
}

function didYouMeanHint(steps: readonly string[]): string {
  return `did you mean ${quote(steps.join('.'))}?`;
}

function namesHint(type: ConditionType): string {
  return type.kind === 'record' ? `valid names: ${firstOf(Object.keys(type.fields).sort(), 12)}` : 'name a variable';
}

function quote(path: string): string {
  return JSON.stringify(path.length <= 128 ? path : `${path.slice(0, 127)}…`);
}

function elementType(list: ConditionType): ConditionType | undefined {
  if (list.kind === 'list') return list.of;
  return list.kind === 'any' ? any : undefined;
}
