// Changes StatefulSets and pods of the model, and then runs the model of the StatefulSet controller of Kubernetes 1.34 to 1.36.

import { controllerLabels, modelledPodLimit } from '../observe/manifests.ts';
import { isCrashing } from '../observe/view.ts';
import type { Ledger, PodView, ReplicaSourceView, Snapshot, StatefulSetView } from '../snapshot.ts';
import { mayPin, placedRevision } from '../strategies/pinned/placement.ts';
import type { ModelPod, PodDurations, World } from './model.ts';

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
  return changed.get(key) ?? (pods && durations && set && { set, pods, durations, placed: placedBy(world.snapshot, set) });
}

/** Returns the function `placed` for a StatefulSet, which reads the ledger of its group; undefined if no ledger can change a revision. */
function placedBy({ ledgers, groups }: Snapshot, { namespace, name }: StatefulSetView): SetState['placed'] {
  for (const ledger of ledgers) {
    if (ledger.namespace !== namespace || (ledger.pins === undefined && ledger.run?.rolledBack === undefined)) continue;
    const group = groups.find((one) => one.namespace === namespace && one.name === ledger.group);
    const zone = group?.zones.find(({ statefulSet }) => statefulSet === name)?.name;
    if (group === undefined || zone === undefined || !mayPin(group)) continue;
    return (ordinal, revision) => placedRevision(ledger, zone, { ordinal, revision });
  }
  return undefined;
}

/** Changes a StatefulSet or its pods, then applies due changes of pods and runs one turn of the controller. */
export function changeSet(draft: StepDraft, key: string, change: (state: SetState) => SetState): void {
  const state = stateOf(draft, key);
  if (state === undefined) return;
  const changed = change(state);
  draft.changed.set(key, reconcile(mayBeDue(draft, key, changed) ? settle(changed, draft) : changed, draft));
}

/** Reports whether a change of a pod may be due. `world.pending` saves a check of every pod, which is slow in large groups. */
function mayBeDue({ world, nowMs }: StepDraft, key: string, { durations }: SetState): boolean {
  return durations.drainMs <= 0 || durations.startMs <= 0 || (world.pending.get(key) ?? Number.POSITIVE_INFINITY) <= nowMs;
}

/** Changes one pod by name, or removes the pod if `change` returns undefined. */
export function changePod(
  draft: StepDraft,
  target: { readonly namespace: string; readonly pod: string },
  change: (pod: ModelPod) => ModelPod | undefined,
): void {
  const dash = target.pod.lastIndexOf('-');
  const key = setKey(target.namespace, target.pod.slice(0, dash));
  const ordinal = Number(target.pod.slice(dash + 1));
  const state = stateOf(draft, key);
  const index = state?.pods.findIndex(({ view }) => view.ordinal === ordinal) ?? -1;
  const found = state?.pods[index];
  if (found === undefined) return;
  const next = change(found);
  if (next === found) return;
  changeSet(draft, key, (current) => ({ ...current, pods: current.pods.toSpliced(index, 1, ...(next === undefined ? [] : [next])) }));
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
    if (state.pods === world.pods.get(key)) continue;
    pods.set(key, state.pods);
    podViews[place.pods] = { namespace: set.namespace, statefulSet: set.name, pods: state.pods.map((pod) => pod.view) };
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
  return { view, goneAtMs: undefined, readyAtMs: clock.nowMs + durations.startMs };
}

/** Returns the pod as ready from now on, with the ready time that the pod observer of grafana/rollout-operator records. */
function becomeReady(pod: ModelPod, clock: Clock): ModelPod {
  const view: PodView = {
    ...pod.view,
    resourceVersion: `${clock.nextSerial()}`,
    phase: 'Running',
    isReady: true,
    containersReady: true,
    readyChangedMs: clock.nowMs,
    waitingReasons: [],
    readyTimeMs: clock.nowMs,
  };
  return { view, goneAtMs: undefined, readyAtMs: undefined };
}

/** Returns the pod after a request to delete it: unready at once, and gone after its drain time. */
export function terminatePod(pod: ModelPod, durations: PodDurations, clock: Clock): ModelPod {
  if (pod.view.isTerminating) return pod;
  return {
    view: { ...unready(pod.view, clock), isTerminating: true, terminatingSinceMs: clock.nowMs },
    goneAtMs: clock.nowMs + durations.drainMs,
    readyAtMs: undefined,
  };
}

/** Returns the pod as broken: unready, and never ready again. `reason` is the waiting reason of its container, if any. */
export function breakPod(pod: ModelPod, reason: string | undefined, clock: Clock): ModelPod {
  const view = { ...unready(pod.view, clock), waitingReasons: reason === undefined ? [] : [reason] };
  return { view, goneAtMs: pod.goneAtMs, readyAtMs: undefined };
}

/**
 * Returns the model of an observed pod. A terminating pod has its full drain time left. An unready pod is starting, unless it failed,
 * one of its containers crashes, or it has been unready for longer than `longestStartMs`. In these three cases it never becomes ready.
 */
