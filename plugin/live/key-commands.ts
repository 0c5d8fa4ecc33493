// Runs the verb of a key and returns its output as one line.
import { messageOf } from '../../policies/error-message.ts';
import { type ConnectionFlags, sameCluster } from '../connection.ts';
import type { CommandContext, OutputStream } from '../context.ts';
import { type ExitCode, exitCodes, Failure } from '../failure.ts';
import type { KeyCommand } from './keys.ts';

/** Runs a command; a failure becomes the returned text. The verb connects again, since the connection of a screen is read-only. */
export async function carryOut(context: CommandContext, flags: ConnectionFlags, command: KeyCommand): Promise<string> {
  const said: string[] = [];
  const quiet = {
    ...context,
    stdout: collected(context.stdout, said),
    stderr: collected(context.stderr, said),
    ask: undefined,
    quiet: true,
  };
  try {
    const exitCode = await runVerb(quiet, sameCluster(flags), command);
    const text = oneLine(said.join(''));
    return text === '' && exitCode !== exitCodes.done ? `it ended with ${exitCode}` : text;
  } catch (error) {
    if (!(error instanceof Failure)) return oneLine(`error: ${messageOf(error)}`);
    const { what, why, todo } = error.details;
    return oneLine([`error: ${what}`, ...(why === undefined ? [] : [why]), ...(todo === undefined ? [] : [todo])].join('; '));
  }
}

async function runVerb(context: CommandContext, flags: ConnectionFlags, { verb, group, zone, wave, rule }: KeyCommand): Promise<ExitCode> {
  const inZone = zone === undefined ? {} : { zone };
  switch (verb) {
    case 'pause':
      return (await import('../commands/pause.ts')).pause(context, { ...flags, group, ...inZone });
    case 'resume':
      return (await import('../commands/pause.ts')).resume(context, { ...flags, group, ...inZone });
    case 'approve':
      return (await import('../commands/approve.ts')).approve(context, {
        ...flags,
        group,
        ...(wave === undefined ? {} : { wave }),
        ...(rule === undefined ? {} : { rule }),
      });
    default:
      return verb satisfies never;
  }
}

function collected(stream: OutputStream, said: string[]): OutputStream {
  return { ...stream, write: (text) => void said.push(text), paint: (_style, text) => text, isTerminal: false };
}

function oneLine(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('; ');
}
