// Label selectors as in every Kubernetes object: `matchLabels` and `matchExpressions`, all of which must hold.
import type { LabelSelector } from './schema/scalars.ts';

type Labels = Readonly<Record<string, string>>;
type Expression = NonNullable<LabelSelector['matchExpressions']>[number];

/**
 * Whether the selector selects an object with these labels. An empty selector selects everything (Kubernetes reference, LabelSelector).
 * `NotIn` holds for an object without the label; `In` with no values holds for none.
 */
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

/** Own labels only: `constructor` is no label of every object. */
function labelOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}
