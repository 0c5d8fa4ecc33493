// Confirmation by the user at the terminal. Each question has a flag that answers it in advance.
import type { CommandContext } from '../context.ts';
import { usageFailure } from '../failure.ts';

export interface PromptFlags {
  readonly yes?: boolean;
  /** False with --no-input. */
  readonly input?: boolean;
  readonly confirm?: string;
}

/** Asks for a yes after showing `preview`. True at once with --yes and without a terminal, as in kubectl. */
export async function isMeant({ ask, stderr }: CommandContext, { yes, input }: PromptFlags, preview: string): Promise<boolean> {
  if (yes === true || input === false || ask === undefined) return true;
  stderr.write(preview);
  const isYes = /^y(?:es)?$/i.test((await ask('Go on? [y/N] ')).trim());
  if (!isYes) stderr.write('nothing was changed\n');
  return isYes;
}

/**
 * Asks the user to type the name, or takes it from --confirm: for changes that are hard to revert.
 *
 * @throws Failure without a terminal, or when another name was given.
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
