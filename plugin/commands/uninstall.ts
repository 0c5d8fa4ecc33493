// The verb uninstall: what is to be deleted as YAML, or deleted object by object, and what is left.
import { leftovers, removal } from '../../policies/install/installation.ts';
import type { InstallOptions } from '../../policies/install/object.ts';
import { type ConnectionFlags, withCluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { printObjects } from '../live/acting.ts';
import { plural } from '../output/words.ts';
import { deleteInstallation } from '../source/cluster-install.ts';
import { anyWorkload, type InstallationFlags, readScope, writePolicyErrors } from '../source/installation.ts';

export interface UninstallFlags extends InstallationFlags, Omit<ConnectionFlags, 'namespace'> {
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
    // No more than what says which object it is.
    printObjects(
      context,
      objects.map(({ apiVersion, kind, metadata: { name, namespace } }) => ({
        apiVersion,
        kind,
        metadata: namespace === undefined ? { name } : { name, namespace },
      })),
    );
  } else await remove(context, flags, options, what.hasDefinitions);
  if (!context.quiet) {
    for (const { what: left, command } of leftovers(options, what)) context.stderr.write(`left: ${left}\n  ${command}\n`);
  }
  return exitCodes.done;
}

async function remove(context: CommandContext, flags: UninstallFlags, options: InstallOptions, hasDefinitions: boolean): Promise<void> {
  const { dryRun } = flags;
  const suffix = dryRun === undefined ? '' : ` (dry run, ${dryRun})`;
  const count = await withCluster(context, flags, dryRun === 'client' ? 'read' : 'write', (cluster) =>
    deleteInstallation(cluster, options, {
      dryRun,
      hasDefinitions,
      onDeleted: (object) => context.stdout.write(`${object} deleted${suffix}\n`),
    }),
  );
  if (count === 0) context.stdout.write(`Nothing of an installation in the namespace ${flags.namespace} is there.\n`);
  else context.stdout.write(`${plural(count, 'object')} ${dryRun === undefined ? 'deleted.' : 'would be deleted. Nothing was changed.'}\n`);
}
