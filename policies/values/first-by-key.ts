// Reduces a list to one item for each key.
import { compareText } from './compare-text.ts';

export function firstByKey<T>(items: readonly T[], keyOf: (item: T) => string): readonly T[] {
  const first = new Map(items.toReversed().map((item) => [keyOf(item), item]));
  return [...first].sort(([a], [b]) => compareText(a, b)).map(([, item]) => item);
}
