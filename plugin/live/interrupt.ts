// Ctrl-C while something is watched: the first one ends the watching in order, the second one ends the program.
import { exitCodes } from '../exit-code.ts';

/** Calls back once, at the first Ctrl-C. The answer takes it back, and the next Ctrl-C ends the program as always. */
export function onInterrupt(callback: () => void): () => void {
  const first = (): void => {
    process.once('SIGINT', second);
    callback();
  };
  const second = (): void => process.exit(exitCodes.interrupted);
  process.once('SIGINT', first);
  return () => {
    process.off('SIGINT', first);
    process.off('SIGINT', second);
  };
}
