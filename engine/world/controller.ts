// The StatefulSet controller of Kubernetes 1.34 to 1.36, as far as groups can see it: which pods it makes and deletes, and what it counts.
import type { StatefulSetView } from '../snapshot.ts';
import { becomeReady, type Clock, startPod, terminatePod } from './draft.ts';
import type { ModelPod, PodDurations } from './model.ts';

/** One StatefulSet of the model with its pods, by ordinal. */
export interface SetState {
  readonly set: StatefulSetView;
  readonly pods: readonly ModelPod[];
  readonly durations: PodDurations;
  /** The revision at which our webhook has a pod made that the controller makes at `revision`; absent: at that one. */
  readonly placed?: ((ordinal: number, revision: string) => string) | undefined;
}

/**
 * One turn of the controller, with its order: missing pods first, then surplus ones, then updates; each only when the one before has nothing
 * to wait for. OrderedReady goes one pod at a time and waits for every lower ordinal; Parallel does not wait. Feature gate
 * MaxUnavailableStatefulSet is off, as in 1.36.
 */
export function reconcile(state: SetState, clock: Clock): SetState {
  if (state.set.isTerminating) return state;
  const isOrdered = state.set.podManagementPolicy === 'OrderedReady';
  if (!isOrdered && isWhole(state)) return state.set.updateStrategy === 'OnDelete' ? state : updateHighest(state, clock);
  const filled = isOrdered ? createNext(state, clock) : createMissing(state, clock);
  if (filled.waits) return filled.state;
  const shrunk = isOrdered ? removeHighest(filled.state, clock) : removeSurplus(filled.state, clock);
  if (shrunk.waits || state.set.updateStrategy === 'OnDelete') return shrunk.state;
  return updateHighest(shrunk.state, clock);
}

/** Lets time do what is due: drained pods are gone, started pods are ready. */
export function settle(state: SetState, clock: Clock): SetState {
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

/** The StatefulSet with its counters true, and when the next thing happens by itself. */
export function summarize(state: SetState, nowMs: number): { readonly set: StatefulSetView; readonly nextMs?: number } {
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

/** Returns when a pod is gone, ready or available next; Infinity if none of these is pending. */
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
  // The partition is no part of this test, and neither is availability.
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

/** Pods stand by ordinal, so the missing ones are put where they belong in one pass. */
function createMissing(state: SetState, clock: Clock): Turn {
  const { set } = state;
  const pods: ModelPod[] = [];
  let next = 0;
  for (let ordinal = set.firstOrdinal; ordinal < set.firstOrdinal + set.replicas; ordinal += 1) {
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
  for (let index = 0; index < set.replicas; index += 1) {
    const ordinal = set.firstOrdinal + index;
    const pod = inRange[index];
    if (pod?.view.ordinal !== ordinal) {
      const started = startPod(set, { ordinal, revision: revisionFor(state, ordinal) }, state.durations, clock);
      return { state: { ...state, pods: [...state.pods, started].sort(byOrdinal) }, waits: true };
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

/** From the top down to the partition: the first pod that is behind goes; a pod on the way that is not up ends the turn. */
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

/**
 * OnDelete builds every pod at the update revision; a rolling update builds those below the partition, counted from the first ordinal, at the
 * current one, or at that to which our webhook pins them.
 */
function revisionFor({ set, placed }: SetState, ordinal: number): string {
  const isBelow = set.updateStrategy === 'RollingUpdate' && ordinal < set.firstOrdinal + set.partition;
  if (!isBelow) return set.status.updateRevision;
  return placed?.(ordinal, set.status.currentRevision) ?? set.status.currentRevision;
}

function isInRange(set: StatefulSetView, ordinal: number): boolean {
  return ordinal >= set.firstOrdinal && ordinal < set.firstOrdinal + set.replicas;
}

/** Returns whether there is exactly one pod of every ordinal: ordinals are sorted and unique, so both ends and the number tell. */
function isWhole({ set, pods }: SetState): boolean {
  const isSpan = pods[0]?.view.ordinal === set.firstOrdinal && pods.at(-1)?.view.ordinal === set.firstOrdinal + set.replicas - 1;
  return pods.length === set.replicas && (isSpan || pods.length === 0);
}

function isUp(set: StatefulSetView, { view }: ModelPod, nowMs: number): boolean {
  return view.isReady && !view.isTerminating && nowMs - view.readyChangedMs >= set.minReadySeconds * 1000;
}

function replaced(state: SetState, old: ModelPod, next: ModelPod): SetState {
  return { ...state, pods: state.pods.map((pod) => (pod === old ? next : pod)) };
}

function byOrdinal(a: ModelPod, b: ModelPod): number {
  return a.view.ordinal - b.view.ordinal;
}
