// Implements subresources of the API server: eviction and binding of pods, and scale.
import { secondText } from '../../policies/instant.ts';
import { readyCondition } from '../objects.ts';
import { type DeleteOptions, refuseOther, remove } from './deletion.ts';
import { isObject, mergePatch, objectOf } from './json.ts';
import { resourceOf, type ScalePaths, type ServedKind } from './kinds.ts';
import { badRequest, budgetExceeded, type Cause, conflict, internal, invalid, modified, notFound, Refusal } from './refusal.ts';
import type { Json, ModelObject } from './request.ts';
import { matchesSelector } from './selector.ts';
import { type Core, keep, type Target, update, type WriteOptions } from './write.ts';

const maxDisruptedPods = 2000;

interface Evicting extends WriteOptions {
  readonly budgets: ServedKind;
  readonly deleteOptions: DeleteOptions;
}

/** Evicts the pod. Throws Refusal, for example 429 if the budget does not allow the eviction, or 500 if the pod has several budgets. */
export function evict(core: Core, target: Target, options: Evicting): void {
  const pod = core.storage.collection('pods').get(target.namespace, target.name);
  if (pod === undefined) throw notFound(target.kind, target.name);
  const spent = needsNoBudget(pod) || spend(core, pod, options);
  leave(core, target, spent ? options : { ...options, deleteOptions: guarded(options.deleteOptions, pod) });
}

/** Returns whether the pod is pending, ended or terminating. Its eviction then disrupts nothing. */
function needsNoBudget(pod: ModelObject): boolean {
  const { phase } = objectOf(pod['status']);
  return phase === 'Pending' || phase === 'Succeeded' || phase === 'Failed' || pod.metadata.deletionTimestamp !== undefined;
}

/** Takes one disruption from the pod's budget. Returns false if an unready pod may be deleted without a budget, but only if unchanged. */
function spend(core: Core, pod: ModelObject, options: Evicting): boolean {
  const { namespace = '', labels } = pod.metadata;
  const budgets = core.storage
    .collection('poddisruptionbudgets.policy')
    .list()
    .filter(({ metadata, spec }) => metadata.namespace === namespace && matchesSelector(objectOf(spec)['selector'], labels));
  const [budget] = budgets;
  if (budget === undefined) return true;
  if (budgets.length > 1) {
    throw internal('This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.');
  }
  const status = objectOf(budget['status']);
  if (!readyCondition(pod).isTrue) {
    if (objectOf(budget['spec'])['unhealthyPodEvictionPolicy'] === 'AlwaysAllow') return false;
    const [current, desired] = [count(status['currentHealthy']), count(status['desiredHealthy'])];
    if (current >= desired && desired > 0) return false;
  }
  decrement(core, pod, budget, options);
  return true;
}

function decrement(core: Core, pod: ModelObject, budget: ModelObject, options: Evicting): void {
  const status = objectOf(budget['status']);
  const { name, generation = 0 } = budget.metadata;
  if (count(status['observedGeneration']) < generation) {
    throw budgetExceeded(`The disruption budget ${name} is still being processed by the server.`, 10);
  }
  const allowed = count(status['disruptionsAllowed']);
  const disrupted = objectOf(status['disruptedPods']);
  if (allowed < 0) throw refusedBudget(options.budgets, name, 'pdb disruptions allowed is negative');
  if (Object.keys(disrupted).length > maxDisruptedPods) {
    throw refusedBudget(options.budgets, name, 'DisruptedPods map too big - too many evictions not confirmed by PDB controller');
  }
  if (allowed === 0) throw budgetExceeded(whyNot(name, status));
  if (options.isDryRun) return;
  const now = secondText(core.wallMs());
  const spent = {
    ...status,
    disruptionsAllowed: allowed - 1,
    disruptedPods: { ...disrupted, [pod.metadata.name]: now },
    ...(allowed === 1 && { conditions: conditionsOf(status, now) }),
  };
  keep(core, options.budgets, { before: budget, after: { ...budget, status: spent } }, options);
}

function whyNot(name: string, status: Json): string {
  const failed = listOf(status['conditions']).find(({ type, reason }) => type === 'DisruptionAllowed' && reason === 'SyncFailed');
  if (failed !== undefined) {
    return `The disruption budget ${name} does not allow evicting pods currently because it failed sync: ${failed['message']}`;
  }
  const [current, desired] = [count(status['currentHealthy']), count(status['desiredHealthy'])];
  if (current <= desired) return `The disruption budget ${name} needs ${desired} healthy pods and has ${current} currently`;
  return `The disruption budget ${name} does not allow evicting pods currently`;
}

