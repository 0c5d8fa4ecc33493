// Joins the tables of finding codes and generates docs/findings.md. A code never changes its meaning and is never reused.
import { clusterCodes } from './codes/clusters.ts';
import { documentCodes } from './codes/documents.ts';
import { policyCodes } from './codes/policies.ts';
import { reviewCodes } from './codes/reviews.ts';

export interface CodeEntry {
  readonly title: string;
  readonly severity: 'error' | 'warning' | 'notice';
  /** The cause and the consequence, in whole sentences. */
  readonly explanation: string;
  readonly hint?: string;
}

type CodeInput = Omit<CodeEntry, 'severity'> & Partial<Pick<CodeEntry, 'severity'>>;

const tables = { ...documentCodes, ...policyCodes, ...clusterCodes, ...reviewCodes };

export type FindingCode = keyof typeof tables;

/** Every code of a finding. A code without severity in its table is an error. */
export const findingCodes = Object.fromEntries(
  Object.entries(tables).map(([code, entry]: readonly [string, CodeInput]) => [code, { ...entry, severity: entry.severity ?? 'error' }]),
) as Readonly<Record<FindingCode, CodeEntry>>;

const families: readonly (readonly [prefix: string, title: string])[] = [
  ['RG1', 'Syntax and files'],
  ['RG2', 'Schema, names and meaning'],
  ['RG3', 'Conditions'],
  ['RG4', 'Settings adopted from grafana/rollout-operator'],
  ['RG5', 'Risks of a plan'],
  ['RG6', 'The installation'],
  ['RG7', 'Objects of other rollout operators'],
  ['RG8', 'Effects of a change'],
];

export function explainCode(code: string): CodeEntry | undefined {
  return Object.hasOwn(findingCodes, code) ? findingCodes[code as FindingCode] : undefined;
}

/** Returns the page `docs/findings.md`: every code with its severity, explanation and fix. */
export function findingsMarkdown(): string {
  const entries: readonly (readonly [string, CodeEntry])[] = Object.entries(findingCodes).sort(([a], [b]) => (a < b ? -1 : 1));
  const sections = families.map(([prefix, title]) => {
    const texts = entries.filter(([code]) => code.startsWith(prefix)).map(([code, entry]) => codeMarkdown(code, entry));
    return [`## ${prefix}xxx: ${title}`, ...texts].join('\n\n');
  });
  const head = [
    '# Findings',
    'Look up the code of a finding. `lint` fails on errors and warnings, and with `--strict` also on notices. Generated from `policies/findings/codes/`.',
  ];
  return `${[...head, ...sections].join('\n\n')}\n`;
}

function codeMarkdown(code: string, entry: CodeEntry): string {
  const fix = entry.hint === undefined ? [] : [`Fix: ${entry.hint}.`];
  return [`### ${code}: ${entry.title}`, `Severity: ${entry.severity}.`, entry.explanation, ...fix].join('\n\n');
}
