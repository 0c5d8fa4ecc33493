// The input of every decision, as plain data: the observed state and its time. An unreadable value is unknown, never absent.
import type { ExceptionDefinition, GroupDefinition, PolicyDefinition } from '../policies/definition.ts';
import type { LabelSelector } from '../policies/schema/scalars.ts';
import type { ObjectContent } from './diff/field-diff.ts';

/** Replaces an unreadable value, with the reason. */
export interface Unknown {
  readonly unknown: string;
}

export type Known<Value> = Value | Unknown;

/** Reports whether a value could not be read. */
export function isUnknown<Value>(value: Known<Value>): value is Unknown {
  return typeof value === 'object' && value !== null && 'unknown' in value;
}

/** The fields of a StatefulSet (`apps/v1`) that the engine reads. */
export interface StatefulSetView {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** `spec.replicas`; 1 when the object names none. */
  readonly replicas: number;
  /** `spec.ordinals.start`. */
  readonly firstOrdinal: number;
  readonly updateStrategy: 'OnDelete' | 'RollingUpdate';
  readonly partition: number;
  readonly podManagementPolicy: 'OrderedReady' | 'Parallel';
  readonly minReadySeconds: number;
  readonly serviceName: string;
  readonly podLabels: Readonly<Record<string, string>>;
  /** `spec.selector` as kubectl writes selectors; absent when it could not be put so. */
  readonly selector?: string;
  readonly isTerminating: boolean;
  readonly status: {
    readonly observedGeneration: number;
    readonly replicas: number;
    readonly readyReplicas: number;
    readonly updatedReplicas: number;
    readonly currentRevision: string;
    readonly updateRevision: string;
  };
}

/** The fields of a pod that the engine reads. */
export interface PodView {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly ordinal: number;
  /** Label `controller-revision-hash`; empty when absent, which counts as outdated. */
  readonly revision: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
  /** Condition Ready. */
  readonly isReady: boolean;
  /** Every container status is ready and running; true without container statuses. */
  readonly containersReady: boolean;
  /** Time of the last change of the condition Ready. */
  readonly readyChangedMs: number;
  readonly isTerminating: boolean;
  /** Reasons of containers that wait, such as CrashLoopBackOff. */
  readonly waitingReasons: readonly string[];
  readonly node: string;
  readonly nodeReady: boolean;
  /** Annotation grafana.com/ready-time, when it is an instant. */
  readonly readyTimeMs?: number;
}

/** The pods of one StatefulSet, owned by it. */
export interface PodsView {
  readonly namespace: string;
  readonly statefulSet: string;
  readonly pods: Known<readonly PodView[]>;
}

/** A ZoneAwarePodDisruptionBudget (`rollout-operator.grafana.com/v1`). */
export interface ZoneBudgetView {
  readonly namespace: string;
  readonly name: string;
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly maxUnavailable?: number;
  readonly maxUnavailablePercent?: number;
  readonly partition?: { readonly pattern: string; readonly group: number };
  readonly crossZoneDelayMs: number;
}

/** A PodDisruptionBudget (`policy/v1`), which the eviction API enforces. */
export interface PodBudgetView {
  readonly namespace: string;
  readonly name: string;
  readonly selector: LabelSelector;
  readonly maxUnavailable?: number | string;
  readonly minAvailable?: number | string;
}

/** A resource that replicas are mirrored from. */
export interface ReplicaSourceView {
  readonly namespace: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly replicas: Known<number>;
  readonly statusReplicas?: number;
}

/** `value` is finite: a snapshot is data that JSON can carry, and `notFinite` says what was there instead. */
export type GateReading =
  | { readonly atMs: number; readonly result: 'value'; readonly value: number }
  | { readonly atMs: number; readonly result: 'notFinite'; readonly value: 'NaN' | '+Inf' | '-Inf' }
  | { readonly atMs: number; readonly result: 'noData' }
  | { readonly atMs: number; readonly result: 'error'; readonly message: string };

