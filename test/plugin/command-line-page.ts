// Generates docs/command-line.md from the descriptions of the verbs.
import { globalOptions, verbs } from '../../plugin/verbs/all.ts';
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
} from '../../plugin/verbs/verb.ts';

/** Returns the page, with a final newline. CI checks that the committed page is current. */
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
  `\`${programName} VERB [flags]\`. Flags can be before or after \`VERB\`. kubectl rejects flags before the name of a plugin.`,
  'Verbs without the connection flags need neither a kubeconfig nor the network. No verb sends telemetry.',
  '',
  'See also: [sources](sources.md), [output](output.md), [exit codes](exit-codes.md), [findings](findings.md).',
  'Run `kubectl rollout-group docs TOPIC` to read these pages offline.',
  '',
  '## Flags of all verbs',
  '',
];

const connectionHead: readonly string[] = [
  '## Connection flags',
  '',
  'Verbs that can talk to a cluster take the connection flags of kubectl. They find the kubeconfig like kubectl.',
  '',
];

function verbLines(verb: Verb): readonly string[] {
  const { name, summary, description, arguments: values = [], options, examples, usesCluster } = verb;
  const exitLines = exitsOf(verb).map(([code, meaning]) => `- ${code}: ${meaning}`);
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
    ...block(usesCluster === true ? ['Also takes the [connection flags](#connection-flags).'] : []),
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
