// Computes one turn of the StatefulSet controller of Kubernetes 1.34 to 1.36: the pods to create and delete, and the status.
import type { PodFacts, StatefulSetSpec } from './workload.ts';

export interface TurnInput {
  readonly spec: StatefulSetSpec;
  readonly pods: readonly PodFacts[];
  readonly currentRevision: string;
  readonly updateRevision: string;
  readonly isTerminating: boolean;
  readonly wallMs: number;
}

interface Turn {
  readonly creates: readonly { readonly ordinal: number; readonly revision: string }[];
  readonly deletes: readonly string[];
  /** The next time at which a pod becomes available without an event. */
  readonly nextTurnMs?: number;
}

/**
 * Computes one turn of the controller: it creates missing pods and deletes ended pods, then surplus pods, then one outdated pod.
 * OrderedReady waits for every lower ordinal, so a pod at a broken revision also blocks the update that would repair it (kubernetes.io,
 * StatefulSet, "Forced rollback"). The model assumes that the feature gate MaxUnavailableStatefulSet is off.
 */
export function turnOf(input: TurnInput): Turn {
  const { spec, pods, isTerminating } = input;
  const again = nextAvailableMs(input);
  const next = again === undefined ? {} : { nextTurnMs: again };
  if (isTerminating) return { creates: [], deletes: [], ...next };
  const first = spec.ordinals?.start ?? 0;
  const end = first + (spec.replicas ?? 1);
  const isInRange = ({ ordinal }: PodFacts): boolean => ordinal >= first && ordinal < end;
  const range: Range = { first, end, pods: new Map(pods.filter(isInRange).map((pod) => [pod.ordinal, pod])) };
  const { creates, deletes, mustWait } = fillRange(input, range);
  if (mustWait) return { creates, deletes, ...next };
  const surplus = pods.filter((pod) => !isInRange(pod)).sort((a, b) => b.ordinal - a.ordinal);
  const removed = removeSurplus(input, surplus, firstUnhealthy(pods));
  const isRolling = !removed.mustWait && spec.updateStrategy?.type !== 'OnDelete';
  const outdated = isRolling ? podToUpdate(input, range) : undefined;
  return { creates, deletes: [...removed.deletes, ...(outdated === undefined ? [] : [outdated.name])], ...next };
}

interface Range {
  readonly first: number;
  /** The first ordinal above the range. */
  readonly end: number;
  readonly pods: ReadonlyMap<number, PodFacts>;
}

/** One step of a turn. `mustWait` means that the following steps belong to a later turn. */
type Step = Pick<Turn, 'creates' | 'deletes'> & { readonly mustWait: boolean };

/** Creates missing pods and deletes ended pods, whose successors a later turn creates. */
function fillRange(input: TurnInput, { first, end, pods }: Range): Step {
  const isOrdered = isOrderedReady(input);
  const creates: { ordinal: number; revision: string }[] = [];
  const deletes: string[] = [];
  let mustWait = false;
  for (let ordinal = first; ordinal < end; ordinal += 1) {
    const pod = pods.get(ordinal);
    if (pod === undefined) creates.push({ ordinal, revision: revisionFor(input, ordinal, first) });
    else if (!hasEnded(pod)) {
      if (!isOrdered || isAvailable(pod, input)) continue;
    } else if (!pod.isTerminating) deletes.push(pod.name);
    if (isOrdered) return { creates, deletes, mustWait: true };
    mustWait ||= pod !== undefined;
  }
  return { creates, deletes, mustWait };
}

/** Deletes pods outside the range, the highest ordinal first. */
function removeSurplus(input: TurnInput, surplus: readonly PodFacts[], unhealthy: PodFacts | undefined): Omit<Step, 'creates'> {
  const isOrdered = isOrderedReady(input);
  const deletes: string[] = [];
  for (const pod of surplus) {
    if (isOrdered && (pod.isTerminating || (pod !== unhealthy && !isAvailable(pod, input)))) return { deletes, mustWait: true };
    if (pod.isTerminating) continue;
    deletes.push(pod.name);
    if (isOrdered) return { deletes, mustWait: true };
  }
  return { deletes, mustWait: false };
}

