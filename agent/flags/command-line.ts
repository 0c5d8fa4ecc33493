// Parses the command line as Go's flag package does, and renders the flags as usage text.

import { agentName } from '../../policies/objects/agent-deployment.ts';
import { didYouMean } from '../../policies/text/did-you-mean.ts';
import { type FlagSpec, type FlagValues, flagKinds, flagNamed, flagSections, flagSpecs } from './flags.ts';

type ParsedFlags =
  | { readonly kind: 'values'; readonly values: FlagValues }
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  /** `message` is one sentence. The process prints it with the usage and exits with code 2. */
  | { readonly kind: 'wrong'; readonly message: string };

/** Returns the values of all flags. The last value of a repeated flag counts. Unlike in Go, a word that belongs to no flag is an error. */
export function parseFlags(words: readonly string[]): ParsedFlags {
  const texts = new Map<string, string>(flagSpecs.map((flag) => [flag.name, flag.default ?? '']));
  for (let index = 0; index < words.length; ) {
    const read = readFlag(words[index] ?? '', words[index + 1]);
    if (read.kind !== 'flag') return read;
    texts.set(read.name, read.text);
    index += read.wordCount;
  }
  const values = Object.fromEntries(flagSpecs.map((flag) => [flag.name, flagKinds[flag.kind].read(texts.get(flag.name) ?? '')]));
  // Every flag has a value of its kind here, but the compiler cannot derive that.
  return { kind: 'values', values: values as FlagValues };
}

interface GivenFlag {
  readonly kind: 'flag';
  readonly name: string;
  readonly text: string;
  /** The number of words of the flag and its value: 1 or 2. */
  readonly wordCount: number;
}

/** Reads the flag in `word`. Its value is part of `word`, or is `following`. */
function readFlag(word: string, following: string | undefined): GivenFlag | ParsedFlags {
  const match = /^--?([^-=][^=]*)(?:=([\s\S]*))?$/.exec(word);
  if (match === null) return wrong(word.startsWith('-') && word !== '-' ? `bad flag syntax: ${word}` : `unexpected argument: ${word}`);
  const [, name = '', given] = match;
  if (name === 'help' || name === 'h') return { kind: 'help' };
  if (name === 'version') return { kind: 'version' };
  const flag = flagNamed(name);
  if (flag === undefined) return wrong(`flag provided but not defined: -${name}${hint(name)}`);
  const isInWord = given !== undefined || flag.kind === 'boolean';
  const text = isInWord ? (given ?? 'true') : following;
  if (text === undefined) return wrong(`flag needs an argument: -${name}`);
  const { read, expected } = flagKinds[flag.kind];
  if (read(text) === undefined) return wrong(`invalid value "${text}" for flag -${name}: ${expected}`);
  return { kind: 'flag', name: flag.name, text, wordCount: isInWord ? 1 : 2 };
}

function hint(name: string): string {
  const found = didYouMean(
    name,
    flagSpecs.map((flag) => flag.name),
  );
  return found === undefined ? '' : ` (did you mean -${found}?)`;
}

function wrong(message: string): ParsedFlags {
  return { kind: 'wrong', message };
}

/** The version of this build, which the bundler sets. */
export const version: string = process.env['ROLLOUT_GROUP_VERSION'] ?? '0.0.0-source';

export function usageText(): string {
  const lines = flagSections.flatMap(([title, flags]) => ['', title, ...flags.flatMap(usageLines)]);
  return [
    `Usage: ${agentName} -kubernetes.namespace NAMESPACE [flags]`,
    '',
    'Rolls out groups of StatefulSets, one zone at a time. Flags take one dash or two, and a value after = or as the next word;',
    'booleans take their value only after =.',
    ...lines,
    '',
    '  -help',
    '        Show this help.',
    '  -version',
    '        Show the version.',
    '',
  ].join('\n');
}

function usageLines(flag: FlagSpec): readonly string[] {
  const standard = flag.default === undefined ? '' : ` (default ${flag.default})`;
  return [`  -${flag.name}${flag.kind === 'boolean' ? '' : ` ${flag.value ?? flag.kind}`}`, `        ${flag.description}${standard}`];
}
