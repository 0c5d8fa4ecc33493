// Writes objects. Each write except a creation or an apply names the UID that it expects. Forbidden writes are not sent.
import type { ClusterEnv, KubernetesRequest } from '../env.ts';
import { ApiFailure } from './failure.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { named, parseBody } from './read.ts';
import { collectionPath, type KubernetesObject, objectPath, type Resource, resources } from './resource.ts';

type Port = Pick<ClusterEnv, 'kubernetes'>;

const defaultTimeoutMs = 10_000;

interface WriteOptions {
  readonly site: string;
  readonly timeoutMs?: number;
  /** If true, the server checks the write and stores nothing. */
  readonly dryRun?: boolean;
}

/** An object in its last seen state. */
export interface Target {
  /** Absent for kinds without namespaces. */
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** Returns the object as the target of a write to exactly this version. */
export function targetOf({ metadata: { namespace, name, uid = '', resourceVersion = '' } }: KubernetesObject): Target {
  return { namespace, name, uid, resourceVersion };
}

/** The failure of a write that was not sent, because it lacks preconditions or is forbidden. */
export class WriteRefused extends Error {
  override readonly name = 'WriteRefused';
}

/** The resources whose deletion would also delete pods or data. */
const neverDeleted: ReadonlySet<string> = new Set(['statefulsets.apps', 'persistentvolumeclaims', 'persistentvolumes', 'namespaces']);

/** The resources that may be replaced: no other writer owns their fields. A status may be replaced too: some Roles permit only `update`. */
const replaceable: ReadonlySet<string> = new Set(['configmaps', 'secrets', 'leases.coordination.k8s.io']);

/**
 * Deletes the object if it still has the given state; otherwise rejects with ApiFailure 409. Pods keep their own grace period. Returns the
 * terminating object, or undefined if the object was removed at once.
 */
export async function deleteObject(
  env: Port,
  resource: Resource,
  target: Target,
  options: WriteOptions,
): Promise<KubernetesObject | undefined> {
  if (neverDeleted.has(keyOf(resource))) throw new WriteRefused(`a ${resource.kind} is never deleted`);
  const preconditions = preconditionsOf(resource, target);
  const answer = await send(env, options, {
    method: 'DELETE',
    // The server reads the body. The query shows a read-only connection that the request is a dry run.
    path: `${objectPath(resource, target)}${dryRunQuery(options)}`,
    body: text({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions, ...dryRunOf(options) }),
  });
  return answer['kind'] === 'Status' ? undefined : named(answer, resource, options.site);
}

/**
 * Evicts the pod with that UID. The request has no resourceVersion: an eviction that fails for a newer version still consumes the
 * PodDisruptionBudget for up to two minutes. Rejects with ApiFailure 429 if a budget blocks the eviction, 409 if another pod has the name.
 */
export async function evictPod(
  env: Port,
  { namespace, name, uid }: Omit<Target, 'resourceVersion' | 'namespace'> & { readonly namespace: string },
  options: WriteOptions,
): Promise<void> {
  if (!isText(uid)) throw new WriteRefused(`the eviction of pod ${name} names no uid`);
  const deleteOptions = { preconditions: { uid }, ...dryRunOf(options) };
  await send(env, options, {
    method: 'POST',
    path: objectPath(resources.pods, { namespace, name }, 'eviction'),
    body: text({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name }, deleteOptions }),
  });
}

