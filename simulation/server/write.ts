// Creates and changes objects as the API server does: it keeps immutable fields and rejects invalid requests.
import { textOf } from '../../cluster/request/discovery.ts';
import { apiVersionOf } from '../../cluster/request/resource.ts';
import { secondText } from '../../policies/instant.ts';
import { hasDefaultStatus, prepared } from './defaults.ts';
import { isObject, isSame, objectOf } from './json.ts';
import { resourceOf, type ServedKind } from './kinds.ts';
import { type ManagerEntry, managersAfter } from './managed-fields.ts';
import {
  alreadyExists,
  badRequest,
  conflict,
  internal,
  invalid,
  modified,
  mustNameVersion,
  namespaceTerminating,
  notFound,
} from './refusal.ts';
import type { Actor, Json, ModelObject } from './request.ts';
import type { Storage } from './store.ts';
import { misfitOf, validate } from './validate.ts';

/** The initial status of a pod. The status in the request is ignored. No agent reads the QoS class, so all pods have the same class. */
const newPodStatus = { phase: 'Pending', qosClass: 'BestEffort' };

export interface Core {
  readonly storage: Storage;
  /** Returns the wall-clock time of the API server. */
  readonly wallMs: () => number;
  readonly newUid: () => string;
  /** The namespaces that are being deleted: nothing can be created there. */
  readonly terminating: Set<string>;
}

export interface Target {
  readonly kind: ServedKind;
  /** The namespace; empty for cluster-scoped kinds. */
  readonly namespace: string;
  readonly name: string;
}

export interface WriteOptions {
  readonly actor: Actor;
  readonly isDryRun: boolean;
}

/** Creates the object. Throws Refusal. */
export function create(
  core: Core,
  { kind, namespace }: Omit<Target, 'name'>,
  object: Json,
  { actor, isDryRun }: WriteOptions,
): ModelObject {
  const given = objectOf(object['metadata']);
  refuseOtherNamespace(kind, given, namespace);
  const { uid: _uid, generation: givenGeneration, creationTimestamp: _created, ...rest } = given;
  // Only kinds with generations ignore the generation in the request.
  const generation = kind.hasGeneration ? 1 : givenGeneration;
  const { deletionTimestamp: _deleted, deletionGracePeriodSeconds: _grace, ...kept } = rest;
  const metadata = { ...kept, ...(kind.isNamespaced && { namespace }) };
  // The status is written by separate requests, except for nodes.
  const hasOwnStatus = kind.hasStatus && resourceOf(kind) !== 'nodes';
  const status = resourceOf(kind) === 'pods' ? newPodStatus : undefined;
  const candidate = prepared(kind, { ...object, ...(hasOwnStatus && { status }), metadata });
  validate(kind, candidate);
  if (textOf(given['resourceVersion']) !== '') throw internal('resourceVersion should not be set on objects to be created');
  const finished = {
    ...candidate,
    metadata: {
      ...objectOf(candidate['metadata']),
      uid: core.newUid(),
      ...(typeof generation === 'number' && { generation }),
      creationTimestamp: secondText(core.wallMs()),
    },
  } as unknown as ModelObject;
  const { storage } = core;
  const resource = resourceOf(kind);
  if (core.terminating.has(namespace)) throw namespaceTerminating(kind, finished.metadata.name, namespace);
  if (storage.collection(resource).get(namespace, finished.metadata.name) !== undefined) throw alreadyExists(kind, finished.metadata.name);
  if (isDryRun) return finished;
  const created = storage.commit({ type: 'ADDED', resource, object: finished, actor });
  if (hasDefaultStatus(kind)) withUnstoredDefault.add(created);
  return created;
}

interface ReplaceOptions extends WriteOptions {
  readonly subresource: string;
  /** The managers of the fields after an apply. */
  readonly managedFields?: readonly ManagerEntry[];
}

