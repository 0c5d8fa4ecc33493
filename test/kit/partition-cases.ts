// Draws random groups with the strategy `partition`, and checks their decisions a second time without code of the engine.
import type { GroupDecision } from '../../engine/decision.ts';
import type { PodView, Snapshot, StatefulSetView } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { randomFrom } from './random.ts';
import { type RandomCase, randomCase } from './random-groups.ts';

const holding = 1_000_000;

/**
 * Draws the group of the seed with the strategy `partition`. Most partitions are where the updated pods at the top end. Other partitions
 * block all pods, or another client has moved them. Undefined for adopted groups, which cannot have this strategy.
 */
export function partitionedCase(seed: number): RandomCase | undefined {
  const one = randomCase(seed);
  if (one.group.profile === 'rolloutOperator') return undefined;
  const random = randomFrom(seed + 0x9e3779b9);
  const group: GroupDefinition = {
    ...one.group,
    rollout: { ...one.group.rollout, strategy: 'partition', order: 'descending', rotateBy: 'delete' },
  };
  const draws = one.snapshot.statefulSets.map(() => ({ kind: random.next(), by: random.next(), ordered: random.next() }));
  const orderedUp = (set: StatefulSetView, index: number): readonly PodView[] => {
    // As after a rollout by partition: updated pods at the top, outdated pods below, and sometimes an updated pod below the partition.
    const share = draws[index]?.by ?? 0;
    return podsOf(one.snapshot, set).map((pod) => {
      const isTop = pod.ordinal >= set.replicas - updatedOf(share, set);
      const isOdd = (draws[index]?.kind ?? 1) < 0.1 && pod.ordinal % 3 === 0;
      return { ...pod, revision: isTop !== isOdd ? set.status.updateRevision : set.status.currentRevision };
    });
  };
  const pods = one.snapshot.pods.map((view) => {
    const index = one.snapshot.statefulSets.findIndex(({ name }) => name === view.statefulSet);
    const set = one.snapshot.statefulSets[index];
    return 'unknown' in view.pods || set === undefined ? view : { ...view, pods: orderedUp(set, index) };
  });
  const statefulSets = one.snapshot.statefulSets.map((set, index): StatefulSetView => {
    const { kind, by, ordered } = draws[index] ?? { kind: 0, by: 0, ordered: 0 };
    const top = updatedOf(by, set);
    const partition = kind < 0.15 ? holding : kind < 0.25 ? Math.floor(by * 40) : Math.max(0, set.replicas - top);
    const isDone = podsOf({ pods }, set).every(({ revision }) => revision === set.status.updateRevision);
    const status = isDone && kind > 0.5 ? { ...set.status, currentRevision: set.status.updateRevision } : set.status;
    const podManagementPolicy = ordered < 0.4 ? 'OrderedReady' : 'Parallel';
    return { ...set, status, podManagementPolicy, updateStrategy: kind > 0.98 ? 'OnDelete' : 'RollingUpdate', partition };
  });
  return { seed, group, snapshot: { ...one.snapshot, groups: [group], statefulSets, pods } };
}

/** Returns the number of updated pods at the top: from none to all. */
function updatedOf(share: number, { replicas }: StatefulSetView): number {
  return Math.floor(share * (replicas + 1));
}

function podsOf(snapshot: Pick<Snapshot, 'pods'>, set: StatefulSetView): readonly PodView[] {
  const known = snapshot.pods.find(({ statefulSet }) => statefulSet === set.name)?.pods ?? [];
  return 'unknown' in known ? [] : known;
}

interface Counted {
  readonly set: StatefulSetView;
  readonly pods: readonly PodView[];
  /** Ordinals without an available pod, and ordinals whose pods the StatefulSet controller may delete. */
  readonly lost: ReadonlySet<number>;
  readonly surplus: number;
}

