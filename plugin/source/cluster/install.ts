// Applies an installation object by object, and deletes what one has left in a cluster.
import { isStatus } from '../../../cluster/request/failure.ts';
import { getObject, listObjects } from '../../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resources } from '../../../cluster/request/resource.ts';
import { applyObject, deleteObject } from '../../../cluster/request/write.ts';
import { admissionPolicyKinds } from '../../../install/admission-policy-objects.ts';
import { removal } from '../../../install/installation.ts';
import { type InstallObject, type InstallOptions, installLabel } from '../../../install/object.ts';
import { everywhere } from '../../../install/scope.ts';
import type { Cluster } from '../../connection.ts';
import { connectionFailure } from '../../connection-failure.ts';
import { exitCodes } from '../../exit-code.ts';
import { Failure } from '../../failure.ts';
import type { DryRun } from '../../live/dry-run.ts';
import { fieldManager } from '../../live/intents.ts';
import { conflictsOf } from './apply.ts';

const resource = (group: string, plural: string, kind: string, isNamespaced = true): Resource => ({
  group,
  version: 'v1',
  plural,
  kind,
  isNamespaced,
});

const rbac = 'rbac.authorization.k8s.io';
const admission = 'admissionregistration.k8s.io';

/** Every kind of object that an installation consists of. */
const installed: readonly Resource[] = [
  resources.namespaces,
  resources.customResourceDefinitions,
  resource('', 'serviceaccounts', 'ServiceAccount'),
  resource(rbac, 'roles', 'Role'),
  resource(rbac, 'rolebindings', 'RoleBinding'),
  resource(rbac, 'clusterroles', 'ClusterRole', false),
  resource(rbac, 'clusterrolebindings', 'ClusterRoleBinding', false),
  resource('', 'services', 'Service'),
  resource('networking.k8s.io', 'networkpolicies', 'NetworkPolicy'),
  resources.podDisruptionBudgets,
  resource('apps', 'deployments', 'Deployment'),
  resource(admission, 'validatingwebhookconfigurations', 'ValidatingWebhookConfiguration', false),
  resource(admission, 'mutatingwebhookconfigurations', 'MutatingWebhookConfiguration', false),
  resource(admission, 'validatingadmissionpolicies', 'ValidatingAdmissionPolicy', false),
  resource(admission, 'validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding', false),
];

function resourceOf({ kind }: InstallObject): Resource {
  const found = installed.find((one) => one.kind === kind);
  if (found === undefined) throw new Error(`an installation has no ${kind}`);
  return found;
}

interface ApplyInstallation {
  readonly dryRun: DryRun;
  /** Hears of each object, as `kind namespace/name`. */
  readonly onApplied: (object: string) => void;
  /** Hears of each that the API server is too old for. */
  readonly onSkipped: (object: string) => void;
}

/**
 * Applies the objects in their order under our field manager, and stops at the first one that fails: what comes after rests on it, and applying
 * again goes on. How many there were; what an older API server does not know is left out. @throws Failure
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
        await applyObject(env, resourceOf(object), object, options);
      } catch (error) {
        if (isNotServed(error, object)) {
          skipped += 1;
          onSkipped(nameOf(object));
          continue;
        }
        // A namespace that would have been made is not there for what would have been in it.
        const isOfDryRun = dryRun === 'server' && isStatus(error, 404) && isMadeHere(objects, object);
        if (!isOfDryRun) throw installFailure(error, object, { done: index, of: objects.length, server, isDryRun: dryRun === 'server' });
      }
    }
    onApplied(nameOf(object));
  }
  return objects.length - skipped;
}

/** Of kinds that are not in every version of Kubernetes, and that are of no namespace. */
function isNotServed(error: unknown, { kind }: Pick<InstallObject, 'kind'>): boolean {
  return admissionPolicyKinds.some((one) => one === kind) && isStatus(error, 404);
}

