// An action in a few words, for people: what was done to what.
import { ordinalRanges } from '../amount.ts';
import type { Action } from '../decision.ts';

/** Such as `delete pod ingester-zone-a-3` or `scale ingester-zone-a from 5 to 4`. */
export function actionText(action: Action): string {
  switch (action.kind) {
    case 'deletePod':
      return `delete pod ${action.pod}`;
    case 'evictPod':
      return `evict pod ${action.pod}`;
    case 'scaleStatefulSet':
      return `scale ${action.statefulSet} from ${action.from} to ${action.to}`;
    case 'setPartition':
      return `set the partition of ${action.statefulSet} from ${action.from} to ${action.to}`;
    case 'callPods': {
      const what = action.call === 'delayed' ? 'prepare for a delayed downscale' : 'prepare to leave';
      return `${action.method === 'POST' ? 'ask' : 'tell'} ${action.statefulSet} ${ordinalRanges(action.ordinals)} ${
        action.method === 'POST' ? `to ${what}` : 'to stay'
      }`;
    }
    case 'writeBackReplicas':
      return `report ${action.replicas} replicas to ${action.resourceKind} ${action.name}`;
    case 'advanceCurrentRevision':
      return `set the current revision of ${action.statefulSet} to ${action.revision}`;
    default:
      return action satisfies never;
  }
}