/** The readings of one gate, in any order. */
export interface GateReadingsView {
  readonly namespace: string;
  readonly group: string;
  readonly gate: string;
  readonly readings: readonly GateReading[];
}

/** A metric that a RolloutPolicy declared as input. */
export interface MetricView {
  readonly namespace: string;
  readonly policy: string;
  readonly input: string;
  readonly value: Known<number>;
  /** Time of the query that returned `value`. */
  readonly atMs: number;
  /** Why there is no newer value; absent if the last query succeeded. */
  readonly problem?: string;
}

/** A request of a user (RolloutIntent). `requestedBy` is absent if no webhook set it. */
export interface IntentView {
  readonly namespace: string;
  readonly name: string;
  readonly group: string;
  readonly action:
    | 'pause'
    | 'approve'
    | 'reject'
    | 'promote'
    | 'abort'
    | 'retry'
    | 'undo'
    | 'restart'
    | 'scale'
    | 'cancel'
    | 'protect'
    | 'hold';
  readonly zone?: string;
  readonly wave?: string;
  readonly rule?: string;
  readonly gate?: string;
  /** With `approve`: which definition of the waves, or of the rule, was approved. */
  readonly digest?: string;
  /** With `cancel`: the number that is not wanted any more. */
  readonly replicas?: number;
  /** With `protect`: the ordinals that are meant; absent: all. */
  readonly ordinals?: readonly number[];
  /** With `abort`: pods go back to what they ran before. */
  readonly rollback?: boolean;
  /** With `undo`: undone revisions; a new rollout to one of them is blocked. */
  readonly undone?: readonly { readonly zone: string; readonly revision: string; readonly to?: string | undefined }[];
  readonly runId?: string;
  readonly reason?: string;
  readonly expiresMs?: number;
  readonly requestedBy?: { readonly user: string; readonly groups: readonly string[]; readonly atMs: number };
}

/** A disruption that was announced and is not yet seen to be over. */
export interface Claim {
  readonly verb: 'deletePod' | 'evictPod' | 'scaleDown' | 'setPartition';
  readonly zone: string;
  /** UID of the pod, or of the StatefulSet for scaleDown and setPartition. */
  readonly uid: string;
  readonly ordinal?: number;
  /** Replicas for scaleDown, partitions for setPartition. */
  readonly from?: number;
  readonly to?: number;
  readonly atMs: number;
  /** The resource version that the request names as its precondition; absent for evictions, which name the UID alone. */
  readonly resourceVersion?: string;
  /** The leadership that wrote the claim; absent if no other agent can act. */
  readonly epoch?: number;
  /** Who asked, of a request that admission let pass; at most `longestUser` characters of the name. */
  readonly user?: string;
}

/** The answer of a pod to the call to prepare. The entry exists before the call is sent. */
export interface Preparation {
  readonly zone: string;
  readonly ordinal: number;
  readonly podUid: string;
  readonly call: 'delayed' | 'prepare';
  /** `asked`: no answer is known, so it may have prepared. It is asked again, or told to stay. */
  readonly state: 'asked' | 'prepared' | 'failed';
  /** The pod's own timestamp in its newest good answer; absent for `prepare`. */
  readonly reportedMs?: number;
  /** When the agent first saw it prepared with this timestamp, saw it fail, or was about to ask. */
  readonly seenMs: number;
  /** When it last answered that it is prepared; absent: at `seenMs`. */
  readonly answeredMs?: number;
  /** Of a pod that was prepared before it failed, and was not told to stay: the `seenMs` of then, which `reportedMs` belongs to. */
  readonly sinceMs?: number;
  readonly message?: string;
  /** A failed pod was told to stay, since it may have prepared all the same. */
  readonly isWithdrawn?: true;
}

