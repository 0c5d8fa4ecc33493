// Builds the help of the program and of each verb from the descriptions that the parser uses.
import type { OutputStream } from './context.ts';
import { paragraph } from './output/text.ts';
import { globalOptions, verbGroups, verbs } from './verbs/all.ts';
import {
  type ArgumentSpec,
  argumentText,
  connectionOptions,
  exitsOf,
  type OptionSpec,
  optionText,
  programName,
  usageText,
  type Verb,
} from './verbs/verb.ts';

const helpOption: OptionSpec = { flags: '-h, --help', description: 'Show help.' };

/** Returns the verb if the words ask only for its help, `all` for the help of the program, and undefined if the parser is needed. */
export function askedHelp(words: readonly string[]): Verb | 'all' | undefined {
  const isFlag = (word: string | undefined) => word === '--help' || word === '-h';
  if (words.length === 0 || (words.length === 1 && isFlag(words[0]))) return 'all';
  return words.length === 2 && isFlag(words[1]) ? verbs.find(({ name }) => name === words[0]) : undefined;
}

/** Returns the help text with a final newline. Wraps at the width of the terminal, at most 120 columns; in pipes at 80. */
export function helpText(subject: Verb | 'all', stream: Pick<OutputStream, 'columns' | 'paint'>): string {
  const width = Math.min(stream.columns ?? 80, 120);
  const sections = subject === 'all' ? programSections() : verbSections(subject);
  return `${sections.flatMap((section, index) => [...(index === 0 ? [] : ['']), ...sectionLines(section, width, stream)]).join('\n')}\n`;
}

interface Entry {
  readonly label?: string;
  readonly text: string;
}

interface Section {
  readonly title?: string;
  readonly entries: readonly Entry[];
}

function programSections(): readonly Section[] {
  const verbSections = Object.entries(verbGroups).map(([title, ofGroup]) => ({
    title,
    entries: ofGroup.filter(({ isHidden }) => isHidden !== true).map(({ name, summary }) => ({ label: name, text: summary })),
  }));
  return [
    { entries: [{ text: 'Plan, explain and enforce rollouts of groups of StatefulSets, one zone at a time.' }] },
    { title: 'Usage', entries: [{ text: `${programName} VERB [flags]` }] },
    ...verbSections,
    { title: 'Flags of all verbs', entries: [...globalOptions, helpOption].map(optionEntry) },
    { title: 'Connection flags', entries: connectionOptions.map(optionEntry) },
    {
      entries: [
        { text: `${programName} VERB --help shows the flags, examples and exit codes of a verb.` },
        { text: `Flags can be before or after VERB. kubectl rejects flags before the name of a plugin.` },
      ],
    },
  ];
}

function verbSections(verb: Verb): readonly Section[] {
  const { summary, description, arguments: values = [], options, examples, usesCluster } = verb;
  return [
    { entries: [{ text: `${summary}.` }, ...(description === undefined ? [] : [{ text: description }])] },
    { title: 'Usage', entries: [{ text: usageText(verb) }] },
    { title: 'Arguments', entries: values.map(argumentEntry) },
    { title: 'Flags', entries: options.map(optionEntry) },
    { title: 'Flags of all verbs', entries: [...globalOptions, helpOption].map(optionEntry) },
    { entries: usesCluster === true ? [{ text: `Also takes the connection flags. ${programName} --help lists them.` }] : [] },
    { title: 'Examples', entries: examples.map((example) => ({ text: `${programName} ${example}` })) },
    { title: 'Exit codes besides 0, 3 and 70', entries: exitsOf(verb).map(([code, text]) => ({ label: code.padStart(2), text })) },
  ].filter(({ entries }) => entries.length > 0);
}

function argumentEntry(argument: ArgumentSpec): Entry {
  return { label: argument.name.toUpperCase(), text: argumentText(argument) };
}

/** Returns the entry of a flag. Indents a flag without a short form, so that all long flags are aligned. */
function optionEntry(option: OptionSpec): Entry {
  return { label: option.flags.startsWith('--') ? `    ${option.flags}` : option.flags, text: optionText(option) };
}

function sectionLines({ title, entries }: Section, width: number, { paint }: Pick<OutputStream, 'paint'>): readonly string[] {
  const indent = title === undefined ? '' : '  ';
  const labelWidth = Math.max(0, ...entries.map(({ label = '' }) => label.length));
  const lines = entries.flatMap(({ label, text }) =>
    title === 'Examples'
      ? exampleLines(text, width)
      : paragraph(label === undefined ? indent : `${indent}${label.padEnd(labelWidth)}  `, text, width),
  );
  return title === undefined ? lines : [paint('bold', title), ...lines];
}

/** Wraps a command before its flags and pipes. Each line but the last ends with a backslash, so that a shell accepts the copied text. */
function exampleLines(command: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = ' ';
  for (const part of command.split(/ (?=--?[a-z]|[|>] )/)) {
    if (line !== ' ' && `${line} ${part} \\`.length > width) {
      lines.push(`${line} \\`);
      line = '     ';
    }
    line += ` ${part}`;
  }
  return [...lines, line];
}