function isMadeHere(objects: readonly InstallObject[], { metadata: { namespace } }: InstallObject): boolean {
  return objects.some(({ kind, metadata }) => kind === 'Namespace' && metadata.name === namespace);
}

function installFailure(
  error: unknown,
  object: InstallObject,
  { done, of, server, isDryRun }: { readonly done: number; readonly of: number; readonly server: string; readonly isDryRun: boolean },
): unknown {
  const name = nameOf(object);
  const rest = done === 0 || isDryRun ? 'nothing was applied' : `${done} of ${of} objects were applied and stay`;
  if (isStatus(error, 409)) {
    const [first, ...others] = conflictsOf(name, error);
    if (first !== undefined) {
      const more = others.length === 0 ? '' : ` and ${others.length} more`;
      return new Failure({
        exitCode: exitCodes.refused,
        what: `${name} belongs to another field manager; ${rest}`,
        why: `${first.manager} owns ${first.field}${more}; nothing is taken by force`,
        todo: `uninstall what ${first.manager} has installed, or let it apply this: kubectl rollout-group install > install.yaml`,
      });
    }
  }
  const { namespace } = object.metadata;
  if (isStatus(error, 404) && namespace !== undefined) {
    return new Failure({
      exitCode: exitCodes.notFound,
      what: `${name} cannot be applied; ${rest}`,
      why: error.message,
      todo: `make the namespace: kubectl create namespace ${namespace}, or --create-namespace for that of the agent`,
    });
  }
  if (object.kind.endsWith('RoleBinding') && isStatus(error, 422)) {
    const place = namespace === undefined ? '' : ` -n ${namespace}`;
    return new Failure({
      exitCode: exitCodes.refused,
      what: `${name} cannot be applied; ${rest}`,
      why: error.message,
      todo: `where it binds another role, delete it first: kubectl delete ${object.kind.toLowerCase()} ${object.metadata.name}${place}`,
    });
  }
  const failure = connectionFailure(error, server);
  return failure instanceof Failure ? new Failure({ ...failure.details, what: `${name}: ${failure.details.what}; ${rest}` }) : failure;
}

function nameOf({ kind = '', metadata: { name, namespace } }: KubernetesObject): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}

interface DeleteInstallation {
  readonly dryRun: DryRun;
  /** With the kinds, and with them every object of them. */
  readonly hasDefinitions: boolean;
  readonly onDeleted: (object: string) => void;
}

/**
 * Deletes what carries the label of the installation, whatever it was installed with, in the order of `removal`. How many there were.
 * @throws Failure
 */
export async function deleteInstallation(
  cluster: Cluster,
  options: InstallOptions,
  { dryRun, hasDefinitions, onDeleted }: DeleteInstallation,
): Promise<number> {
  // All are read before the first one goes, so that missing permission leaves everything as it is.
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
  // Whatever engines there were: what their groups needed goes although none of them is left.
  const kinds = new Set(removal({ ...options, scope: everywhere }, { hasDefinitions }).map(({ kind }) => kind));
  return [...kinds].flatMap((kind) => installed.filter((one) => one.kind === kind));
}

async function objectsOf({ env, timeoutMs }: Cluster, one: Resource, options: InstallOptions): Promise<readonly KubernetesObject[]> {
  const site = 'uninstall.list';
  if (one.kind !== 'CustomResourceDefinition') {
    const labelSelector = `${installLabel}=${options.namespace}`;
    try {
      return (await listObjects(env, one, { labelSelector, site, timeoutMs })).items;
    } catch (error) {
      if (isNotServed(error, one)) return [];
      throw error;
    }
  }
  const names = removal(options, { hasDefinitions: true }).flatMap(({ kind, metadata }) => (kind === one.kind ? [metadata.name] : []));
  return (await Promise.all(names.map((name) => getObject(env, one, { name }, { site, timeoutMs })))).flatMap((object) => object ?? []);
}

/** Controllers write status meanwhile, which is no reason to leave the object. */
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