/** The part of a rollout run that every state has. `run/states.ts` has the transitions. */
export interface RunCore {
  readonly id: string;
  readonly kind: 'rollout' | 'rollback';
  /** Update revision per zone. */
  readonly target: Readonly<Record<string, string>>;
  /** Revision per zone before the run. */
  readonly previous: Readonly<Record<string, string>>;
  readonly startedMs: number;
  /** Index of the current wave; the number of waves when all waves are done. */
  readonly wave: number;
  /** When the previous wave was done. */
  readonly waveStartedMs: number;
  /** Digest of the waves at the last replacement of the current wave; absent if no wave requires an approval before it. */
  readonly waves?: string;
  /** When a pod was last replaced, in this run or in an earlier run. */
  readonly lastDisruptionMs?: number;
  /** Since when pods have been in flight without a break; absent while no pod is in flight. */
  readonly inFlightSinceMs?: number;
  /** Time until `movableAsOfMs` in which the group was free to replace pods. */
  readonly movableMs: number;
  readonly movableAsOfMs: number;
  readonly isMovable: boolean;
  /** When a person last retried the run after a failure. */
  readonly retriedMs?: number;
  /** In a rollback: the revision per zone before the run that is rolled back. */
  readonly restores?: Readonly<Record<string, string>>;
  /** In a run that restores pods from a failed template which the StatefulSets still name: that revision per zone, and the failure. */
  readonly rolledBack?: { readonly revisions: Readonly<Record<string, string>>; readonly because: string };
}

/** The part of a run that is in a wave. */
interface RunInWave extends RunCore {
  /** The zone in which pods are being replaced. */
  readonly openZone?: string;
  /** Since when all pods of the wave have been available. */
  readonly waveAvailableMs?: number;
}

export interface RunningRun extends RunInWave {
  readonly outcome: 'running';
}

export interface FailedRun extends RunInWave {
  readonly outcome: 'failed';
  readonly failure: string;
  readonly failedMs: number;
  /** The choice of the requester who aborted the run; absent: the group's `onFailure` applies. */
  readonly onFailure?: 'pause' | 'rollback';
}

export interface CompletedRun extends RunCore {
  readonly outcome: 'completed';
  readonly completedMs: number;
  readonly openZone?: undefined;
  readonly waveAvailableMs?: undefined;
}

export type UnfinishedRun = RunningRun | FailedRun;

/** A rollout of one group from one set of revisions to another. */
export type RunState = UnfinishedRun | CompletedRun;

/**
 * A pod of this ordinal is made at another revision than the current one of its StatefulSet. Under the strategy `pinned` the webhook on the creation of
 * pods sees to that.
 */
export interface Pin {
  readonly zone: string;
  readonly ordinal: number;
  /** Name of a ControllerRevision. */
  readonly revision: string;
  /** Number of pods replaced to reach the revision; 0 for a pod that ran it when it was first seen. */
  readonly placements: number;
  /** UID of the pod that was replaced last, or is replaced next. */
  readonly replaces?: string;
  /** When that was. */
  readonly atMs?: number;
}

/** `data.spec.template` of a ControllerRevision that a pin names: Kubernetes may delete one that no pod carries at the moment. */
export interface KeptTemplate {
  readonly zone: string;
  /** Name of the ControllerRevision. */
  readonly revision: string;
  readonly template: ObjectContent;
}

/** A ControllerRevision (`apps/v1`) of a StatefulSet of a group that pins pods. */
export interface RevisionView {
  readonly namespace: string;
  readonly statefulSet: string;
  readonly name: string;
  /** `data.spec.template`. */
  readonly template: Known<ObjectContent>;
}

/** The release of a group without a definition: its StatefulSets are handed back (`onPolicyDeleted: release`). */
export interface ReleaseTerms {
  /** Last known source of the definition. */
  readonly source: 'directory' | 'objects';
  /** In the order in which they are handed back. */
  readonly zones: readonly { readonly zone: string; readonly statefulSet: string }[];
  /** Since when nothing has defined the group; absent while something does, or may. */
  readonly goneMs?: number;
  /** Zones that were handed back: their partition is for others to write from then on. */
  readonly released?: readonly string[];
}

