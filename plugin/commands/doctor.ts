// The verb doctor: checks an installation and returns exit code 4 if a check fails.
import { defined } from '../../policies/values/defined.ts';
import { type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { examine } from '../doctor/all.ts';
import { gatherFacts } from '../doctor/gather/gather.ts';
import { type ExitCode, exitCodes, usageFailure } from '../failure.ts';
import { renderChecks } from '../output/doctor.ts';
import { writeDocument } from '../output/formats.ts';

export interface DoctorOptions extends ConnectionFlags {
  readonly allNamespaces?: boolean;
  readonly agentNamespace?: string;
  readonly agentServiceAccount?: string;
  readonly fixHints?: boolean;
  readonly output: 'table' | 'json' | 'yaml';
}

export async function run(context: CommandContext, options: DoctorOptions): Promise<ExitCode> {
  const { allNamespaces, agentNamespace, agentServiceAccount, output } = options;
  if (agentServiceAccount !== undefined && !/^[^/]+\/[^/]+$/.test(agentServiceAccount)) {
    throw usageFailure(`--agent-service-account ${agentServiceAccount} is not a service account`, 'write it as NAMESPACE/NAME');
  }
  const facts = await withCluster(context, options, 'read', (cluster) => {
    const namespaces = allNamespaces === true ? undefined : [cluster.namespace];
    return gatherFacts(cluster, defined({ namespaces, agentNamespace, serviceAccount: agentServiceAccount }), context.nowMs);
  });
  const results = examine(facts);
  const failed = results.filter(({ verdict }) => verdict === 'FAIL');
  const exitCode = failed.length > 0 ? exitCodes.findings : exitCodes.done;
  if (output === 'table')
    context.stdout.write(
      renderChecks(results, { ...context.stdout, hasHints: options.fixHints === true, hasDetails: context.verbosity > 0 }),
    );
  else await writeDocument(context.stdout, output, { kind: 'Diagnosis', exitCode, checks: results });
  const code = failed.find((result) => result.code !== undefined)?.code;
  if (output === 'table' && code !== undefined) suggestNext(context, `docs ${code}`);
  return exitCode;
}
