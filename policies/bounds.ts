// Checks a replica count against the multiple and the parity of bounds.
import type { BoundsDefinition } from './definition.ts';

/** Returns whether a count is a multiple of `multipleOf` and has the parity. A count of 0 has every parity. */
export function fitsBounds(count: number, { multipleOf, parity }: Pick<BoundsDefinition, 'multipleOf' | 'parity'>): boolean {
  return count % multipleOf === 0 && (parity === 'any' || count === 0 || (count % 2 === 0) === (parity === 'even'));
}