function conditionsOf(status: Json, now: string): readonly Json[] {
  return withCondition(status, {
    type: 'DisruptionAllowed',
    status: 'False',
    observedGeneration: status['observedGeneration'],
    lastTransitionTime: now,
    reason: 'InsufficientPods',
    message: '',
  });
}

/** Returns the conditions after `condition` is set. A condition with an unchanged status keeps its `lastTransitionTime`. */
function withCondition(status: Json, condition: Json): readonly Json[] {
  const known = listOf(status['conditions']);
  const before = known.find(({ type }) => type === condition['type']);
  if (before === undefined) return [...known, condition];
  const isUnchanged = before['status'] === condition['status'];
  const next = isUnchanged ? { ...condition, lastTransitionTime: before['lastTransitionTime'] } : condition;
  return known.map((one) => (one === before ? next : one));
}

function refusedBudget(kind: ServedKind, name: string, why: string): Refusal {
  const details = { name, group: kind.group, kind: kind.plural };
  return new Refusal(403, 'Forbidden', `${kind.plural}.${kind.group} "${name}" is forbidden: ${why}`, { details });
}

function guarded(options: DeleteOptions, pod: ModelObject): DeleteOptions {
  return { ...options, resourceVersion: options.resourceVersion ?? pod.metadata.resourceVersion };
}

/** Adds the condition DisruptionTarget to the pod, and deletes the pod. */
function leave(core: Core, target: Target, { deleteOptions, budgets: _, ...options }: Evicting): void {
  const pod = core.storage.collection('pods').get(target.namespace, target.name);
  if (pod === undefined) throw notFound(target.kind, target.name);
  refuseOther(target.kind, pod, deleteOptions);
  const { resourceVersion: _version, ...rest } = deleteOptions;
  if (!options.isDryRun)
    keep(core, target.kind, { before: pod, after: { ...pod, status: withTarget(pod, secondText(core.wallMs())) } }, options);
  remove(core, target, { ...rest, isDryRun: options.isDryRun }, options);
}

function withTarget(pod: ModelObject, now: string): Json {
  const status = objectOf(pod['status']);
  const conditions = withCondition(status, {
    type: 'DisruptionTarget',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: now,
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  });
  return { ...status, conditions };
}

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

function count(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

/** Assigns the pod to the node. Returns undefined if the pod does not exist, terminates or already has a node. */
export function bind(core: Core, { kind, namespace, name }: Target, nodeName: string, options: WriteOptions): ModelObject | undefined {
  const pod = core.storage.collection('pods').get(namespace, name);
  const spec = objectOf(pod?.['spec']);
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined || (spec['nodeName'] ?? '') !== '') return undefined;
  const status = objectOf(pod['status']);
  const known = listOf(status['conditions']);
  const scheduled = { type: 'PodScheduled', status: 'True', lastProbeTime: null, lastTransitionTime: secondText(core.wallMs()) };
  const conditions = [...known.filter(({ type }) => type !== 'PodScheduled'), scheduled];
  return keep(core, kind, { before: pod, after: { ...pod, spec: { ...spec, nodeName }, status: { ...status, conditions } } }, options);
}

/** Returns the Scale of the object. Throws Refusal. */
export function readScale(core: Core, target: Target): Json {
  return scaleOf(target.kind, stored(core, target), false);
}

interface ScaleOptions extends WriteOptions {
  /** True for a PATCH, false for a PUT. */
  readonly isPatch: boolean;
}

/** Sets the replicas as in the Scale that `make` returns. Throws Refusal. */
export function writeScale(core: Core, target: Target, make: (scale: Json) => unknown, options: ScaleOptions): Json {
  const { kind, name } = target;
  const before = stored(core, target);
  // A write treats an object without the field `replicas` as an object with 0 replicas.
  const scale = make(scaleOf(kind, before, true));
  if (!isObject(scale)) throw badRequest('the patch does not make an object');
  const metadata = objectOf(scale['metadata']);
  const given = metadata['name'] ?? '';
  if (given !== '' && given !== name) throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
  const { uid, resourceVersion } = metadata;
  const replicas = objectOf(scale['spec'])['replicas'] ?? 0;
  if (!Number.isInteger(replicas)) throw badRequest(`replicas are no whole number: ${JSON.stringify(replicas)}`);
  const isOther = typeof uid === 'string' && uid !== '' && uid !== before.metadata.uid;
  // A PUT checks the UID before the validation of the Scale. A PATCH checks it afterwards, but not for custom kinds.
  if (isOther && !options.isPatch) throw otherUid(kind, before, uid, options);
  if (!kind.isCustom) refuseNegative(kind, name, Number(replicas));
  if (isOther && !kind.isCustom) throw otherUid(kind, before, uid, options);
  const version = typeof resourceVersion === 'string' ? resourceVersion : '';
  if (version !== '' && version !== before.metadata.resourceVersion) throw modified(kind, name);
  refuseNegative(kind, name, Number(replicas));
  const after = withReplicas(kind, before, Number(replicas));
  return scaleOf(kind, update(core, target, { before, wanted: after }, { ...options, subresource: '' }), true);
}

