// Orders text by its UTF-16 units, the same on every machine.

/** Returns a negative number, 0 or a positive number, as a sort needs it. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