function isOrderedReady({ spec }: TurnInput): boolean {
  return spec.podManagementPolicy !== 'Parallel';
}

/** Returns the highest outdated pod at or above the partition; undefined if a pod above it is unavailable. */
function podToUpdate(input: TurnInput, { first, end, pods }: Range): PodFacts | undefined {
  const lowest = first + (input.spec.updateStrategy?.rollingUpdate?.partition ?? 0);
  for (let ordinal = end - 1; ordinal >= lowest; ordinal -= 1) {
    const pod = pods.get(ordinal);
    // This turn creates the missing pod, so it is not available.
    if (pod === undefined) return undefined;
    if (pod.revision !== input.updateRevision && !pod.isTerminating) return pod;
    if (pod.isTerminating || !isAvailable(pod, input)) return undefined;
  }
  return undefined;
}

/** Returns the revision of a new pod: the current revision below the partition of a rolling update, else the update revision. */
function revisionFor({ spec, currentRevision, updateRevision }: TurnInput, ordinal: number, first: number): string {
  const isRolling = spec.updateStrategy?.type !== 'OnDelete';
  const partition = spec.updateStrategy?.rollingUpdate?.partition ?? 0;
  return isRolling && ordinal < first + partition ? currentRevision : updateRevision;
}

interface Counts {
  readonly replicas: number;
  readonly readyReplicas: number;
  readonly availableReplicas: number;
  readonly currentReplicas: number;
  readonly updatedReplicas: number;
}

export function countsOf(input: TurnInput): Counts {
  const { pods, currentRevision, updateRevision } = input;
  // A terminating pod counts as ready while its condition says so, but not as updated.
  const alive = pods.filter((pod) => !pod.isTerminating);
  return {
    replicas: pods.length,
    readyReplicas: pods.filter((pod) => pod.isReady).length,
    availableReplicas: pods.filter((pod) => isReadyLongEnough(pod, input)).length,
    currentReplicas: alive.filter((pod) => pod.revision === currentRevision).length,
    updatedReplicas: alive.filter((pod) => pod.revision === updateRevision).length,
  };
}

/** Returns whether a rolling update is complete, so that its revision becomes the current revision. Always false with OnDelete. */
export function isComplete({ spec }: TurnInput, { replicas, readyReplicas, updatedReplicas }: Counts): boolean {
  const wanted = spec.replicas ?? 1;
  return spec.updateStrategy?.type !== 'OnDelete' && [replicas, readyReplicas, updatedReplicas].every((count) => count === wanted);
}

function hasEnded({ phase }: PodFacts): boolean {
  return phase === 'Failed' || phase === 'Succeeded';
}

function isAvailable(pod: PodFacts, input: TurnInput): boolean {
  return !pod.isTerminating && isReadyLongEnough(pod, input);
}

function isReadyLongEnough(pod: PodFacts, { spec, wallMs }: TurnInput): boolean {
  return pod.isReady && wallMs - pod.readyChangedMs >= (spec.minReadySeconds ?? 0) * 1000;
}

/** Returns the pod with the lowest ordinal of all pods that terminate or are not ready. */
function firstUnhealthy(pods: readonly PodFacts[]): PodFacts | undefined {
  return pods
    .filter((pod) => pod.isTerminating || !pod.isReady)
    .reduce<PodFacts | undefined>((lowest, pod) => (lowest === undefined || pod.ordinal < lowest.ordinal ? pod : lowest), undefined);
}

function nextAvailableMs({ spec, pods, wallMs }: TurnInput): number | undefined {
  const delayMs = (spec.minReadySeconds ?? 0) * 1000;
  if (delayMs === 0) return undefined;
  const instants = pods.filter((pod) => pod.isReady).map((pod) => pod.readyChangedMs + delayMs);
  const future = instants.filter((instantMs) => instantMs > wallMs);
  return future.length === 0 ? undefined : Math.min(...future);
}
