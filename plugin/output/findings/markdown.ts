// Writes findings as a pull-request comment: summary first, then the findings by severity.
import { type Finding, placeText, type Severity } from '../../../policies/findings/finding.ts';
import { codeSpan, tableCell } from '../markdown.ts';
import { sourceText } from '../plan/plan-text.ts';
import { type FindingsReport, summarySentence } from './findings.ts';

/** Maximum number of shown findings; the rest is counted, because forges cut long comments. */
const maxRows = 50;
const order: readonly Severity[] = ['error', 'warning', 'notice'];

export function findingsMarkdown(report: FindingsReport): string {
  const lines = [`### Lint: ${summarySentence(report)}`];
  const sorted = order.flatMap((severity) => report.findings.filter((finding) => finding.severity === severity));
  if (sorted.length > 0) lines.push('', '| | Place | Finding |', '|---|---|---|', ...sorted.slice(0, maxRows).map(row));
  if (sorted.length > maxRows) lines.push('', `and ${sorted.length - maxRows} more`);
  return `${lines.join('\n')}\n`;
}

function row(finding: Finding): string {
  const fix = finding.hint === undefined ? '' : `<br>fix: ${tableCell(finding.hint)}`;
  const see = (finding.related ?? []).flatMap((source) => sourceText(source) ?? []).map((text) => `<br>see ${codeSpan(text)}`);
  const text = `${finding.code} ${tableCell(finding.message)}${see.join('')}${fix}`;
  return `| ${finding.severity} | ${codeSpan(placeText(finding))} | ${text} |`;
}
