// The verb uninstall: prints the objects to delete as YAML, or deletes them, and reports the remaining objects.
import { isUnknown } from '../../engine/snapshot.ts';
import { type HeldSet, heldLeftovers, heldWarning } from '../../install/held-partitions.ts';
import { leftovers, removal } from '../../install/installation.ts';
import type { InstallOptions } from '../../install/object.ts';
import { type ConnectionFlags, withCluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../failure.ts';
import { isMeant, type PromptFlags } from '../live/confirm.ts';
import { printObjects } from '../live/dry-run.ts';
import { plural } from '../output/plural.ts';
import { deleteInstallation } from '../source/cluster/install.ts';
import { anyWorkload, type InstallationFlags, readScope, writePolicyErrors } from '../source/installation.ts';
import { readHeldSets } from '../source/partitioned-sets.ts';

export interface UninstallFlags extends InstallationFlags, PromptFlags, Omit<ConnectionFlags, 'namespace'> {
  readonly crds?: boolean;
}

export async function run(context: CommandContext, flags: UninstallFlags): Promise<ExitCode> {
  const { scope, errors } = await readScope(context, flags);
  if (errors.length > 0) {
    writePolicyErrors(context, errors);
    return exitCodes.findings;
  }
  const options: InstallOptions = { ...anyWorkload, namespace: flags.namespace, scope, hasCompat: flags.compat === true };
  const what = { hasDefinitions: flags.crds === true };
  const objects = removal(options, what);
  if (flags.apply !== true) {
    // Only the identity of each object.
    printObjects(
      context,
      objects.map(({ apiVersion, kind, metadata: { name, namespace } }) => ({
        apiVersion,
        kind,
        metadata: namespace === undefined ? { name } : { name, namespace },
      })),
    );
  }
  const held = flags.apply === true ? await remove(context, flags, options, what.hasDefinitions) : [];
  if (held === undefined) return exitCodes.refused;
  if (!context.quiet) {
    for (const { what: left, command } of [...heldLeftovers(held), ...leftovers(options, { ...what, isFound: flags.apply === true })])
      context.stderr.write(`remains: ${left}\n  ${command}\n`);
  }
  return exitCodes.done;
}

/** Returns the StatefulSets whose update a partition still blocks, or undefined if the user did not confirm. */
async function remove(
  context: CommandContext,
  flags: UninstallFlags,
  options: InstallOptions,
  hasDefinitions: boolean,
): Promise<readonly HeldSet[] | undefined> {
  const { dryRun } = flags;
  const suffix = dryRun === undefined ? '' : ` (dry run, ${dryRun})`;
  const done = await withCluster(context, flags, dryRun === 'client' ? 'read' : 'write', async (cluster) => {
    const held = await readHeldSets(cluster, { scope: options.scope, agentNamespace: options.namespace });
    if (isUnknown(held)) context.stderr.write(`the partitions of the StatefulSets are unknown: ${held.unknown}\n`);
    else if (held.length > 0 && !(await mayStrand(context, flags, held))) return undefined;
    const count = await deleteInstallation(cluster, options, {
      dryRun,
      hasDefinitions,
      onDeleted: (object) => context.stdout.write(`${object} deleted${suffix}\n`),
    });
    return { count, held: isUnknown(held) ? [] : held };
  });
  if (done === undefined) return undefined;
  const { count, held } = done;
  if (count === 0) context.stdout.write(`No installation found in namespace ${flags.namespace}.\n`);
  else context.stdout.write(`${plural(count, 'object')} ${dryRun === undefined ? 'deleted.' : 'would be deleted. Nothing was changed.'}\n`);
  return held;
}

/** Prints the consequence for these StatefulSets, and asks for confirmation on a terminal if objects would be deleted. */
async function mayStrand(context: CommandContext, flags: UninstallFlags, held: readonly HeldSet[]): Promise<boolean> {
  context.stderr.write(heldWarning(held));
  return flags.dryRun !== undefined || isMeant(context, flags, '');
}
