// A stream of text as lines.

/** Takes parts of a text as they come and calls back with each whole line. */
export function lines(onLine: (line: string) => void): (part: string) => void {
  let rest = '';
  return (part) => {
    const whole = (rest + part).split('\n');
    rest = whole.pop() ?? '';
    for (const line of whole) onLine(line);
  };
}