export function adoptPod(view: PodView, durations: PodDurations, nowMs: number): ModelPod {
  if (view.isTerminating) return { view, goneAtMs: nowMs + durations.drainMs, readyAtMs: undefined };
  const { startMs, longestStartMs } = durations;
  const isBroken = isCrashing(view) || view.phase === 'Failed' || nowMs - view.readyChangedMs > longestStartMs;
  if (view.isReady || isBroken) return { view, goneAtMs: undefined, readyAtMs: undefined };
  const usualMs = view.readyChangedMs + startMs;
  // The rest of a late start is a guess: a quarter of the start time.
  return { view, goneAtMs: undefined, readyAtMs: usualMs > nowMs ? usualMs : nowMs + Math.max(1000, startMs / 4) };
}

function unready(view: PodView, clock: Clock): PodView {
  const { readyTimeMs: _readyTimeMs, ...rest } = view;
  const readyChangedMs = view.isReady ? clock.nowMs : view.readyChangedMs;
  return { ...rest, resourceVersion: `${clock.nextSerial()}`, isReady: false, containersReady: false, readyChangedMs };
}

/** One StatefulSet of the model with its pods, sorted by ordinal. */
export interface SetState {
  readonly set: StatefulSetView;
  readonly pods: readonly ModelPod[];
  readonly durations: PodDurations;
  /** Returns the revision that the webhook on pod creation gives to a pod that the controller creates at `revision`; absent: the same revision. */
  readonly placed?: ((ordinal: number, revision: string) => string) | undefined;
}

/**
 * Runs one turn of the controller: creates missing pods, deletes surplus pods, then updates pods. OrderedReady creates and deletes
 * one pod at a time, Parallel all at once. Both update one pod at a time: the feature gate MaxUnavailableStatefulSet is off.
 */
function reconcile(state: SetState, clock: Clock): SetState {
  if (state.set.isTerminating) return state;
  const isOrdered = state.set.podManagementPolicy === 'OrderedReady';
  if (!isOrdered && hasEveryPod(state)) return state.set.updateStrategy === 'OnDelete' ? state : updateHighest(state, clock);
  const filled = isOrdered ? createNext(state, clock) : createMissing(state, clock);
  if (filled.waits) return filled.state;
  const shrunk = isOrdered ? removeHighest(filled.state, clock) : removeSurplus(filled.state, clock);
  if (shrunk.waits || state.set.updateStrategy === 'OnDelete') return shrunk.state;
  return updateHighest(shrunk.state, clock);
}

function settle(state: SetState, clock: Clock): SetState {
  const isDue = (atMs: number | undefined): boolean => atMs !== undefined && atMs <= clock.nowMs;
  const first = state.pods.findIndex((pod) => isDue(pod.goneAtMs) || isDue(pod.readyAtMs));
  if (first === -1) return state;
  const pods = state.pods.slice(0, first);
  for (let index = first; index < state.pods.length; index += 1) {
    const pod = state.pods[index];
    if (pod === undefined || isDue(pod.goneAtMs)) continue;
    pods.push(isDue(pod.readyAtMs) ? becomeReady(pod, clock) : pod);
  }
  return { ...state, pods };
}

function summarize(state: SetState, nowMs: number): { readonly set: StatefulSetView; readonly nextMs?: number } {
  const { set } = state;
  const waitsForAvailability = set.podManagementPolicy === 'OrderedReady' || set.updateStrategy === 'RollingUpdate';
  const minReadyMs = waitsForAvailability ? set.minReadySeconds * 1000 : 0;
  const { updateRevision } = set.status;
  let readyReplicas = 0;
  let updatedReplicas = 0;
  let nextMs = Infinity;
  for (const pod of state.pods) {
    const { view } = pod;
    if (view.isReady) readyReplicas += 1;
    if (!view.isTerminating && view.revision === updateRevision) updatedReplicas += 1;
    nextMs = Math.min(nextMs, nextChangeMs(pod, minReadyMs, nowMs));
  }
  const counted = withCounters(set, { replicas: state.pods.length, readyReplicas, updatedReplicas });
  return Number.isFinite(nextMs) ? { set: counted, nextMs } : { set: counted };
}

/** Returns the next instant at which the pod is gone, ready or available; Infinity if no such change is pending. */
function nextChangeMs({ view, goneAtMs = Infinity, readyAtMs = Infinity }: ModelPod, minReadyMs: number, nowMs: number): number {
  const availableAtMs = view.isReady && minReadyMs > 0 ? view.readyChangedMs + minReadyMs : Infinity;
  return Math.min(goneAtMs, readyAtMs, availableAtMs > nowMs ? availableAtMs : Infinity);
}

function withCounters(
  set: StatefulSetView,
  counters: { replicas: number; readyReplicas: number; updatedReplicas: number },
): StatefulSetView {
  const { status } = set;
  const { replicas, readyReplicas, updatedReplicas } = counters;
  const allUpdated = updatedReplicas === set.replicas && readyReplicas === set.replicas && replicas === set.replicas;
  // As in Kubernetes, this test reads neither the partition nor availability.
  const isComplete = set.updateStrategy === 'RollingUpdate' && allUpdated;
  const currentRevision = isComplete ? status.updateRevision : status.currentRevision;
  const isSame =
    status.replicas === replicas &&
    status.readyReplicas === readyReplicas &&
    status.updatedReplicas === updatedReplicas &&
    status.currentRevision === currentRevision;
  return isSame ? set : { ...set, status: { ...status, ...counters, currentRevision } };
}

