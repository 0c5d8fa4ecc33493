// Small forms of English that many messages need.

/** `1 file`, `2 files`, `0 files`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
