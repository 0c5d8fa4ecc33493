// Reads single keys and signals of the terminal. The terminal mode is always restored.
import type { Writable } from 'node:stream';
import { exitCodes } from '../failure.ts';

/** The parts of standard input that keys need. */
export interface KeyInput {
  readonly setRawMode: (isRaw: boolean) => unknown;
  readonly on: (event: 'data', listener: (chunk: Buffer | string) => void) => unknown;
  readonly off: (event: 'data', listener: (chunk: Buffer | string) => void) => unknown;
  readonly resume: () => unknown;
  readonly pause: () => unknown;
}

/** `interrupt` for Ctrl-C, `suspend` for Ctrl-Z, `tab`, `enter`, `escape`, or the character itself. */
export type Key = string;

export interface Keyboard {
  /** Restores the terminal mode: keys are echoed, and Ctrl-C and Ctrl-Z are signals. */
  readonly release: () => void;
  /** Captures keys again. */
  readonly take: () => void;
}

const named: Readonly<Record<string, Key>> = {
  '\u0003': 'interrupt',
  '\u001a': 'suspend',
  '\t': 'tab',
  '\r': 'enter',
  '\n': 'enter',
  '\u001b': 'escape',
};

/** Signals that end the program but not the terminal. For SIGTERM and a second SIGINT, Node restores the terminal itself. */
const unaided = ['SIGHUP', 'SIGQUIT'] as const;

/** Calls back with each key. In pasted text and special keys only Ctrl-C counts. Restores the terminal mode at exit. */
export function openKeyboard(input: KeyInput, onKey: (key: Key) => void): Keyboard {
  let isTaken = false;
  const onData = (chunk: Buffer | string): void => {
    const text = chunk.toString();
    if (text.includes('\u0003')) onKey('interrupt');
    else if ([...text].length === 1) onKey(named[text] ?? text);
  };
  const release = (): void => {
    if (!isTaken) return;
    isTaken = false;
    input.off('data', onData);
    process.off('exit', release);
    for (const signal of unaided) process.off(signal, giveBack);
    input.setRawMode(false);
    input.pause();
  };
  // The signal was meant to end the program.
  const giveBack = (signal: NodeJS.Signals): void => {
    release();
    process.kill(process.pid, signal);
  };
  const take = (): void => {
    if (isTaken) return;
    isTaken = true;
    input.setRawMode(true);
    process.on('exit', release);
    for (const signal of unaided) process.on(signal, giveBack);
    input.on('data', onData);
    input.resume();
  };
  take();
  return { release, take };
}

/** Suspends the program as Ctrl-Z does, and captures keys again when it continues. Does nothing without that signal. */
export function suspend({ release, take }: Keyboard): void {
  if (process.platform === 'win32') return;
  release();
  process.once('SIGCONT', take);
  process.kill(process.pid, 'SIGTSTP');
  // Without a shell that controls jobs, the program is not stopped and gets no signal to continue.
  setTimeout(take, 100);
}

/** Calls back once, at the first Ctrl-C or when `output` is closed (`| head`). Returns a function that removes the handler. */
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
