// Renders the flags: the usage on a terminal, and the tables of docs/agent.md.
import { type FlagSpec, flags } from './flags.ts';

export const executableName = 'rollout-group-agent';

const sections: readonly (readonly [FlagSpec['section'], string])[] = [
  ['original', 'Flags of grafana/rollout-operator'],
  ['agent', 'Flags of this agent'],
  ['webhook', 'Flags of the webhooks'],
];

/** Returns the text of `-help` with a final newline. */
export function usageText(): string {
  const lines = sections.flatMap(([section, title]) => ['', title, ...flagsOf(section).flatMap(usageLines)]);
  return [
    `Usage: ${executableName} -kubernetes.namespace NAMESPACE [flags]`,
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

/** Returns the flag tables of docs/agent.md as lines. */
export function flagTables(): readonly string[] {
  return sections.flatMap(([section, title]) => [
    `### ${title}`,
    '',
    '| Flag | Default | Meaning |',
    '|---|---|---|',
    ...flagsOf(section).map(
      (flag) => `| \`-${flag.name}\` | ${flag.default === '' ? '' : `\`${flag.default}\``} | ${flag.description}${aliasText(flag)} |`,
    ),
    '',
  ]);
}

function flagsOf(section: FlagSpec['section']): readonly FlagSpec[] {
  return flags.filter((flag) => flag.section === section);
}

function usageLines(flag: FlagSpec): readonly string[] {
  const standard = flag.default === '' ? '' : ` (default ${flag.default})`;
  return [`  -${flag.name}${flag.kind === 'boolean' ? '' : ` ${flag.value ?? flag.kind}`}`, `        ${flag.description}${standard}`];
}

function aliasText({ aliases = [] }: FlagSpec): string {
  return aliases.length === 0 ? '' : ` Also \`-${aliases.join('`, `-')}\`.`;
}
