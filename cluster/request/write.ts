// Writes: every one names the state that it changes, and the few that nothing here may ever do are refused before they are sent.
import type { ClusterEnv, KubernetesRequest } from '../env.ts';
import { ApiFailure } from './failure.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { named, parseBody } from './read.ts';
import { collectionPath, type KubernetesObject, objectPath, type Resource } from './resource.ts';

type Port = Pick<ClusterEnv, 'kubernetes'>;

/** States how long a write may take when its caller does not say, in milliseconds. */
const defaultTimeoutMs = 10_000;

interface WriteOptions {
  /** The place in the code that asks. */
  readonly site: string;
  readonly timeoutMs?: number;
  /** The server checks everything and keeps nothing. */
  readonly dryRun?: boolean;
}

/** An object in the state in which it was seen. */
export interface Target {
  /** Left out for kinds without namespaces. */
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** The write was not sent: it lacks its preconditions, or is one that is never done. A defect of the caller. */
export class WriteRefused extends Error {
  override readonly name = 'WriteRefused';
}

/** Data goes with these: StatefulSets and namespaces take pods, and volumes what is on them. Nothing here has a reason to delete one. */
const neverDeleted: ReadonlySet<string> = new Set(['statefulsets.apps', 'persistentvolumeclaims', 'persistentvolumes', 'namespaces']);

/**
 * A whole object is replaced only if no other writer owns fields of it; elsewhere a patch names the fields. A status is replaced too, for
 * Roles that permit `update` of it and not `patch`.
 */
const replaceable: ReadonlySet<string> = new Set(['configmaps', 'secrets', 'leases.coordination.k8s.io']);

/**
 * Deletes the object if it is still in that state; otherwise ApiFailure 409. Pods get their own grace period, never a shorter one. There is no
 * function that deletes a collection. Answers the object as the server left it, undefined when it is gone already.
 */
export async function deleteObject(
  env: Port,
  resource: Resource,
  target: Target,
  options: WriteOptions,
): Promise<KubernetesObject | undefined> {
  if (neverDeleted.has(keyOf(resource))) throw new WriteRefused(`a ${resource.kind} is never deleted`);
  const preconditions = preconditionsOf(resource, target);
  const answer = await send(env, {
    ...requestOf(options),
    method: 'DELETE',
    path: objectPath(resource, target),
    body: text({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions, ...dryRunOf(options) }),
  });
  return answer['kind'] === 'Status' ? undefined : named(answer, resource, options.site);
}

/**
 * Asks for the eviction of the pod with that UID. Carries no resourceVersion: an eviction that is refused for it has already spent the
 * PodDisruptionBudget, for up to two minutes. ApiFailure 429: a budget does not allow it now; 409: another pod has the name.
 */
export async function evictPod(
  env: Port,
  { namespace, name, uid }: Omit<Target, 'resourceVersion' | 'namespace'> & { readonly namespace: string },
  options: WriteOptions,
): Promise<void> {
  if (!isText(uid)) throw new WriteRefused(`the eviction of pod ${name} names no uid`);
  const pods: Resource = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', isNamespaced: true };
  const deleteOptions = { preconditions: { uid }, ...dryRunOf(options) };
  await send(env, {
    ...requestOf(options),
    method: 'POST',
    path: objectPath(pods, { namespace, name }, 'eviction'),
    body: text({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name }, deleteOptions }),
  });
}

/**
 * Merges the patch into the object, or into a subresource of it, if it is still in that state; otherwise ApiFailure 409. Lists are replaced
 * whole, `null` removes a field.
 */
export async function patchObject(
  env: Port,
  resource: Resource,
  target: Target,
  { patch, subresource, ...options }: WriteOptions & { readonly patch: JsonObject; readonly subresource?: string },
): Promise<KubernetesObject> {
  const metadata = patch['metadata'] ?? {};
  if (!isJsonObject(metadata)) throw new WriteRefused('the metadata of a patch is not an object');
  refuseFinalizers(metadata);
  const answer = await send(env, {
    ...requestOf(options),
    method: 'PATCH',
    path: `${objectPath(resource, target, subresource)}${dryRunQuery(options)}`,
    contentType: 'application/merge-patch+json',
    body: text({ ...patch, metadata: { ...metadata, ...preconditionsOf(resource, target) } }),
  });
  return named(answer, resource, options.site);
}

