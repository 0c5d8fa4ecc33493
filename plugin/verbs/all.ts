// Lists all verbs in the order of the help, and the flags that every verb takes.
import { actVerbs } from './act.ts';
import { authorVerbs } from './author.ts';
import { metaVerbs } from './meta.ts';
import { observeVerbs } from './observe.ts';
import { previewVerbs } from './preview.ts';
import { connectionOptions, flagNames, type OptionSpec, takesValue, type Verb } from './verb.ts';

export const verbGroups: Readonly<Record<string, readonly Verb[]>> = {
  Author: authorVerbs,
  Preview: previewVerbs,
  Observe: observeVerbs,
  Act: actVerbs,
  Meta: metaVerbs,
};

export const verbs: readonly Verb[] = Object.values(verbGroups).flat();

export function flagsOf({ options, usesCluster }: Verb): readonly OptionSpec[] {
  return usesCluster === true ? [...options, ...connectionOptions] : options;
}

export const globalOptions: readonly OptionSpec[] = [
  { flags: '-q, --quiet', description: 'Print no hints on standard error.' },
  { flags: '-v, --v <level>', description: 'Detail on standard error, as in kubectl: 1 for details, 6 for each request.', atLeast: 0 },
  { flags: '--color <when>', description: 'Colour the output.', choices: ['auto', 'always', 'never'] },
  { flags: '--no-color', description: 'Same as --color=never.' },
  { flags: '--ascii', description: 'Use only ASCII characters in tables and charts.' },
  { flags: '--width <columns>', description: 'Fit into this many columns, also in pipes; get -o wide ignores it.', atLeast: 40 },
];

/** Returns the verb of a command line: its first word that is neither a flag nor the value of a flag. */
export function verbOf(words: readonly string[]): Verb | undefined {
  const valued = new Set([...globalOptions, ...verbs.flatMap(flagsOf)].filter(takesValue).flatMap(flagNames));
  const first = words.find((word, index) => !word.startsWith('-') && !valued.has(words[index - 1] ?? ''));
  return verbs.find(({ name }) => name === first);
}
