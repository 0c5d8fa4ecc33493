// Resolves the variables that a condition names, and suggests a name for a variable that does not exist.

import { didYouMean } from '../text/did-you-mean.ts';
import { defined } from '../values/defined.ts';
import { any, type ConditionType, type MissingStep, typeAt } from './types.ts';
import { variablePaths } from './variables.ts';

/** The variables that `var` can read at a place of a condition. */
export interface Scope {
  readonly type: ConditionType;
  /** The variables of the whole condition. */
  readonly root: ConditionType;
  /** The iterator around the place; only its element can be read. */
  readonly iterator?: string;
}

/** Returns the steps of a literal path; undefined for a computed path. With `isWhole`, each argument of `val` is one step. */
export function writtenSteps(args: readonly unknown[], isWhole: boolean): readonly string[] | undefined {
  if (!args.every((argument) => typeof argument === 'string' || typeof argument === 'number')) return undefined;
  const steps = args.map(String);
  return isWhole ? steps : steps.join('.').split('.');
}

interface UnknownVariable {
  readonly message: string;
  readonly hint?: string;
}

/** Returns the type of the variable, or the problem with its name. */
export function resolve(steps: readonly string[], scope: Scope): ConditionType | UnknownVariable {
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
    return `inside ${scope.iterator} a variable reads the element, which has ${listed(missing.names)}`;
  }
  if (steps[0] === 'inputs' && steps[1] === 'metrics' && steps.length === 3) {
    const nearest = didYouMean(steps[2] ?? '', missing.names);
    return nearest === undefined ? 'declare the metric under spec.inputs.metrics' : didYouMeanHint([...steps.slice(0, 2), nearest]);
  }
  const nearest = didYouMean(steps[missing.index] ?? '', missing.names);
  if (nearest !== undefined) return didYouMeanHint([...steps.slice(0, missing.index), nearest, ...steps.slice(missing.index + 1)]);
  const longer = variablePaths(scope.type).filter((path) => path.endsWith(`.${steps.join('.')}`) && !path.includes('[]'));
  if (longer.length > 0) return `did you mean ${longer.map(quote).join(' or ')}?`;
  return missing.names.length === 0 ? undefined : `valid names: ${listed(missing.names)}`;
}

function didYouMeanHint(steps: readonly string[]): string {
  return `did you mean ${quote(steps.join('.'))}?`;
}

function namesHint(type: ConditionType): string {
  return type.kind === 'record' ? `valid names: ${listed(Object.keys(type.fields).sort())}` : 'name a variable';
}

function listed(names: readonly string[]): string {
  return names.length <= 12 ? names.join(', ') : `${names.slice(0, 12).join(', ')} and ${names.length - 12} more`;
}

function quote(path: string): string {
  return JSON.stringify(path.length <= 128 ? path : `${path.slice(0, 127)}…`);
}

/** Returns the type of the elements of a list; undefined if the type is certainly not a list. */
export function elementType(list: ConditionType): ConditionType | undefined {
  if (list.kind === 'list') return list.of;
  return list.kind === 'any' ? any : undefined;
}
