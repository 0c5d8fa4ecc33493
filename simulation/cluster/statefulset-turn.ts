// Computes one turn of the StatefulSet controller of Kubernetes 1.34 to 1.36: from facts to pods to create and delete, and the status.
import type { PodFacts, StatefulSetSpec } from './workload.ts';

export interface TurnInput {
  readonly spec: StatefulSetSpec;
  /** Owned pods in any order. */
  readonly pods: readonly PodFacts[];
  readonly currentRevision: string;
  readonly updateRevision: string;
  readonly isTerminating: boolean;
  readonly wallMs: number;
}

interface Turn {
  readonly creates: readonly { readonly ordinal: number; readonly revision: string }[];
  /** Pods by name. */
  readonly deletes: readonly string[];
  /** The next time at which a pod becomes available by time alone. */
  readonly lookAgainMs?: number;
}

/**
 * Computes one turn in the controller's order: missing and ended pods first, then surplus ones, then updates; each step only if no earlier
 * one has to wait. OrderedReady handles one pod at a time, ascending, and waits for every lower ordinal. A pod with a broken revision
 * therefore blocks its own update (kubernetes.io, StatefulSet, "Forced rollback"). The feature gate MaxUnavailableStatefulSet is off.
 */
export function turnOf(input: TurnInput): Turn {
  const { spec, pods, isTerminating } = input;
  const again = nextAvailableMs(input);
  const done = (creates: Turn['creates'], deletes: readonly string[]): Turn => ({
    creates,
    deletes,
    ...(again === undefined ? {} : { lookAgainMs: again }),
  });
  if (isTerminating) return done([], []);
  const isOrdered = spec.podManagementPolicy !== 'Parallel';
  const first = spec.ordinals?.start ?? 0;
  const end = first + (spec.replicas ?? 1);
  const inRange = new Map(pods.filter(({ ordinal }) => ordinal >= first && ordinal < end).map((pod) => [pod.ordinal, pod]));
  const condemned = pods.filter(({ ordinal }) => ordinal < first || ordinal >= end).sort((a, b) => b.ordinal - a.ordinal);

  const creates: { ordinal: number; revision: string }[] = [];
  const deletes: string[] = [];
  let mustWait = false;
  for (let ordinal = first; ordinal < end; ordinal += 1) {
    const pod = inRange.get(ordinal);
    if (pod === undefined) {
      creates.push({ ordinal, revision: revisionFor(input, ordinal, first) });
      if (isOrdered) return done(creates, deletes);
    } else if (hasEnded(pod)) {
      // A later turn creates the successor, after the pod is gone.
      if (!pod.isTerminating) deletes.push(pod.name);
      mustWait = true;
      if (isOrdered) return done(creates, deletes);
    } else if (isOrdered && !isAvailable(pod, input)) return done(creates, deletes);
  }
  if (mustWait) return done(creates, deletes);

  const unhealthy = firstUnhealthy([...inRange.values(), ...condemned]);
  for (const pod of condemned) {
    if (pod.isTerminating) {
      if (isOrdered) return done(creates, deletes);
      continue;
    }
    if (isOrdered && !isAvailable(pod, input) && pod !== unhealthy) return done(creates, deletes);
    deletes.push(pod.name);
    if (isOrdered) return done(creates, deletes);
  }
  if (spec.updateStrategy?.type === 'OnDelete') return done(creates, deletes);
  const outdated = podToUpdate(input, inRange, { first, end });
  return done(creates, outdated === undefined ? deletes : [...deletes, outdated.name]);
}

/** From the top down to the partition: the first outdated pod; an unavailable pod before it ends the search. */
function podToUpdate(
  input: TurnInput,
  inRange: ReadonlyMap<number, PodFacts>,
  { first, end }: { readonly first: number; readonly end: number },
): PodFacts | undefined {
  const lowest = first + (input.spec.updateStrategy?.rollingUpdate?.partition ?? 0);
  for (let ordinal = end - 1; ordinal >= lowest; ordinal -= 1) {
    const pod = inRange.get(ordinal);
    // A pod created in this turn is not available.
    if (pod === undefined) return undefined;
    if (pod.revision !== input.updateRevision && !pod.isTerminating) return pod;
    if (pod.isTerminating || !isAvailable(pod, input)) return undefined;
  }
  return undefined;
}

/** OnDelete creates every pod at the update revision; a rolling update creates those below the partition at the current one. */
function revisionFor({ spec, currentRevision, updateRevision }: TurnInput, ordinal: number, first: number): string {
  const isRolling = spec.updateStrategy?.type !== 'OnDelete';
  const partition = spec.updateStrategy?.rollingUpdate?.partition ?? 0;
  return isRolling && ordinal < first + partition ? currentRevision : updateRevision;
}

/** Returns the status counters for the pods after the turn. */
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

/** Returns whether a rolling update is complete, so that its revision becomes the current one. Never with OnDelete. */
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

/** Returns the lowest ordinal that is not running and ready. */
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
