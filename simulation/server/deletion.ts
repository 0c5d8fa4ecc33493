// Deletes objects as the API server does: at once, after a grace period, or after their last finalizer.
import { secondText } from '../../policies/instant.ts';
import { isObject, objectOf } from './json.ts';
import { resourceOf, type ServedKind } from './kinds.ts';
import { badRequest, type Cause, invalid, notFound, preconditionFailed } from './refusal.ts';
import type { Json, ModelObject } from './request.ts';
import type { Core, Target, WriteOptions } from './write.ts';

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly isDryRun: boolean;
}

/** Returns the options of a DELETE, from its body or its query. Throws Refusal. */
export function deleteOptionsOf(body: unknown, query: URLSearchParams): DeleteOptions {
  const given = objectOf(body);
  if (body !== undefined && !isObject(body)) throw badRequest('the body of a DELETE is no DeleteOptions');
  const { kind = 'DeleteOptions' } = given;
  if (kind !== 'DeleteOptions') throw badRequest(`no kind ${JSON.stringify(kind)} is registered for the options of a deletion`);
  const preconditions = objectOf(given['preconditions']);
  const seconds = given['gracePeriodSeconds'] ?? (query.has('gracePeriodSeconds') ? Number(query.get('gracePeriodSeconds')) : undefined);
  const policy =
    given['propagationPolicy'] ?? query.get('propagationPolicy') ?? (given['orphanDependents'] === true ? 'Orphan' : undefined);
  const dryRun = Array.isArray(given['dryRun']) ? given['dryRun'] : query.getAll('dryRun');
  refuseUnknown(policy, dryRun);
  return {
    ...(typeof seconds === 'number' && { gracePeriodSeconds: seconds }),
    ...(typeof policy === 'string' && { propagationPolicy: policy }),
    ...(typeof preconditions['uid'] === 'string' && { uid: preconditions['uid'] }),
    ...(typeof preconditions['resourceVersion'] === 'string' && { resourceVersion: preconditions['resourceVersion'] }),
    isDryRun: dryRun.length > 0,
  };
}

function refuseUnknown(policy: unknown, dryRun: readonly unknown[]): void {
  const causes: Cause[] = [];
  if (policy !== undefined && policy !== 'Background' && policy !== 'Orphan') {
    const message = `Unsupported value: ${JSON.stringify(policy)}: supported values: "Background", "Orphan", "nil"`;
    causes.push({ reason: 'FieldValueNotSupported', message, field: 'propagationPolicy' });
  }
  causes.push(...dryRunCauses(dryRun));
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', causes);
}

/** Returns the causes of a rejection for invalid values of `dryRun`. */
export function dryRunCauses(values: readonly unknown[]): readonly Cause[] {
  if (values.every((value) => value === 'All')) return [];
  const message = `Unsupported value: ${JSON.stringify(values)}: supported values: "All"`;
  return [{ reason: 'FieldValueNotSupported', message, field: 'dryRun' }];
}

interface Removed {
  /** The last stored state, or the state that would be stored. */
  readonly object: ModelObject;
  readonly isGone: boolean;
}

/** Executes a DELETE. Throws Refusal. */
export function remove(core: Core, target: Target, options: DeleteOptions, { actor }: Pick<WriteOptions, 'actor'>): Removed {
  const { kind, namespace, name } = target;
  const resource = resourceOf(kind);
  const before = core.storage.collection(resource).get(namespace, name);
  if (before === undefined) throw notFound(kind, name);
  refuseOther(kind, before, options);
  const graceful = resource === 'pods' ? graceOf(core, before, options) : { isPending: false, object: before };
  if (graceful.isPending) return { object: before, isGone: false };
  const marked = withFinalizers(graceful.object, options);
  const hasFinalizers = (marked.metadata.finalizers ?? []).length > 0;
  const going = hasFinalizers && resource !== 'pods' ? markAsGoing(core, marked) : marked;
  const store = (type: 'MODIFIED' | 'DELETED', from: ModelObject, object: ModelObject): ModelObject =>
    options.isDryRun ? object : core.storage.commit({ type, resource, before: from, object, actor });
  // A pod is marked as terminating even if it is removed at once, so a watch delivers both changes.
  const isDated = graceful.object !== before;
  // An object that needs no mark is removed in its last stored state.
  const stored = going === before || !(hasFinalizers || isDated) ? before : store('MODIFIED', before, going);
  if (hasFinalizers || (going.metadata.deletionGracePeriodSeconds ?? 0) > 0) return { object: stored, isGone: false };
  return { object: store('DELETED', stored, stored), isGone: true };
}

