// Applies or deletes the objects of an installation, and finds the StatefulSets whose updates a partition blocks.
import { isStatus, onStatus } from '../../../cluster/request/failure.ts';
import { getObject, listObjects } from '../../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resourceOf, resources } from '../../../cluster/request/resource.ts';
import { applyObject, deleteObject } from '../../../cluster/request/write.ts';
import { observeStatefulSet } from '../../../engine/observe/objects.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { isUnknown, type Known } from '../../../engine/snapshot.ts';
import { admissionPolicyKinds } from '../../../install/admission-policy.ts';
import { type BlockedStatefulSet, removal } from '../../../install/installation.ts';
import { enforceLabel, type InstallObject, type InstallOptions, installLabel } from '../../../install/object.ts';
import { listed } from '../../../install/registered-policies.ts';
import { everywhere } from '../../../install/scope.ts';
import { admissionVersion } from '../../../install/webhooks.ts';
import { agentName } from '../../../policies/objects/agent-deployment.ts';
import { holdingPartition, traitsOf } from '../../../policies/strategies.ts';
import { counted } from '../../../policies/wording.ts';
import { itemsOf } from '../../cluster-snapshot/listing.ts';
import { type Cluster, fieldManager } from '../../connection.ts';
import { connectionFailure } from '../../connection-failure.ts';
import { namespacesFlagOf, wordsOf } from '../../doctor/gather/accounts.ts';
import { exitCodes, Failure, notFoundFailure, refusedFailure } from '../../failure.ts';
import type { DryRun } from '../../live/write-options.ts';
import { readPolicyFiles } from '../../policy-files.ts';
import { comparedObjects, listForPlan } from './live-plan.ts';
import { asFile } from './plan-policies.ts';
import { conflictsOf } from './server-apply.ts';

const rbac = 'rbac.authorization.k8s.io/v1';
const deployments = resourceOf('apps/v1', 'deployments', 'Deployment');

const installed: readonly Resource[] = [
  resources.namespaces,
  resources.customResourceDefinitions,
  resources.secrets,
  resourceOf('cert-manager.io/v1', 'certificates', 'Certificate'),
  resources.leases,
  resourceOf('v1', 'serviceaccounts', 'ServiceAccount'),
  resourceOf(rbac, 'roles', 'Role'),
  resourceOf(rbac, 'rolebindings', 'RoleBinding'),
  resourceOf(rbac, 'clusterroles', 'ClusterRole', false),
  resourceOf(rbac, 'clusterrolebindings', 'ClusterRoleBinding', false),
  resourceOf('v1', 'services', 'Service'),
  resourceOf('networking.k8s.io/v1', 'networkpolicies', 'NetworkPolicy'),
  resources.podDisruptionBudgets,
  deployments,
  resourceOf('monitoring.coreos.com/v1', 'servicemonitors', 'ServiceMonitor'),
  resourceOf(admissionVersion, 'validatingwebhookconfigurations', 'ValidatingWebhookConfiguration', false),
  resourceOf(admissionVersion, 'mutatingwebhookconfigurations', 'MutatingWebhookConfiguration', false),
  resourceOf(admissionVersion, 'validatingadmissionpolicies', 'ValidatingAdmissionPolicy', false),
  resourceOf(admissionVersion, 'validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding', false),
];

function installedResource({ kind }: InstallObject): Resource {
  const found = installed.find((one) => one.kind === kind);
  if (found === undefined) throw new Error(`an installation has no ${kind}`);
  return found;
}

interface ApplyInstallation {
  readonly dryRun: DryRun;
  readonly onApplied: (object: string) => void;
  readonly onSkipped: (object: string) => void;
}

/**
 * Applies the objects in order, and returns their number. Leaves out admission policies and the ServiceMonitor if the API server does not
 * serve these kinds.
 * Throws Failure at the first error. A repeated call applies all objects again.
 */
