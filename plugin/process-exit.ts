// Reports the error of an invocation: a failure with its reason and next step, or a defect with a crash id.
import { hash } from 'node:crypto';
import type { Writable } from 'node:stream';
import { type ExitCode, exitCodes, Failure, failureLines } from './failure.ts';
import { outputStream } from './output/terminal.ts';
import { version } from './version.ts';

export interface Circumstances {
  readonly words: readonly string[];
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function reportEnding(error: unknown, { words, stderr, env }: Circumstances): ExitCode {
  const stream = outputStream(stderr, { env, ...colourFlag(words) });
  const [first = '', ...rest] = error instanceof Failure ? failureLines(error.details) : defectLines(error, words);
  stream.write(`${[stream.paint('red', first), ...rest].join('\n')}\n`);
  return finalExitCode(error instanceof Failure ? error.exitCode : exitCodes.internal, words);
}

/** Returns the final exit code. With --detailed-exitcode it is 1 for every error, as in Terraform, except findings and denials. */
function finalExitCode(exitCode: ExitCode, words: readonly string[]): ExitCode {
  const isVerdict = exitCode === exitCodes.findings || exitCode === exitCodes.refused;
  return words.includes('--detailed-exitcode') && !isVerdict ? exitCodes.differences : exitCode;
}

/** Reads the colour flag from the words, because the parser may have failed. */
function colourFlag(words: readonly string[]): { readonly color?: 'always' | 'never' } {
  if (words.includes('--no-color') || words.includes('--color=never')) return { color: 'never' };
  return words.includes('--color=always') ? { color: 'always' } : {};
}

function defectLines(error: unknown, words: readonly string[]): readonly string[] {
  const { name, message, stack = '' } = error instanceof Error ? error : new Error(String(error));
  const lines = [
    `error: kubectl rollout-group stopped because of a defect in itself (crash ${crashId(name, stack)}).`,
    `  why: ${name}: ${message.split('\n')[0] ?? ''}`,
    `  do:  report the crash id, the version ${version} and the command line; -v=1 adds the details to include`,
  ];
  const isVerbose = words.some((word) => /^(?:-v|--v(?:=|$))/.test(word));
  return isVerbose ? [...lines, stack] : lines;
}

/** Returns the id of a defect, the same on every machine. Leaves out paths and the message, which may contain names of the user. */
function crashId(name: string, stack: string): string {
  const frames = [...stack.matchAll(/^\s+at (?:async )?([\w$.<> ]+?) \(/gm)].map((match) => match[1]);
  return hash('sha256', [version, name, ...frames].join('\n')).slice(0, 8);
}
