// Describes the actions of a decision: one action, or all of them in one line.
import type { Action, GroupDecision } from '../decision.ts';

/** Describes a decision in one line. The text is empty when the decision only waits. */
export function describeActions(decision: GroupDecision): string {
  return decision.actions.map(describeAction).join(', ');
}

/** One action in a few words. */
export function describeAction(action: Action): string {
  switch (action.kind) {
    case 'deletePod':
    case 'evictPod':
      return `${action.because === 'stuck' ? 'cure' : 'replace'} ${action.pod}`;
    case 'scaleStatefulSet':
      return `scale ${action.statefulSet} ${action.from} to ${action.to}`;
    case 'setPartition':
      return action.pods.length === 0
        ? `set the partition of ${action.statefulSet} to ${action.to}`
        : `replace ${action.pods.map(({ pod }) => pod).join(', ')} by partition ${action.to}`;
    case 'callPods':
      return `${action.method === 'POST' ? 'prepare' : 'withdraw'} ${action.statefulSet} ${action.ordinals.join(',')}`;
    case 'writeBackReplicas':
      return `tell ${action.resourceKind} ${action.name} ${action.replicas} replicas`;
    case 'advanceCurrentRevision':
      return `advance the current revision of ${action.statefulSet}`;
  }
}
