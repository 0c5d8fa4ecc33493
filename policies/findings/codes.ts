// Joins the tables of finding codes. A code never changes its meaning and is never reused.
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

export function explainCode(code: string): CodeEntry | undefined {
  return Object.hasOwn(findingCodes, code) ? findingCodes[code as FindingCode] : undefined;
}
