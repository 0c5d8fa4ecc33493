// Translates a review for /admission/enforce into requests to the engine, and finds reviews to which no policy applies.
import { asJsonObject, isSameJson, type JsonObject } from '../../cluster/request/json.ts';
import type { AdmissionRequest } from '../../engine/decision.ts';
import { protectiveLabels } from '../../engine/judge/protection.ts';
import { restartOf } from '../../engine/judge/restart.ts';
import { annotationKeys, labelKeys, preparationKeys } from '../../policies/adopt/keys.ts';
import { isDryRun, type Review } from '../review/review.ts';

/** The object of a review, according to the review alone. */
export type ReviewTarget =
  /** No policy applies, so the request passes without reads. */
  | { readonly kind: 'pass'; readonly because: string }
  /** A request that API servers never send. */
  | { readonly kind: 'malformed'; readonly problem: string }
  | { readonly kind: 'statefulSet'; readonly verb: 'update' | 'scale' | 'delete'; readonly namespace: string; readonly name: string }
  | {
      readonly kind: 'pod';
      readonly verb: 'deletePod' | 'evictPod';
      readonly namespace: string;
      readonly name: string;
      /** Set for an update. The update is judged as a deletion if `isReleased` returns true. */
      readonly release?: PodRelease;
    };

interface PodRelease {
  readonly labels: readonly string[];
  /** True if the controller reference is removed or changed. */
  readonly isOrphaned: boolean;
  /** True if the update ends containers: it changes an image or the deadline, or sets a terminal phase. */
  readonly isEnded: boolean;
}

/**
 * Returns the target of the review. Writes pass if they leave replicas, template, strategy, ordinals, labels and protective annotations
 * unchanged. Requests for terminating pods, and deletions of pods by nodes and kube-system controllers, pass too.
 */
export function readTarget(review: Review): ReviewTarget {
  const { group, resource } = review.resource;
  if (group === 'apps' && resource === 'statefulsets') return statefulSetTarget(review);
  if (group === '' && resource === 'pods') return podTarget(review);
  return pass('another resource');
}

function pass(because: string): ReviewTarget {
  return { kind: 'pass', because };
}

function statefulSetTarget(review: Review): ReviewTarget {
  const { namespace, subresource, operation, oldObject } = review;
  const name = nameOf(review);
  if (operation === 'CREATE' || operation === 'CONNECT') return pass('it removes nothing');
  if (name === '' || namespace === '') return { kind: 'malformed', problem: 'it names no StatefulSet' };
  if (operation === 'DELETE' && isTerminating(oldObject)) return pass('the StatefulSet is already terminating');
  if (operation === 'DELETE' && subresource === '') return { kind: 'statefulSet', verb: 'delete', namespace, name };
  if (operation !== 'UPDATE' || !['', 'scale', 'status'].includes(subresource)) {
    return { kind: 'malformed', problem: `${operation} of statefulsets/${subresource} is not known` };
  }
  return statefulSetUpdateTarget(review, name);
}

function statefulSetUpdateTarget({ namespace, subresource, object, oldObject }: Review, name: string): ReviewTarget {
  if (object === undefined) return { kind: 'malformed', problem: 'it has no object' };
  const verb = subresource === 'scale' ? 'scale' : 'update';
  const replicas = replicasOf(object, verb);
  if (replicas === undefined) return { kind: 'malformed', problem: 'spec.replicas is not an integer' };
  const written = subresource === 'status' ? statusWrite(object, asJsonObject(oldObject)) : object;
  if (oldObject !== undefined && isHarmless(verb, written, oldObject)) return pass('no change that policies cover');
  return { kind: 'statefulSet', verb, namespace, name };
}

function podTarget(review: Review): ReviewTarget {
  const { namespace, subresource, operation, oldObject, object, user } = review;
  if (operation === 'UPDATE' && (subresource === '' || subresource === 'status')) return podUpdateTarget(review);
  const isDelete = operation === 'DELETE' && subresource === '';
  if (!isDelete && !isEviction(review)) return pass('it deletes no pod');
  // The kubelet's final removal is a DELETE too. If it is denied, the pod stays Terminating.
  if (isTerminating(oldObject)) return pass('the pod is already terminating');
  if (isDelete && isSystem(user)) return pass('a node or controller deletes the pod');
  const name = nameOf(review) || textAt(object, 'name');
  const isNamed = name !== '' && namespace !== '';
  if (isDelete) return isNamed ? { kind: 'pod', verb: 'deletePod', namespace, name } : pass('it names no pod');
  return isNamed ? { kind: 'pod', verb: 'evictPod', namespace, name } : { kind: 'malformed', problem: 'it names no pod' };
}

function isEviction({ operation, subresource }: Review): boolean {
  return operation === 'CREATE' && subresource === 'eviction';
}

function isTerminating(object: JsonObject | undefined): boolean {
  return asJsonObject(asJsonObject(object)['metadata'])['deletionTimestamp'] !== undefined;
}

