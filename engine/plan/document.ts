// Defines the plan as a document: the output of `plan -o json`. Every other output format is made from it, and its JSON Schema is published.
import type { GroupDefinition, Source } from '../../policies/definition.ts';
import { isSameValue } from '../../policies/values/canonical-json.ts';
import type { RuleResult, Stop } from '../decision.ts';
import type { PublishedPod } from '../publish/published.ts';

/** A difference between the current and the requested state, and its consequence. */
export interface PlannedChange {
  /**
   * `source` is a change of the mirrored object, and `budget` of a disruption budget. `pods` is a change of the pod template that only pods
   * have, because they run another template than their StatefulSet has. All other kinds are changes of StatefulSets of the group.
   */
  readonly kind: 'template' | 'pods' | 'replicas' | 'settings' | 'created' | 'deleted' | 'source' | 'budget';
  /** Zones that change in the same way. */
  readonly zones: readonly string[];
  /** Path of the field, such as `spec.template.spec.containers[mimir].image`. For `source` and `budget`, starts with kind and name of the object. */
  readonly field: string;
  readonly before?: unknown;
  readonly after?: unknown;
  /**
   * The pods that have this change, by their present value, the most frequent first; absent if all pods have `before`. The other pods have the
   * requested value, or change at an enclosing or inner field. For a list: the removed entries instead of the value.
   */
  readonly running?: readonly RunningValue[];
  readonly consequence: 'restart' | 'scaleUp' | 'scaleDown' | 'none' | 'refused';
}

/** A value of a field of the pod template. Without `value`, the template of these pods does not have the field. */
export interface RunningValue {
  readonly value?: unknown;
  readonly pods: number;
}

/** A run in progress that the change ends before it completes. */
export interface SupersededRun {
  readonly run: string;
  readonly kind: 'rollout' | 'rollback';
  /** The change of the run: the new images, else the changed fields, else the revisions. */
  readonly to: readonly string[];
  readonly pods: number;
  /** Number of pods that already have the template of the run. */
  readonly updated: number;
  /** Number of updated pods that get another template and are replaced again. */
  readonly replacedAgain: number;
}

/** One line of the plan: pods of one zone are replaced, a zone is prepared or scaled, or the group waits. */
export interface PlannedStep {
  readonly kind: 'roll' | 'scaleUp' | 'scaleDown' | 'prepare' | 'check' | 'soak' | 'approval' | 'wait';
  readonly zone?: string;
  readonly pods: readonly string[];
  /** Maximum number of pods of the step that are unavailable at the same time. */
  readonly atOnce?: number;
  readonly from?: number;
  readonly to?: number;
  /** The gate, wave or rule that the step waits for. */
  readonly waitsFor?: string;
  readonly gates?: readonly string[];
  /** Definition of the first rule that blocks the step. */
  readonly source?: Source;
  /** Time from the start of the plan to the start of the step, if all durations are medians. */
  readonly startSeconds: number;
  /** Median duration. Absent if only a person can end the step, for example by an approval. */
  readonly p50Seconds?: number;
  readonly p90Seconds?: number;
  readonly rules: readonly RuleResult[];
}

export interface PlannedWave {
  readonly name: string;
  readonly steps: readonly PlannedStep[];
}

/** The name under which a plan shows the pods that the StatefulSet controller replaces without an action of the agent. */
export const controllerWave = 'at once';

/** The name under which a plan shows changes of replicas. */
export const scalingWave = 'replicas';

const waveKinds: ReadonlySet<PlannedStep['kind']> = new Set(['roll', 'soak', 'check', 'approval']);

/** Returns the names of the waves that replace pods or have a soak, a gate or an approval, in their order. */
export function rolloutWaves(waves: readonly PlannedWave[]): readonly string[] {
  const others = [controllerWave, scalingWave];
  const own = waves.filter(({ name, steps }) => !others.includes(name) && steps.some(({ kind }) => waveKinds.has(kind)));
  return [...new Set(own.map(({ name }) => name))];
}

/** Returns the gates that pass before the approval is given, so that the steps of the wave have no check for them. */
export function gatesWithApproval({ kind, gates = [] }: PlannedStep, steps: readonly PlannedStep[]): readonly string[] {
  const isChecked = (gate: string): boolean => steps.some((step) => step.kind === 'check' && step.waitsFor === gate);
  return kind === 'approval' ? gates.filter((gate) => !isChecked(gate)) : [];
}

