// Decides whether a replica count fits bounds.
import type { BoundsDefinition } from './definition.ts';

/** Returns whether a count has the multiple and the parity of bounds. A zone without pods has every parity. */
export function fitsBounds(count: number, { multipleOf, parity }: Pick<BoundsDefinition, 'multipleOf' | 'parity'>): boolean {
  return count % multipleOf === 0 && (parity === 'any' || count === 0 || (count % 2 === 0) === (parity === 'even'));
}
