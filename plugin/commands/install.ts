// The verbs install and uninstall: print the objects of an installation as YAML. With --apply, they apply or delete the objects.
import { resolve } from 'node:path';
import { isUnknown } from '../../engine/snapshot.ts';
import {
  type BlockedStatefulSet,
  installation,
  installNotes,
  leftovers,
  partitionLeftovers,
  partitionWarning,
  removal,
} from '../../install/installation.ts';
import type { CertificateOptions, InstallOptions } from '../../install/object.ts';
import { everywhere, type InstallScope, installScope } from '../../install/scope.ts';
import { defined } from '../../policies/values/defined.ts';
import { counted } from '../../policies/wording.ts';
import { type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext, writeNotes } from '../context.ts';
import { type ExitCode, exitCodes, usageFailure } from '../failure.ts';
import { accessFor, confirmByPrompt, type DryRun, type PromptFlags, printObjects } from '../live/write-options.ts';
import { findingBlocks } from '../output/findings.ts';
import { readPolicyFiles } from '../policy-files.ts';
import {
  applyInstallation,
  deleteInstallation,
  enforcedNamespaces,
  readBlockedStatefulSets,
  refuseLostNamespaces,
} from '../source/cluster/install.ts';
import { readFile, readInputs } from '../source/input.ts';
import { version } from '../version.ts';

interface InstallationFlags extends Omit<ConnectionFlags, 'namespace'> {
  readonly namespace: string;
  readonly policies?: string;
  readonly filename?: readonly string[];
  readonly groupsIn?: readonly string[];
  readonly compat?: boolean;
  readonly apply?: boolean;
  readonly dryRun?: DryRun;
}

export interface InstallFlags extends InstallationFlags {
  readonly image?: string;
  readonly replicas?: number;
  readonly createNamespace?: boolean;
  readonly enforce?: boolean;
  readonly readCommits?: boolean;
  readonly membersOnly?: boolean;
  readonly admissionPolicies?: boolean;
  readonly certManagerIssuer?: string;
  readonly certificateSecret?: string;
  readonly caFile?: string;
  readonly priorityClass?: string;
  readonly serviceMonitor?: boolean;
}

export interface UninstallFlags extends InstallationFlags, PromptFlags {
  readonly crds?: boolean;
}

export async function install(context: CommandContext, flags: InstallFlags): Promise<ExitCode> {
  const options = await readOptions(context, flags);
  if (options === undefined) return exitCodes.findings;
  refuseUnnamed(options);
  const objects = installation(options);
  const writeInstallNotes = (enforced?: readonly string[]): void => {
    if (!context.quiet) writeNotes(context, installNotes(options, enforced));
  };
  if (flags.apply !== true) {
    writeInstallNotes();
    return printObjects(context, objects);
  }
  if (flags.image === undefined && !context.quiet) {
    context.stderr.write(
      `note: the image ${options.image} names no registry, so nodes pull it from their default registry. Use --image REGISTRY/NAME:TAG\n`,
    );
  }
  const { dryRun } = flags;
  const count = await withCluster(context, flags, accessFor(dryRun), async (cluster) => {
    writeInstallNotes(await enforcedNamespaces(cluster, options.scope.namespaces));
    await refuseLostNamespaces(cluster, options, context.words ?? []);
    return applyInstallation(cluster, objects, {
      dryRun,
      onApplied: (object) => context.stdout.write(`${object} applied${dryRunText(dryRun)}\n`),
      onSkipped: (object) => context.stdout.write(`${object} skipped: this API server does not serve the kind\n`),
    });
  });
  context.stdout.write(countText(count, 'applied', dryRun));
  if (dryRun === undefined) suggestNext(context, `doctor --agent-namespace ${flags.namespace}`);
  return exitCodes.done;
}

export async function uninstall(context: CommandContext, flags: UninstallFlags): Promise<ExitCode> {
  const options = await readOptions(context, flags);
  if (options === undefined) return exitCodes.findings;
  const isApplied = flags.apply === true;
  const hasDefinitions = flags.crds === true;
  if (!isApplied) {
    // kubectl delete needs only the identity of each object.
    const identities = removal(options, { hasDefinitions }).map(({ apiVersion, kind, metadata: { name, namespace } }) => ({
      apiVersion,
      kind,
      metadata: namespace === undefined ? { name } : { name, namespace },
    }));
    printObjects(context, identities);
  }
  const blocked = isApplied ? await remove(context, flags, options, hasDefinitions) : [];
  if (blocked === undefined) return exitCodes.refused;
  if (!context.quiet) {
    for (const { what, command } of [...partitionLeftovers(blocked), ...leftovers(options, { hasDefinitions, isFound: isApplied })])
      context.stderr.write(`remains: ${what}\n  ${command}\n`);
  }
  return exitCodes.done;
}

/** Returns the StatefulSets whose update a partition still blocks, or undefined if the user did not confirm. */
async function remove(
  context: CommandContext,
  flags: UninstallFlags,
  options: InstallOptions,
  hasDefinitions: boolean,
): Promise<readonly BlockedStatefulSet[] | undefined> {
  const { dryRun } = flags;
  return withCluster(context, flags, dryRun === 'client' ? 'read' : 'write', async (cluster) => {
    const blocked = await readBlockedStatefulSets(cluster, options);
    if (isUnknown(blocked)) context.stderr.write(`the partitions of the StatefulSets are unknown: ${blocked.unknown}\n`);
    else if (blocked.length > 0) {
      context.stderr.write(partitionWarning(blocked));
      if (dryRun === undefined && !(await confirmByPrompt(context, flags, ''))) return undefined;
    }
    const count = await deleteInstallation(cluster, options, {
      dryRun,
      hasDefinitions,
      onDeleted: (object) => context.stdout.write(`${object} deleted${dryRunText(dryRun)}\n`),
    });
    context.stdout.write(count === 0 ? `No installation found in namespace ${flags.namespace}.\n` : countText(count, 'deleted', dryRun));
    return isUnknown(blocked) ? [] : blocked;
  });
}

