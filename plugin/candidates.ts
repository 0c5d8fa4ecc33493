// Finds the completion candidates for a partly typed command line, for kubectl and for the shells.
import { flagsOf, globalOptions, verbs } from './verbs/all.ts';
import { type ArgumentSpec, type Completes, flagNames, type OptionSpec, takesValue, type Verb } from './verbs/verb.ts';

export interface Candidate {
  readonly value: string;
  readonly description?: string;
}

/** The directives of Cobra for kubectl's shell scripts. Without candidates, 0 completes file names, 4 completes nothing, 16 directories. */
export type Directive = 0 | 4 | 16;

export interface Completion {
  readonly candidates: readonly Candidate[];
  readonly directive: Directive;
}

const nothing: Completion = { candidates: [], directive: 4 };
const help: OptionSpec = { flags: '-h, --help', description: 'Show help.' };

/** Returns the candidates for the last word, which may be empty. `words` does not contain the name of the program. */
export async function completionsFor(words: readonly string[]): Promise<Completion> {
  const current = words.at(-1) ?? '';
  const typed = { ...readWords(words.slice(0, -1)), current };
  const { verb, values, pending, isLiteral } = typed;
  const completion = await candidatesFor(current);
  return { ...completion, candidates: completion.candidates.filter(({ value }) => value.startsWith(current)) };

  async function candidatesFor(word: string): Promise<Completion> {
    if (pending !== undefined) return valuesOf(pending, typed);
    if (!isLiteral && /^--[a-z-]+=/.test(word)) return valuesAfterEquals(word, typed);
    if (!isLiteral && word.startsWith('-')) {
      const flags = optionsOf(verb).map((option) => ({ value: flagNames(option).at(-1) ?? '', description: option.description }));
      return { candidates: flags, directive: 4 };
    }
    const shown = verbs.filter(({ isHidden }) => isHidden !== true);
    if (verb === undefined) return { candidates: shown.map(({ name, summary }) => ({ value: name, description: summary })), directive: 4 };
    const argument = argumentAt(verb, values.length);
    return argument === undefined ? nothing : valuesOf(argument, typed);
  }
}

/** Returns the text that kubectl reads: a candidate per line, its description after a tab, and the directive. */
export function completionText({ candidates, directive }: Completion): string {
  const lines = candidates.map(({ value, description }) => (description === undefined ? value : `${value}\t${description}`));
  return `${[...lines, `:${directive}`].join('\n')}\n`;
}

/** Writes the candidates; none after an error. Then ends the process, because a credential plugin may still run. */
export async function printCompletion(words: readonly string[]): Promise<void> {
  const completion = await completionsFor(words).catch(() => nothing);
  process.stdout.write(completionText(completion), () => process.exit(0));
}

interface Typed {
  readonly verb: Verb | undefined;
  readonly values: readonly string[];
  /** The values of flags, by the name of the flag in camel case. */
  readonly flags: Readonly<Record<string, string>>;
  readonly pending: OptionSpec | undefined;
  /** The word that the user types. */
  readonly current: string;
  /** True after `--`: no later word is a flag. */
  readonly isLiteral: boolean;
}

function readWords(words: readonly string[]): Omit<Typed, 'current'> {
  let verb: Verb | undefined;
  let pending: OptionSpec | undefined;
  let isLiteral = false;
  const values: string[] = [];
  const flags: Record<string, string> = {};
  for (const word of words) {
    const [, flag = '', value = ''] = /^(--?[a-zA-Z][a-z-]*)=(.*)$/s.exec(word) ?? [];
    const set = optionsOf(verb).find((option) => flagNames(option).includes(flag));
    if (pending !== undefined) {
      flags[keyOf(pending)] = word;
      pending = undefined;
    } else if (!isLiteral && set !== undefined) flags[keyOf(set)] = value;
    else if (word === '--') isLiteral = true;
    else if (!isLiteral && word.startsWith('-') && word !== '-')
      pending = optionsOf(verb).find((option) => takesValue(option) && flagNames(option).includes(word));
    else if (verb === undefined) verb = verbs.find(({ name }) => name === word);
    else values.push(word);
  }
  return { verb, values, flags, pending, isLiteral };
}

function keyOf(option: OptionSpec): string {
  return (flagNames(option).at(-1) ?? '').slice(2).replace(/-([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

function optionsOf(verb: Verb | undefined): readonly OptionSpec[] {
  return [...(verb === undefined ? [] : flagsOf(verb)), ...globalOptions, help];
}

function argumentAt({ arguments: all = [] }: Verb, index: number): ArgumentSpec | undefined {
  const last = all.at(-1);
  return all[index] ?? (last?.isVariadic === true ? last : undefined);
}

async function valuesAfterEquals(word: string, typed: Typed): Promise<Completion> {
  const flag = word.slice(0, word.indexOf('='));
  const option = optionsOf(typed.verb).find((one) => takesValue(one) && flagNames(one).includes(flag));
  if (option === undefined) return nothing;
  const { candidates, directive } = await valuesOf(option, typed);
  return { candidates: candidates.map((candidate) => ({ ...candidate, value: `${flag}=${candidate.value}` })), directive };
}

async function valuesOf(
  { choices, completes = 'nothing' }: { readonly choices?: readonly string[]; readonly completes?: Completes },
  { flags, values, current }: Typed,
): Promise<Completion> {
  if (choices !== undefined) return { candidates: choices.map((value) => ({ value })), directive: 4 };
  switch (completes) {
    case 'file':
    case 'source':
      return { candidates: [], directive: 0 };
    case 'directory':
      return { candidates: [], directive: 16 };
    case 'topic':
      return { candidates: (await import('./commands/docs.ts')).topicCandidates(), directive: 4 };
    case 'schemaPath':
      return { candidates: (await import('./commands/schema.ts')).kindCandidates(), directive: 4 };
    case 'nothing':
      return nothing;
    default: {
      const { clusterCandidates } = await import('./cluster-candidates.ts');
      const named = (subject: Exclude<typeof completes, 'condition'>) =>
        clusterCandidates({ subject, flags, group: subject === 'group' ? undefined : values[0] });
      const [kind] = completes === 'group' ? (/^(?:po|pods?)\//.exec(current) ?? []) : [];
      if (kind !== undefined) {
        const pods = await clusterCandidates({ subject: 'pod', flags, group: undefined });
        return { candidates: pods.map((pod) => ({ value: `${kind}${pod}` })), directive: 4 };
      }
      const valued = async (key: 'zone' | 'wave') => (await named(key)).map((name) => `${key}=${name}`);
      const conditions = () => Promise.all([['complete', 'paused'], valued('zone'), valued('wave')]);
      const names = await (completes === 'condition' ? conditions() : named(completes));
      return { candidates: names.flat().map((value) => ({ value })), directive: 4 };
    }
  }
}
