// The variables that a condition names: which paths are written out, whether each exists, and what was probably meant when it does not.

import { didYouMean } from '../text/did-you-mean.ts';
import { defined } from '../values/defined.ts';
import { any, type ConditionType, type MissingStep, typeAt } from './types.ts';
import { variablePaths } from './variables.ts';

/** What `var` reaches at a place of a condition. */
export interface Scope {
  readonly type: ConditionType;
  /** The variables of the whole condition. */
  readonly root: ConditionType;
  /** The iterator around the place, whose element is all that can be reached. */
  readonly iterator?: string;
}

/** The steps of a path that is written out; undefined for a computed one. `isWhole`: the arguments of `val`, each of them one step. */
export function writtenSteps(args: readonly unknown[], isWhole: boolean): readonly string[] | undefined {
  if (!args.every((argument) => typeof argument === 'string' || typeof argument === 'number')) return undefined;
  const steps = args.map(String);
  return isWhole ? steps : steps.join('.').split('.');
}

interface UnknownVariable {
  readonly message: string;
  readonly hint?: string;
}

/** The type of the variable, or what is wrong with its name. */
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
    return `inside ${scope.iterator} only the element can be read: ${listed(missing.names)}`;
  }
  if (steps[0] === 'inputs' && steps[1] === 'metrics' && steps.length === 3) {
    const nearest = didYouMean(steps[2] ?? '', missing.names);
    return nearest === undefined ? 'declare the metric under spec.inputs.metrics' : didYouMeanHint([...steps.slice(0, 2), nearest]);
  }
  const nearest = didYouMean(steps[missing.index] ?? '', missing.names);
  if (nearest !== undefined) return didYouMeanHint([...steps.slice(0, missing.index), nearest, ...steps.slice(missing.index + 1)]);
  const longer = variablePaths(scope.type).filter((path) => path.endsWith(`.${steps.join('.')}`) && !path.includes('[]'));
  if (longer.length > 0) return `did you mean ${longer.map(quote).join(' or ')}?`;
  return missing.names.length === 0 ? undefined : `there are ${listed(missing.names)}`;
}

function didYouMeanHint(steps: readonly string[]): string {
  return `did you mean ${quote(steps.join('.'))}?`;
}

function namesHint(type: ConditionType): string {
  return type.kind === 'record' ? `there are ${listed(Object.keys(type.fields).sort())}` : 'name a variable';
}

function listed(names: readonly string[]): string {
  return names.length <= 12 ? names.join(', ') : `${names.slice(0, 12).join(', ')} and ${names.length - 12} more`;
}

function quote(path: string): string {
  return JSON.stringify(path.length <= 128 ? path : `${path.slice(0, 127)}…`);
}

/** The type of a list's elements; undefined when it is certainly no list. */
export function elementType(list: ConditionType): ConditionType | undefined {
  if (list.kind === 'list') return list.of;
  return list.kind === 'any' ? any : undefined;
}
