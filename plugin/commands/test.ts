// The verb test: runs each PolicyTest in the given files and directories against the policies that the test names.
import { type CaseResult, coverageOf, type RuleCoverage } from '../../engine/policy-test/policy-test.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, type Failure, notFoundFailure } from '../failure.ts';
import { countCases, type TestFormat, type TestSuite, writeTestReport } from '../output/policy-tests.ts';
import { type PolicyTestFile, readPolicyTests, suiteOf, suitesWithCases } from '../source/policy-tests.ts';

export interface TestOptions {
  readonly paths?: readonly string[];
  readonly output: TestFormat;
  readonly run?: string;
  readonly coverage?: boolean;
  readonly allowEmpty?: boolean;
  readonly agentNamespace?: string;
}

export async function run(
  context: CommandContext,
  { paths = [], output, run: only, coverage = false, allowEmpty = false, agentNamespace = usualAgentNamespace }: TestOptions,
): Promise<ExitCode> {
  const found = await readPolicyTests(paths.length === 0 ? ['.'] : paths, context, { agentNamespace });
  const ran = found.tests.map((one) => ({ ...one, suite: suiteOf(one, only, agentNamespace) }));
  const suites = suitesWithCases(found, ran);
  const { passed, failed } = countCases(suites);
  if (passed + failed === 0 && !allowEmpty) throw noCase(paths, only);
  const exitCode = failed > 0 ? exitCodes.findings : exitCodes.done;
  await writeTestReport(context.stdout, output, { suites, exitCode, ...(coverage ? { coverage: coverageIn(ran) } : {}) });
  if (failed > 0) suggestNext(context, 'test --run TEXT -o json');
  return exitCode;
}

/** Merges the coverage of tests of the same policies: a rule may block in a case of one test and pass in a case of another. */
function coverageIn(ran: readonly (PolicyTestFile & { readonly suite: TestSuite })[]): readonly RuleCoverage[] {
  const bySources = new Map<string, { readonly file: PolicyTestFile; readonly cases: CaseResult[] }>();
  for (const { suite, ...file } of ran) {
    const key = [...file.sources].sort().join('\0');
    const group = bySources.get(key) ?? { file, cases: [] };
    group.cases.push(...suite.cases);
    bySources.set(key, group);
  }
  return [...bySources.values()].flatMap(({ file, cases }) =>
    typeof file.content === 'string' ? [] : coverageOf(file.content.resolution.bundle, cases),
  );
}

function noCase(paths: readonly string[], only: string | undefined): Failure {
  return notFoundFailure(only === undefined ? 'no PolicyTest was found' : `no case name contains "${only}"`, {
    why: `searched ${paths.length === 0 ? 'the current directory' : paths.join(', ')}`,
    todo: 'give files or directories with documents of kind PolicyTest, or add --allow-empty',
  });
}
