// The end of a watch by the user: Ctrl-C, or a reader that closed its pipe.
import type { Writable } from 'node:stream';
import { exitCodes } from '../failure.ts';

/**
 * Calls back once, at the first Ctrl-C or when `output` is closed, as by `| head`: otherwise the watch would never end. Returns a function that
 * removes the handler; the next Ctrl-C ends the program at once.
 */
export function onLeaving(output: Writable, callback: () => void): () => void {
  const first = (): void => {
    process.once('SIGINT', second);
    callback();
  };
  const second = (): void => process.exit(exitCodes.interrupted);
  const closed = ({ code }: NodeJS.ErrnoException): void => {
    if (code === 'EPIPE') callback();
  };
  process.once('SIGINT', first);
  output.on('error', closed);
  return () => {
    process.off('SIGINT', first);
    process.off('SIGINT', second);
    output.off('error', closed);
  };
}