interface Turn {
  readonly state: SetState;
  /** True if the controller ends its turn here. */
  readonly waits: boolean;
}

/** Creates all missing pods up to `modelledPodLimit`. The pods are sorted by ordinal, so one pass inserts them. */
function createMissing(state: SetState, clock: Clock): Turn {
  const { set } = state;
  const pods: ModelPod[] = [];
  let next = 0;
  const end = set.firstOrdinal + Math.min(set.replicas, modelledPodLimit);
  for (let ordinal = set.firstOrdinal; ordinal < end; ordinal += 1) {
    for (let pod = state.pods[next]; pod !== undefined && pod.view.ordinal < ordinal; pod = state.pods[next]) {
      pods.push(pod);
      next += 1;
    }
    const present = state.pods[next];
    if (present?.view.ordinal === ordinal) {
      pods.push(present);
      next += 1;
    } else pods.push(startPod(set, { ordinal, revision: revisionFor(state, ordinal) }, state.durations, clock));
  }
  return { state: { ...state, pods: [...pods, ...state.pods.slice(next)] }, waits: false };
}

function createNext(state: SetState, clock: Clock): Turn {
  const { set } = state;
  const inRange = state.pods.filter(({ view }) => isInRange(set, view.ordinal));
  for (let index = 0; index < Math.min(set.replicas, modelledPodLimit); index += 1) {
    const ordinal = set.firstOrdinal + index;
    const pod = inRange[index];
    if (pod?.view.ordinal !== ordinal) {
      const started = startPod(set, { ordinal, revision: revisionFor(state, ordinal) }, state.durations, clock);
      return { state: { ...state, pods: [...state.pods, started].sort((a, b) => a.view.ordinal - b.view.ordinal) }, waits: true };
    }
    if (!isUp(set, pod, clock.nowMs)) return { state, waits: true };
  }
  return { state, waits: false };
}

function removeSurplus(state: SetState, clock: Clock): Turn {
  const isLeaving = ({ view }: ModelPod): boolean => !isInRange(state.set, view.ordinal) && !view.isTerminating;
  if (!state.pods.some(isLeaving)) return { state, waits: false };
  const pods = state.pods.map((pod) => (isLeaving(pod) ? terminatePod(pod, state.durations, clock) : pod));
  return { state: { ...state, pods }, waits: false };
}

function removeHighest(state: SetState, clock: Clock): Turn {
  const surplus = state.pods.filter(({ view }) => !isInRange(state.set, view.ordinal));
  const highest = surplus.at(-1);
  if (highest === undefined) return { state, waits: false };
  if (surplus.some(({ view }) => view.isTerminating)) return { state, waits: true };
  return { state: replaced(state, highest, terminatePod(highest, state.durations, clock)), waits: true };
}

/** Deletes the highest outdated pod at or above the partition, unless a higher pod is not available. */
function updateHighest(state: SetState, clock: Clock): SetState {
  const { set } = state;
  for (let index = state.pods.length - 1; index >= 0; index -= 1) {
    const pod = state.pods[index];
    if (pod === undefined || !isInRange(set, pod.view.ordinal)) continue;
    if (pod.view.ordinal < set.firstOrdinal + set.partition) return state;
    if (pod.view.revision !== set.status.updateRevision && !pod.view.isTerminating) {
      return replaced(state, pod, terminatePod(pod, state.durations, clock));
    }
    if (!isUp(set, pod, clock.nowMs)) return state;
  }
  return state;
}

/** Returns the revision of a new pod: the update revision, or below the partition the current or pinned revision. */
function revisionFor({ set, placed }: SetState, ordinal: number): string {
  const isBelow = set.updateStrategy === 'RollingUpdate' && ordinal < set.firstOrdinal + set.partition;
  if (!isBelow) return set.status.updateRevision;
  return placed?.(ordinal, set.status.currentRevision) ?? set.status.currentRevision;
}

function isInRange(set: StatefulSetView, ordinal: number): boolean {
  return ordinal >= set.firstOrdinal && ordinal < set.firstOrdinal + set.replicas;
}

/** Reports whether no pod is missing or surplus. Ordinals are sorted and unique, so the two ends and the number suffice. */
function hasEveryPod({ set, pods }: SetState): boolean {
  const isSpan = pods[0]?.view.ordinal === set.firstOrdinal && pods.at(-1)?.view.ordinal === set.firstOrdinal + set.replicas - 1;
  return pods.length === set.replicas && (isSpan || pods.length === 0);
}

function isUp(set: StatefulSetView, { view }: ModelPod, nowMs: number): boolean {
  return view.isReady && !view.isTerminating && nowMs - view.readyChangedMs >= set.minReadySeconds * 1000;
}

function replaced(state: SetState, old: ModelPod, next: ModelPod): SetState {
  return { ...state, pods: state.pods.map((pod) => (pod === old ? next : pod)) };
}
