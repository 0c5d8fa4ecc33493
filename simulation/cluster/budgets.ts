// Models the disruption controller: it updates the status of each PodDisruptionBudget some time after the pods changed.
import { secondText } from '../../policies/instant.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import type { LabelSelector } from '../../policies/schema/scalars.ts';
import { between, streamOf } from '../random.ts';
import type { Actor, Commit, Json, ModelObject } from '../server/request.ts';
import { budgetResource, podFacts, replicasOf, statefulSetResource } from './workload.ts';
import type { ClusterApi, World } from './world.ts';

export type DisruptionController = ReturnType<typeof startDisruptionController>;

interface BudgetSpec {
  readonly maxUnavailable?: number | string;
  readonly minAvailable?: number | string;
  readonly selector?: LabelSelector;
}

interface BudgetStatus extends Json {
  readonly disruptedPods?: Readonly<Record<string, string>>;
  readonly disruptionsAllowed?: number;
  readonly conditions?: readonly Json[];
}

const actor: Actor = { user: 'system:serviceaccount:kube-system:disruption-controller' };
/** An evicted pod that does not terminate counts as healthy again after this time (DeletionTimeout of the disruption controller). */
const disruptedForMs = 120_000;

/** Starts the controller and updates every existing budget at once. */
export function startDisruptionController({ server, scheduler, wallMs, seed }: World) {
  const random = streamOf(seed, 'disruption controller');
  let lagMs = 0;
  let isDue = false;

  const soon = (delayMs: number): void => {
    if (isDue) return;
    isDue = true;
    scheduler.after(delayMs, () => {
      isDue = false;
      updateAll();
    });
  };
  const updateAll = (): void => {
    for (const budget of server.list(budgetResource)) update(budget);
  };
  const update = (budget: ModelObject): void => {
    const { namespace = '', name } = budget.metadata;
    const { status, recheckMs } = statusOf(server, budget, wallMs());
    if (recheckMs !== undefined) scheduler.after(recheckMs - wallMs(), () => soon(0));
    const before = (budget['status'] ?? {}) as BudgetStatus;
    if (!isSame(before, status))
      server.change(actor, { resource: budgetResource, namespace, name }, { status: withRemovals(before, status) }, 'status');
  };
  updateAll();
  return {
    hear: ({ resource }: Commit): void => {
      // A change of replicas counts only with the next change of a pod.
      if (resource !== 'pods' && resource !== budgetResource) return;
      if (server.list(budgetResource).length > 0) soon(between(random, 10, 300) + lagMs);
    },
    lag: (delayMs: number): void => {
      lagMs = delayMs;
    },
  };
}

/** Returns the current status, and the time at which it changes without an event. */
function statusOf(server: ClusterApi, budget: ModelObject, wallMs: number): { readonly status: BudgetStatus; readonly recheckMs?: number } {
  const { namespace = '', generation = 1 } = budget.metadata;
  const spec = (budget['spec'] ?? {}) as BudgetSpec;
  const selects = (labels: Readonly<Record<string, string>>): boolean =>
    spec.selector !== undefined && matchesSelector(spec.selector, labels);
  const pods = server
    .list('pods', namespace)
    .map(podFacts)
    .filter((pod) => selects(pod.labels));
  const disruptedPods = stillDisrupted(budget, pods, wallMs);
  const owners = new Set(pods.map((pod) => pod.owner?.uid));
  const expected = server
    .list(statefulSetResource, namespace)
    .filter((set) => owners.has(set.metadata.uid))
    .reduce((sum, set) => sum + replicasOf(set), 0);
  const isCounted = spec.maxUnavailable === undefined && typeof spec.minAvailable === 'number';
  const expectedPods = isCounted ? pods.length : expected;
  const desiredHealthy =
    spec.maxUnavailable === undefined
      ? amountOf(spec.minAvailable ?? 0, expectedPods)
      : Math.max(0, expectedPods - amountOf(spec.maxUnavailable, expectedPods));
  const currentHealthy = pods.filter((pod) => pod.isReady && !pod.isTerminating && disruptedPods[pod.name] === undefined).length;
  const disruptionsAllowed = expectedPods <= 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  const instants = Object.values(disruptedPods).map((at) => Date.parse(at) + disruptedForMs);
  const condition = conditionOf(budget, { isAllowed: disruptionsAllowed > 0, wallMs, generation });
  return {
    status: {
      observedGeneration: generation,
      currentHealthy,
      desiredHealthy,
      expectedPods,
      disruptionsAllowed,
      disruptedPods,
      conditions: [condition],
    },
    ...(instants.length === 0 ? {} : { recheckMs: Math.min(...instants) + 1 }),
  };
}

/** Returns the pods with an allowed eviction that do not terminate yet, with the time of the eviction. */
function stillDisrupted(
  budget: ModelObject,
  pods: readonly { readonly name: string; readonly isTerminating: boolean }[],
  wallMs: number,
): Readonly<Record<string, string>> {
  const { disruptedPods = {} } = (budget['status'] ?? {}) as BudgetStatus;
  const alive = new Set(pods.filter((pod) => !pod.isTerminating).map((pod) => pod.name));
  return Object.fromEntries(
    Object.entries(disruptedPods).filter(([name, at]) => alive.has(name) && Date.parse(at) + disruptedForMs > wallMs),
  );
}

function conditionOf(
  budget: ModelObject,
  { isAllowed, wallMs, generation }: { readonly isAllowed: boolean; readonly wallMs: number; readonly generation: number },
): Json {
  const status = isAllowed ? 'True' : 'False';
  const before = ((budget['status'] ?? {}) as BudgetStatus).conditions?.[0];
  const since = before?.['status'] === status ? before['lastTransitionTime'] : secondText(wallMs);
  const reason = isAllowed ? 'SufficientPods' : 'InsufficientPods';
  return { type: 'DisruptionAllowed', status, reason, message: '', lastTransitionTime: since, observedGeneration: generation };
}

/** Returns the number of pods. Percentages are rounded up. */
function amountOf(amount: number | string, expected: number): number {
  return typeof amount === 'number' ? amount : Math.ceil((Number.parseFloat(amount) * expected) / 100);
}

/** Compares two statuses. The API server leaves out an empty map. */
function isSame(before: BudgetStatus, after: BudgetStatus): boolean {
  const filled: BudgetStatus = { disruptedPods: {}, ...before };
  return Object.entries(after).every(([key, value]) => JSON.stringify(filled[key]) === JSON.stringify(value));
}

/** Adds removed entries as null, because a merge patch must name them. */
function withRemovals(before: BudgetStatus, after: BudgetStatus): Json {
  const removed = Object.keys(before.disruptedPods ?? {}).filter((name) => after.disruptedPods?.[name] === undefined);
  return { ...after, disruptedPods: { ...after.disruptedPods, ...Object.fromEntries(removed.map((name) => [name, null])) } };
}
