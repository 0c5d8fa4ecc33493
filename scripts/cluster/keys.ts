// The keys that a person presses at the terminal, or the same letters on a pipe.
import { spawnSync } from 'node:child_process';
import type { ReadStream } from 'node:tty';

const ctrlC = '\u0003';

/** Calls the function for each key. Ctrl-C is a key, because a raw terminal sends no signal for it. */
export function readKeys(onKey: (key: string) => void): void {
  const { stdin } = process;
  if (stdin.isTTY && !isForeground()) return;
  if (stdin.isTTY) (stdin as ReadStream).setRawMode(true);
  stdin.on('data', (chunk: Buffer) => {
    for (const key of chunk.toString()) onKey(key === ctrlC ? 'q' : key);
  });
  stdin.on('error', () => {});
}

/** A process in the background of a shell would be stopped if it read from the terminal. `ps` marks the foreground with a plus sign. */
function isForeground(): boolean {
  return spawnSync('ps', ['-o', 'stat=', '-p', `${process.pid}`], { encoding: 'utf8' }).stdout?.includes('+') ?? false;
}
