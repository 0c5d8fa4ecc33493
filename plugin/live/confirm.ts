// Whether the person at the terminal means it. Nobody is asked without a flag that answers beforehand.
import type { CommandContext } from '../context.ts';
import { usageFailure } from '../failure.ts';

export interface PromptFlags {
  readonly yes?: boolean;
  /** False with --no-input. */
  readonly input?: boolean;
  readonly confirm?: string;
}

/** True at once with --yes and where nobody can be asked, as kubectl does it. Shows `preview` before it asks. */
export async function isMeant({ ask, stderr }: CommandContext, { yes, input }: PromptFlags, preview: string): Promise<boolean> {
  if (yes === true || input === false || ask === undefined) return true;
  stderr.write(preview);
  const isYes = /^y(?:es)?$/i.test((await ask('Go on? [y/N] ')).trim());
  if (!isYes) stderr.write('nothing was changed\n');
  return isYes;
}

/**
 * For what cannot easily be taken back: the name must be typed, or given with --confirm.
 *
 * @throws Failure when nobody can be asked, or another name was given.
 */
export async function isMeantByName({ ask, stderr }: CommandContext, flags: PromptFlags, preview: string, name: string): Promise<boolean> {
  if (flags.confirm === name) return true;
  if (flags.confirm !== undefined) throw usageFailure(`--confirm ${flags.confirm} is not ${name}`, `give --confirm ${name}`);
  if (flags.input === false || ask === undefined) throw usageFailure(`${preview.trim()}; it must be confirmed`, `give --confirm ${name}`);
  stderr.write(preview);
  const isSame = (await ask(`Type ${name} to confirm: `)).trim() === name;
  if (!isSame) stderr.write('nothing was changed\n');
  return isSame;
}
