// Orders text by its UTF-16 units, the same on every machine.

/** Compares two texts for `sort`: returns a negative number, 0 or a positive number. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
