// Changes StatefulSets and pods of the model, and then runs the turns of the StatefulSet controller.

import { extended } from '../../policies/values/defined.ts';
import { controllerLabels, modelledPodLimit } from '../observe/manifests.ts';
import { isCrashing } from '../observe/view.ts';
import { earliest } from '../rule.ts';
import type { Ledger, PodView, ReplicaSourceView, Snapshot, StatefulSetView } from '../snapshot.ts';
import { mayPin, placedRevision, type UnplacedPod, unpinnedReason } from '../strategies/pinned/placement.ts';
import { controllerTurn, hasEnded, isUpdateComplete, replicaCounts } from './controller.ts';
import type { ModelPod, ModelPods, PodDurations, PodTimer, World } from './model.ts';

/** The mutable state of one step. Each step has its own draft, from `beginStep` to `finishStep`. */
export interface StepDraft extends Clock {
  readonly world: World;
  readonly changed: Map<string, SetState>;
  readonly serial: { value: number };
  ledgers: readonly Ledger[];
  replicaSources: readonly ReplicaSourceView[];
  reported: ReadonlyMap<string, number>;
}

export function setKey(namespace: string, statefulSet: string): string {
  return `${namespace}/${statefulSet}`;
}

export function beginStep(world: World, nowMs: number): StepDraft {
  const serial = { value: world.serial };
  const nextSerial = (): number => {
    serial.value += 1;
    return serial.value;
  };
  const { ledgers, replicaSources } = world.snapshot;
  return { world, nowMs, serial, nextSerial, changed: new Map(), ledgers, replicaSources, reported: world.reported };
}

/** Returns the current state of the StatefulSet in the step; undefined if it does not exist or its pods are unknown. */
export function stateOf({ changed, world }: StepDraft, key: string): SetState | undefined {
  const set = world.snapshot.statefulSets[world.places.get(key)?.set ?? -1];
  const pods = world.pods.get(key);
  const durations = world.durations.get(key);
  return changed.get(key) ?? (pods && durations && set && { set, ...pods, durations, placed: placedBy(world.snapshot, set) });
}

/** Returns the function `placed` for a StatefulSet, which reads the ledger of its group; undefined if no pod gets another revision. */
function placedBy(snapshot: Snapshot, { namespace, name }: StatefulSetView): SetState['placed'] {
  const { ledgers, groups } = snapshot;
  if (unpinnedReason(snapshot) !== undefined) return undefined;
  for (const ledger of ledgers) {
    if (ledger.namespace !== namespace || (ledger.pins === undefined && ledger.run?.rolledBack === undefined)) continue;
    const group = groups.find((one) => one.namespace === namespace && one.name === ledger.group);
    const zone = group?.zones.find(({ statefulSet }) => statefulSet === name)?.name;
    if (group === undefined || zone === undefined || !mayPin(group)) continue;
    return (pod) => placedRevision(ledger, zone, pod);
  }
  return undefined;
}

/** Changes a StatefulSet or its pods, then applies due changes of pods and runs one turn of the controller. */
export function changeSet(draft: StepDraft, key: string, change: (state: SetState) => SetState): void {
  const state = stateOf(draft, key);
  if (state === undefined) return;
  draft.changed.set(key, reconcile(settle(change(state), draft), draft));
}

/** Changes one pod by name, or removes the pod if `change` returns undefined. */
export function changePod(
  draft: StepDraft,
  target: { readonly namespace: string; readonly pod: string },
  change: (pod: ModelPod) => ModelPod | undefined,
): void {
  const dash = target.pod.lastIndexOf('-');
  changePods(draft, setKey(target.namespace, target.pod.slice(0, dash)), [[Number(target.pod.slice(dash + 1)), change]]);
}

/** Changes pods of one StatefulSet by ordinal, at one instant: the controller has its turn after the last change. */
export function changePods(
  draft: StepDraft,
  key: string,
  changes: readonly (readonly [ordinal: number, change: (pod: ModelPod) => ModelPod | undefined])[],
): void {
  const state = stateOf(draft, key);
  const changed = new Map<number, ModelPod | undefined>();
  for (const [ordinal, change] of changes) {
    const pod = state && podAt(state, ordinal);
    const next = pod && change(pod);
    if (next !== pod) changed.set(ordinal, next);
  }
  if (changed.size > 0) changeSet(draft, key, (current) => withPods(current, changed));
}

function podAt({ pods, timers }: ModelPods, ordinal: number): ModelPod | undefined {
  const view = pods[placeOf(pods, ordinal)];
  return view?.ordinal === ordinal ? { view, timer: timers.get(ordinal) } : undefined;
}

