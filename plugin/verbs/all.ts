// All verbs, in the order of the help, and the flags that every verb takes.
import { actVerbs } from './act.ts';
import { authorVerbs } from './author.ts';
import { connectionOptions } from './connection.ts';
import { installVerbs } from './install.ts';
import { metaVerbs } from './meta.ts';
import { observeVerbs } from './observe.ts';
import { previewVerbs } from './preview.ts';
import type { OptionSpec, Verb } from './verb.ts';

export const verbs: readonly Verb[] = [...authorVerbs, ...previewVerbs, ...observeVerbs, ...actVerbs, ...installVerbs, ...metaVerbs];

/** Its own flags, and those of the connection when it may talk to a cluster. */
export function flagsOf({ options, usesCluster }: Verb): readonly OptionSpec[] {
  return usesCluster === true ? [...options, ...connectionOptions] : options;
}

export const globalOptions: readonly OptionSpec[] = [
  { flags: '-q, --quiet', description: 'No hints on standard error.' },
  { flags: '-v, --verbose', description: 'Say more on standard error; twice for still more.' },
  { flags: '--color <when>', description: 'Colour of the output.', choices: ['auto', 'always', 'never'] },
  { flags: '--no-color', description: 'The same as --color=never.' },
  { flags: '--ascii', description: 'No characters outside ASCII in tables and charts.' },
  { flags: '--width <columns>', description: 'Fit into this many columns, in pipes too.', atLeast: 40 },
];