/** Executes a PUT: replaces the stored object, or creates a missing Lease or Event. Throws Refusal. */
export function replace(
  core: Core,
  target: Target,
  object: Json,
  options: ReplaceOptions,
): { readonly object: ModelObject; readonly isNew: boolean } {
  const { kind, namespace, name } = target;
  const metadata = objectOf(object['metadata']);
  refuseOtherName(metadata, name);
  refuseOtherNamespace(kind, metadata, namespace);
  const before = core.storage.collection(resourceOf(kind)).get(namespace, name);
  if (before === undefined) {
    const isCreatedByUpdate = kind.plural === 'leases' || kind.plural === 'events';
    if (!isCreatedByUpdate || options.subresource !== '') throw notFound(kind, name);
    const { resourceVersion: version, ...rest } = metadata;
    const given = textOf(metadata['uid']);
    if (given !== '')
      throw conflict(kind, name, `uid mismatch: the provided object specified uid ${given}, and no existing object was found`);
    const created = create(core, target, { ...object, metadata: rest }, options);
    // A dry run assigns no resource version to a new object.
    const shown = options.isDryRun && textOf(version) !== '' ? { ...created.metadata, resourceVersion: textOf(version) } : created.metadata;
    return { object: { ...created, metadata: shown }, isNew: true };
  }
  const uid = textOf(metadata['uid']);
  if (uid !== '' && uid !== before.metadata.uid) throw conflict(kind, name, uidMismatch(kind, before, uid));
  return { object: update(core, target, { before, wanted: object }, options), isNew: false };
}