function stored(core: Core, { kind, namespace, name }: Target): ModelObject {
  const object = core.storage.collection(resourceOf(kind)).get(namespace, name);
  if (object === undefined) throw notFound(kind, name);
  return object;
}

function otherUid(kind: ServedKind, { metadata }: ModelObject, uid: string, { isPatch }: ScaleOptions): Refusal {
  const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`;
  return conflict(isPatch ? { ...kind, plural: `${kind.plural}/scale` } : kind, metadata.name, why);
}

function refuseNegative(kind: ServedKind, name: string, replicas: number): void {
  if (replicas < 0) throw negative(kind, name, replicas, pathsOf(kind).specReplicas);
}

function withReplicas(kind: ServedKind, before: ModelObject, replicas: number): Json {
  const { specReplicas } = pathsOf(kind);
  const keys = keysOf(specReplicas);
  const patch = keys.reduceRight<unknown>((value, key) => ({ [key]: value }), replicas);
  return mergePatch(before, patch) as Json;
}

function negative(kind: ServedKind, name: string, replicas: number, path: string): Refusal {
  const cause = (field: string, why: string): Cause => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${replicas}: ${why}`,
    field,
  });
  if (!kind.isCustom) {
    return invalid({ group: 'autoscaling', kind: 'Scale' }, name, [cause('spec.replicas', 'must be greater than or equal to 0')]);
  }
  const field = path.slice(1);
  const schema = cause(field, `${field} in body should be greater than or equal to 0`);
  return invalid(kind, name, [schema, cause(path, 'should be a non-negative integer')]);
}

function scaleOf(kind: ServedKind, object: ModelObject, mayLackReplicas: boolean): Json {
  const { specReplicas, statusReplicas, labelSelector } = pathsOf(kind);
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const replicas = valueAt(object, specReplicas);
  if (replicas === undefined && !mayLackReplicas && kind.isCustom) {
    const message = `the spec replicas field ${JSON.stringify(specReplicas)} does not exist`;
    throw new Refusal(500, 'InternalError', `Internal error occurred: ${message}`, { details: { causes: [{ message }] } });
  }
  const selector = kind.isCustom ? labelSelector && valueAt(object, labelSelector) : selectorText(valueAt(object, '.spec.selector'));
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, ...(namespace !== undefined && { namespace }), uid, resourceVersion, creationTimestamp },
    spec: replicas === undefined || replicas === 0 ? {} : { replicas },
    status: { replicas: valueAt(object, statusReplicas) ?? 0, ...(typeof selector === 'string' && selector !== '' && { selector }) },
  };
}

function pathsOf({ scale, kind }: ServedKind): ScalePaths {
  if (scale === undefined) throw internal(`a ${kind} has no scale`);
  return scale;
}

function keysOf(path: string): readonly string[] {
  return path.slice(1).split('.');
}

function valueAt(object: unknown, path: string): unknown {
  return keysOf(path).reduce<unknown>((value, key) => objectOf(value)[key], object);
}

function selectorText(selector: unknown): string {
  const { matchLabels, matchExpressions } = objectOf(selector);
  const equal = Object.entries(objectOf(matchLabels)).map(([key, value]) => [key, `${key}=${value}`] as const);
  const others = (Array.isArray(matchExpressions) ? matchExpressions : []).map(objectOf).map(({ key, operator, values }) => {
    const list = Array.isArray(values) ? `(${[...values].sort().join(',')})` : '';
    const texts: Readonly<Record<string, string>> = {
      In: `${key} in ${list}`,
      NotIn: `${key} notin ${list}`,
      Exists: `${key}`,
      DoesNotExist: `!${key}`,
    };
    return [String(key), texts[String(operator)] ?? ''] as const;
  });
  return [...equal, ...others]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, text]) => text)
    .join(',');
}