/** Returns the index of the first pod with this ordinal or a higher one. */
function placeOf(pods: readonly PodView[], ordinal: number): number {
  const index = pods.findIndex((pod) => pod.ordinal >= ordinal);
  return index === -1 ? pods.length : index;
}

/** Returns the state with these pods, by ordinal. An undefined pod is gone. Without a change, returns the given state. */
function withPods(state: SetState, changed: ReadonlyMap<number, ModelPod | undefined>): SetState {
  if (changed.size === 0) return state;
  const pods = [...state.pods];
  const timers = new Map(state.timers);
  for (const [ordinal, pod] of changed) {
    const index = placeOf(pods, ordinal);
    pods.splice(index, pods[index]?.ordinal === ordinal ? 1 : 0, ...(pod === undefined ? [] : [pod.view]));
    if (pod?.timer === undefined) timers.delete(ordinal);
    else timers.set(ordinal, pod.timer);
  }
  return { ...state, pods, timers };
}

export function finishStep(draft: StepDraft): World {
  const { world, ledgers, replicaSources, nowMs } = draft;
  const pods = new Map(world.pods);
  const pending = new Map(world.pending);
  const statefulSets = [...world.snapshot.statefulSets];
  const podViews = [...world.snapshot.pods];
  for (const [key, state] of draft.changed) {
    const place = world.places.get(key);
    const { set, nextMs } = summarize(state, nowMs);
    if (nextMs === undefined) pending.delete(key);
    else pending.set(key, nextMs);
    if (place === undefined) continue;
    statefulSets[place.set] = set;
    if (state.pods === world.pods.get(key)?.pods) continue;
    pods.set(key, { pods: state.pods, timers: state.timers });
    podViews[place.pods] = { namespace: set.namespace, statefulSet: set.name, pods: state.pods };
  }
  const lists = {
    statefulSets: sameOr(world.snapshot.statefulSets, statefulSets),
    pods: sameOr(world.snapshot.pods, podViews),
  };
  const snapshot: Snapshot = { ...world.snapshot, ...lists, nowMs, ledgers, replicaSources };
  return { ...world, snapshot, pods, pending, reported: draft.reported, serial: draft.serial.value };
}

/** Returns the old list if no item changed, so that callers can cache results by list. */
function sameOr<Item>(before: readonly Item[], after: readonly Item[]): readonly Item[] {
  return after.every((item, index) => item === before[index]) ? before : after;
}

interface Clock {
  readonly nowMs: number;
  readonly nextSerial: () => number;
}

function startPod(
  set: StatefulSetView,
  place: { readonly ordinal: number; readonly revision: string },
  durations: PodDurations,
  clock: Clock,
): ModelPod {
  const serial = clock.nextSerial();
  const { ordinal, revision } = place;
  const view: PodView = {
    name: `${set.name}-${ordinal}`,
    uid: `model-${serial}`,
    resourceVersion: `${serial}`,
    ordinal,
    revision,
    labels: controllerLabels(set, ordinal, revision),
    phase: 'Running',
    isReady: false,
    containersReady: false,
    readyChangedMs: clock.nowMs,
    isTerminating: false,
    waitingReasons: [],
    node: '',
    nodeReady: true,
  };
  return { view, timer: { change: 'ready', atMs: clock.nowMs + durations.startMs } };
}

/** Returns the pod as ready from now on, with the ready time that the pod observer of grafana/rollout-operator records. */
function becomeReady(pod: ModelPod, clock: Clock): ModelPod {
  const view = extended(pod.view, {
    resourceVersion: `${clock.nextSerial()}`,
    phase: 'Running' as const,
    isReady: true,
    containersReady: true,
    readyChangedMs: clock.nowMs,
    waitingReasons: [],
    readyTimeMs: clock.nowMs,
  });
  return { view, timer: undefined };
}

/** Returns the pod after a request to delete it: unready at once, and gone after its drain time. */
export function terminatePod(pod: ModelPod, durations: PodDurations, clock: Clock): ModelPod {
  if (pod.view.isTerminating) return pod;
  return {
    view: extended(unready(pod.view, clock), { isTerminating: true, terminatingSinceMs: clock.nowMs }),
    timer: { change: 'gone', atMs: clock.nowMs + durations.drainMs },
  };
}

/** Returns the pod as broken: unready, and never ready again. `reason` is the waiting reason of its container, if any. */
export function breakPod(pod: ModelPod, reason: string | undefined, clock: Clock): ModelPod {
  const view = { ...unready(pod.view, clock), waitingReasons: reason === undefined ? [] : [reason] };
  return { view, timer: pod.timer?.change === 'gone' ? pod.timer : undefined };
}

