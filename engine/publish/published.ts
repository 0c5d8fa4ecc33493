// The published form of a decision. Its readers need neither the agent nor the right to read pods.
import type { GroupDefinition } from '../../policies/definition.ts';
import { ordinalRanges } from '../amount.ts';
import type { Action, GroupDecision, RuleResult, Step, Stop, ZoneDecision } from '../decision.ts';
import type { GateReading, RunState } from '../snapshot.ts';

/** The most bytes of a published decision as JSON, in UTF-8. */
export const publishedByteLimit = 32 * 1024;

/** The most pods that are named. */
export const publishedPodLimit = 50;

/** The outcome of an action. `conflict`: its object had changed. `unknown`: no answer arrived; it may have happened. */
type ActionResult = 'done' | 'conflict' | 'refused' | 'failed' | 'unknown';

/** An action of the turn that made the decision, and how it ended. */
export interface TakenAction {
  readonly action: Action;
  readonly result: ActionResult;
  readonly message?: string;
}

/** The same in one line, without preconditions. */
export interface PublishedAction {
  readonly kind: Action['kind'];
  readonly zone?: string;
  /** The action as text: `delete pod ingester-zone-a-3`, `scale ingester-zone-a from 5 to 4`. */
  readonly what: string;
  readonly result: ActionResult;
  readonly message?: string;
  readonly atMs: number;
}

/** A zone as the decision saw it. */
export interface PublishedZone extends ZoneDecision {
  /** Under the strategy `partition`, while it is lowered: pods of this ordinal and above are the StatefulSet controller's to replace. */
  readonly partition?: number;
  /** Under the strategy `pinned`: ordinals whose pods come back at another revision than the current one. */
  readonly pinned?: string;
}

/** The worst first, which is also the order in which pods are named. */
export const podStates = ['crashing', 'nodeDown', 'unready', 'missing', 'terminating', 'announced', 'starting', 'leaving'] as const;

export type PodState = (typeof podStates)[number];

/** A pod that moves or is bad. */
export interface PublishedPod {
  readonly zone: string;
  readonly pod: string;
  /**
   * `announced`: an open claim. `crashing`: a container fails. `nodeDown`: node not ready. `unready`: at an old revision. `starting`: at
   * the update revision. `leaving`: beyond the replicas. `missing`: no pod.
   */
  readonly state: PodState;
  /** Why a container waits, such as CrashLoopBackOff. */
  readonly reason?: string;
  readonly node?: string;
  /** Since when the pod has had its current readiness. */
  readonly sinceMs?: number;
}

/** A result that holds the group, and since when it has. */
export interface PublishedWait extends RuleResult {
  readonly sinceMs: number;
  /** The zones it holds. */
  readonly zones: readonly string[];
}

export interface PublishedStep extends Pick<Step, 'id' | 'kind' | 'zone' | 'from' | 'to' | 'outcome'> {
  /** Number of pods of the step. */
  readonly podCount: number;
  /** Every rule that was asked; absent when it did not fit. */
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

/** A metric input that a rule reads which binds the group. */
export interface PublishedMetric {
  /** Namespace of the policy. */
  readonly namespace: string;
  readonly policy: string;
  readonly input: string;
  /** Name of the metric source. */
  readonly source: string;
  /** A hash of source and query. */
  readonly question: string;
  /** The reading; without one while nothing was read. */
  readonly value?: number;
  /** Why there is no value. */
  readonly unknown?: string;
  readonly atMs?: number;
  /** Why there is nothing newer. */
  readonly problem?: string;
  /** A reading that is older is unknown. */
  readonly maxAgeMs: number;
}

/** The most metric inputs that are published. */
export const publishedMetricLimit = 50;

/** A run as published: flat, so that a reader needs no knowledge of the states. */
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

/** `major.minor` of what this program publishes. A newer minor adds fields; another major is not read. */
export const publishedFormat = '1.0';

/** An admitted disruption that is not settled yet. */
export interface PublishedReservation {
  /** Such as `evict pod 1 of zone a`. */
  readonly what: string;
  readonly user: string;
  readonly atMs: number;
}

/** The most stops that are published. */
export const publishedStopLimit = 20;

/** The most reservations that are published. */
export const publishedReservationLimit = 5;

/** One decision of one group, bounded. Instants are milliseconds since 1970. */
export interface PublishedDecision extends Pick<GroupDecision, 'namespace' | 'group' | 'goal' | 'phase' | 'outcome' | 'wave'> {
  /** `major.minor`; a reader refuses another major. */
  readonly format: string;
  /** Since when the phase has been this one. */
  readonly phaseSinceMs: number;
  /** By which engine the group rolls; absent in what former versions have published. */
  readonly strategy?: GroupDefinition['rollout']['strategy'];
  readonly zones: readonly PublishedZone[];
  readonly pods: readonly PublishedPod[];
  readonly waits: readonly PublishedWait[];
  /** At most `publishedStopLimit`; absent in what former versions have published. */
  readonly stops?: readonly Stop[];
  readonly steps: readonly PublishedStep[];
  readonly warnings: readonly RuleResult[];
  readonly gates: readonly PublishedGate[];
  /** Absent when no rule that binds the group reads any. */
  readonly metrics?: readonly PublishedMetric[];
  readonly run?: PublishedRun;
  /** Disruptions that are announced and not yet seen to be over. */
  readonly openClaims: number;
  /** Why the webhooks may not hear of everything that they guard; absent while nothing is known against it. */
  readonly unenforced?: string;
  /** Reservations of admitted requests, the latest first, at most `publishedReservationLimit`. */
  readonly reservations?: readonly PublishedReservation[];
  /** The actions of the last turn that had any. */
  readonly actions: readonly PublishedAction[];
  readonly policyDigest: string;
  /** Identity of the agent that decided. */
  readonly leader?: string;
  /** The Lease that it held; absent for an agent that acts without one. */
  readonly lease?: { readonly namespace: string; readonly name: string };
  /** Origin of the group's definition: `directory`, `objects` or `adopted`. */
  readonly origin?: string;
  readonly decidedMs: number;
  /** The earliest instant at which time alone could change the decision. */
  readonly wakeAtMs?: number;
  /** Omitted parts as `part: count`. */
  readonly omitted: readonly string[];
}

/** Differs from the prefix of ledgers, `rollout-group-`. */
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
