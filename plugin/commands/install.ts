// The verb install: prints an installation as YAML, or applies it object by object.
import { installation } from '../../install/installation.ts';
import { installNotes } from '../../install/notes.ts';
import type { InstallOptions } from '../../install/object.ts';
import { type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, usageFailure } from '../failure.ts';
import { accessFor, printObjects } from '../live/dry-run.ts';
import { plural } from '../output/plural.ts';
import { applyInstallation } from '../source/cluster/install.ts';
import { type InstallationFlags, readScope, writePolicyErrors } from '../source/installation.ts';
import { version } from '../version.ts';

export interface InstallFlags extends InstallationFlags, Omit<ConnectionFlags, 'namespace'> {
  readonly image?: string;
  readonly replicas?: number;
  readonly createNamespace?: boolean;
  readonly enforce?: boolean;
  readonly membersOnly?: boolean;
  /** False with --no-admission-policies. */
  readonly admissionPolicies?: boolean;
}

/** Three replicas: one still answers while another is replaced and the node of the third is drained. */
const usualReplicas = 3;

export async function run(context: CommandContext, flags: InstallFlags): Promise<ExitCode> {
  const { scope, errors } = await readScope(context, flags);
  if (errors.length > 0) {
    writePolicyErrors(context, errors);
    return exitCodes.findings;
  }
  const options: InstallOptions = {
    namespace: flags.namespace,
    image: imageOf(flags),
    replicas: flags.replicas ?? usualReplicas,
    scope,
    hasCompat: flags.compat === true,
    hasNamespace: flags.createNamespace === true,
    isEnforced: flags.enforce === true,
    isMembersOnly: flags.membersOnly === true,
    hasAdmissionPolicies: flags.admissionPolicies !== false,
  };
  refuseUnnamed(options);
  const objects = installation(options);
  for (const note of context.quiet ? [] : installNotes(options)) context.stderr.write(`note: ${note}\n`);
  if (flags.apply === true && flags.image === undefined && !context.quiet) {
    context.stderr.write(
      `note: the image ${options.image} names no registry, so nodes pull it from their default registry. Use --image REGISTRY/NAME:TAG\n`,
    );
  }
  if (flags.apply !== true) {
    printObjects(context, objects);
    return exitCodes.done;
  }
  const suffix = flags.dryRun === undefined ? '' : ` (dry run, ${flags.dryRun})`;
  const done = await withCluster(context, flags, accessFor(flags.dryRun), (cluster) =>
    applyInstallation(cluster, objects, {
      dryRun: flags.dryRun,
      onApplied: (object) => context.stdout.write(`${object} applied${suffix}\n`),
      onSkipped: (object) => context.stdout.write(`${object} skipped: this API server does not serve the kind\n`),
    }),
  );
  context.stdout.write(`${plural(done, 'object')} ${flags.dryRun === undefined ? 'applied.' : 'would be applied. Nothing was changed.'}\n`);
  if (flags.dryRun === undefined) suggestNext(context, `doctor --agent-namespace ${flags.namespace}`);
  return exitCodes.done;
}

function imageOf({ image = `rollout-group-agent:${version}` }: InstallFlags): string {
  if (/^[^\s'"]+$/.test(image)) return image;
  throw usageFailure('--image is not an image reference', 'write it as REGISTRY/NAME:TAG or REGISTRY/NAME@DIGEST');
}

function refuseUnnamed({ scope, isEnforced, isMembersOnly }: InstallOptions): void {
  if (isEnforced && scope.namespaces.length === 0) {
    throw usageFailure('--enforce needs the names of the namespaces', 'add --policies or --groups-in');
  }
  if (isMembersOnly && scope.members === undefined) {
    throw usageFailure(
      '--members-only needs the name of every StatefulSet, but some groups select their members by labels or no group is known',
      'add --policies with groups that name their StatefulSets under members.zones, or omit --members-only',
    );
  }
}