function dryRunText(dryRun: DryRun): string {
  return dryRun === undefined ? '' : ` (dry run, ${dryRun})`;
}

function countText(count: number, done: string, dryRun: DryRun): string {
  return `${counted(count, 'object')} ${dryRun === undefined ? `${done}.` : `would be ${done}. Nothing was changed.`}\n`;
}

/** The default number of replicas: one replica still answers while another is replaced and the node of the third is drained. */
const usualReplicas = 3;

/** Returns the options of the installation. If the policies have errors, prints the errors and returns undefined. */
async function readOptions(context: CommandContext, flags: InstallFlags): Promise<InstallOptions | undefined> {
  const scope = await readScope(context, flags);
  if (scope === undefined) return undefined;
  const { namespace, image = `rollout-group-agent:${version}`, replicas = usualReplicas } = flags;
  if (!/^[^\s'"]+$/.test(image))
    throw usageFailure('--image is not an image reference', 'write it as REGISTRY/NAME:TAG or REGISTRY/NAME@DIGEST');
  return {
    namespace,
    image,
    replicas,
    scope,
    hasCompat: flags.compat === true,
    readsCommits: flags.readCommits === true,
    hasNamespace: flags.createNamespace === true,
    isEnforced: flags.enforce === true,
    isMembersOnly: flags.membersOnly === true,
    hasAdmissionPolicies: flags.admissionPolicies !== false,
    hasServiceMonitor: flags.serviceMonitor === true,
    ...defined({ certificate: await readCertificate(context, flags), priorityClass: flags.priorityClass }),
  };
}

/** Returns undefined if the agent creates the certificate. Throws Failure for invalid flags and an unreadable file. */
async function readCertificate(
  { cwd }: CommandContext,
  { certManagerIssuer: issuer, certificateSecret: name, caFile }: InstallFlags,
): Promise<CertificateOptions | undefined> {
  if (issuer !== undefined && name !== undefined)
    throw usageFailure('--cert-manager-issuer and --certificate-secret exclude each other', 'use one of them');
  if ((name === undefined) !== (caFile === undefined))
    throw usageFailure(
      '--certificate-secret and --ca-file need each other: the webhook configurations contain the CA certificate',
      'give both flags, or omit both',
    );
  if (name !== undefined && caFile !== undefined) {
    const text = await readFile(resolve(cwd, caFile), caFile);
    if (!text.includes('-----BEGIN CERTIFICATE-----'))
      throw usageFailure(`${caFile} contains no certificate in PEM format`, 'name the file with the CA certificate');
    return { kind: 'secret', name, caBundle: Buffer.from(text).toString('base64') };
  }
  if (issuer === undefined) return undefined;
  const [, issuerKind = 'Issuer', issuerName] = /^(?:(Issuer|ClusterIssuer)\/)?([^/]+)$/.exec(issuer) ?? [];
  if (issuerName === undefined) throw usageFailure(`${issuer} names no issuer`, 'write NAME, Issuer/NAME or ClusterIssuer/NAME');
  return { kind: 'cert-manager', issuer: issuerName, issuerKind };
}

/** Returns undefined if the policies have errors. Throws Failure for invalid flags and unreadable sources. */
async function readScope(context: CommandContext, flags: InstallationFlags): Promise<InstallScope | undefined> {
  const { namespace: agentNamespace, policies, filename: file = [], groupsIn: namespaces = [], apply, dryRun } = flags;
  if (dryRun !== undefined && apply !== true)
    throw usageFailure('--dry-run needs --apply', 'add --apply: without it the command sends nothing');
  for (const name of [agentNamespace, ...namespaces]) refuseInvalidNamespace(name);
  const sources = [...(policies === undefined ? [] : [policies]), ...file];
  if (sources.length === 0) return { ...everywhere, namespaces: [...new Set(namespaces)].sort() };
  const [only, ...others] = namespaces;
  // If --groups-in names exactly one namespace, then objects without a namespace belong to it.
  const where = only === undefined || others.length > 0 ? {} : { namespace: only };
  const { loaded, resolution, findings } = readPolicyFiles(await readInputs(sources, context), { agentNamespace, ...where });
  const errors = findings.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) {
    const { stderr } = context;
    for (const block of findingBlocks(errors, stderr)) stderr.write(`${block}\n`);
    stderr.write(`${counted(errors.length, 'error')} in the policies; no object was printed or changed\n`);
    return undefined;
  }
  const scope = installScope(loaded.documents, resolution.bundle, { agentNamespace, namespaces });
  if (scope.namespaces.length > 0) return scope;
  throw usageFailure('the policies define no group, so the namespaces of groups are unknown', 'name the namespaces with --groups-in');
}

function refuseInvalidNamespace(name: string): void {
  // Checks an RFC 1123 label.
  if (/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) return;
  throw usageFailure(`${name === '' ? 'an empty text' : name} is not a valid namespace name`, 'write lower-case letters, digits and -');
}

function refuseUnnamed({ scope, isEnforced, isMembersOnly }: InstallOptions): void {
  if (isEnforced && scope.namespaces.length === 0) {
    throw usageFailure('--enforce needs the names of the namespaces', 'add --policies or --groups-in');
  }
  if (isMembersOnly && scope.members === undefined) {
    throw usageFailure(
      '--members-only needs the name of every StatefulSet, but a group selects its members by labels, or no group is known',
      'add --policies with groups that name their StatefulSets under members.zones, or omit --members-only',
    );
  }
}
