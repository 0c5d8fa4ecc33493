// Evaluates label selectors as Kubernetes does: `matchLabels` and `matchExpressions` must all match.
import type { LabelSelector } from './schema/scalars.ts';
import type { Defined } from './values/defined.ts';

export type Labels = Readonly<Record<string, string>>;
type Expression = NonNullable<LabelSelector['matchExpressions']>[number];

/** Reports whether the selector matches the labels. `NotIn` matches an absent label, and an empty selector matches every object. */
export function matchesSelector(selector: LabelSelector, labels: Labels): boolean {
  const isLabelled = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labelOf(labels, key) === value);
  return isLabelled && (selector.matchExpressions ?? []).every((expression) => matchesExpression(expression, labels));
}

function matchesExpression({ key, operator, values = [] }: Expression, labels: Labels): boolean {
  const value = labelOf(labels, key);
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}

/** Returns the label. Ignores inherited properties such as `constructor`. */
function labelOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

/** A requirement of a selector; `matchLabels` are requirements too. */
type Requirement = Readonly<Required<Defined<Expression>>>;

export function isEmptySelector(selector: LabelSelector): boolean {
  return requirementsOf(selector).length === 0;
}

/** Returns why the selector is invalid or can match no object; undefined if it has neither problem. */
export function contradictionOf(selector: LabelSelector): string | undefined {
  const requirements = requirementsOf(selector);
  for (const { key, operator, values } of requirements) {
    const needsValues = operator === 'In' || operator === 'NotIn';
    if (needsValues && values.length === 0) return `${operator} on ${key} has no values`;
    if (!needsValues && values.length > 0) return `${operator} on ${key} takes no values`;
  }
  for (const key of new Set(requirements.map((one) => one.key))) {
    if (!canSatisfy(requirements.filter((one) => one.key === key))) return `the requirements on ${key} exclude each other`;
  }
  return undefined;
}

/** Returns whether `outer` certainly matches every object that `inner` matches. */
export function isWithin(inner: LabelSelector, outer: LabelSelector): boolean {
  const given = requirementsOf(inner);
  return requirementsOf(outer).every((needed) => given.some((one) => one.key === needed.key && implies(one, needed)));
}

function implies(given: Requirement, needed: Requirement): boolean {
  const { operator, values } = given;
  if (needed.operator === 'Exists') return operator === 'In' || operator === 'Exists';
  if (needed.operator === 'DoesNotExist') return operator === 'DoesNotExist';
  if (needed.operator === 'In') return operator === 'In' && values.every((value) => needed.values.includes(value));
  if (operator === 'In') return values.every((value) => !needed.values.includes(value));
  return operator === 'DoesNotExist' || (operator === 'NotIn' && needed.values.every((value) => values.includes(value)));
}

/** Reports whether a label value, or the absence of the label, can satisfy all given requirements. They must have the same key. */
function canSatisfy(requirements: readonly Requirement[]): boolean {
  const [first, ...others] = requirements.filter((one) => one.operator === 'In').map((one) => one.values);
  const mustExist = first !== undefined || requirements.some((one) => one.operator === 'Exists');
  if (mustExist && requirements.some((one) => one.operator === 'DoesNotExist')) return false;
  if (first === undefined) return true;
  const excluded = requirements.filter((one) => one.operator === 'NotIn').flatMap((one) => one.values);
  return first.some((value) => others.every((values) => values.includes(value)) && !excluded.includes(value));
}

function requirementsOf(selector: LabelSelector): readonly Requirement[] {
  return [
    ...Object.entries(selector.matchLabels ?? {}).map(([key, value]) => ({ key, operator: 'In' as const, values: [value] })),
    ...(selector.matchExpressions ?? []).map(({ key, operator, values }) => ({ key, operator, values: values ?? [] })),
  ];
}
