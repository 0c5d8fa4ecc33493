// The progress line of a simulation on a terminal, from the first second on.
import type { CommandContext } from '../context.ts';
import type { Progress } from './runs.ts';

interface ProgressLine {
  readonly show: (group: string, progress: Progress) => void;
  /** Clears the line. */
  readonly clear: () => void;
}

const firstAfterMs = 1000;
const everyMs = 200;
/** Moves to the first column and erases the rest of the line. */
const erase = '\r\u001b[K';

export function progressLine({ stderr, nowMs, quiet, env }: CommandContext): ProgressLine {
  const startedMs = nowMs();
  let shownMs = Number.NEGATIVE_INFINITY;
  const isWanted = stderr.isTerminal && !quiet && env['TERM'] !== 'dumb';
  return {
    show: (group, { what, done, of }) => {
      const now = nowMs();
      if (!isWanted || now - startedMs < firstAfterMs || now - shownMs < everyMs) return;
      shownMs = now;
      const text = what === 'run' ? `run ${done + 1} of ${of}` : `an invariant broke; shrinking the run, try ${done + 1} of ${of} at most`;
      stderr.raw.write(`${erase}${group}: ${text}`.slice(0, (stderr.columns ?? 80) + erase.length - 1));
    },
    clear: () => {
      if (Number.isFinite(shownMs)) stderr.raw.write(erase);
    },
  };
}