/** One operation of a JSON patch (RFC 6902). */
export type JsonPatchOperation =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/**
 * Carries out the operations one after the other if every `test` among them holds, otherwise none: ApiFailure 422. For what lies inside of lists,
 * which a merge replaces whole. It is the object with that UID, in any state: the tests say which parts of it have to be as they were seen, and a
 * patch without a test is refused.
 */
export async function patchByOperations(
  env: Port,
  resource: Resource,
  target: Omit<Target, 'resourceVersion'>,
  { operations, ...options }: WriteOptions & { readonly operations: readonly JsonPatchOperation[] },
): Promise<KubernetesObject> {
  const { namespace, name, uid } = target;
  refuseMissingNamespace(resource, namespace, name);
  if (!isText(name) || !isText(uid)) throw new WriteRefused(`a patch of a ${resource.kind} names no object or no uid`);
  if (!operations.some(({ op }) => op === 'test')) throw new WriteRefused(`a patch of ${resource.kind} ${name} tests nothing`);
  if (operations.some(({ path }) => path.startsWith('/metadata/finalizers'))) throw new WriteRefused('finalizers are not written');
  const answer = await send(env, {
    ...requestOf(options),
    method: 'PATCH',
    path: `${objectPath(resource, target)}${dryRunQuery(options)}`,
    contentType: 'application/json-patch+json',
    body: JSON.stringify([{ op: 'test', path: '/metadata/uid', value: uid }, ...operations]),
  });
  return named(answer, resource, options.site);
}

/** Creates the object under the name that it has. ApiFailure 409 with reason AlreadyExists when the name is taken. */
export async function createObject(
  env: Port,
  resource: Resource,
  object: KubernetesObject,
  options: WriteOptions,
): Promise<KubernetesObject> {
  const { name, namespace, resourceVersion, uid } = object.metadata;
  if (!isText(name))
    throw new WriteRefused(`a ${resource.kind} without a name is not created: a lost answer could not be told from a failure`);
  if (resourceVersion !== undefined || uid !== undefined) throw new WriteRefused(`${resource.kind} ${name} exists and is not created`);
  refuseMissingNamespace(resource, namespace, name);
  const answer = await send(env, {
    ...requestOf(options),
    method: 'POST',
    path: `${collectionPath(resource, namespace)}${dryRunQuery(options)}`,
    body: text(object),
  });
  return named(answer, resource, options.site);
}

/** Writes the whole object in place of the state that its metadata names; ApiFailure 409 when it is in another one, 404 when it is gone. */
export async function replaceObject(
  env: Port,
  resource: Resource,
  object: KubernetesObject,
  { subresource, ...options }: WriteOptions & { readonly subresource?: 'status' },
): Promise<KubernetesObject> {
  if (subresource === undefined && !replaceable.has(keyOf(resource)))
    throw new WriteRefused(`a ${resource.kind} must be patched, not replaced`);
  const { name, namespace, uid = '', resourceVersion = '' } = object.metadata;
  const target = { namespace, name, uid, resourceVersion };
  preconditionsOf(resource, target);
  const answer = await send(env, {
    ...requestOf(options),
    method: 'PUT',
    path: `${objectPath(resource, target, subresource)}${dryRunQuery(options)}`,
    body: text(object),
  });
  return named(answer, resource, options.site);
}

/**
 * Server-side apply under the name of `fieldManager`: ApiFailure 409 when a field belongs to another manager, unless `takesFields` says that it may
 * be taken. A uid or resourceVersion in the object is a precondition.
 */
