// Writes the results of PolicyTests as a pull-request comment: summary, failed cases, uncovered rules.
import { codeSpan, tableCell } from '../markdown.ts';
import { coverageSummary, failureFacts, isOpen, type TestReport, testSummary } from './results.ts';

/** Maximum number of shown rows; the rest is counted. */
const maxRows = 50;

export function testMarkdown(report: TestReport): string {
  const failed = report.suites.flatMap(({ name, cases }) => cases.filter((one) => !one.passed).map((one) => ({ suite: name, one })));
  const rows = failed.map(
    ({ suite, one }) => `| ${tableCell(suite)} | ${tableCell(one.name)} | ${failureFacts(one).map(tableCell).join('<br>')} |`,
  );
  const lines = [`### Policy tests: ${testSummary(report)}`, ...table(['Test', 'Case', 'Facts'], rows)];
  if (report.coverage !== undefined) {
    const open = report.coverage.filter(isOpen);
    const openRows = open.map(({ rule, held, passed }) => `| ${codeSpan(rule)} | ${held.length} | ${passed.length} |`);
    lines.push('', `${coverageSummary(report.coverage)}.`, ...table(['Not covered', 'Blocked', 'Passed'], openRows));
  }
  return `${lines.join('\n')}\n`;
}

function table(titles: readonly string[], rows: readonly string[]): readonly string[] {
  if (rows.length === 0) return [];
  const more = rows.length > maxRows ? ['', `and ${rows.length - maxRows} more`] : [];
  return ['', `| ${titles.join(' | ')} |`, `|${titles.map(() => '---').join('|')}|`, ...rows.slice(0, maxRows), ...more];
}
