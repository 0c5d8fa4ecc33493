// The verb version: prints the version, and compares it with the agent, the CRDs and the webhooks of the cluster.
import { isUnknown, type Known } from '../../engine/snapshot.ts';
import { defined } from '../../policies/values/defined.ts';
import { type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, writeNotes } from '../context.ts';
import { compareVersions } from '../doctor/all.ts';
import type { CheckResult } from '../doctor/check.ts';
import { gatherFacts } from '../doctor/gather/gather.ts';
import { type ExitCode, exitCodes, Failure } from '../failure.ts';
import { renderChecks } from '../output/doctor.ts';
import { writeDocument } from '../output/formats.ts';
import { version } from '../version.ts';

export interface VersionOptions extends ConnectionFlags {
  readonly client?: boolean;
  readonly output: 'text' | 'json' | 'yaml';
}

/** The timeout of a request in milliseconds. It is short, because users also run `version` without a reachable cluster. */
const timeoutMs = 5_000;

export async function run(context: CommandContext, { output, client: isClient = false, ...flags }: VersionOptions): Promise<ExitCode> {
  const { stdout } = context;
  if (output === 'text') stdout.write(`kubectl rollout-group ${version}\n`);
  const checks = isClient ? undefined : await compare(context, flags);
  const isRead = checks !== undefined && !isUnknown(checks);
  if (output === 'text' && isRead) stdout.write(renderChecks(checks, { ...stdout, hasHints: false }));
  if (output !== 'text') {
    const client = { version, node: process.versions.node };
    await writeDocument(stdout, output, { kind: 'Version', client, ...(isRead ? { checks } : {}) });
  }
  if (checks !== undefined && isUnknown(checks)) writeNotes(context, [`the versions in the cluster are unknown: ${checks.unknown}`]);
  return exitCodes.done;
}

/** Compares this program with the installation. Unknown if the cluster cannot be reached or read, because the version is printed anyway. */
async function compare(context: CommandContext, flags: ConnectionFlags): Promise<Known<readonly CheckResult[]>> {
  try {
    return await withCluster(context, flags, 'read', async ({ agentNamespace, ...cluster }) => {
      const scope = { namespaces: [cluster.namespace], ...defined({ agentNamespace }) };
      return compareVersions(await gatherFacts({ ...cluster, timeoutMs: Math.min(cluster.timeoutMs, timeoutMs) }, scope, context.nowMs));
    });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { what, why } = error.details;
    return { unknown: why === undefined ? what : `${what}: ${why}` };
  }
}
