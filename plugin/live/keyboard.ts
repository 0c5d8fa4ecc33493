// Single keys of the person at the terminal, without a line break. However the watching ends, the terminal is left as it was found.

/** Standard input as far as keys need it. */
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
  /** Keys go to the terminal again, which echoes them and makes signals of Ctrl-C and Ctrl-Z. */
  readonly release: () => void;
  /** Takes them back. */
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

/** Signals that end the program while the terminal stays. For SIGTERM, and for a second SIGINT, Node gives it back by itself. */
const unaided = ['SIGHUP', 'SIGQUIT'] as const;

/**
 * Calls back with each key. What comes all at once was pasted, or is a key of a name that nothing listens to, such as an arrow: nobody means to answer a
 * question by it, so only a Ctrl-C in it counts. The terminal is given back when the process exits, whoever ends it.
 */
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
  // Whoever sent it meant the program to end.
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

/** Stops the program as Ctrl-Z does anywhere else, and takes the keys back when it goes on. Where there is no such signal nothing happens. */
export function suspend({ release, take }: Keyboard): void {
  if (process.platform === 'win32') return;
  release();
  process.once('SIGCONT', take);
  process.kill(process.pid, 'SIGTSTP');
  // Nobody stops a program that no shell looks after; then it goes on without being told so.
  setTimeout(take, 100);
}
