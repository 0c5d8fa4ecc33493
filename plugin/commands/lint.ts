// The verb lint: reports all findings about policies and manifests.
import { countFindings } from '../../policies/findings/finding.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, usageFailure } from '../failure.ts';
import { type FindingsFormat, writeFindings } from '../output/findings.ts';
import { readPolicyFiles } from '../policy-files.ts';
import { readInputs } from '../source/input.ts';

export interface LintOptions {
  readonly files?: readonly string[];
  readonly filename: readonly string[];
  readonly output: FindingsFormat;
  readonly strict?: boolean;
  readonly agentNamespace?: string;
}

export async function run(context: CommandContext, options: LintOptions): Promise<ExitCode> {
  const { files = [], filename: file, output, strict: isStrict = false, agentNamespace } = options;
  const specs = [...files, ...file];
  if (specs.length === 0) throw usageFailure('lint needs a file, a directory, - or git:REV[:PATH]', 'kubectl rollout-group lint --help');
  const inputs = await readInputs(specs, context);
  const { findings } = readPolicyFiles(inputs, agentNamespace === undefined ? {} : { agentNamespace });
  const { error, warning, notice } = countFindings(findings);
  const exitCode = error + warning + (isStrict ? notice : 0) > 0 ? exitCodes.findings : exitCodes.done;
  await writeFindings(context.stdout, output, {
    findings,
    files: inputs.map(({ name }) => name),
    failsFrom: isStrict ? 'notice' : 'warning',
    exitCode,
  });
  return exitCode;
}