export async function applyInstallation(
  { env, timeoutMs, server }: Cluster,
  objects: readonly InstallObject[],
  { dryRun, onApplied, onSkipped }: ApplyInstallation,
): Promise<number> {
  let skipped = 0;
  for (const [index, object] of objects.entries()) {
    if (dryRun !== 'client') {
      try {
        const options = { fieldManager, dryRun: dryRun === 'server', site: 'install.apply', timeoutMs };
        await applyObject(env, installedResource(object), object, options);
      } catch (error) {
        if (isNotServed(error, object)) {
          skipped += 1;
          onSkipped(nameOf(object));
          continue;
        }
        // A dry run does not create the namespace, so the API server answers 404 for objects in that namespace.
        const isOfDryRun = dryRun === 'server' && isStatus(error, 404) && hasItsNamespace(objects, object);
        if (!isOfDryRun) throw installFailure(error, object, { done: index, of: objects.length, server, isDryRun: dryRun === 'server' });
      }
    }
    onApplied(nameOf(object));
  }
  return objects.length - skipped;
}

/** Reports whether the error means that the API server does not serve this kind, which the agent does not need. */
function isNotServed(error: unknown, { kind }: Pick<InstallObject, 'kind'>): boolean {
  return optionalKinds.has(kind) && isStatus(error, 404);
}

/** The kinds without which the agent works. */
const optionalKinds: ReadonlySet<string> = new Set([...admissionPolicyKinds, 'ServiceMonitor']);

function hasItsNamespace(objects: readonly InstallObject[], { metadata: { namespace } }: InstallObject): boolean {
  return objects.some(({ kind, metadata }) => kind === 'Namespace' && metadata.name === namespace);
}

function installFailure(
  error: unknown,
  object: InstallObject,
  { done, of, server, isDryRun }: { readonly done: number; readonly of: number; readonly server: string; readonly isDryRun: boolean },
): unknown {
  const name = nameOf(object);
  const { namespace } = object.metadata;
  const rest = done === 0 || isDryRun ? 'nothing was applied' : `${done} of ${of} objects were applied and stay`;
  const what = `${name} cannot be applied; ${rest}`;
  const [conflict, ...others] = conflictsOf(error);
  if (conflict !== undefined) {
    const more = others.length === 0 ? '' : ` and ${others.length} more`;
    return refusedFailure(`${name} belongs to another field manager; ${rest}`, {
      why: `${conflict.manager} owns ${conflict.field}${more}; install takes over no field of another manager`,
      todo: `uninstall the objects of ${conflict.manager}, or let ${conflict.manager} apply install.yaml: kubectl rollout-group install > install.yaml`,
    });
  }
  if (isStatus(error, 404) && namespace !== undefined) {
    const todo = `create the namespace: kubectl create namespace ${namespace}, or use --create-namespace for the agent's namespace`;
    return notFoundFailure(what, { why: error.message, todo });
  }
  if (object.kind.endsWith('RoleBinding') && isStatus(error, 422)) {
    const binding = `${object.kind.toLowerCase()} ${object.metadata.name}${namespace === undefined ? '' : ` -n ${namespace}`}`;
    const todo = `if the binding names another role, delete the binding first: kubectl delete ${binding}`;
    return refusedFailure(what, { why: error.message, todo });
  }
  const failure = connectionFailure(error, server);
  return failure instanceof Failure ? new Failure({ ...failure.details, what: `${name}: ${failure.details.what}; ${rest}` }) : failure;
}

function nameOf({ kind = '', metadata: { name, namespace } }: KubernetesObject): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}

interface DeleteInstallation {
  readonly dryRun: DryRun;
  /** True to delete also the CRDs, and with them all their objects. */
  readonly hasDefinitions: boolean;
  readonly onDeleted: (object: string) => void;
}

