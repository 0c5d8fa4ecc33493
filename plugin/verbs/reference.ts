// The page docs/command-line.md, written from the description of the verbs.
import { globalOptions, verbs } from './all.ts';
import { connectionOptions } from './connection.ts';
import type { ArgumentSpec, OptionSpec, Verb } from './verb.ts';
import { argumentText, optionText, programName, usageText } from './wording.ts';

/** The page with a final newline; generated, and checked in CI. */
export function commandLineMarkdown(): string {
  const visible = verbs.filter(({ isHidden }) => isHidden !== true);
  const flags = [...globalOptions.map(optionLine), '', ...connectionHead, ...connectionOptions.map(optionLine), ''];
  return `${[...head, ...flags, ...visible.flatMap(verbLines)].join('\n').trimEnd()}\n`;
}

const head: readonly string[] = [
  '# Command line',
  '',
  'Generated from `plugin/verbs/` by `npx vitest run test/plugin/help.test.ts -u`. The same texts are in `--help` of each verb.',
  '',
  `\`${programName} VERB [flags]\`. Flags go after the verb: kubectl refuses flags that stand before the name of a plugin.`,
  'Verbs that say nothing of a cluster need neither a kubeconfig nor the network, and none sends anything anywhere else.',
  '',
  'See also: [sources](sources.md), [output](output.md), [exit codes](exit-codes.md), [findings](findings.md).',
  'All of them are in `docs TOPIC`, offline.',
  '',
  '## Flags of every verb',
  '',
];

const connectionHead: readonly string[] = [
  '## Flags of the connection',
  '',
  'Of the verbs that talk to a cluster, and of those that can. They are those of kubectl; the kubeconfig is found as kubectl finds it.',
  '',
];

function verbLines(verb: Verb): readonly string[] {
  const { name, summary, description, arguments: values = [], options, examples, exits = {}, usesCluster } = verb;
  const exitLines = Object.entries(exits).map(([code, meaning]) => `- ${code}: ${meaning}`);
  return [
    `## ${name}`,
    '',
    `${summary}.${description === undefined ? '' : ` ${description}`}`,
    '',
    '```',
    usageText(verb),
    '```',
    '',
    ...block([...values.map(argumentLine), ...options.map(optionLine)]),
    ...block(usesCluster === true ? ['Takes the flags of the connection.'] : []),
    ...block(exitLines.length === 0 ? [] : ['Exit codes besides 0, 3 and 70:', '', ...exitLines]),
    '```',
    ...examples.map((example) => `${programName} ${example}`),
    '```',
    '',
  ];
}

function block(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [...lines, ''];
}

function argumentLine(argument: ArgumentSpec): string {
  return `- \`${argument.name.toUpperCase()}\`: ${argumentText(argument)}`;
}

function optionLine(option: OptionSpec): string {
  return `- \`${option.flags}\`: ${optionText(option)}`;
}
