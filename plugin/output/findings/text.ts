// Writes findings as text: place, message, excerpt, fix and a summary line.
import { type Finding, renderFinding } from '../../../policies/findings/finding.ts';
import type { OutputStream } from '../../context.ts';
import type { Style } from '../colour.ts';
import { type FindingsReport, summarySentence } from './findings.ts';

/** Styles of the parts. The text is complete without colour. */
const styles: Readonly<Record<'place' | 'error' | 'warning' | 'notice' | 'code' | 'caret' | 'hint', Style>> = {
  place: 'bold',
  error: 'red',
  warning: 'yellow',
  notice: 'cyan',
  code: 'dim',
  caret: 'red',
  hint: 'green',
};

/** Returns the text of the report. */
export function findingsText(report: FindingsReport, stream: Pick<OutputStream, 'paint'>): string {
  return `${[...findingBlocks(report.findings, stream), summarySentence(report)].join('\n')}\n`;
}

/** Returns each finding as one block of lines without a final newline. */
export function findingBlocks(findings: readonly Finding[], { paint }: Pick<OutputStream, 'paint'>): readonly string[] {
  return findings.map((finding) => renderFinding(finding, (part, text) => paint(styles[part], text)));
}