function count(snapshot: Snapshot, set: StatefulSetView): Counted {
  const pods = podsOf(snapshot, set);
  const ledger = snapshot.ledgers[0];
  const claims = ledger?.claims ?? [];
  const lowest = Math.min(
    set.partition,
    ...claims.flatMap((claim) => (claim.verb === 'setPartition' && claim.uid === set.uid ? [claim.to ?? 0] : [])),
  );
  const lost = new Set<number>();
  for (let ordinal = 0; ordinal < set.replicas; ordinal += 1) {
    const pod = pods.find((one) => one.ordinal === ordinal);
    const isUp =
      pod !== undefined &&
      pod.phase === 'Running' &&
      !pod.isTerminating &&
      pod.isReady &&
      pod.nodeReady &&
      snapshot.nowMs - pod.readyChangedMs >= set.minReadySeconds * 1000;
    const isAnnounced = claims.some(({ uid }) => uid === pod?.uid);
    const mayGo =
      pod !== undefined && set.updateStrategy === 'RollingUpdate' && ordinal >= lowest && pod.revision !== set.status.updateRevision;
    if (!isUp || isAnnounced || mayGo) lost.add(ordinal);
  }
  return { set, pods, lost, surplus: pods.filter(({ ordinal }) => ordinal >= set.replicas).length };
}

/** Returns all violations in the partitions that a decision writes. */
export function judgePartitions({ snapshot, group }: RandomCase, decision: GroupDecision): readonly string[] {
  const zones = new Map(
    group.zones.flatMap(({ name, statefulSet }) => {
      const set = snapshot.statefulSets.find((one) => one.name === statefulSet);
      return set === undefined ? [] : [[name, count(snapshot, set)] as const];
    }),
  );
  const found: string[] = [];
  for (const action of decision.actions) {
    if (action.kind === 'evictPod') found.push(`${action.pod} is evicted`);
    if (action.kind !== 'setPartition') continue;
    const zone = zones.get(action.zone);
    if (zone === undefined) {
      found.push(`the partition of an unknown zone ${action.zone} is written`);
      continue;
    }
    const { set, pods, lost } = zone;
    const isOld = (pod: PodView): boolean => pod.revision !== set.status.updateRevision;
    const newlyGoing = pods.filter(
      (pod) => isOld(pod) && pod.ordinal < set.replicas && pod.ordinal >= action.to && pod.ordinal < set.partition,
    );
    const named = new Set(action.pods.map(({ uid }) => uid));
    for (const pod of newlyGoing) if (!named.has(pod.uid)) found.push(`P1: ${pod.name} goes and is not named`);
    if (set.uid !== action.uid || set.resourceVersion !== action.resourceVersion) found.push('P2: another StatefulSet is written');
    const lostUpdates = pods.filter(
      (pod) => !isOld(pod) && pod.ordinal >= set.partition && pod.ordinal < Math.min(action.to, set.replicas),
    );
    if (lostUpdates.length > 0 && set.status.currentRevision !== set.status.updateRevision) found.push('P3: an updated pod is reverted');
    const run = snapshot.ledgers[0]?.run;
    const isOfRun = run !== undefined && run.outcome !== 'completed' && run.target[action.zone] !== undefined;
    if (action.to > set.partition && isOfRun && pods.some((pod) => pod.ordinal < set.replicas && isOld(pod)))
      found.push('P3: the partition of a run is raised');
    if (newlyGoing.length === 0) continue;
    const limit = limitOf(snapshot, group, action.zone, set);
    const costly = newlyGoing.filter(({ ordinal }) => !lost.has(ordinal)).length;
    if (limit !== undefined && costly > 0 && lost.size + costly > limit)
      found.push(`P4: ${lost.size + costly} down with a limit of ${limit}`);
    // A pod that is itself unavailable makes no further pod unavailable: one at a time may be replaced next to other zones.
    const isCure = newlyGoing.length === 1 && costly === 0;
    for (const [name, other] of zones) {
      if (!isCure && name !== action.zone && (other.lost.size > 0 || other.surplus > 0)) found.push(`P5: zone ${name} is not whole`);
    }
    if (set.status.observedGeneration < set.generation) found.push('P6: the status is old');
    if (decision.actions.some(({ kind }) => kind === 'scaleStatefulSet')) found.push('P7: replicas are written too');
  }
  return found;
}

function limitOf(snapshot: Snapshot, group: GroupDefinition, name: string, { replicas }: StatefulSetView): number | undefined {
  const zone = group.zones.find((one) => one.name === name);
  if (zone === undefined || zone.maxUnavailable === 'fromBudget') return undefined;
  const parse = (value: number | string): number =>
    typeof value === 'number' ? value : Math.max(1, Math.floor((Number.parseInt(value, 10) * replicas) / 100));
  const caps = snapshot.policies.flatMap(({ limits }) => (limits.maxUnavailable === undefined ? [] : [parse(limits.maxUnavailable)]));
  return Math.min(parse(zone.maxUnavailable), ...caps);
}
