// Defines what a command uses of its process: streams, environment, directory and clock. Tests replace them.
import type { Writable } from 'node:stream';
import type { Cluster } from './connection.ts';
import type { Key, Keyboard } from './live/keyboard.ts';
import type { Glyphs, Paint } from './output/terminal.ts';

export interface OutputStream {
  /** Writes text for people or programs. Makes control characters visible: text from a cluster must not control the terminal. */
  readonly write: (text: string) => void;
  /** Writes bytes unchanged: for printed files, and for code that moves the cursor. */
  readonly raw: Writable;
  readonly isTerminal: boolean;
  /** The width in columns; undefined if lines may not be cut or wrapped, as in a pipe. */
  readonly columns: number | undefined;
  /** Styles text if colour is on; otherwise returns the text unchanged. */
  readonly paint: Paint;
  readonly hasColour: boolean;
  /** The symbols and lines, in Unicode if the locale allows it, otherwise in ASCII. */
  readonly glyphs: Glyphs;
}

export interface CommandContext {
  /** The stream for the result, and for no other text. */
  readonly stdout: OutputStream;
  /** The stream for progress, warnings and hints. */
  readonly stderr: OutputStream;
  /** Reads standard input to its end. Returns the same text on every call. */
  readonly readStdin: () => Promise<string>;
  /** Asks the user for a line; undefined without a terminal. */
  readonly ask: ((question: string) => Promise<string>) | undefined;
  /** Reads single keys; absent without a terminal. */
  readonly keyboard?: (onKey: (key: Key) => void) => Promise<Keyboard>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly nowMs: () => number;
  /** True if no hints are printed on standard error. */
  readonly quiet: boolean;
  /** The value of -v, as in kubectl: 1 adds details, 6 adds the requests. */
  readonly verbosity: number;
  readonly words?: readonly string[];
  /** The cluster that verbs read instead of the cluster of the connection flags: the cluster of a report. */
  readonly cluster?: Cluster;
}

/** Prints notes on standard error, each on one line. */
export function writeNotes({ stderr }: CommandContext, notes: readonly string[]): void {
  for (const note of notes) stderr.write(`${stderr.paint('yellow', 'note:')} ${note}\n`);
}

/** Prints up to two useful next commands, but only on a terminal and without --quiet. */
export function suggestNext(context: CommandContext, ...commands: readonly string[]): void {
  const { quiet, stderr } = context;
  if (quiet || !stderr.isTerminal) return;
  for (const command of commands.slice(0, 2)) stderr.write(`${stderr.paint('dim', `next: kubectl rollout-group ${command}`)}\n`);
}
