// What ends the watching of something: Ctrl-C, the first one in order and the second one at once, and a reader that has closed its pipe.
import type { Writable } from 'node:stream';
import { exitCodes } from '../exit-code.ts';

/**
 * Calls back once, at the first Ctrl-C, or when what is written to `output` arrives nowhere any more, as behind `| head`: otherwise the watching
 * would go on for ever, for nobody. The answer takes it back, and the next Ctrl-C ends the program as always.
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
