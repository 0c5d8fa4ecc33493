// Implements evictions: deletions that a PodDisruptionBudget must allow.
import { type DeleteOptions, refuseOther, remove } from './deletion.ts';
import { objectOf } from './json.ts';
import type { ServedKind } from './kinds.ts';
import { budgetExceeded, internal, notFound, Refusal } from './refusal.ts';
import type { Json, ModelObject } from './request.ts';
import { matchesSelector } from './selector.ts';
import { type Core, keep, type Target, timeOf, type WriteOptions } from './write.ts';

/** Largest number of disrupted pods in one budget. */
const mostDisruptedPods = 2000;

interface Evicting extends WriteOptions {
  readonly budgets: ServedKind;
  readonly deleteOptions: DeleteOptions;
}

/** Evicts the pod. Throws Refusal: 429 if its budget does not allow it, 500 if it has several. */
export function evict(core: Core, target: Target, options: Evicting): void {
  const pod = core.storage.collection('pods').get(target.namespace, target.name);
  if (pod === undefined) throw notFound(target.kind, target.name);
  const needsNoBudget = isOver(pod);
  const spent = needsNoBudget || spend(core, pod, options);
  leave(core, target, spent ? options : { ...options, deleteOptions: guarded(options.deleteOptions, pod) });
}

/** A pod that is not ready, or terminating, disrupts nothing. */
function isOver(pod: ModelObject): boolean {
  const { phase } = objectOf(pod['status']);
  return phase === 'Pending' || phase === 'Succeeded' || phase === 'Failed' || pod.metadata.deletionTimestamp !== undefined;
}

/** Returns false if the pod may be deleted without using the budget, in its observed state. */
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
  if (!isReady(pod)) {
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
  if (Object.keys(disrupted).length > mostDisruptedPods) {
    throw refusedBudget(options.budgets, name, 'DisruptedPods map too big - too many evictions not confirmed by PDB controller');
  }
  if (allowed === 0) throw budgetExceeded(whyNot(name, status));
  if (options.isDryRun) return;
  const now = timeOf(core.wallMs());
  const spent = {
    ...status,
    disruptionsAllowed: allowed - 1,
    disruptedPods: { ...disrupted, [pod.metadata.name]: now },
    ...(allowed === 1 && { conditions: conditionsOf(status, now) }),
  };
  keep(core, options.budgets, budget, { ...budget, status: spent }, options);
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
  const known = listOf(status['conditions']);
  const before = known.find(({ type }) => type === 'DisruptionAllowed');
  const condition = {
    type: 'DisruptionAllowed',
    status: 'False',
    observedGeneration: status['observedGeneration'],
    lastTransitionTime: before?.['status'] === 'False' ? before['lastTransitionTime'] : now,
    reason: 'InsufficientPods',
    message: '',
  };
  return before === undefined ? [...known, condition] : known.map((one) => (one === before ? condition : one));
}

function refusedBudget(kind: ServedKind, name: string, why: string): Refusal {
  const details = { name, group: kind.group, kind: kind.plural };
  return new Refusal(403, 'Forbidden', `${kind.plural}.${kind.group} "${name}" is forbidden: ${why}`, { details });
}

function guarded(options: DeleteOptions, pod: ModelObject): DeleteOptions {
  return { ...options, resourceVersion: options.resourceVersion ?? pod.metadata.resourceVersion };
}

/** Adds the disruption condition to the pod, and deletes it. */
function leave(core: Core, target: Target, { deleteOptions, budgets: _, ...options }: Evicting): void {
  const pod = core.storage.collection('pods').get(target.namespace, target.name);
  if (pod === undefined) throw notFound(target.kind, target.name);
  refuseOther(target.kind, pod, deleteOptions);
  const { resourceVersion: _version, ...rest } = deleteOptions;
  if (!options.isDryRun) keep(core, target.kind, pod, { ...pod, status: withCondition(pod, timeOf(core.wallMs())) }, options);
  remove(core, target, { ...rest, isDryRun: options.isDryRun }, options);
}

function withCondition(pod: ModelObject, now: string): Json {
  const status = objectOf(pod['status']);
  const known = listOf(status['conditions']);
  const before = known.find(({ type }) => type === 'DisruptionTarget');
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: before?.['status'] === 'True' ? before['lastTransitionTime'] : now,
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  const conditions = before === undefined ? [...known, condition] : known.map((one) => (one === before ? condition : one));
  return { ...status, conditions };
}

function isReady(pod: ModelObject): boolean {
  return listOf(objectOf(pod['status'])['conditions']).some(({ type, status }) => type === 'Ready' && status === 'True');
}

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

function count(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
