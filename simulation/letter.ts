// What zones and agents are called: by letters.

/** `a` for 0. */
export function letterOf(index: number): string {
  return String.fromCharCode('a'.charCodeAt(0) + index);
}

/** Of the agent whose life a process is: `a` for `a2`. */
export function processLetter(process: string): string {
  return process.replace(/\d+$/, '');
}
