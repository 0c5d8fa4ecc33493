// Writes the results of PolicyTests in every format: text, JSON, JUnit, Markdown and TAP.
import type { CaseResult, RuleCoverage } from '../../engine/policy-test/policy-test.ts';
import type { Source } from '../../policies/definition.ts';
import { counted } from '../../policies/wording.ts';
import type { OutputStream } from '../context.ts';
import type { ExitCode } from '../failure.ts';
import { writeDocument } from './formats.ts';
import { type JunitCase, junitXml } from './junit.ts';
import { boundedTable, markdownCode, markdownLine } from './markdown.ts';
import { sourceText } from './plan/plan-text.ts';
import { type ItemColumn, itemTable } from './text.ts';

export type TestFormat = 'text' | 'json' | 'junit' | 'markdown' | 'tap';

export interface TestSuite {
  readonly file: string;
  readonly name: string;
  readonly cases: readonly PlacedCase[];
}

export interface PlacedCase extends CaseResult {
  /** The place of the case, or of what prevents the test from running. */
  readonly source: Source;
}

interface TestReport {
  readonly suites: readonly TestSuite[];
  /** The coverage of each rule; absent if it was not requested. */
  readonly coverage?: readonly RuleCoverage[];
  readonly exitCode: ExitCode;
}

const texts: Readonly<Record<Exclude<TestFormat, 'json'>, (report: TestReport, look: Style) => string>> = {
  text: testText,
  junit: ({ suites }) => junitXml(suites.map(({ file, name, cases }) => ({ name, cases: cases.map((one) => junitCase(one, file)) }))),
  markdown: testMarkdown,
  tap: testTap,
};

export async function writeTestReport(stream: OutputStream, format: TestFormat, report: TestReport): Promise<void> {
  if (format === 'json') return writeTestJson(stream, report);
  stream.write(texts[format](report, stream));
}

export function countCases(suites: readonly TestSuite[]): { readonly passed: number; readonly failed: number } {
  const cases = suites.flatMap((suite) => suite.cases);
  const passed = cases.filter((one) => one.passed).length;
  return { passed, failed: cases.length - passed };
}

function testSummary({ suites }: Pick<TestReport, 'suites'>): string {
  const { passed, failed } = countCases(suites);
  return `${counted(passed + failed, 'case')} in ${counted(suites.length, 'test')}: ${passed} passed, ${failed} failed`;
}

function failureFacts({ decision, rules, message, problems }: CaseResult): readonly string[] {
  if (decision === '') return problems;
  const by = rules.length === 0 ? '' : ` by ${rules.join(', ')}`;
  return [...problems, `answered ${decision}${by}${message === '' ? '' : `: ${message}`}`];
}

function isCovered({ held, passed }: RuleCoverage): boolean {
  return held.length > 0 && passed.length > 0;
}

/** Reports whether a case is missing for the rule. A rule that no case with these replicas can reach needs no case. */
function isOpen(one: RuleCoverage): boolean {
  return !isCovered(one) && one.unreachable === undefined;
}

/** Returns the number of rules that both blocked and passed, and the number of rules that cases can reach. */
export function countCovered(coverage: readonly RuleCoverage[]): { readonly covered: number; readonly rules: number } {
  return { covered: coverage.filter(isCovered).length, rules: coverage.filter((one) => isCovered(one) || isOpen(one)).length };
}

/** Returns the coverage as `12 of 14 rules both blocked and passed`. */
export function coveredText({ covered, rules }: ReturnType<typeof countCovered>): string {
  return `${covered} of ${counted(rules, 'rule')} both blocked and passed`;
}

function coverageSummary(coverage: readonly RuleCoverage[]): string {
  const counts = countCovered(coverage);
  const outOfReach = coverage.length - counts.rules;
  const seen = coveredText(counts);
  return outOfReach === 0 ? seen : `${seen}; ${outOfReach} more unreachable`;
}

type Style = Pick<OutputStream, 'paint' | 'glyphs' | 'columns'>;

