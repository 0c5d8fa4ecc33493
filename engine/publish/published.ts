// Defines the published form of a decision, whose readers need neither the agent nor the permission to read pods.
import type { GroupDefinition } from '../../policies/definition.ts';
import { ordinalRanges } from '../amount.ts';
import type { Action, GroupDecision, RuleResult, Step, Stop, ZoneDecision } from '../decision.ts';
import type { GateReading, RunState } from '../snapshot.ts';

/** The maximum size of a published decision as JSON, in UTF-8 bytes. */
export const publishedByteLimit = 32 * 1024;

/** The maximum number of published pods. */
export const publishedPodLimit = 50;

/** The outcome of an action. `conflict`: its object had changed. `unknown`: no answer arrived, and the action may have happened. */
type ActionResult = 'done' | 'conflict' | 'refused' | 'failed' | 'unknown';

/** An action of the turn that made the decision, and its outcome. */
export interface TakenAction {
  readonly action: Action;
  readonly result: ActionResult;
  readonly message?: string;
}

/** A published action, as one line without preconditions. */
export interface PublishedAction {
  readonly kind: Action['kind'];
  readonly zone?: string;
  /** The action as text: `delete pod ingester-zone-a-3`, `scale ingester-zone-a from 5 to 4`. */
  readonly what: string;
  readonly result: ActionResult;
  readonly message?: string;
  readonly atMs: number;
}

/** A zone at the time of the decision. */
export interface PublishedZone extends ZoneDecision {
  /** The lowered partition under the strategy `partition`: the StatefulSet controller replaces pods with this ordinal and above. */
  readonly partition?: number;
  /** The ordinals with a pin under the strategy `pinned`. */
  readonly pinned?: string;
}

/** The states of published pods, the most serious first. */
export const podStates = ['crashing', 'nodeDown', 'unready', 'missing', 'terminating', 'announced', 'starting', 'leaving'] as const;

export type PodState = (typeof podStates)[number];

/** A pod that is in replacement, in removal or not available. */
export interface PublishedPod {
  readonly zone: string;
  readonly pod: string;
  /**
   * `announced`: an open claim. `crashing`: a container fails. `nodeDown`: node not ready. `unready`: at an old revision. `starting`: at
   * the update revision. `leaving`: beyond the replicas. `missing`: no pod.
   */
  readonly state: PodState;
  /** The waiting reason of a container, such as CrashLoopBackOff. */
  readonly reason?: string;
  readonly node?: string;
  /** The instant of the last change of readiness. */
  readonly sinceMs?: number;
}

/** A result that blocks the group, and the instant since which it has blocked. */
export interface PublishedWait extends RuleResult {
  readonly sinceMs: number;
  /** The blocked zones. */
  readonly zones: readonly string[];
}

export interface PublishedStep extends Pick<Step, 'id' | 'kind' | 'zone' | 'from' | 'to' | 'outcome'> {
  /** Number of pods of the step. */
  readonly podCount: number;
  /** The results of all evaluated rules; absent if they did not fit. */
  readonly results?: readonly RuleResult[];
}

export type PublishedReading = Exclude<GateReading, { readonly result: 'notFinite' }>;

export interface PublishedGate {
  readonly gate: string;
  readonly mode: 'enforce' | 'observe';
  /** The latest reading, if any. */
  readonly latest?: PublishedReading;
  /** Number of known readings. */
  readonly readings: number;
}

/** A metric input of a rule that binds the group. */
export interface PublishedMetric {
  /** Namespace of the policy. */
  readonly namespace: string;
  readonly policy: string;
  readonly input: string;
  /** Name of the metric source. */
  readonly source: string;
  /** A hash of source and query. */
  readonly question: string;
  /** The reading; absent before the first reading. */
  readonly value?: number;
  /** The reason why the value is unknown. */
  readonly unknown?: string;
  readonly atMs?: number;
  /** The reason for the lack of a newer reading. */
  readonly problem?: string;
  /** The maximum age in milliseconds. An older reading counts as unknown. */
  readonly maxAgeMs: number;
}

/** The maximum number of published metric inputs. */
export const publishedMetricLimit = 50;

/** A run as published, with the fields of all states in one object. */
export type PublishedRun = Pick<
  RunState,
  'id' | 'kind' | 'target' | 'previous' | 'startedMs' | 'wave' | 'waveStartedMs' | 'outcome' | 'rolledBack'
> & {
  readonly openZone?: string;
  readonly waveAvailableMs?: number;
  readonly failure?: string;
  readonly failedMs?: number;
  readonly completedMs?: number;
};

/** The format of publications as `major.minor`. A newer minor version adds fields. Readers reject another major version. */
export const publishedFormat = '1.0';

/** An admitted disruption that has not ended. */
export interface PublishedReservation {
  /** The disruption as text, such as `evict pod 1 of zone a`. */
  readonly what: string;
  readonly user: string;
  readonly atMs: number;
}

/** The maximum number of published stops. */
export const publishedStopLimit = 20;

/** The maximum number of published reservations. */
export const publishedReservationLimit = 5;

/** One decision of one group, bounded. Instants are milliseconds since 1970. */
export interface PublishedDecision extends Pick<GroupDecision, 'namespace' | 'group' | 'goal' | 'phase' | 'outcome' | 'wave'> {
  /** `major.minor`; a reader refuses another major. */
  readonly format: string;
  /** The instant of the last change of phase. */
  readonly phaseSinceMs: number;
  /** The strategy of the group; absent in publications of earlier versions. */
  readonly strategy?: GroupDefinition['rollout']['strategy'];
  readonly zones: readonly PublishedZone[];
  readonly pods: readonly PublishedPod[];
  readonly waits: readonly PublishedWait[];
  /** At most `publishedStopLimit`; absent in publications of earlier versions. */
  readonly stops?: readonly Stop[];
  readonly steps: readonly PublishedStep[];
  readonly warnings: readonly RuleResult[];
  readonly gates: readonly PublishedGate[];
  /** Absent if no rule that binds the group reads a metric. */
  readonly metrics?: readonly PublishedMetric[];
  readonly run?: PublishedRun;
  /** The number of open claims. */
  readonly openClaims: number;
  /** The reason why the webhooks may not receive every request that concerns the group; absent if no problem is known. */
  readonly unenforced?: string;
  /** Reservations of admitted requests, the latest first, at most `publishedReservationLimit`. */
  readonly reservations?: readonly PublishedReservation[];
  /** The actions of the last turn with actions. */
  readonly actions: readonly PublishedAction[];
  readonly policyDigest: string;
  /** Identity of the agent that decided. */
  readonly leader?: string;
  /** The Lease of that agent; absent for an agent without a Lease. */
  readonly lease?: { readonly namespace: string; readonly name: string };
  /** Origin of the group's definition: `directory`, `objects` or `adopted`. */
  readonly origin?: string;
  readonly decidedMs: number;
  /** The earliest instant at which time alone could change the decision. */
  readonly wakeAtMs?: number;
  /** Omitted parts as `part: count`. */
  readonly omitted: readonly string[];
}

/** The prefix of the names of published decisions. Ledgers have the prefix `rollout-group-`. */
const prefix = 'rollout-status-';

/** Returns the name of the ConfigMap with the published decision of the group. */
export function statusMapName(group: string): string {
  return `${prefix}${group}`;
}

/** Reports whether a ConfigMap of that name may have a published decision. */
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
