// Models one turn of the StatefulSet controller of Kubernetes 1.34 to 1.36: the pods that it creates and deletes, and the status.

/** The fields of a StatefulSet that its controller reads. */
export interface ControlledSet {
  readonly replicas: number;
  readonly firstOrdinal: number;
  readonly podManagementPolicy: 'OrderedReady' | 'Parallel';
  readonly updateStrategy: 'OnDelete' | 'RollingUpdate';
  /** Undefined without the block `rollingUpdate`. */
  readonly partition: number | undefined;
  readonly minReadySeconds: number;
  readonly isTerminating: boolean;
  /** `currentReplicas` counts only without the block `rollingUpdate`. */
  readonly status: { readonly currentRevision: string; readonly updateRevision: string; readonly currentReplicas?: number };
}

/** The fields of a pod that the controller reads. */
export interface ControlledPod {
  readonly ordinal: number;
  readonly revision: string;
  readonly phase: string;
  readonly isReady: boolean;
  readonly readyChangedMs: number;
  readonly isTerminating: boolean;
}

export interface ControllerInput<Pod extends ControlledPod> {
  readonly set: ControlledSet;
  /** The pods of the StatefulSet, by ordinal. */
  readonly pods: readonly Pod[];
  readonly nowMs: number;
  /**
   * The number of pods that an update makes unavailable, if the feature gate MaxUnavailableStatefulSet is on. Absent: the gate is off. It is
   * off by default up to 1.34 and from 1.35.4 to 1.36, and on in 1.35.0 to 1.35.3 and from 1.37.
   */
  readonly maxUnavailable?: number;
}

interface ControllerTurn<Pod> {
  readonly creates: readonly { readonly ordinal: number; readonly revision: string }[];
  readonly deletes: readonly Pod[];
}

/**
 * Computes one turn: the controller creates missing pods and deletes ended pods, then deletes surplus pods, then outdated pods. OrderedReady
 * waits for every lower ordinal, so a pod at a broken revision also blocks the update that would repair it (kubernetes.io, StatefulSet,
 * "Forced rollback"). Parallel never waits.
 */
export function controllerTurn<Pod extends ControlledPod>(input: ControllerInput<Pod>): ControllerTurn<Pod> {
  const { set, pods } = input;
  if (set.isTerminating) return { creates: [], deletes: [] };
  const [lowest, highest] = [pods[0], pods.at(-1)];
  const isWithin = lowest !== undefined && highest !== undefined && isInRange(set, lowest) && isInRange(set, highest);
  const members = isWithin ? pods : pods.filter((pod) => isInRange(set, pod));
  const { creates, deletes, mustWait } = fillRange(input, members);
  if (mustWait) return { creates, deletes };
  const surplus = members.length === pods.length ? [] : pods.filter((pod) => !isInRange(set, pod)).reverse();
  const removed = removeSurplus(input, surplus);
  if (removed.mustWait || set.updateStrategy === 'OnDelete') return { creates, deletes: [...deletes, ...removed.deletes] };
  const updated = podsToUpdate(input, members).filter((pod) => !deletes.includes(pod));
  return { creates, deletes: [...deletes, ...removed.deletes, ...updated] };
}

/** One step of a turn. `mustWait` means that the following steps belong to a later turn. */
type Step<Pod> = ControllerTurn<Pod> & { readonly mustWait: boolean };

/** Creates missing pods and deletes ended pods, whose successors a later turn creates. */
function fillRange<Pod extends ControlledPod>(input: ControllerInput<Pod>, members: readonly Pod[]): Step<Pod> {
  const { set } = input;
  const isOrdered = set.podManagementPolicy === 'OrderedReady';
  const creates: { ordinal: number; revision: string }[] = [];
  const deletes: Pod[] = [];
  let next = 0;
  for (let ordinal = set.firstOrdinal; ordinal < set.firstOrdinal + set.replicas; ordinal += 1) {
    const pod = members[next]?.ordinal === ordinal ? members[next] : undefined;
    if (pod === undefined) creates.push({ ordinal, revision: revisionFor(set, ordinal) });
    else next += 1;
    if (pod !== undefined && hasEnded(pod) && !pod.isTerminating) deletes.push(pod);
    if (isOrdered && (pod === undefined || hasEnded(pod) || !isAvailable(pod, input))) return { creates, deletes, mustWait: true };
  }
  return { creates, deletes, mustWait: false };
}