function podUpdateTarget(review: Review): ReviewTarget {
  const { namespace, object, oldObject, user } = review;
  const name = nameOf(review);
  if (isTerminating(oldObject)) return pass('the pod is already terminating');
  if (isSystem(user)) return pass('a node or controller adopts or releases the pod');
  if (object === undefined || oldObject === undefined || name === '' || namespace === '') return pass('it contains no pod');
  const [now, before] = [labelsOf(object), labelsOf(oldObject)];
  const labels = Object.keys(before).filter((label) => now[label] !== before[label]);
  const controller = controllerOf(oldObject);
  const isOrphaned = controller !== undefined && controllerOf(object) !== controller;
  const isEnded = endsPod(object, oldObject);
  if (labels.length === 0 && !isOrphaned && !isEnded) return pass('it removes nothing from the pod');
  return { kind: 'pod', verb: 'deletePod', namespace, name, release: { labels, isOrphaned, isEnded } };
}

/** Returns whether the update ends the pod or a container: another deadline, another image, or a terminal phase. */
function endsPod(object: JsonObject, old: JsonObject): boolean {
  const [now, before] = [asJsonObject(object['spec']), asJsonObject(old['spec'])];
  const phaseOf = (one: JsonObject): unknown => asJsonObject(one['status'])['phase'];
  const hasEnded = (phase: unknown): boolean => phase === 'Failed' || phase === 'Succeeded';
  return (
    now['activeDeadlineSeconds'] !== before['activeDeadlineSeconds'] ||
    !isSameJson(imagesOf(now), imagesOf(before)) ||
    (hasEnded(phaseOf(object)) && !hasEnded(phaseOf(old)))
  );
}

function imagesOf(spec: JsonObject): readonly unknown[] {
  const { containers } = spec;
  return Array.isArray(containers) ? containers.map((one) => asJsonObject(one)['image']) : [];
}

function controllerOf(object: JsonObject): string | undefined {
  const references = asJsonObject(object['metadata'])['ownerReferences'];
  const found = Array.isArray(references) ? references.map(asJsonObject).find(({ controller }) => controller === true) : undefined;
  return found === undefined ? undefined : String(found['uid']);
}

/** Labels by which controllers and budgets find the pods of a StatefulSet, besides the labels of its template. */
const labelsOfPods: readonly string[] = ['controller-revision-hash', 'statefulset.kubernetes.io/pod-name', 'apps.kubernetes.io/pod-index'];

/** Returns whether the update ends the pod, removes its controller, or changes a label by which controllers and budgets find the pod. */
export function isReleased({ labels, isOrphaned, isEnded }: PodRelease, podLabels: Readonly<Record<string, string>>): boolean {
  return isOrphaned || isEnded || labels.some((label) => podLabels[label] !== undefined || labelsOfPods.includes(label));
}

/** Returns whether the user is a kubelet, a service account of kube-system, the controller manager or the scheduler. */
function isSystem({ name, groups }: Review['user']): boolean {
  return (
    groups.includes('system:nodes') ||
    groups.includes('system:serviceaccounts:kube-system') ||
    name.startsWith('system:serviceaccount:kube-system:') ||
    name === 'system:kube-controller-manager' ||
    name === 'system:kube-scheduler'
  );
}

/** Returns whether the write only increases the replica count. That is safe, and an incident may need it. */
export function onlyGrows({ subresource, object, oldObject }: Review): boolean {
  if (object === undefined || oldObject === undefined || subresource === 'status') return false;
  const verb = subresource === 'scale' ? 'scale' : 'update';
  const [to, from] = [replicasOf(object, verb), replicasOf(oldObject, verb)];
  if (to === undefined || from === undefined || to <= from) return false;
  return verb === 'scale' || isHarmless(verb, { ...object, spec: { ...asJsonObject(object['spec']), replicas: from } }, oldObject);
}

/** Returns the object with the stored spec: a status write cannot change the spec, but may change labels. */
function statusWrite(object: JsonObject, stored: JsonObject): JsonObject {
  return { ...object, spec: stored['spec'] };
}

/** Returns the name of the object. If a collection is deleted, only the object in the review has a name. */
function nameOf({ name, oldObject, object }: Review): string {
  return name || textAt(oldObject, 'name') || textAt(object, 'name');
}

function textAt(object: JsonObject | undefined, field: string): string {
  const value = asJsonObject(asJsonObject(object)['metadata'])[field];
  return typeof value === 'string' ? value : '';
}

