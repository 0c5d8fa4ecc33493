// Turns the flags of install and uninstall into the scope of the installation.

import type { InstallOptions } from '../../install/object.ts';
import { everywhere, type InstallScope, installScope } from '../../install/scope.ts';
import type { Finding } from '../../policies/findings/finding.ts';
import type { CommandContext } from '../context.ts';
import { usageFailure } from '../failure.ts';
import { findingBlocks } from '../output/findings/text.ts';
import { plural } from '../output/plural.ts';
import { readPolicyFiles } from '../policy-files.ts';
import { readInputs } from './input.ts';

/** The flags that both verbs have. */
export interface InstallationFlags {
  readonly namespace: string;
  readonly policies?: string;
  readonly file?: readonly string[];
  readonly groupsIn?: readonly string[];
  readonly compat?: boolean;
  readonly apply?: boolean;
  readonly dryRun?: 'client' | 'server';
}

interface ReadScope {
  readonly scope: InstallScope;
  /** Errors of the policies; with any, nothing is installed. */
  readonly errors: readonly Finding[];
}

/** @throws Failure for invalid names, and for sources that cannot be read. */
export async function readScope(context: CommandContext, flags: InstallationFlags): Promise<ReadScope> {
  const { namespace: agentNamespace, policies, file = [], groupsIn: namespaces = [], apply, dryRun } = flags;
  if (dryRun !== undefined && apply !== true)
    throw usageFailure('--dry-run needs --apply', 'add --apply: without it the command sends nothing');
  for (const name of [agentNamespace, ...namespaces]) refuseNoNamespace(name);
  const sources = [...(policies === undefined ? [] : [policies]), ...file];
  if (sources.length === 0) return { scope: { ...everywhere, namespaces: [...new Set(namespaces)].sort() }, errors: [] };
  const [only, ...others] = namespaces;
  // As the agent reads them: objects without a namespace are in the watched one.
  const where = only === undefined || others.length > 0 ? {} : { namespace: only };
  const { loaded, resolution, findings } = readPolicyFiles(await readInputs(sources, context), { agentNamespace, ...where });
  const errors = findings.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) return { scope: everywhere, errors };
  const scope = installScope(loaded.documents, resolution.bundle, { agentNamespace, namespaces });
  if (scope.namespaces.length === 0) {
    throw usageFailure('the policies define no group, so the namespaces of groups are unknown', 'name the namespaces with --groups-in');
  }
  return { scope, errors };
}

/** Prints the errors of the policies, and that nothing was done because of them. */
export function writePolicyErrors({ stderr }: Pick<CommandContext, 'stderr'>, errors: readonly Finding[]): void {
  for (const block of findingBlocks(errors, stderr)) stderr.write(`${block}\n`);
  stderr.write(`${plural(errors.length, 'error')} in the policies; nothing was printed or changed\n`);
}

/** The values of a workload that do not matter when it is deleted. */
export const anyWorkload: Pick<
  InstallOptions,
  'image' | 'replicas' | 'hasNamespace' | 'isEnforced' | 'isMembersOnly' | 'hasAdmissionPolicies'
> = {
  image: 'rollout-group-agent',
  replicas: 2,
  hasNamespace: false,
  isEnforced: false,
  isMembersOnly: false,
  hasAdmissionPolicies: true,
};

function refuseNoNamespace(name: string): void {
  // Checks an RFC 1123 label.
  if (/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) return;
  throw usageFailure(`${name === '' ? 'an empty text' : name} is not a valid namespace name`, 'write lower-case letters, digits and -');
}
