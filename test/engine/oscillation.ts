// Finds replicas that oscillate (S16) in the decisions of several turns.
import type { GroupDecision } from '../../engine/decision.ts';
import type { Snapshot } from '../../engine/snapshot.ts';

/** A write of replicas, with the inputs that determine the number. */
export interface ReplicaWrite {
  readonly zone: string;
  readonly from: number;
  readonly to: number;
  readonly inputs: string;
}

/** Returns the replicas that a decision writes. */
export function replicaWrites({
  decision,
  snapshot,
}: {
  readonly decision: GroupDecision;
  readonly snapshot: Snapshot;
}): readonly ReplicaWrite[] {
  return decision.actions.flatMap((action): ReplicaWrite[] => {
    if (action.kind !== 'scaleStatefulSet') return [];
    const others = snapshot.statefulSets.map((set) => (set.name === action.statefulSet ? 0 : set.replicas));
    const { zone, from, to } = action;
    return [{ zone, from, to, inputs: JSON.stringify([snapshot.replicaSources, others]) }];
  });
}

/** Returns the violations of S16: an increase and a decrease of one zone, one after the other, with the same inputs. */
export function oscillationViolations(writes: readonly ReplicaWrite[]): readonly string[] {
  const last = new Map<string, { readonly direction: number; readonly inputs: string }>();
  const found: string[] = [];
  for (const write of writes) {
    const direction = Math.sign(write.to - write.from);
    const before = last.get(write.zone);
    if (before !== undefined && before.direction === -direction && before.inputs === write.inputs)
      found.push(`S16: the replicas of zone ${write.zone} oscillate`);
    last.set(write.zone, { direction, inputs: write.inputs });
  }
  return found;
}
