// What a command of a scenario is, and how its words and options are read.
import { durationMs } from '../../policies/duration.ts';
import type { Stage } from './stage.ts';
import type { Call } from './transcript.ts';

/** Changes the stage and answers the lines to print. */
export type Command = (stage: Stage, call: Call) => readonly string[];

export type Commands = Readonly<Record<string, Command>>;

/** A word that must be there. */
export function word(call: Call, index: number, what: string): string {
  const found = call.words[index];
  if (found === undefined) throw new Error(`${call.name} needs ${what}`);
  return found;
}

/** A word that must be a whole number. */
export function count(call: Call, index: number, what: string): number {
  const number = Number(word(call, index, what));
  if (!Number.isInteger(number)) throw new Error(`${call.name} needs ${what}, a whole number`);
  return number;
}

/** A length of time such as `5m`, in milliseconds. */
export function duration(text: string): number {
  return durationMs(text);
}
