// Findings for people: place, message, excerpt, way out, and one line that sums up.
import type { Finding } from '../../../policies/findings/finding.ts';
import { renderFinding } from '../../../policies/findings/render.ts';
import type { OutputStream } from '../../context.ts';
import type { Style } from '../colour.ts';
import { type FindingsReport, summarySentence } from './findings.ts';

/** The words say it all without colour; colour only makes them easier to find. */
const styles: Readonly<Record<'place' | 'error' | 'warning' | 'notice' | 'code' | 'caret' | 'hint', Style>> = {
  place: 'bold',
  error: 'red',
  warning: 'yellow',
  notice: 'cyan',
  code: 'dim',
  caret: 'red',
  hint: 'green',
};

/** The text of the whole report. */
export function findingsText(report: FindingsReport, stream: Pick<OutputStream, 'paint'>): string {
  return `${[...findingBlocks(report.findings, stream), summarySentence(report)].join('\n')}\n`;
}

/** Each finding as the lines that belong together, without a final newline. */
export function findingBlocks(findings: readonly Finding[], { paint }: Pick<OutputStream, 'paint'>): readonly string[] {
  return findings.map((finding) => renderFinding(finding, (part, text) => paint(styles[part], text)));
}