export async function applyObject(
  env: Port,
  resource: Resource,
  object: KubernetesObject,
  {
    fieldManager,
    subresource,
    takesFields = false,
    ...options
  }: WriteOptions & { readonly fieldManager: string; readonly subresource?: string; readonly takesFields?: boolean },
): Promise<KubernetesObject> {
  const { managedFields: _, ...metadata } = object.metadata;
  if (!isText(metadata.name)) throw new WriteRefused(`a ${resource.kind} without a name is not applied`);
  if (!isText(fieldManager)) throw new WriteRefused(`${resource.kind} ${metadata.name} is not applied without the name of a field manager`);
  refuseMissingNamespace(resource, metadata.namespace, metadata.name);
  refuseFinalizers(metadata);
  const query = new URLSearchParams({ fieldManager, force: `${takesFields}`, ...(options.dryRun ? { dryRun: 'All' } : {}) });
  const answer = await send(env, {
    ...requestOf(options),
    method: 'PATCH',
    path: `${objectPath(resource, metadata, subresource)}?${query}`,
    contentType: 'application/apply-patch+yaml',
    body: text({ ...object, metadata }),
  });
  return named(answer, resource, options.site);
}

async function send(env: Port, request: KubernetesRequest): Promise<JsonObject> {
  const response = await env.kubernetes.request(request);
  if (response.status >= 200 && response.status <= 299) return parseBody(response.body, request.site);
  const failure = new ApiFailure(response, request.site);
  throw isOtherUid(failure) ? conflictOf(failure) : failure;
}

/** To a patch that names the UID of an object that is gone, while another one has its name, the API server answers that a UID cannot be changed. */
function isOtherUid({ status, details }: ApiFailure): boolean {
  const { causes } = details;
  return status === 422 && Array.isArray(causes) && causes.some((cause) => isJsonObject(cause) && cause['field'] === 'metadata.uid');
}

/** Returns the conflict that the API server reports for every other kind of write in this case. */
function conflictOf({ message, details, site }: ApiFailure): ApiFailure {
  const body = text({ kind: 'Status', status: 'Failure', code: 409, reason: 'Conflict', message, details });
  return new ApiFailure({ status: 409, headers: {}, body }, site);
}

function requestOf({ site, timeoutMs = defaultTimeoutMs }: WriteOptions): Pick<KubernetesRequest, 'site' | 'timeoutMs'> {
  return { site, timeoutMs };
}

function dryRunOf({ dryRun = false }: WriteOptions): { readonly dryRun?: readonly ['All'] } {
  return dryRun ? { dryRun: ['All'] } : {};
}

function dryRunQuery({ dryRun = false }: WriteOptions): string {
  return dryRun ? '?dryRun=All' : '';
}

function preconditionsOf(resource: Resource, { namespace, name, uid, resourceVersion }: Target) {
  refuseMissingNamespace(resource, namespace, name);
  if (!isText(name)) throw new WriteRefused(`a write to a ${resource.kind} names no object`);
  if (!isText(uid)) throw new WriteRefused(`a write to ${resource.kind} ${name} names no uid`);
  if (!isText(resourceVersion) || resourceVersion === '0')
    throw new WriteRefused(`a write to ${resource.kind} ${name} names no resourceVersion`);
  return { uid, resourceVersion };
}

function refuseMissingNamespace(resource: Resource, namespace: string | undefined, name: string): void {
  if (resource.isNamespaced && !isText(namespace)) throw new WriteRefused(`a write to ${resource.kind} ${name} names no namespace`);
}

/** Finalizers belong to those who set them; taking one away loses what they would have cleaned up. */
function refuseFinalizers(metadata: JsonObject): void {
  if ('finalizers' in metadata) throw new WriteRefused('finalizers are not written');
}

/** The types say so already; a value that came as JSON may not keep to them. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function keyOf({ plural, group }: Resource): string {
  return group === '' ? plural : `${plural}.${group}`;
}

function text(body: JsonObject): string {
  return JSON.stringify(body);
}