/** A requested change that a rule denies. */
export interface Refusal {
  /** The denied request, such as `delete StatefulSet ingester-zone-a`. */
  readonly what: string;
  readonly zone?: string;
  readonly message: string;
  readonly results: readonly RuleResult[];
  /** The order of the writes that avoids the denial: by the requested definition, or one zone after the other. Absent without such an order. */
  readonly hint?: string;
  /** The command that overrides the rules. Absent if an exception cannot override them, or if `hint` avoids the denial. */
  readonly override?: string;
}

/** An allowed change that deserves a review. */
export interface Risk {
  readonly code: string;
  readonly severity: 'warning' | 'notice';
  readonly message: string;
  readonly source?: Source;
}

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
  /** Absent if the change ends no run in progress. */
  readonly supersedes?: SupersededRun;
  /** The blocks of the present templates that the change ends: a failed run, a rollback or an undo. Absent without such a block. */
  readonly ends?: readonly Stop[];
  readonly waves: readonly PlannedWave[];
  readonly refused: readonly Refusal[];
  readonly risks: readonly Risk[];
  /** Results that pass only because of an exception in force; absent without such results. */
  readonly permitted?: readonly RuleResult[];
  /** The policies that apply to the group: `kind namespace/name`, and the place of each. Absent without policies. */
  readonly policies?: readonly { readonly object: string; readonly source: Source }[];
  /** Changed objects that bind the group, such as a policy: `kind namespace/name`. Absent without such changes. */
  readonly policyChanges?: readonly string[];
  /** Results of the rules that still block the group at the end of the plan. */
  readonly waits: readonly RuleResult[];
  /** The stops that the plan meets, each with the commands or edits that end it; absent without a stop. */
  readonly stops?: readonly Stop[];
  /** The checks of waves that follow after the wait at the end of the plan; absent without such checks or without pods in `afterWait`. */
  readonly checksAfterWait?: readonly { readonly wave: string; readonly kinds: readonly ('soak' | 'gate' | 'approval')[] }[];
  /** The pods that do not become available by themselves at the end of a plan that waits; absent without such pods. */
  readonly troubled?: readonly PublishedPod[];
  /** In the order in which the waves that are left replace their pods. */
  readonly zones: readonly {
    readonly zone: string;
    readonly statefulSet: string;
    readonly replicasBefore: number;
    readonly replicasAfter: number;
    /** Number of pods that are replaced, including those of `afterWait` and `released`. A pod that is replaced twice counts once. */
    readonly restarts: number;
    /** Pods that are replaced after the wait at the end of the plan, in order of replacement. */
    readonly afterWait?: readonly string[];
    /** The replicas to which the zone scales after the wait at the end of the plan; absent if they do not change then. */
    readonly replicasAfterWait?: number;
    /** Number of pods that are outdated at the end of the plan, because no wave includes them; absent without such pods. */
    readonly podsInNoWave?: number;
    /** Pods that the StatefulSet controller replaces after the agent released the zone of a deleted group. */
    readonly released?: readonly string[];
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

export interface Plan {
  readonly apiVersion: 'rollout-group.dev/cli/v1';
  readonly kind: 'Plan';
  readonly metadata: {
    /** Digest of the content of the policies. Their positions in files have no influence. */
    readonly policyDigest: string;
    /** Start of the plan. Absent for a plan of files that does not depend on the calendar, for example on a window. */
    readonly startsAt?: string;
  };
  readonly outcome: 'complete' | 'unchanged' | 'blocked' | 'waits';
  /** Changes of groups, policies and other objects of this project; absent without changes. */
  readonly policyChanges?: readonly ObjectChange[];
  /** Changes of objects in no group, such as Services; absent without changes. Their effects are not planned. */
  readonly otherChanges?: readonly ObjectChange[];
  /** The denials of the API server beyond the rules of the groups; absent without such a denial. The plan contains the denied changes. */
  readonly denied?: readonly ApiDenial[];
  /** Notes of a plan on a cluster, for example that `apply` refuses the change; absent without notes. */
  readonly notes?: readonly string[];
  readonly assumptions: Assumptions;
  readonly groups: readonly GroupPlan[];
}

/** A denial of the dry run by a webhook, an admission policy or a quota. */
export interface ApiDenial {
  /** `kind namespace/name` of each denied object. */
  readonly objects: readonly string[];
  readonly message: string;
  /** As in `Refusal`. */
  readonly hint?: string;
}

const shownNames = 3;

/** Returns the names: `Service mimir/a`, or `5 objects (Service mimir/a, Service mimir/b, Service mimir/c and 2 more)`. */
export function namesText(names: readonly string[]): string {
  const [first = ''] = names;
  if (names.length === 1) return first;
  const more = names.length <= shownNames ? '' : ` and ${names.length - shownNames} more`;
  return `${names.length} objects (${names.slice(0, shownNames).join(', ')}${more})`;
}

export interface ObjectChange {
  /** `kind namespace/name`. */
  readonly object: string;
  readonly operation: 'created' | 'deleted' | 'changed';
  readonly fields: readonly string[];
}

export interface Quantiles {
  readonly p50Seconds: number;
  readonly p90Seconds: number;
}

export interface PodTimes {
  /** From the request to delete a pod until the pod does not exist any more. */
  readonly drain: Quantiles;
  /** From the creation of a pod until it is ready. */
  readonly start: Quantiles;
}

export interface Assumptions {
  readonly pods: PodTimes;
  /** Other durations for single groups, by group name. */
  readonly groups: Readonly<Record<string, Partial<PodTimes>>>;
  readonly gates: 'pass' | 'fail';
  /** `given`: each approval is given at once, so totals contain no time for approvals. */
  readonly approvals: 'given' | 'missing';
  /** Result of every request that asks a pod to prepare for its deletion. */
  readonly preparations: 'succeed' | 'fail';
  /**
   * Values of the metrics that policies read, by `policy/input`. For an omitted metric the plan chooses one of a few usual values, at which
   * no rule of its policy applies. If none fits, the metric is unknown.
   */
  readonly metrics: Readonly<Record<string, number>>;
}

/** The default durations. In the slow case (p90) a pod stops and starts in five minutes. */
const defaultTimes: PodTimes = { drain: { p50Seconds: 30, p90Seconds: 120 }, start: { p50Seconds: 60, p90Seconds: 180 } };

/** Default assumptions. Every plan states its assumptions; users can measure their own durations and pass them in a file. */
export const defaultAssumptions: Assumptions = {
  pods: defaultTimes,
  groups: {},
  gates: 'pass',
  approvals: 'given',
  preparations: 'succeed',
  metrics: {},
};

/**
 * Returns the durations of the pods of a group. The defaults shrink in proportion until a slow pod stops and starts within the progress
 * deadline, because users choose the deadline for their pods. Other durations, which are given or measured, stay.
 */
export function podTimesOf({ pods, groups }: Pick<Assumptions, 'pods' | 'groups'>, group: GroupDefinition): PodTimes {
  const { progressMs = Number.POSITIVE_INFINITY } = group.rollout.deadlines;
  const factor = Math.min(1, progressMs / 1000 / slowSeconds(defaultTimes));
  const given = { ...pods, ...groups[group.name] };
  const times = (part: keyof PodTimes): Quantiles =>
    isSameValue(given[part], defaultTimes[part]) ? scaled(given[part], factor) : given[part];
  return { drain: times('drain'), start: times('start') };
}

/** Returns the durations of each group whose progress deadline shortens the default durations. */
export function shorterTimes(assumptions: Assumptions, groups: readonly GroupDefinition[]): Assumptions['groups'] {
  const times = groups.map((group) => [group.name, podTimesOf(assumptions, group)] as const);
  return Object.fromEntries(times.filter(([name, used]) => !isSameValue(used, { ...assumptions.pods, ...assumptions.groups[name] })));
}

/** Returns the sum of the 90th percentiles of stop and start in seconds. */
export function slowSeconds({ drain, start }: PodTimes): number {
  return drain.p90Seconds + start.p90Seconds;
}

function scaled({ p50Seconds, p90Seconds }: Quantiles, factor: number): Quantiles {
  const part = (seconds: number): number => Math.round(seconds * factor * 1000) / 1000;
  return { p50Seconds: part(p50Seconds), p90Seconds: part(p90Seconds) };
}

/**
 * Reports whether the plan disrupts at most one zone at a time. Returns false for a single zone, without disruptions, if a StatefulSet is
 * deleted, and if an exception lets a zone roll while another is not ready.
 */
export function isOneZoneAtATime(group: GroupPlan): boolean {
  if (group.changes.some((change) => change.kind === 'deleted' && change.consequence !== 'refused')) return false;
  if (group.permitted?.some(({ rule }) => rule === 'other-zones-ready')) return false;
  const disrupting = group.timeline.filter((span) => span.kind === 'roll' || span.kind === 'scaleDown');
  if (group.zones.length < 2 || disrupting.length === 0) return false;
  // Two disruptions that begin together overlap, also if they take no time.
  return disrupting.every(({ zone, startSeconds }) =>
    disrupting.every((other) => {
      const isBefore = other.endSeconds <= startSeconds && other.startSeconds < startSeconds;
      return other.zone === zone || other.startSeconds > startSeconds || isBefore;
    }),
  );
}
