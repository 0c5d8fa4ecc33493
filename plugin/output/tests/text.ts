// Writes the results of PolicyTests as text: every case, the facts of failed cases, and a summary line.
import type { RuleCoverage } from '../../../engine/policy-test/policy-test.ts';
import type { OutputStream } from '../../context.ts';
import { alignRows, type Column } from '../plan/table-layout.ts';
import { coverageSummary, failureFacts, isCovered, isOpen, type TestReport, type TestSuite, testSummary } from './results.ts';

type Style = Pick<OutputStream, 'paint' | 'glyphs' | 'columns'>;

export function testText(report: TestReport, look: Style): string {
  const suites = report.suites.flatMap((suite) => suiteLines(suite, look));
  const coverage = report.coverage === undefined ? [] : coverageLines(report.coverage, look);
  return `${[...suites, ...coverage, testSummary(report)].join('\n')}\n`;
}

function suiteLines({ file, name, cases }: TestSuite, { paint, glyphs }: Style): readonly string[] {
  const lines = cases.flatMap((one) =>
    one.passed
      ? [`  ${paint('green', `${glyphs.ok} ok  `)}  ${one.name}`]
      : [
          `  ${paint('red', `${glyphs.no} FAIL`)}  ${one.name}`,
          ...failureFacts(one).map((fact) => `          ${fact.replaceAll('\n', '\n          ')}`),
        ],
  );
  return [`${paint('bold', name)}  ${file}`, ...lines, ''];
}

const columns: readonly Column[] = [
  { title: 'RULE', align: 'left', isFlexible: true },
  { title: 'BLOCKED', align: 'right' },
  { title: 'PASSED', align: 'right' },
  { title: 'DEFINED AT', align: 'left', isFlexible: true },
];

/** Returns the coverage table. Uncovered rules come first, unreachable rules last. */
function coverageLines(coverage: readonly RuleCoverage[], { paint, glyphs, columns: width }: Style): readonly string[] {
  const outOfReach = coverage.filter(({ unreachable }) => unreachable !== undefined);
  const sorted = [...coverage.filter(isOpen), ...coverage.filter(isCovered), ...outOfReach];
  const rows = sorted.map(({ rule, held, passed, source, unreachable }) => {
    const place = source?.file === undefined ? (source?.object ?? '') : `${source.file}:${source.line ?? 1}:${source.column ?? 1}`;
    const mark = (count: number): string => (unreachable !== undefined && count === 0 ? '-' : `${count}`);
    return { cells: [rule, mark(held.length), mark(passed.length), place] };
  });
  const [head = '', ...lines] = alignRows(columns, [{ cells: columns.map(({ title }) => title) }, ...rows], {
    width,
    ellipsis: glyphs.ellipsis,
  });
  const painted = lines.map((line, index) => {
    const one = sorted[index];
    return one === undefined || isCovered(one) ? line : paint(isOpen(one) ? 'yellow' : 'dim', line);
  });
  const reasons = [...new Set(outOfReach.map(({ unreachable = '' }) => unreachable))];
  const explained = reasons.map((reason) => `unreachable (marked -): ${reason}`);
  return [paint('bold', head), ...painted, coverageSummary(coverage), ...explained, ''];
}
