// What zones and agents are called: by letters.

/** `a` for 0. */
export function letterOf(index: number): string {
  return String.fromCharCode('a'.charCodeAt(0) + index);
}