/** Throws Refusal 409 if the object has another UID or another resource version. */
export function refuseOther(kind: ServedKind, { metadata }: ModelObject, { uid, resourceVersion }: DeleteOptions): void {
  if (uid !== undefined && uid !== metadata.uid) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`;
    throw preconditionFailed(kind, metadata.name, why);
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`;
    throw preconditionFailed(kind, metadata.name, why);
  }
}

/** Returns the pod with a deletion time. An existing deletion time can only become earlier. */
function graceOf(
  core: Core,
  pod: ModelObject,
  { gracePeriodSeconds }: DeleteOptions,
): { readonly isPending: boolean; readonly object: ModelObject } {
  const { deletionTimestamp, deletionGracePeriodSeconds: known = 0, generation = 0 } = pod.metadata;
  const seconds = podGrace(pod, gracePeriodSeconds);
  if (deletionTimestamp === undefined) {
    const dated = { deletionTimestamp: secondText(core.wallMs() + seconds * 1000), deletionGracePeriodSeconds: seconds };
    return { isPending: false, object: withMetadata(pod, { ...dated, ...(generation > 0 && { generation: generation + 1 }) }) };
  }
  // The grace period is over, so only finalizers can keep the pod.
  if (known === 0) return { isPending: false, object: pod };
  // A second request may shorten the grace period in any state of the pod.
  const sooner = gracePeriodSeconds === undefined || gracePeriodSeconds >= 0 ? gracePeriodSeconds : 1;
  if (sooner === undefined || sooner >= known) return { isPending: true, object: pod };
  const earlier = secondText(Date.parse(deletionTimestamp) - (known - sooner) * 1000);
  return { isPending: false, object: withMetadata(pod, { deletionTimestamp: earlier, deletionGracePeriodSeconds: sooner }) };
}

/** Returns the grace period in seconds; 0 if no kubelet runs the pod or its containers have ended. */
function podGrace(pod: ModelObject, requestedSeconds: number | undefined): number {
  const { nodeName, terminationGracePeriodSeconds } = objectOf(pod['spec']);
  const { phase } = objectOf(pod['status']);
  if (nodeName === undefined || nodeName === '' || phase === 'Succeeded' || phase === 'Failed') return 0;
  const seconds = requestedSeconds ?? (typeof terminationGracePeriodSeconds === 'number' ? terminationGracePeriodSeconds : 30);
  return seconds < 0 ? 1 : seconds;
}

function markAsGoing(core: Core, object: ModelObject): ModelObject {
  const { deletionTimestamp, deletionGracePeriodSeconds, generation = 0 } = object.metadata;
  if (deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0) return object;
  const isFirst = deletionGracePeriodSeconds === undefined && generation > 0;
  return withMetadata(object, {
    deletionTimestamp: deletionTimestamp ?? secondText(core.wallMs()),
    deletionGracePeriodSeconds: 0,
    ...(isFirst && { generation: generation + 1 }),
  });
}

/** Adds the finalizer `orphan` if the policy is `Orphan`, and removes it if the policy is `Background`. */
function withFinalizers(object: ModelObject, { propagationPolicy }: DeleteOptions): ModelObject {
  const known = object.metadata.finalizers ?? [];
  if (propagationPolicy === undefined) return object;
  const others = known.filter((one) => one !== 'orphan');
  const finalizers = propagationPolicy === 'Orphan' ? [...others, 'orphan'] : others;
  if (finalizers.length === known.length && finalizers.every((one) => known.includes(one))) return object;
  const { finalizers: _, ...metadata } = object.metadata;
  return { ...object, metadata: { ...metadata, ...(finalizers.length > 0 && { finalizers }) } };
}

function withMetadata(object: ModelObject, change: Json): ModelObject {
  return { ...object, metadata: { ...object.metadata, ...change } };
}