/** Deletes the pods of `surplus`, which begins with the highest ordinal: all of them, or with OrderedReady one after the other. */
function removeSurplus<Pod extends ControlledPod>(input: ControllerInput<Pod>, surplus: readonly Pod[]): Omit<Step<Pod>, 'creates'> {
  const [highest] = surplus;
  if (highest === undefined) return { deletes: [], mustWait: false };
  if (input.set.podManagementPolicy === 'Parallel') return { deletes: surplus.filter((pod) => !pod.isTerminating), mustWait: false };
  // Every pod in range is available here, so the first unavailable pod of the StatefulSet is a surplus pod.
  const firstUnavailable = surplus.findLast((pod) => !isAvailable(pod, input));
  const isBlocked = highest.isTerminating || (highest !== firstUnavailable && !isAvailable(highest, input));
  return { deletes: isBlocked ? [] : [highest], mustWait: true };
}

/** Returns the outdated pods at or above the partition that the update deletes now, the highest ordinal first. */
function podsToUpdate<Pod extends ControlledPod>(input: ControllerInput<Pod>, members: readonly Pod[]): readonly Pod[] {
  const { set, maxUnavailable } = input;
  const { updateRevision } = set.status;
  const isOutdated = (pod: Pod): boolean => pod.revision !== updateRevision && !pod.isTerminating;
  const lowest = set.firstOrdinal + (set.partition ?? 0);
  if (maxUnavailable !== undefined) {
    const left = maxUnavailable - (set.replicas - members.filter((pod) => isAvailable(pod, input)).length);
    const outdated = members.filter((pod) => pod.ordinal >= lowest && isOutdated(pod));
    return left <= 0 ? [] : outdated.reverse().slice(0, left);
  }
  let expected = set.firstOrdinal + set.replicas - 1;
  for (let index = members.length - 1; index >= 0; index -= 1) {
    const pod = members[index];
    // The turn creates the missing pod, so it is not available.
    if (pod === undefined || pod.ordinal !== expected || pod.ordinal < lowest) return [];
    if (isOutdated(pod)) return [pod];
    if (!isAvailable(pod, input)) return [];
    expected -= 1;
  }
  return [];
}

/** Returns the revision of a new pod: the current revision below the partition of a rolling update, else the update revision. */
export function revisionFor({ updateStrategy, firstOrdinal, partition, status }: ControlledSet, ordinal: number): string {
  const current = updateStrategy === 'OnDelete' ? 0 : (partition ?? status.currentReplicas ?? 0);
  return ordinal < firstOrdinal + current ? status.currentRevision : status.updateRevision;
}

interface ReplicaCounts {
  readonly replicas: number;
  readonly readyReplicas: number;
  readonly availableReplicas: number;
  readonly currentReplicas: number;
  readonly updatedReplicas: number;
}

/** Returns the counts of the status after a turn. A terminating pod counts as ready while its condition says so, but not as updated. */
export function replicaCounts({ set, pods, nowMs }: ControllerInput<ControlledPod>): ReplicaCounts {
  const { currentRevision, updateRevision } = set.status;
  let [readyReplicas, availableReplicas, currentReplicas, updatedReplicas] = [0, 0, 0, 0];
  for (const pod of pods) {
    if (isReady(pod)) readyReplicas += 1;
    if (isReadyLongEnough(pod, { set, nowMs })) availableReplicas += 1;
    if (!pod.isTerminating && pod.revision === currentRevision) currentReplicas += 1;
    if (!pod.isTerminating && pod.revision === updateRevision) updatedReplicas += 1;
  }
  return { replicas: pods.length, readyReplicas, availableReplicas, currentReplicas, updatedReplicas };
}

/**
 * Reports whether a rolling update is complete, so that its revision becomes the current revision. Reads neither the partition nor
 * availability. Always false with OnDelete.
 */
export function isUpdateComplete({ replicas, updateStrategy }: ControlledSet, counts: ReplicaCounts): boolean {
  return (
    updateStrategy === 'RollingUpdate' &&
    [counts.replicas, counts.readyReplicas, counts.updatedReplicas].every((count) => count === replicas)
  );
}

function isInRange({ firstOrdinal, replicas }: ControlledSet, { ordinal }: ControlledPod): boolean {
  return ordinal >= firstOrdinal && ordinal < firstOrdinal + replicas;
}

/** Reports whether the pod has ended, so that the controller replaces it. */
export function hasEnded({ phase }: Pick<ControlledPod, 'phase'>): boolean {
  return phase === 'Failed' || phase === 'Succeeded';
}

function isReady({ phase, isReady: hasCondition }: ControlledPod): boolean {
  return phase === 'Running' && hasCondition;
}

function isAvailable(pod: ControlledPod, input: Pick<ControllerInput<ControlledPod>, 'set' | 'nowMs'>): boolean {
  return !pod.isTerminating && isReadyLongEnough(pod, input);
}

function isReadyLongEnough(pod: ControlledPod, { set, nowMs }: Pick<ControllerInput<ControlledPod>, 'set' | 'nowMs'>): boolean {
  return isReady(pod) && nowMs - pod.readyChangedMs >= set.minReadySeconds * 1000;
}