/** The state of a group between turns: claims, dated downscales, preparations, the run, pinned pods. */
export interface Ledger {
  readonly namespace: string;
  readonly group: string;
  readonly claims: readonly Claim[];
  readonly downscales: readonly { readonly zone: string; readonly atMs: number; readonly from: number; readonly to: number }[];
  readonly preparations: readonly Preparation[];
  readonly run?: RunState;
  /** One for each zone and ordinal at most; absent: none. */
  readonly pins?: readonly Pin[];
  /** One for each zone and revision at most; absent: none. */
  readonly templates?: readonly KeptTemplate[];
  /** Absent: everything stays as it is when nothing defines the group any more. */
  readonly release?: ReleaseTerms;
  /** The highest leadership that ever wrote here. */
  readonly epoch?: number;
}

/** Something that is there, or may be, and could not be read. */
export interface UnreadObject extends Unknown {
  /** `Ledger`: what is remembered of the group of this name. */
  readonly kind: 'StatefulSet' | 'Pod' | 'Ledger';
  /** Absent: in every namespace. */
  readonly namespace?: string;
  /** Absent: every object of the kind. */
  readonly name?: string;
}

/** A StatefulSet that was taken out of its group, or lost a label that protects it; it is held for a while all the same. */
export interface Departure {
  readonly statefulSet: string;
  readonly uid: string;
  /** The group that it left; or else `label`, the one that it lost, or the annotation that was changed. */
  readonly group?: string;
  readonly label?: string;
  /** Of a label with a time, what it said before; of an annotation, how that began. */
  readonly value?: string;
  readonly untilMs: number;
}

/** Everything a decision may depend on. */
export interface Snapshot {
  /** The instant of the decision, in milliseconds since 1970-01-01T00:00:00Z. */
  readonly nowMs: number;
  readonly policyDigest: string;
  readonly groups: readonly GroupDefinition[];
  readonly policies: readonly PolicyDefinition[];
  readonly exceptions: readonly ExceptionDefinition[];
  readonly intents: Known<readonly IntentView[]>;
  readonly statefulSets: readonly StatefulSetView[];
  readonly pods: readonly PodsView[];
  readonly zoneBudgets: Known<readonly ZoneBudgetView[]>;
  readonly podBudgets: Known<readonly PodBudgetView[]>;
  readonly replicaSources: readonly ReplicaSourceView[];
  readonly gateReadings: readonly GateReadingsView[];
  readonly metrics: readonly MetricView[];
  readonly ledgers: readonly Ledger[];
  /** ControllerRevisions that pins need and no ledger has yet; absent: none were asked for. */
  readonly revisions?: readonly RevisionView[];
  /** What StatefulSets of the namespace that a request is about were taken out of lately; admission alone asks. */
  readonly departures?: Known<readonly Departure[]>;
  /** UIDs of the StatefulSets that no departure can be about, also while those are unknown. */
  readonly unprotected?: readonly string[];
  /** Namespaces that are known to be on their way out, with everything in them; admission alone asks. */
  readonly endingNamespaces?: readonly string[];
  /** Unreadable StatefulSets and ledgers: every value that depends on one is unknown. */
  readonly unread?: readonly UnreadObject[];
  /** Namespace of the agent: policies in it may name other namespaces. */
  readonly agentNamespace?: string;
}

/** A snapshot of nothing, to be filled. */
export function emptySnapshot(nowMs: number): Snapshot {
  return {
    nowMs,
    policyDigest: '',
    groups: [],
    policies: [],
    exceptions: [],
    intents: [],
    statefulSets: [],
    pods: [],
    zoneBudgets: [],
    podBudgets: [],
    replicaSources: [],
    gateReadings: [],
    metrics: [],
    ledgers: [],
  };
}
