// Writes the results of PolicyTests in every format.
import type { CaseResult, RuleCoverage } from '../../../engine/policy-test/policy-test.ts';
import type { OutputStream } from '../../context.ts';
import type { ExitCode } from '../../failure.ts';
import { plural } from '../plural.ts';

export type TestFormat = 'text' | 'json' | 'junit' | 'markdown' | 'tap';

export interface TestSuite {
  readonly file: string;
  readonly name: string;
  readonly cases: readonly CaseResult[];
}

export interface TestReport {
  readonly suites: readonly TestSuite[];
  /** Coverage of each rule; absent if it was not requested. */
  readonly coverage?: readonly RuleCoverage[];
  readonly exitCode: ExitCode;
}

/** Writes the report. Loads only the requested format. */
export async function writeTestReport(stream: OutputStream, format: TestFormat, report: TestReport): Promise<void> {
  switch (format) {
    case 'text':
      return stream.write((await import('./text.ts')).testText(report, stream));
    case 'json':
      return (await import('./json.ts')).writeTestJson(stream, report);
    case 'junit':
      return stream.write((await import('./junit.ts')).testJunit(report));
    case 'markdown':
      return stream.write((await import('./markdown.ts')).testMarkdown(report));
    case 'tap':
      return stream.write((await import('./tap.ts')).testTap(report));
    default:
      return format satisfies never;
  }
}

interface CaseCounts {
  readonly passed: number;
  readonly failed: number;
}

export function countCases(suites: readonly TestSuite[]): CaseCounts {
  const cases = suites.flatMap((suite) => suite.cases);
  const passed = cases.filter((one) => one.passed).length;
  return { passed, failed: cases.length - passed };
}

/** Returns `12 cases in 3 tests: 11 passed, 1 failed`. */
export function testSummary({ suites }: Pick<TestReport, 'suites'>): string {
  const { passed, failed } = countCases(suites);
  return `${plural(passed + failed, 'case')} in ${plural(suites.length, 'test')}: ${passed} passed, ${failed} failed`;
}

/** Returns why a case failed and its decision, one fact per line. */
export function failureFacts({ decision, rules, message, problems }: CaseResult): readonly string[] {
  if (decision === '') return problems;
  const by = rules.length === 0 ? '' : ` by ${rules.join(', ')}`;
  return [...problems, `answered ${decision}${by}${message === '' ? '' : `: ${message}`}`];
}

/** Reports whether the rule blocked in one case and passed in another. */
export function isCovered({ held, passed }: RuleCoverage): boolean {
  return held.length > 0 && passed.length > 0;
}

/** Reports whether a case is missing for the rule. A rule that no case can reach needs no case. */
export function isOpen(one: RuleCoverage): boolean {
  return !isCovered(one) && one.unreachable === undefined;
}

/** Returns `14 of 16 rules both blocked and passed; 2 more unreachable`. */
export function coverageSummary(coverage: readonly RuleCoverage[]): string {
  const outOfReach = coverage.filter(({ unreachable }) => unreachable !== undefined).length;
  const seen = `${coverage.filter(isCovered).length} of ${plural(coverage.length - outOfReach, 'rule')} both blocked and passed`;
  return outOfReach === 0 ? seen : `${seen}; ${outOfReach} more unreachable`;
}
