// Defines the limits, names and texts of published decisions, whose readers need neither the agent nor the permission to read pods.
import { counted } from '../../policies/wording.ts';
import { ordinalRanges } from '../amount.ts';
import type { Action } from '../decision.ts';
import type { PublishedDecision } from './read.ts';

export type { PublishedDecision };

/** The maximum size of a published decision as JSON, in UTF-8 bytes. */
export const publishedByteLimit = 32 * 1024;

export const publishedPodLimit = 50;

/** An action that was sent, and its outcome. `conflict`: no effect, because the object had changed. `unknown`: 5xx or no answer. */
export interface TakenAction {
  readonly action: Action;
  readonly result: PublishedAction['result'];
  /** The message of the server or the pod, never the full body of an answer. */
  readonly message?: string;
}

export type PublishedAction = PublishedDecision['actions'][number];
export type PublishedZone = PublishedDecision['zones'][number];
export type PublishedPod = PublishedDecision['pods'][number];
export type PublishedWait = PublishedDecision['waits'][number];
export type PublishedStep = PublishedDecision['steps'][number];
export type PublishedGate = PublishedDecision['gates'][number];
export type PublishedReading = NonNullable<PublishedGate['latest']>;
export type PublishedMetric = NonNullable<PublishedDecision['metrics']>[number];
export type PublishedRun = NonNullable<PublishedDecision['run']>;
export type PublishedReservation = NonNullable<PublishedDecision['reservations']>[number];

/** The states of published pods, the most serious first. */
export const podStates = ['crashing', 'nodeDown', 'unready', 'missing', 'terminating', 'announced', 'starting', 'leaving'] as const;

export type PodState = (typeof podStates)[number];

export const publishedMetricLimit = 50;

/** The format of publications as `major.minor`. A newer minor version adds fields. Readers reject another major version. */
export const publishedFormat = '1.0';

export const publishedStopLimit = 20;

export const publishedReservationLimit = 5;

/** The prefix of the names of published decisions. Ledgers have the prefix `rollout-group-`. */
const prefix = 'rollout-status-';

export function statusMapName(group: string): string {
  return `${prefix}${group}`;
}

export function isStatusMapName(name: string): boolean {
  return name.startsWith(prefix);
}

/** Returns a text such as `delete pod ingester-zone-a-3` or `scale ingester-zone-a from 5 to 4`. */
export function actionText(action: Action): string {
  switch (action.kind) {
    case 'deletePod':
      return `delete pod ${action.pod}`;
    case 'evictPod':
      return `evict pod ${action.pod}`;
    case 'scaleStatefulSet':
      return `scale ${action.statefulSet} from ${action.from} to ${action.to}`;
    case 'setPartition':
      if (action.from === action.to) return `the StatefulSet controller replaces pods of ${action.statefulSet}`;
      return `set the partition of ${action.statefulSet} from ${action.from} to ${action.to}`;
    case 'callPods': {
      const what = action.call === 'delayed' ? 'prepare for a delayed downscale' : 'prepare to leave';
      return `${action.method === 'POST' ? 'ask' : 'tell'} ${action.statefulSet} ${ordinalRanges(action.ordinals)} ${
        action.method === 'POST' ? `to ${what}` : 'to stay'
      }`;
    }
    case 'writeBackReplicas':
      return `report ${counted(action.replicas, 'replica')} to ${action.resourceKind} ${action.name}`;
    case 'advanceCurrentRevision':
      return `set the current revision of ${action.statefulSet} to ${action.revision}`;
    default:
      return action satisfies never;
  }
}