/** Deletes the objects with the label of the installation, and with `hasDefinitions` the CRDs. Returns the number of these objects. */
export async function deleteInstallation(
  cluster: Cluster,
  options: InstallOptions,
  { dryRun, hasDefinitions, onDeleted }: DeleteInstallation,
): Promise<number> {
  // All objects are listed before the first is deleted, so that nothing is deleted if the permission to list a kind is missing.
  const found: { readonly resource: Resource; readonly object: KubernetesObject }[] = [];
  for (const one of inOrder(options, hasDefinitions)) {
    for (const object of await objectsOf(cluster, one, options)) found.push({ resource: one, object });
  }
  for (const { resource: one, object } of found) {
    if (dryRun !== 'client') await deleteOne(cluster, one, object, dryRun === 'server');
    onDeleted(nameOf(object));
  }
  return found.length;
}

function inOrder(options: InstallOptions, hasDefinitions: boolean): readonly Resource[] {
  // This includes the objects for every strategy, even if no group uses the strategy any more, and for every source of the certificate.
  const every: InstallOptions = { ...options, scope: everywhere, hasServiceMonitor: true };
  const issued: InstallOptions = { ...every, certificate: { kind: 'cert-manager', issuer: '', issuerKind: '' } };
  const kinds = new Set([every, issued].flatMap((one) => removal(one, { hasDefinitions })).map(({ kind }) => kind));
  return [...kinds].flatMap((kind) => installed.filter((one) => one.kind === kind));
}

async function objectsOf({ env, timeoutMs }: Cluster, one: Resource, options: InstallOptions): Promise<readonly KubernetesObject[]> {
  const site = 'uninstall.list';
  if (one.kind !== 'CustomResourceDefinition') {
    const labelSelector = `${installLabel}=${options.namespace}`;
    try {
      return (await listObjects(env, one, { labelSelector, site, timeoutMs })).items;
    } catch (error) {
      // The API server does not serve the kind.
      if (isStatus(error, 404)) return [];
      throw error;
    }
  }
  const names = removal(options, { hasDefinitions: true }).flatMap(({ kind, metadata }) => (kind === one.kind ? [metadata.name] : []));
  return (await Promise.all(names.map((name) => getObject(env, one, { name }, { site, timeoutMs })))).flatMap((object) => object ?? []);
}

/** The maximum number of attempts to delete an object: controllers may write its status between read and deletion. */
const attempts = 5;

async function deleteOne({ env, timeoutMs }: Cluster, one: Resource, object: KubernetesObject, isDryRun: boolean): Promise<void> {
  const { name, namespace, uid = '' } = object.metadata;
  let { resourceVersion = '' } = object.metadata;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const options = { site: 'uninstall.delete', timeoutMs, dryRun: isDryRun };
      await deleteObject(env, one, { name, namespace, uid, resourceVersion }, options);
      return;
    } catch (error) {
      if (isStatus(error, 404)) return;
      if (!isStatus(error, 409) || attempt === attempts) throw error;
      const now = await getObject(env, one, { name, namespace }, { site: 'uninstall.read', timeoutMs });
      if (now?.metadata.uid !== uid) return;
      resourceVersion = now.metadata.resourceVersion ?? '';
    }
  }
}

