// Describes the help of the program and of each verb, from the descriptions that the parser uses.
import type { HelpEntry, HelpSection } from './output/text.ts';
import { globalOptions, verbGroups, verbs } from './verbs/all.ts';
import { argumentText, connectionOptions, exitsOf, type OptionSpec, optionText, programName, usageText, type Verb } from './verbs/verb.ts';

const helpOption: OptionSpec = { flags: '-h, --help', description: 'Show help.' };

/**
 * Returns the help of the program or of a verb by its name, and undefined for another name. The build calls this function and
 * puts the results into the executable: the descriptions of all verbs take 3 ms to load.
 */
export function helpSections(subject: string): readonly HelpSection[] | undefined {
  if (subject === programName) return programSections();
  const verb = verbs.find(({ name }) => name === subject);
  return verb === undefined ? undefined : verbSections(verb);
}

function programSections(): readonly HelpSection[] {
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

function verbSections(verb: Verb): readonly HelpSection[] {
  const { summary, description, arguments: values = [], options, examples, usesCluster } = verb;
  return [
    { entries: [{ text: `${summary}.` }, ...(description === undefined ? [] : [{ text: description }])] },
    { title: 'Usage', entries: [{ text: usageText(verb) }] },
    { title: 'Arguments', entries: values.map((argument) => ({ label: argument.name.toUpperCase(), text: argumentText(argument) })) },
    { title: 'Flags', entries: options.map(optionEntry) },
    { title: 'Flags of all verbs', entries: [...globalOptions, helpOption].map(optionEntry) },
    { entries: usesCluster === true ? [{ text: `Also takes the connection flags. ${programName} --help lists them.` }] : [] },
    { title: 'Examples', entries: examples.map((example) => ({ text: `${programName} ${example}` })) },
    { title: 'Exit codes besides 0, 3 and 70', entries: exitsOf(verb).map(([code, text]) => ({ label: code.padStart(2), text })) },
  ].filter(({ entries }) => entries.length > 0);
}

/** Returns the entry of a flag. Indents a flag without a short form, so that all long flags are aligned. */
function optionEntry(option: OptionSpec): HelpEntry {
  return { label: option.flags.startsWith('--') ? `    ${option.flags}` : option.flags, text: optionText(option) };
}