/**
 * Returns the next change of an observed pod by time alone, if any. A terminating pod has its full drain time left. An unready pod is
 * starting, unless it failed, one of its containers crashes, or it has been unready for longer than `longestStartMs`. In these three cases
 * it never becomes ready.
 */
export function timerOf(view: PodView, durations: PodDurations, nowMs: number): PodTimer | undefined {
  if (view.isTerminating) return { change: 'gone', atMs: nowMs + durations.drainMs };
  const { startMs, longestStartMs } = durations;
  const isBroken = isCrashing(view) || view.phase === 'Failed' || nowMs - view.readyChangedMs > longestStartMs;
  if (view.isReady || isBroken) return undefined;
  const usualMs = view.readyChangedMs + startMs;
  // The rest of a late start is a guess: a quarter of the start time.
  return { change: 'ready', atMs: usualMs > nowMs ? usualMs : nowMs + Math.max(1000, startMs / 4) };
}

function unready(view: PodView, clock: Clock): PodView {
  const { readyTimeMs: _readyTimeMs, ...rest } = view;
  const readyChangedMs = view.isReady ? clock.nowMs : view.readyChangedMs;
  return { ...rest, resourceVersion: `${clock.nextSerial()}`, isReady: false, containersReady: false, readyChangedMs };
}

/** One StatefulSet of the model with its pods. */
export interface SetState extends ModelPods {
  readonly set: StatefulSetView;
  readonly durations: PodDurations;
  /** Returns the revision that the webhook on pod creation gives to a pod that the controller creates at `revision`; absent: the same revision. */
  readonly placed?: ((pod: UnplacedPod) => string) | undefined;
}

/**
 * Runs one turn of the controller, and a further turn after the deletion of ended pods, which are gone at once. The pods of a StatefulSet
 * above `modelledPodLimit` do not change.
 */
function reconcile(state: SetState, clock: Clock): SetState {
  const { set, pods, timers, durations, placed } = state;
  if (set.replicas > modelledPodLimit) return state;
  const { creates, deletes } = controllerTurn({ set, pods, nowMs: clock.nowMs });
  const changed = new Map<number, ModelPod | undefined>();
  for (const view of deletes.toSorted((a, b) => a.ordinal - b.ordinal)) {
    const pod = { view, timer: timers.get(view.ordinal) };
    changed.set(view.ordinal, hasEnded(view) ? undefined : terminatePod(pod, durations, clock));
  }
  for (const { ordinal, revision } of creates) {
    const made = placed?.({ ordinal, revision, updateRevision: set.status.updateRevision }) ?? revision;
    changed.set(ordinal, startPod(set, { ordinal, revision: made }, durations, clock));
  }
  const next = withPods(state, changed);
  return deletes.some(hasEnded) ? reconcile(next, clock) : next;
}

function settle(state: SetState, clock: Clock): SetState {
  const due = [...state.timers].filter(([, { atMs }]) => atMs <= clock.nowMs).sort(([a], [b]) => a - b);
  const changed = due.map(([ordinal, { change }]) => {
    const pod = change === 'gone' ? undefined : podAt(state, ordinal);
    return [ordinal, pod && becomeReady(pod, clock)] as const;
  });
  return withPods(state, new Map(changed));
}

function summarize({ set, pods, timers }: SetState, nowMs: number): { readonly set: StatefulSetView; readonly nextMs: number | undefined } {
  const waitsForAvailability = set.podManagementPolicy === 'OrderedReady' || set.updateStrategy === 'RollingUpdate';
  const minReadyMs = waitsForAvailability ? set.minReadySeconds * 1000 : 0;
  const ready = minReadyMs > 0 ? pods.filter(({ isReady }) => isReady) : [];
  const available = ready.map(({ readyChangedMs }) => readyChangedMs + minReadyMs).filter((atMs) => atMs > nowMs);
  return { set: withCounters(set, pods, nowMs), nextMs: earliest([...available, ...[...timers.values()].map(({ atMs }) => atMs)]) };
}

function withCounters(set: StatefulSetView, pods: readonly PodView[], nowMs: number): StatefulSetView {
  const { status } = set;
  const counts = replicaCounts({ set, pods, nowMs });
  const { replicas, readyReplicas, updatedReplicas } = counts;
  const currentRevision = isUpdateComplete(set, counts) ? status.updateRevision : status.currentRevision;
  const isSame =
    status.replicas === replicas &&
    status.readyReplicas === readyReplicas &&
    status.updatedReplicas === updatedReplicas &&
    status.currentRevision === currentRevision;
  return isSame ? set : { ...set, status: { ...status, replicas, readyReplicas, updatedReplicas, currentRevision } };
}