function testText(report: TestReport, look: Style): string {
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

const columns: readonly ItemColumn<RuleCoverage>[] = [
  { title: 'RULE', align: 'left', isFlexible: true, cell: ({ rule }) => rule },
  { title: 'BLOCKED', align: 'right', cell: (one) => countText(one, one.held) },
  { title: 'PASSED', align: 'right', cell: (one) => countText(one, one.passed) },
  { title: 'DEFINED AT', align: 'left', isFlexible: true, cell: ({ source }) => sourceText(source) ?? '' },
];

function countText({ unreachable }: RuleCoverage, cases: readonly unknown[]): string {
  return unreachable !== undefined && cases.length === 0 ? '-' : `${cases.length}`;
}

/** Returns the coverage table. Uncovered rules come first, unreachable rules last. */
function coverageLines(coverage: readonly RuleCoverage[], look: Style): readonly string[] {
  const outOfReach = coverage.filter(({ unreachable }) => unreachable !== undefined);
  const sorted = [...coverage.filter(isOpen), ...coverage.filter(isCovered), ...outOfReach];
  const lines = itemTable(columns, sorted, look, (line, one) => (isCovered(one) ? line : look.paint(isOpen(one) ? 'yellow' : 'dim', line)));
  const reasons = [...new Set(outOfReach.map(({ unreachable = '' }) => unreachable))];
  const explained = reasons.map((reason) => `unreachable (marked -): ${reason}`);
  return [...lines, coverageSummary(coverage), ...explained, ''];
}

/** Writes one document of kind `TestResult`, which lists for each case every rule that was evaluated. */
async function writeTestJson(stream: OutputStream, { suites, coverage, exitCode }: TestReport): Promise<void> {
  const { passed, failed } = countCases(suites);
  await writeDocument(stream, 'json', {
    kind: 'TestResult',
    exitCode,
    summary: { tests: suites.length, cases: passed + failed, passed, failed },
    tests: suites.map(({ file, name, cases }) => ({
      file,
      name,
      cases: cases.map(({ asked: _asked, source: _source, ...shown }) => shown),
    })),
    ...(coverage === undefined ? {} : { coverage }),
  });
}

function junitCase(one: CaseResult, className: string): JunitCase {
  const { name, passed, decision, problems } = one;
  if (passed) return { name, className };
  const type = decision === '' ? 'error' : 'decision';
  return { name, className, failure: { type, message: problems[0] ?? '', text: failureFacts(one).join('\n') } };
}

function testMarkdown(report: TestReport): string {
  const failed = report.suites.flatMap(({ name, cases }) => cases.filter((one) => !one.passed).map((one) => ({ suite: name, one })));
  const rows = failed.map(({ suite, one }) => [
    markdownLine(suite),
    markdownLine(one.name),
    failureFacts(one).map(markdownLine).join('<br>'),
  ]);
  const lines = [`### Policy tests: ${testSummary(report)}`, ...boundedTable(['Test', 'Case', 'Facts'], rows)];
  if (report.coverage !== undefined) {
    const open = report.coverage.filter(isOpen);
    const openRows = open.map(({ rule, held, passed }) => [markdownCode(rule), `${held.length}`, `${passed.length}`]);
    lines.push('', `${coverageSummary(report.coverage)}.`, ...boundedTable(['Not covered', 'Blocked', 'Passed'], openRows));
  }
  return `${lines.join('\n')}\n`;
}

function testTap({ suites }: TestReport): string {
  const cases = suites.flatMap(({ name, cases: own }) => own.map((one) => ({ suite: name, one })));
  const lines = cases.flatMap(({ suite, one }, index) => {
    const head = `${one.passed ? 'ok' : 'not ok'} ${index + 1} - ${tapEscaped(`${suite}: ${one.name}`)}`;
    // JSON is valid YAML and quotes all strings.
    return one.passed ? [head] : [head, '  ---', `  facts: ${JSON.stringify(failureFacts(one))}`, '  ...'];
  });
  return `${['TAP version 14', `1..${cases.length}`, ...lines].join('\n')}\n`;
}

/** Escapes text, because a `#` would start a directive such as SKIP. */
function tapEscaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('#', '\\#').replace(/\s+/g, ' ');
}
