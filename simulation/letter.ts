// Names zones and agents by letters.

/** Returns `a` for 0. */
export function letterOf(index: number): string {
  return String.fromCharCode('a'.charCodeAt(0) + index);
}

/** Returns the agent of a process: `a` for `a2`. */
export function processLetter(process: string): string {
  return process.replace(/\d+$/, '');
}
