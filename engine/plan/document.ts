// The plan as a document: its assumptions, and the output of `plan -o json`, which every other format renders. Its JSON Schema is published.
import type { Source } from '../../policies/definition.ts';
import type { RuleResult } from '../decision.ts';

/** A difference between what runs and what is asked for, and what follows from it. */
export interface PlannedChange {
  /** Changes of members; `source` is the mirrored object, `budget` a disruption budget: their fields start with kind and name. */
  readonly kind: 'template' | 'replicas' | 'settings' | 'created' | 'deleted' | 'source' | 'budget';
  /** Zones that change in the same way. */
  readonly zones: readonly string[];
  /** The field, as a path such as `spec.template.spec.containers[mimir].image`. */
  readonly field: string;
  readonly before?: unknown;
  readonly after?: unknown;
  readonly consequence: 'restart' | 'scaleUp' | 'scaleDown' | 'none' | 'refused';
}

/** One line of the plan: pods of one zone are replaced, a zone is scaled, or the group waits. */
export interface PlannedStep {
  readonly kind: 'roll' | 'scaleUp' | 'scaleDown' | 'prepare' | 'check' | 'soak' | 'approval' | 'wait';
  readonly zone?: string;
  /** In the order in which they go. */
  readonly pods: readonly string[];
  /** The most pods of the zone that are replaced at once. */
  readonly atOnce?: number;
  readonly from?: number;
  readonly to?: number;
  /** The gate, wave or rule that is waited for. */
  readonly waitsFor?: string;
  /** Gates whose readings are asked for meanwhile. */
  readonly gates?: readonly string[];
  readonly source?: Source;
  /** From the start of the plan; with the times of p50. */
  readonly startSeconds: number;
  /** The duration; absent when it is unknown, as with people. */
  readonly p50Seconds?: number;
  readonly p90Seconds?: number;
  /** The rules that were asked before the first pod. */
  readonly rules: readonly RuleResult[];
}

export interface PlannedWave {
  readonly name: string;
  readonly steps: readonly PlannedStep[];
}

/** A requested change that policy denies. */
export interface Refusal {
  readonly what: string;
  readonly zone?: string;
  readonly message: string;
  readonly results: readonly RuleResult[];
}

/** An allowed change that deserves a review. */
export interface Risk {
  /** Finding code. */
  readonly code: string;
  readonly severity: 'warning' | 'notice';
  readonly message: string;
  readonly source?: Source;
}

/** One pod, or the zone as a whole when pod is absent, between two instants; for timelines. */
export interface TimelineSpan {
  readonly zone: string;
  readonly kind: 'roll' | 'scaleUp' | 'scaleDown' | 'prepare' | 'soak' | 'wait';
  readonly label: string;
  readonly startSeconds: number;
  readonly endSeconds: number;
}

export interface GroupPlan {
  readonly namespace: string;
  readonly group: string;
  readonly outcome: 'complete' | 'unchanged' | 'blocked' | 'waits';
  readonly changes: readonly PlannedChange[];
  readonly waves: readonly PlannedWave[];
  readonly refused: readonly Refusal[];
  readonly risks: readonly Risk[];
  /** The results that still block the group at the end of the plan. */
  readonly waits: readonly RuleResult[];
  readonly zones: readonly {
    readonly zone: string;
    readonly statefulSet: string;
    readonly replicasBefore: number;
    readonly replicasAfter: number;
    /** Pods that are replaced, each once; with those of `afterWait`. */
    readonly restarts: number;
    /** Pods that are replaced once the plan no longer waits, in their order. */
    readonly afterWait?: readonly string[];
  }[];
  readonly totals: {
    readonly restarts: number;
    readonly scaleChanges: number;
    readonly waves: number;
    readonly gates: number;
    readonly approvals: number;
    readonly p50Seconds?: number;
    readonly p90Seconds?: number;
  };
  readonly timeline: readonly TimelineSpan[];
}

/** A plan of every group of the input. */
export interface Plan {
  readonly apiVersion: 'rollout-group.dev/cli/v1';
  readonly kind: 'Plan';
  readonly metadata: {
    /** Digest of what policies say, positions left out. */
    readonly policyDigest: string;
    /** The instant at which the plan begins; only when something in it depends on the calendar. */
    readonly startsAt?: string;
  };
  readonly outcome: 'complete' | 'unchanged' | 'blocked' | 'waits';
  readonly assumptions: Assumptions;
  readonly groups: readonly GroupPlan[];
}

/** The median and the 90th percentile of a duration. */
export interface Quantiles {
  readonly p50Seconds: number;
  readonly p90Seconds: number;
}

export interface PodTimes {
  /** From the request to delete a pod until it is gone. */
  readonly drain: Quantiles;
  /** From the creation of a pod until it is ready. */
  readonly start: Quantiles;
}

export interface Assumptions {
  readonly pods: PodTimes;
  /** Times of single groups, by name, where they differ. */
  readonly groups: Readonly<Record<string, Partial<PodTimes>>>;
  readonly gates: 'pass' | 'fail';
  /** Approvals are taken as given at once, and the time of people is left out of every total. */
  readonly approvals: 'given' | 'missing';
  /** The answer of pods that are asked to prepare. */
  readonly preparations: 'succeed' | 'fail';
  /** Values of metrics that policies read, as `policy/input`; those left out get a value at which no rule of the policy holds, if there is one. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** Plain defaults, stated in every plan; measure your own and put them into a file. */
export const defaultAssumptions: Assumptions = {
  pods: { drain: { p50Seconds: 30, p90Seconds: 120 }, start: { p50Seconds: 60, p90Seconds: 180 } },
  groups: {},
  gates: 'pass',
  approvals: 'given',
  preparations: 'succeed',
  metrics: {},
};