function uidMismatch(kind: ServedKind, { metadata }: ModelObject, uid: string): string {
  const key = `/registry/${kind.isCustom ? `${kind.group}/` : ''}${kind.plural}/${metadata.namespace ?? ''}/${metadata.name}`;
  const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`;
  return `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`;
}

/** Executes a PATCH. `make` returns the new object for the stored object. Throws Refusal. */
export function patch(core: Core, target: Target, make: (before: ModelObject) => unknown, options: ReplaceOptions): ModelObject {
  const { kind, namespace, name } = target;
  const before = core.storage.collection(resourceOf(kind)).get(namespace, name);
  if (before === undefined) throw notFound(kind, name);
  const object = make(before);
  if (!isObject(object)) throw badRequest('the patch does not make an object');
  refuseUnreadable(kind, object);
  refuseOtherName(objectOf(object['metadata']), name);
  refuseOtherNamespace(kind, objectOf(object['metadata']), namespace);
  return update(core, target, { before, wanted: object }, options);
}

/** Throws Refusal if the result of a patch cannot be decoded as its kind. */
function refuseUnreadable(kind: ServedKind, object: Json): void {
  if (kind.isCustom) refuseOtherKind(kind, object);
  const isOfKind = kind.isCustom || (object['kind'] === kind.kind && object['apiVersion'] === apiVersionOf(kind));
  const why = isOfKind ? misfitOf(kind, object) : `it cannot be handled as a ${kind.kind}`;
  if (why === undefined) return;
  const message = `Invalid value: ${JSON.stringify(JSON.stringify(object))}: ${why}`;
  throw invalid({ group: '', kind: '' }, '', [{ reason: 'FieldValueInvalid', message, field: 'patch' }]);
}

/**
 * New objects with a default status (`prepared`): the API server shows the default and stores it with the next write, which is then a change
 * even if the request changes nothing.
 */
const withUnstoredDefault = new WeakSet<ModelObject>();

/** Stores the wanted object with the immutable fields of the stored object. Writes nothing if nothing changes. Throws Refusal. */
export function update(
  core: Core,
  { kind, name }: Target,
  { before, wanted }: { readonly before: ModelObject; readonly wanted: Json },
  options: ReplaceOptions,
): ModelObject {
  const metadata = objectOf(wanted['metadata']);
  const version = textOf(metadata['resourceVersion']);
  if (version !== '' && !/^\d+$/.test(version)) throw internal(`strconv.ParseUint: parsing "${version}": invalid syntax`);
  if (version === '' || version === '0') {
    const isUnconditional = !kind.isCustom && kind.plural !== 'leases' && kind.plural !== 'poddisruptionbudgets';
    if (!isUnconditional) throw mustNameVersion(kind, name);
  } else if (version !== before.metadata.resourceVersion) throw modified(kind, name);
  if (wanted === before && !withUnstoredDefault.has(before)) return before;
  const candidate = successor(kind, before, prepared(kind, wanted), options.subresource);
  validate(kind, candidate, before);
  const managedFields = options.managedFields ?? managersAfter(before, candidate, options.actor, () => secondText(core.wallMs()));
  const after = managedFields === undefined ? candidate : { ...candidate, metadata: { ...candidate.metadata, managedFields } };
  return keep(core, kind, { before, after }, options);
}

/** Stores the new state of an object. Removes a terminating object instead if its grace period is 0 and no finalizer is left. */
export function keep(core: Core, kind: ServedKind, { before, after }: StateChange, { actor, isDryRun }: WriteOptions): ModelObject {
  if (isSame(after, before) && !withUnstoredDefault.has(before)) return before;
  const isRemoved = before.metadata.deletionGracePeriodSeconds === 0 && (after.metadata.finalizers ?? []).length === 0;
  if (!isDryRun) {
    const change = { resource: resourceOf(kind), before, actor };
    if (!isRemoved) return core.storage.commit({ type: 'MODIFIED', ...change, object: after });
    // The removed object keeps its last stored state, without the changes of the request.
    core.storage.commit({ type: 'DELETED', ...change, object: before });
  }
  return after;
}

interface StateChange {
  readonly before: ModelObject;
  readonly after: ModelObject;
}

/** Returns the new state with the immutable metadata of `before`. A write of the status keeps the spec. Other writes keep the status. */
function successor(kind: ServedKind, before: ModelObject, wanted: Json, subresource: string): ModelObject {
  const isStatus = subresource === 'status';
  const rest = isStatus ? { ...before, ...statusOf(wanted) } : { ...wanted, ...(kind.hasStatus && statusOf(before)) };
  const status = isStatus || !kind.hasStatus ? wanted['status'] : before['status'];
  if (status === undefined) delete (rest as Record<string, unknown>)['status'];
  if (isStatus && kind.isCustom) return rest as ModelObject;
  // Old kubelets corrupted owner references, so a write of the pod status keeps them.
  const keepsOwners = isStatus && resourceOf(kind) === 'pods';
  const hasNewSpec = kind.hasGeneration && !isSame(objectOf(rest)['spec'], before['spec']);
  return { ...rest, metadata: metadataAfter(before, wanted, { isNamespaced: kind.isNamespaced, keepsOwners, hasNewSpec }) } as ModelObject;
}

interface MetadataRules {
  readonly isNamespaced: boolean;
  readonly keepsOwners: boolean;
  readonly hasNewSpec: boolean;
}

/** Returns the new metadata. Sets each field separately, because literals with several spreads are slower. */
function metadataAfter({ metadata: before }: ModelObject, wanted: Json, rules: MetadataRules): ModelObject['metadata'] {
  const { generation: _generation, ...metadata }: Record<string, unknown> = objectOf(wanted['metadata']);
  const { deletionTimestamp, deletionGracePeriodSeconds, generation = 0 } = before;
  const owners = rules.keepsOwners ? before.ownerReferences : metadata['ownerReferences'];
  if (rules.isNamespaced) metadata['namespace'] = before.namespace;
  metadata['uid'] ??= before.uid;
  metadata['resourceVersion'] = before.resourceVersion;
  metadata['creationTimestamp'] = before.creationTimestamp;
  if (generation > 0) metadata['generation'] = generation + (rules.hasNewSpec ? 1 : 0);
  if (deletionTimestamp !== undefined) metadata['deletionTimestamp'] = deletionTimestamp;
  if (deletionGracePeriodSeconds !== undefined) metadata['deletionGracePeriodSeconds'] = deletionGracePeriodSeconds;
  if (owners !== undefined) metadata['ownerReferences'] = owners;
  return metadata as unknown as ModelObject['metadata'];
}

function statusOf(object: Json): Json {
  return object['status'] === undefined ? {} : { status: object['status'] };
}

function refuseOtherName(metadata: Json, name: string): void {
  const given = textOf(metadata['name']);
  if (given === '') throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  if (given !== name) throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
}

function refuseOtherNamespace(kind: ServedKind, metadata: Json, namespace: string): void {
  const given = textOf(metadata['namespace']);
  if (given === '' || given === namespace) return;
  if (!kind.isNamespaced) return;
  throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
}

/** Throws Refusal if the body has another kind or cannot be decoded. */
export function refuseOtherKind(kind: ServedKind, body: Json): void {
  const given = textOf(body['kind']);
  const version = textOf(body['apiVersion']);
  const isOther = (given !== '' && given !== kind.kind) || (version !== '' && version !== apiVersionOf(kind));
  const misfit = isOther ? undefined : misfitOf(kind, body);
  if (misfit !== undefined) throw badRequest(`${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: ${misfit}`);
  if (!isOther) return;
  const name = textOf(objectOf(body['metadata'])['name']);
  if (kind.isCustom && version === apiVersionOf(kind)) {
    const message = `Invalid value: ${JSON.stringify(given)}: must be ${kind.kind}`;
    throw invalid({ group: kind.group, kind: given }, name, [{ reason: 'FieldValueInvalid', message, field: 'kind' }]);
  }
  const short = version === '' ? kind.version : version.split('/').at(-1);
  throw badRequest(
    version !== '' && version !== apiVersionOf(kind)
      ? `the API version in the data (${version}) does not match the expected API version (${apiVersionOf(kind)})`
      : `${given} in version "${short}" cannot be handled as a ${kind.kind}`,
  );
}
