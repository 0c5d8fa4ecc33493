// The verb test: runs each PolicyTest in the given files and directories against the policies that the test names.
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, type Failure, notFoundFailure } from '../failure.ts';
import { countCases, type TestFormat, writeTestReport } from '../output/policy-tests.ts';
import { coverageIn, readPolicyTests, suiteOf, suitesWithCases } from '../source/policy-tests.ts';

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
  const ran = found.tests.map((one) => ({ ...one, suite: suiteOf(one, agentNamespace, only) }));
  const suites = suitesWithCases(found, ran);
  const { passed, failed } = countCases(suites);
  if (passed + failed === 0 && !allowEmpty) throw noCase(paths, only);
  const exitCode = failed > 0 ? exitCodes.findings : exitCodes.done;
  await writeTestReport(context.stdout, output, { suites, exitCode, ...(coverage ? { coverage: coverageIn(ran) } : {}) });
  if (failed > 0) suggestNext(context, 'test --run TEXT -o json');
  return exitCode;
}

function noCase(paths: readonly string[], only: string | undefined): Failure {
  return notFoundFailure(only === undefined ? 'no PolicyTest was found' : `no case name contains "${only}"`, {
    why: `searched ${paths.length === 0 ? 'the current directory' : paths.join(', ')}`,
    todo: 'give files or directories with documents of kind PolicyTest, or add --allow-empty',
  });
}
