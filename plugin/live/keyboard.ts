// Reads single keys and signals of the terminal for live screens, and restores the terminal mode.
import type { Writable } from 'node:stream';
import { exitCodes } from '../failure.ts';

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
  readonly capture: () => void;
}

const named: Readonly<Record<string, Key>> = {
  '\u0003': 'interrupt',
  '\u001a': 'suspend',
  '\t': 'tab',
  '\r': 'enter',
  '\n': 'enter',
  '\u001b': 'escape',
};

/** The signals after which Node.js does not restore the terminal mode. It restores the mode after SIGTERM; `onLeaving` handles SIGINT. */
const signalsWithoutRestore = ['SIGHUP', 'SIGQUIT'] as const;

/** Calls `onKey` with each key. Ignores pasted text and arrow keys, but finds Ctrl-C in pasted text. Restores the terminal mode at exit. */
export function openKeyboard(input: KeyInput, onKey: (key: Key) => void): Keyboard {
  let isCapturing = false;
  const onData = (chunk: Buffer | string): void => {
    const text = chunk.toString();
    if (text.includes('\u0003')) onKey('interrupt');
    else if ([...text].length === 1) onKey(named[text] ?? text);
  };
  const release = (): void => {
    if (!isCapturing) return;
    isCapturing = false;
    input.off('data', onData);
    process.off('exit', release);
    for (const signal of signalsWithoutRestore) process.off(signal, releaseAndResend);
    input.setRawMode(false);
    input.pause();
  };
  // The signal must still end the program.
  const releaseAndResend = (signal: NodeJS.Signals): void => {
    release();
    process.kill(process.pid, signal);
  };
  const capture = (): void => {
    if (isCapturing) return;
    isCapturing = true;
    input.setRawMode(true);
    process.on('exit', release);
    for (const signal of signalsWithoutRestore) process.on(signal, releaseAndResend);
    input.on('data', onData);
    input.resume();
  };
  capture();
  return { release, capture };
}

/** Suspends the program as Ctrl-Z does, and captures keys again when the program continues. Does nothing on Windows. */
export function suspend({ release, capture }: Keyboard): void {
  if (process.platform === 'win32') return;
  release();
  process.once('SIGCONT', capture);
  process.kill(process.pid, 'SIGTSTP');
  // Without a shell that controls jobs, the program is not stopped and gets no signal to continue.
  setTimeout(capture, 100);
}

/** Calls `callback` at the first Ctrl-C, or when `output` is closed (`| head`). Returns a function that removes the handlers. */
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
