// Defines policies in the form that the engine reads: defaults and overrides are resolved, durations are in milliseconds.
import type {
  ApprovalSpec,
  DisruptionSpec,
  EndpointSpec,
  GateSpec,
  MirrorSpec,
  PrepareSpec,
  ProfileName,
  ReplicasSpec,
  RolloutSpec,
} from './schema/rollout-group.ts';
import type { LimitsSpec, PolicyAction, PolicyRuleSpec, WindowSpec } from './schema/rollout-policy.ts';
import type { CountOrPercent, LabelSelector } from './schema/scalars.ts';
import type { Defined } from './values/defined.ts';

export type { ProfileName } from './schema/rollout-group.ts';

/** The source of a setting: a place in a file, or a field of an object in the cluster. Never part of a digest. */
export interface Source {
  readonly file?: string;
  /** The line, from 1. */
  readonly line?: number;
  /** The column, from 1. */
  readonly column?: number;
  /** The object, as `kind namespace/name`. */
  readonly object?: string;
  readonly field?: string;
}

export type ReplicasDefinition = { readonly kind: 'count'; readonly count: number } | MirrorDefinition | { readonly kind: 'leader' };

export interface MirrorDefinition
  extends Readonly<Pick<MirrorSpec, 'writeBack' | 'onMissing'> & Pick<MirrorSpec['from'], 'apiVersion' | 'name' | 'read'>> {
  readonly kind: 'mirror';
  readonly resourceKind: string;
  readonly fieldPath?: readonly string[];
}

export type BoundsDefinition = Readonly<Defined<NonNullable<ReplicasSpec['bounds']>>>;

export interface DelayedDefinition {
  readonly afterMs: number;
  readonly endpoint: EndpointSpec;
  readonly onUnreachable: 'hold' | 'fail';
}

export interface ZoneDefinition {
  readonly name: string;
  readonly statefulSet: string;
  readonly follows?: string;
  readonly replicas: ReplicasDefinition;
  readonly bounds: BoundsDefinition;
  readonly maxUnavailable: CountOrPercent | 'fromBudget';
  readonly paused: boolean;
  readonly forceReplicas?: number;
  /** The reason why the agent must not scale the zone. */
  readonly scalingHold?: string;
  /** The reason why neither the agent nor another client may shrink the zone. */
  readonly scaleDownHold?: string;
  readonly duringRollout: 'wait' | 'allow';
  readonly followersWaitFor: 'leaderReady' | 'nothing';
  readonly betweenZonesMs?: number;
  readonly delayed?: DelayedDefinition;
  readonly prepare?: PrepareSpec;
  readonly noDownscale: boolean;
  readonly noDelete: boolean;
  readonly noEviction: boolean;
}

/** The updated pods per zone after a wave. Percentages round up; less than 100 percent leaves at least one of several pods outdated. */
export type WaveAmount =
  | { readonly pods: number }
  | { readonly percent: number }
  /** The wave with this index (from 0) of a schedule. Its number of pods depends on the replicas of the zone. */
  | { readonly stage: number; readonly schedule: ScheduleDefinition };

/** The growth of the number of updated pods in a zone from wave to wave. */
export type ScheduleDefinition =
  | { readonly kind: 'linear'; readonly step: CountOrPercent; readonly start: CountOrPercent }
  /** `tenths` is the factor in tenths. */
  | { readonly kind: 'geometric' | 'exponential'; readonly start: CountOrPercent; readonly tenths: number };

export interface ApprovalDefinition {
  readonly count: ApprovalSpec['count'];
  readonly from: readonly string[];
  readonly expiresMs?: number;
}

export interface WaveDefinition {
  readonly name: string;
  readonly zones: readonly string[];
  readonly amount: WaveAmount;
  readonly before: { readonly approval?: ApprovalDefinition; readonly gates: readonly string[] };
  readonly after: { readonly soakMs: number; readonly approval?: ApprovalDefinition; readonly gates: readonly string[] };
}

export interface GateDefinition extends Readonly<Pick<GateSpec, 'name' | 'mode' | 'consecutive' | 'failureLimit' | 'noData' | 'onError'>> {
  readonly provider: Pick<GateSpec, 'prometheus' | 'consul' | 'http' | 'podsAvailable'>;
  readonly initialDelayMs: number;
  readonly everyMs: number;
  /** The condition on `value`, in JsonLogic. */
  readonly pass: unknown;
}