/** Merges the patch into the object: replaces lists and removes `null` fields. Rejects with ApiFailure 409 if the state differs. */
export async function patchObject(
  env: Port,
  resource: Resource,
  target: Target,
  { patch, subresource, ...options }: WriteOptions & { readonly patch: JsonObject; readonly subresource?: string },
): Promise<KubernetesObject> {
  const metadata = patch['metadata'] ?? {};
  if (!isJsonObject(metadata)) throw new WriteRefused('the metadata of a patch is not an object');
  refuseFinalizers(metadata);
  const answer = await send(env, options, {
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
 * Applies the operations to the object with that UID. Rejects with ApiFailure 422 if a `test` fails. Changes inside lists need operations,
 * because a merge patch replaces lists. The tests are the precondition, so a patch without a test is rejected.
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
  const answer = await send(env, options, {
    method: 'PATCH',
    path: `${objectPath(resource, target)}${dryRunQuery(options)}`,
    contentType: 'application/json-patch+json',
    body: JSON.stringify([{ op: 'test', path: '/metadata/uid', value: uid }, ...operations]),
  });
  return named(answer, resource, options.site);
}

/** Creates the object. Rejects with ApiFailure 409 and the reason AlreadyExists if the name exists. */
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
  const answer = await send(env, options, {
    method: 'POST',
    path: `${collectionPath(resource, namespace)}${dryRunQuery(options)}`,
    body: text(object),
  });
  return named(answer, resource, options.site);
}

/** Replaces the object in the state that its metadata names. Rejects with ApiFailure 409 if the state differs, 404 if no object exists. */
export async function replaceObject(
  env: Port,
  resource: Resource,
  object: KubernetesObject,
  { subresource, ...options }: WriteOptions & { readonly subresource?: 'status' },
): Promise<KubernetesObject> {
  if (subresource === undefined && !replaceable.has(keyOf(resource)))
    throw new WriteRefused(`a ${resource.kind} must be patched, not replaced`);
  const target = targetOf(object);
  preconditionsOf(resource, target);
  const answer = await send(env, options, {
    method: 'PUT',
    path: `${objectPath(resource, target, subresource)}${dryRunQuery(options)}`,
    body: text(object),
  });
  return named(answer, resource, options.site);
}

/**
 * Applies the object as `fieldManager`. Rejects with ApiFailure 409 if another manager owns a field with another value and
 * `takesFields` is false. A uid or resourceVersion in the object is a precondition.
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
  const answer = await send(env, options, {
    method: 'PATCH',
    path: `${objectPath(resource, metadata, subresource)}?${query}`,
    contentType: 'application/apply-patch+yaml',
    body: text({ ...object, metadata }),
  });
  return named(answer, resource, options.site);
}

async function send(
  env: Port,
  { site, timeoutMs = defaultTimeoutMs }: WriteOptions,
  request: Omit<KubernetesRequest, 'site' | 'timeoutMs'>,
): Promise<JsonObject> {
  const response = await env.kubernetes.request({ ...request, site, timeoutMs });
  if (response.status >= 200 && response.status <= 299) return parseBody(response.body, site);
  const failure = new ApiFailure(response, site);
  throw isOtherUid(failure) ? conflictOf(failure) : failure;
}

/** Returns whether the object was recreated. The API server then answers that a patch must not change the UID. */
function isOtherUid({ status, details }: ApiFailure): boolean {
  const { causes } = details;
  return status === 422 && Array.isArray(causes) && causes.some((cause) => isJsonObject(cause) && cause['field'] === 'metadata.uid');
}

/** Returns the conflict that the API server reports for a deletion or replacement of a recreated object. */
function conflictOf({ message, details, site }: ApiFailure): ApiFailure {
  const body = text({ kind: 'Status', status: 'Failure', code: 409, reason: 'Conflict', message, details });
  return new ApiFailure({ status: 409, headers: {}, body }, site);
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

/** Throws WriteRefused for finalizers: if another writer than the owner removes a finalizer, its cleanup is lost. */
function refuseFinalizers(metadata: JsonObject): void {
  if ('finalizers' in metadata) throw new WriteRefused('finalizers are not written');
}

/** Reports whether the value is a string with content. A value from JSON may differ from its declared type. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function keyOf({ plural, group }: Resource): string {
  return group === '' ? plural : `${plural}.${group}`;
}

function text(body: JsonObject): string {
  return JSON.stringify(body);
}

/** Formats a MicroTime of Kubernetes, with exactly six decimals. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