/** Returns the replica count; undefined if malformed. An absent count is 1 in a StatefulSet and 0 in a Scale. */
function replicasOf(object: JsonObject, verb: 'update' | 'scale'): number | undefined {
  const value = asJsonObject(object['spec'])['replicas'] ?? (verb === 'scale' ? 0 : 1);
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function isHarmless(verb: 'update' | 'scale', object: JsonObject, old: JsonObject): boolean {
  if (replicasOf(object, verb) !== replicasOf(old, verb)) return false;
  if (verb === 'scale') return true;
  const [now, before] = [asJsonObject(object['spec']), asJsonObject(old['spec'])];
  return (
    isSameJson(now['template'], before['template']) &&
    isSameJson(strategyOf(now), strategyOf(before)) &&
    firstOrdinalOf(now) === firstOrdinalOf(before) &&
    relabelsOf(object, old).length === 0
  );
}

function strategyOf(spec: JsonObject): { readonly type: 'OnDelete' | 'RollingUpdate'; readonly partition: number } {
  const strategy = asJsonObject(spec['updateStrategy']);
  const { partition } = asJsonObject(strategy['rollingUpdate']);
  return {
    type: strategy['type'] === 'OnDelete' ? 'OnDelete' : 'RollingUpdate',
    partition: typeof partition === 'number' ? partition : 0,
  };
}

function firstOrdinalOf(spec: JsonObject): number {
  const { start } = asJsonObject(spec['ordinals']);
  return typeof start === 'number' ? start : 0;
}

/** Returns removed and changed labels, added protective labels, and changed protective annotations. */
function relabelsOf(object: JsonObject, old: JsonObject): readonly string[] {
  const [now, before] = [labelsOf(object), labelsOf(old)];
  const changed = Object.keys(before).filter((label) => now[label] !== before[label]);
  const added = protectiveLabels.filter((label) => before[label] === undefined && now[label] !== undefined);
  const [annotations, stored] = [annotationsOf(object), annotationsOf(old)];
  const preparation = preparationKeys.filter((key) => stored[key] !== undefined && annotations[key] !== stored[key]);
  return [...changed, ...added, ...revertedDownscaleTime(object, old), ...preparation].sort();
}

/** Returns the annotation of the last downscale if the write removes it or sets an earlier time. */
function revertedDownscaleTime(object: JsonObject, old: JsonObject): readonly string[] {
  const { lastDownscale } = annotationKeys;
  const instantIn = (one: JsonObject): number => {
    const text = annotationsOf(one)[lastDownscale];
    const atMs = typeof text === 'string' ? Date.parse(text) : Number.NaN;
    return Number.isNaN(atMs) ? Number.NEGATIVE_INFINITY : atMs;
  };
  return instantIn(object) < instantIn(old) ? [lastDownscale] : [];
}

function labelsOf(object: JsonObject): JsonObject {
  return asJsonObject(asJsonObject(object['metadata'])['labels']);
}

function annotationsOf(object: JsonObject): JsonObject {
  return asJsonObject(asJsonObject(object['metadata'])['annotations']);
}

/** Returns the requests to the engine for a write, which must all be allowed. `live` is from the API server, as a review may be forged. */
export function requestsFor(
  review: Review,
  verb: 'update' | 'scale' | 'delete',
  live: JsonObject,
  podCount: number,
): readonly AdmissionRequest[] {
  const target = {
    namespace: review.namespace,
    statefulSet: nameOf(review),
    ...requesterOf(review),
  };
  if (verb === 'delete') return [{ kind: 'deleteStatefulSet', ...target, ...(podCount === 0 ? {} : { pods: podCount }) }];
  const given = asJsonObject(review.object);
  const object = review.subresource === 'status' ? statusWrite(given, live) : given;
  const from = replicasOf(live, 'update') ?? 1;
  const to = replicasOf(object, verb) ?? 0;
  if (verb === 'scale') return from === to ? [] : [{ kind: 'scale', ...target, from, to, via: 'scale' }];
  const [now, before] = [asJsonObject(object['spec']), asJsonObject(live['spec'])];
  const isChanged = !isSameJson(now['template'], before['template']);
  const restart = isChanged ? restartOf(now['template'], before['template']) : undefined;
  const { type: strategy, partition } = strategyOf(now);
  const relabels = relabelsOf(object, live);
  const betweenZones = labelsOf(object)[labelKeys.minTimeBetweenZones];
  const isTimeSet = typeof betweenZones === 'string' && relabels.includes(labelKeys.minTimeBetweenZones);
  const update: AdmissionRequest = {
    kind: 'update',
    ...target,
    from,
    to,
    isTemplateChanged: isChanged,
    strategy,
    partition,
    firstOrdinal: firstOrdinalOf(now),
    relabels,
    via: asJsonObject(review.options)['kind'] === 'PatchOptions' ? 'patch' : 'update',
    ...(isTimeSet ? { betweenZones } : {}),
  };
  return restart === undefined ? [update] : [update, { kind: 'restart', ...target, ...restart }];
}

export function podRequest(review: Review, verb: 'deletePod' | 'evictPod', name: string): AdmissionRequest {
  return { kind: verb, namespace: review.namespace, pod: name, ...requesterOf(review) };
}

function requesterOf(review: Review): Pick<AdmissionRequest, 'user' | 'groups' | 'dryRun'> {
  const { name, groups } = review.user;
  return { ...(name === '' ? {} : { user: name, groups }), dryRun: isDryRun(review) };
}