export interface DisruptionDefinition extends Readonly<Defined<Omit<DisruptionSpec, 'crossZoneDelay'>>> {
  readonly crossZoneDelayMs: number;
}

export interface RolloutDefinition
  extends Readonly<Pick<RolloutSpec, 'strategy' | 'order' | 'rotateBy' | 'onFailure' | 'skipOnRollback' | 'historyLimit'>> {
  readonly minIntervalMs: number;
  readonly replaceUnready: { readonly when: RolloutSpec['replaceUnready']['when']; readonly afterMs: number };
  /** The waves, at least one. If the file has neither waves nor a schedule, a single wave updates every zone completely. */
  readonly waves: readonly WaveDefinition[];
  readonly deadlines: { readonly progressMs?: number; readonly runMs?: number };
  /** The effect on the StatefulSets if the group is deleted; absent: no change. */
  readonly onPolicyDeleted?: 'release';
}

/** A notification channel that receives events of a group. */
export interface NotifyDefinition {
  readonly channel: string;
  readonly events: readonly ('started' | 'waiting' | 'failed' | 'completed')[];
}

export interface GroupDefinition {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly zones: readonly ZoneDefinition[];
  readonly rollout: RolloutDefinition;
  readonly gates: readonly GateDefinition[];
  readonly disruption?: DisruptionDefinition;
  /** The receivers of events; absent without notifications. */
  readonly notify?: readonly NotifyDefinition[];
  readonly profile: ProfileName;
  /** `metadata.generation` of the RolloutGroup object; absent in plans, and for a group of a file or of labels. */
  readonly generation?: number;
  /** The sources by path: `''` (the group), `rollout.maxUnavailable`, `zones.b.maxUnavailable`, `gates.errors`. Absent for defaults. */
  readonly sources: Readonly<Record<string, Source>>;
}

export interface PolicyRuleDefinition {
  readonly name: string;
  readonly actions: readonly PolicyAction[];
  readonly effect: PolicyRuleSpec['effect'];
  /** The condition in JsonLogic; if it is undefined, the rule always applies. */
  readonly when?: unknown;
  readonly onUnknown: NonNullable<PolicyRuleSpec['onUnknown']>;
  readonly approval: ApprovalDefinition;
  readonly message?: string;
  readonly source: Source;
}

export interface WindowDefinition {
  readonly name: string;
  readonly kind: WindowSpec['kind'];
  readonly actions: readonly PolicyAction[];
  readonly schedule?: { readonly cron: string; readonly durationMs: number; readonly timeZone: string };
  readonly ranges?: readonly { readonly fromMs: number; readonly toMs: number; readonly reason?: string }[];
  readonly inFlight: WindowSpec['inFlight'];
  readonly source: Source;
}

export interface LimitsDefinition extends Readonly<Defined<Pick<LimitsSpec, 'maxUnavailable' | 'minReplicas' | 'maxReplicas'>>> {
  readonly betweenZonesMs?: number;
  readonly minIntervalMs?: number;
}

export interface PolicyDefinition {
  readonly namespace: string;
  readonly name: string;
  readonly targets: {
    readonly groups?: readonly string[];
    readonly selector?: LabelSelector;
    readonly all?: true;
    readonly namespaces?: readonly string[];
  };
  readonly metrics: Readonly<
    Record<string, { readonly source: string; readonly query: string; readonly noData: 'unknown' | 'zero'; readonly maxAgeMs: number }>
  >;
  readonly rules: readonly PolicyRuleDefinition[];
  readonly windows: readonly WindowDefinition[];
  readonly limits: LimitsDefinition;
  readonly limitSources: Readonly<Record<string, Source>>;
  /** The place of the policy. Absent for a policy that blocks in place of an unusable one. */
  readonly source?: Source;
}

export interface ExceptionDefinition {
  readonly namespace: string;
  readonly name: string;
  readonly rule: string;
  readonly group: string;
  readonly zone?: string;
  readonly allow: { readonly replicasAtLeast?: number; readonly podsAtMost?: number; readonly anything?: true };
  readonly reason: string;
  /** The user who created or last changed the exception, and when; absent if no webhook recorded the user. */
  readonly requestedBy?: { readonly user: string; readonly atMs: number };
  readonly notBeforeMs?: number;
  readonly expiresMs: number;
  readonly source: Source;
}

/** All resolved policies, which the engine reads. */
export interface PolicyBundle {
  readonly groups: readonly GroupDefinition[];
  readonly policies: readonly PolicyDefinition[];
  readonly exceptions: readonly ExceptionDefinition[];
}