/** Returns StatefulSets whose partition blocks updates: at least 1000000, or above 0 in `partition` and `pinned` groups. */
export async function readBlockedStatefulSets(
  cluster: Cluster,
  { scope, namespace: agentNamespace }: InstallOptions,
): Promise<Known<readonly BlockedStatefulSet[]>> {
  try {
    const watched = scope.namespaces.length === 0 ? await watchedNamespaces(cluster, agentNamespace) : scope.namespaces;
    const { listing, groups } = await readGroups(cluster, watched, agentNamespace);
    const live = groups.filter((group) => traitsOf(group).holdsPartition);
    const members = new Set([
      ...live.flatMap(({ namespace, zones }) => zones.map(({ statefulSet }) => `${namespace}/${statefulSet}`)),
      ...[...scope.partition.members, ...scope.pinned.members].map(({ namespace, statefulSet }) => `${namespace}/${statefulSet}`),
    ]);
    return itemsOf(listing.statefulSets)
      .map(observeStatefulSet)
      .flatMap((set) => (isUnknown(set) || set.updateStrategy !== 'RollingUpdate' ? [] : [set]))
      .filter(({ namespace, name, partition }) => partition >= holdingPartition || (partition > 0 && members.has(`${namespace}/${name}`)))
      .map(({ namespace, name }) => ({ namespace, name }))
      .sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1));
  } catch (error) {
    if (!isStatus(error, 403) && !(error instanceof Failure && error.exitCode === exitCodes.notAllowed)) throw error;
    return { unknown: 'no permission to list statefulsets, or to get the Deployment of the agent' };
  }
}

/** Throws Failure if the installed agent watches a namespace that the command, with these words, does not name. */
export async function refuseLostNamespaces(cluster: Cluster, { scope, namespace: agent }: InstallOptions, words: readonly string[]) {
  const watched = await watchedNamespaces(cluster, agent);
  const lost = watched.filter((one) => !scope.namespaces.includes(one));
  if (scope.namespaces.length === 0 || lost.length === 0) return;
  const { groups } = await readGroups(cluster, lost, agent).catch(() => ({ groups: undefined }));
  const names = groups?.flatMap(({ namespace, name }) => (scope.namespaces.includes(namespace) ? [] : [`${namespace}/${name}`])) ?? [];
  const known = names.length === 0 ? '' : `; ${counted(names.length, 'group')} there: ${listed(names)}`;
  const isAll = lost.includes('*');
  const typed = words.filter((word, index) => !word.startsWith('--token') && words[index - 1] !== '--token');
  const command = ['kubectl rollout-group', ...typed, ...lost.map((one) => `--groups-in ${one}`)].join(' ');
  const keep = isAll ? 'omit --groups-in, --policies and -f' : `run: ${command}`;
  throw refusedFailure(`the agent would stop watching ${isAll ? 'every other namespace' : `namespace ${lost.join(', ')}`}`, {
    why: `the installed agent runs with -namespaces=${watched.join(',')}${known}`,
    todo: `to keep watching, ${keep}; to stop watching, first run: kubectl rollout-group uninstall -n ${agent} --apply`,
  });
}

/** Returns which of the namespaces have the enforcement label. Leaves out namespaces that the user may not read. */
export async function enforcedNamespaces({ env, timeoutMs }: Cluster, namespaces: readonly string[]): Promise<readonly string[]> {
  const options = { site: 'install.namespace', timeoutMs };
  const read = (name: string) => getObject(env, resources.namespaces, { name }, options).catch(onStatus(undefined, 403));
  const found = await Promise.all(namespaces.map(read));
  return found.flatMap((one) => (one?.metadata.labels?.[enforceLabel] === 'true' ? [one.metadata.name] : []));
}

async function readGroups(cluster: Cluster, watched: readonly string[], agentNamespace: string) {
  const isAll = watched.length === 0 || watched.includes('*');
  const { listing } = await listForPlan(cluster, isAll ? undefined : watched, agentNamespace);
  return { listing, groups: readPolicyFiles(comparedObjects(listing).map(asFile), { agentNamespace }).resolution.bundle.groups };
}

/** Returns the namespaces that the installed agent watches, with `*` for all; none without a Deployment of the agent. */
async function watchedNamespaces({ env, timeoutMs }: Cluster, namespace: string): Promise<readonly string[]> {
  const agent = await getObject(env, deployments, { namespace, name: agentName }, { site: 'install.agent', timeoutMs });
  return agent === undefined ? [] : (namespacesFlagOf(wordsOf(fieldAt(agent, ['spec', 'template', 'spec']))) ?? ['*']);
}
