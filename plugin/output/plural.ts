// The number and form of a noun.

/** Returns `1 file`, `2 files` or `0 files`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
