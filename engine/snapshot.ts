// Defines the input of every decision as plain data: the observed state and its time. An unreadable value is `Unknown` or in `unread`.

import type { DisruptionDefinition, ExceptionDefinition, GroupDefinition, PolicyDefinition } from '../policies/definition.ts';
import { messageOf } from '../policies/error-message.ts';
import type { LiveIntent } from '../policies/live/intents.ts';
import type { LabelSelector } from '../policies/schema/scalars.ts';
import type { ObjectContent } from './diff/field-diff.ts';
import type { Drift } from './diff/field-writers.ts';
import type { RunState } from './run/run-state.ts';

/** An unreadable value, with the reason. */
export interface Unknown {
  readonly unknown: string;
}

export type Known<Value> = Value | Unknown;

/** Reports whether a value could not be read. */
export function isUnknown<Value>(value: Known<Value>): value is Unknown {
  return typeof value === 'object' && value !== null && 'unknown' in value;
}

/** Returns the values, or the first unknown value if there is one. */
export function allKnown<Value>(values: readonly Known<Value>[]): Known<readonly Value[]> {
  return values.find(isUnknown) ?? values.filter((value): value is Value => !isUnknown(value));
}

/** Returns an unknown value with the message of the error. */
export function unknownBecause(error: unknown): Unknown {
  return { unknown: messageOf(error) };
}

/** Returns the value. Throws an Error with the reason if it is unknown. */
export function orThrow<Value>(value: Known<Value>): Value {
  if (isUnknown(value)) throw new Error(value.unknown);
  return value;
}

/** The fields of a StatefulSet (`apps/v1`) that the engine reads. `commit`: the commit that a GitOps tool applied, if it was read. */
export interface StatefulSetView {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly commit?: string;
  /** `spec.replicas`; 1 if the field is absent. */
  readonly replicas: number;
  /** `spec.ordinals.start`. */
  readonly firstOrdinal: number;
  readonly updateStrategy: 'OnDelete' | 'RollingUpdate';
  readonly partition: number;
  readonly podManagementPolicy: 'OrderedReady' | 'Parallel';
  readonly minReadySeconds: number;
  readonly serviceName: string;
  readonly podLabels: Readonly<Record<string, string>>;
  /** `spec.selector` in the notation of kubectl; absent if this notation cannot express the selector. */
  readonly selector?: string;
  /** The digest of the pod template (`templateDigest`); absent if no annotation names an approved plan. */
  readonly template?: string;
  /** The images of the pod template by container; absent without containers. */
  readonly images?: Readonly<Record<string, string>>;
  /** The fields that another manager than the appliers of the manifest wrote; absent without such a field or such an applier. */
  readonly drift?: Drift;
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

export interface PodView {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly ordinal: number;
  /** Label `controller-revision-hash`; empty if the pod has no such label. Such a pod counts as outdated. */
  readonly revision: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
  /** True if the condition Ready is True. */
  readonly isReady: boolean;
  /** True if every container is running and ready, or the status lists no containers. */
  readonly containersReady: boolean;
  /** Time of the last change of the condition Ready. */
  readonly readyChangedMs: number;
  readonly isTerminating: boolean;
  /** The time at which the deletion began; absent if the pod is not terminating. */
  readonly terminatingSinceMs?: number;
  /** Waiting reasons of containers, such as CrashLoopBackOff. */
  readonly waitingReasons: readonly string[];
  readonly node: string;
  readonly nodeReady: boolean;
  /** Annotation grafana.com/ready-time; absent if the annotation is not a time. */
  readonly readyTimeMs?: number;
}

export interface PodsView {
  readonly namespace: string;
  readonly statefulSet: string;
  readonly pods: Known<readonly PodView[]>;
}

/** A ZoneAwarePodDisruptionBudget (`rollout-operator.grafana.com/v1`). */
export interface ZoneBudgetView extends DisruptionDefinition {
  readonly namespace: string;
  readonly name: string;
  readonly matchLabels: Readonly<Record<string, string>>;
}

/** A PodDisruptionBudget (`policy/v1`), which the eviction API enforces. */
export interface PodBudgetView {
  readonly namespace: string;
  readonly name: string;
  readonly selector: LabelSelector;
  readonly maxUnavailable?: number | string;
  readonly minAvailable?: number | string;
}

export interface ReplicaSourceView {
  readonly namespace: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly replicas: Known<number>;
  readonly statusReplicas?: number;
}

/** One reading of a gate. JSON has neither NaN nor infinite numbers, so `notFinite` carries them as text. */
export type GateReading =
  | { readonly atMs: number; readonly result: 'value'; readonly value: number }
  | { readonly atMs: number; readonly result: 'notFinite'; readonly value: 'NaN' | '+Inf' | '-Inf' }
  | { readonly atMs: number; readonly result: 'noData' }
  | { readonly atMs: number; readonly result: 'error'; readonly message: string };

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
  /** The problem of the last query; absent if the last query succeeded. */
  readonly problem?: string;
}

/** A request of a user (RolloutIntent). `requestedBy` is absent if no webhook set it. */
export type IntentView = LiveIntent;

export interface Claim {
  readonly verb: 'deletePod' | 'evictPod' | 'scaleDown' | 'setPartition';
  readonly zone: string;
  /** UID of the pod, or of the StatefulSet for scaleDown and setPartition. */
  readonly uid: string;
  readonly ordinal?: number;
  /** Replicas for scaleDown, partition for setPartition. */
  readonly from?: number;
  readonly to?: number;
  readonly atMs: number;
  /** The precondition of the request; absent for evictions and for admitted requests. */
  readonly resourceVersion?: string;
  /** The epoch (number of the leadership) of the agent that wrote the claim; absent in the claim of an admitted request. */
  readonly epoch?: number;
  /** Requester of an admitted request; at most `longestUser` characters. */
  readonly user?: string;
}

/** A claim on an unchanged object is dropped after this time: twice the request timeout of the API server (60 s). */
export const unappliedClaimMs = 120_000;

/** Returns the first instant, in milliseconds, at which a claim on an unchanged object has ended. */
export function claimEndMs({ atMs }: Pick<Claim, 'atMs'>): number {
  return atMs + unappliedClaimMs + 1;
}

/** A call that asks a pod to prepare, and the pod's answer. The entry is stored before the call, with the state `asked`. */
export interface Preparation {
  readonly zone: string;
  readonly ordinal: number;
  readonly podUid: string;
  readonly call: 'delayed' | 'prepare';
  /** `asked`: the answer is unknown and the pod may be prepared, so the call is repeated or withdrawn. */
  readonly state: 'asked' | 'prepared' | 'failed';
  /** Timestamp that the pod reported in its latest successful answer; absent for `prepare`. */
  readonly reportedMs?: number;
  /** Time at which the agent first saw `reportedMs`, saw the failure, or was about to call. */
  readonly seenMs: number;
  /** Time of the latest answer that the pod is prepared; absent: `seenMs`. */
  readonly answeredMs?: number;
  /** For a pod that was prepared and then failed: the time at which the agent first saw `reportedMs`. Absent after a withdrawal. */
  readonly sinceMs?: number;
  readonly message?: string;
  /** True if the preparation of a failed pod was withdrawn, because the pod may have prepared despite the failure. */
  readonly isWithdrawn?: true;
}

/** The revision at which the pod of this ordinal starts, instead of the StatefulSet's current revision. The pod webhook applies the pin. */
export interface Pin {
  readonly zone: string;
  readonly ordinal: number;
  readonly revision: string;
  /** Number of replacements so far to bring the pod to the revision; 0 once the pod runs the revision. */
  readonly placements: number;
  /** UID of the pod that the last replacement evicts or deletes. */
  readonly replaces?: string;
  readonly atMs?: number;
}

/** The template of a pinned ControllerRevision. The ledger keeps it because Kubernetes may delete a revision without pods. */
export interface KeptTemplate {
  readonly zone: string;
  readonly revision: string;
  readonly template: ObjectContent;
}

/** A ControllerRevision (`apps/v1`) of a StatefulSet of a group that pins pods. */
export interface RevisionView {
  readonly namespace: string;
  readonly statefulSet: string;
  readonly name: string;
  /** `data.spec.template`; undefined if the revision does not exist. */
  readonly template: Known<ObjectContent> | undefined;
}

/** The release of a deleted group: the agent sets the partitions of its StatefulSets to 0 (`onPolicyDeleted: release`). */
export interface ReleaseTerms {
  /** Last known source of the definition. */
  readonly source: 'directory' | 'objects';
  /** The zones in the order of their release. */
  readonly zones: readonly { readonly zone: string; readonly statefulSet: string }[];
  /** Time since which the group has had no definition; absent while it has or may have a definition. */
  readonly goneMs?: number;
  /** Released zones; the agent no longer writes their partition. */
  readonly released?: readonly string[];
}

/** The ordinals of a StatefulSet whose pods were created, even if a pod is absent now. */
export interface CreatedPods {
  readonly zone: string;
  /** UID of the StatefulSet. */
  readonly uid: string;
  /** As ascending ranges, such as `0-4,7`. */
  readonly ordinals: string;
}

/** The state of a group between turns: claims, downscales with their time, preparations, the run, pinned pods. */
export interface Ledger {
  readonly namespace: string;
  readonly group: string;
  readonly claims: readonly Claim[];
  readonly downscales: readonly { readonly zone: string; readonly atMs: number; readonly from: number; readonly to: number }[];
  readonly preparations: readonly Preparation[];
  /** At most one entry per zone, only for zones whose pods prepare for their removal; absent: no entries. */
  readonly created?: readonly CreatedPods[];
  readonly run?: RunState;
  /** At most one pin per zone and ordinal; absent: no pins. */
  readonly pins?: readonly Pin[];
  /** At most one template per zone and revision; absent: no templates. */
  readonly templates?: readonly KeptTemplate[];
  /** Absent: the StatefulSets keep their state when the definition is deleted. */
  readonly release?: ReleaseTerms;
  /** Digests of the cancelled downscales that have ended, one for each request and zone, sorted. Absent: none. */
  readonly endedCancels?: readonly string[];
  /** The members whose partition the agent holds, sorted, and former members that keep a partition. Absent: none. */
  readonly members?: ReleaseTerms['zones'];
  /** The highest epoch (number of the leadership) that has written this ledger. */
  readonly epoch?: number;
}

/** An object that exists or may exist and could not be read. */
export interface UnreadObject extends Unknown {
  /** `Ledger`: the ledger of the group with this name. `Group`: an object that may define a group. `Policy`: one that may bind a group. */
  readonly kind: 'StatefulSet' | 'Pod' | 'Ledger' | 'Group' | 'Policy';
  /** Absent: every namespace. */
  readonly namespace?: string;
  /** Absent: every object of the kind. */
  readonly name?: string;
}

/** A StatefulSet that left its group or lost a protecting label. It stays protected until `untilMs`. */
export interface Departure {
  readonly statefulSet: string;
  readonly uid: string;
  /** The group that the StatefulSet left; absent: `label` is the changed label or annotation. */
  readonly group?: string;
  readonly label?: string;
  /** The earlier value of a label with a duration; the first characters of the earlier value of an annotation. */
  readonly value?: string;
  readonly untilMs: number;
}

export interface Snapshot {
  /** The time of the decision, in milliseconds since 1970-01-01T00:00:00Z. */
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
  /** ControllerRevisions that pins need and that no ledger has yet; absent: not read. */
  readonly revisions?: readonly RevisionView[];
  /** Recent departures in the namespace of the request; only admission reads them. */
  readonly departures?: Known<readonly Departure[]>;
  /** UIDs of StatefulSets that certainly have no departure, even while the departures are unknown. */
  readonly unprotected?: readonly string[];
  /** Namespaces that are being deleted; only admission reads them. */
  readonly endingNamespaces?: readonly string[];
  /** Unreadable objects. Every value that depends on such an object is unknown. */
  readonly unread?: readonly UnreadObject[];
  /** Namespace of the agent. Only policies in it may name other namespaces. */
  readonly agentNamespace?: string;
  /** The problems of webhooks; absent: not read, as in a plan from manifests. */
  readonly webhookProblems?: WebhookProblems;
  /** Access that the agent lacks; absent: not read. */
  readonly missingAccess?: readonly MissingAccess[];
  /** Writes of the agent that the API server rejected and that must not be repeated yet; absent: none. */
  readonly refusedWrites?: readonly RefusedWrite[];
  /** The groups whose agent does not run; absent: not read. */
  readonly unattended?: readonly UnattendedGroup[];
  /** True in a forecast: its durations are assumed, so no deadline fails the run. */
  readonly hasAssumedTimes?: true;
}

/** An action of the agent that needs rights. */
export type AgentAction = 'evictPod' | 'deletePod' | 'patchStatefulSet' | 'pinPod' | 'readSource';

/** A right that the agent lacks, or namespaces that it does not watch. */
export interface MissingAccess {
  /** Namespaces whose groups are concerned. */
  readonly namespaces: readonly string[];
  /** The only group that is concerned; absent: every group of the namespaces. */
  readonly group?: string;
  /** The action that fails; absent: every action. */
  readonly action?: AgentAction;
  /** The mirrored object that the agent may not read, such as `Deployment ingester`; only with `readSource`. */
  readonly object?: string;
  /** A sentence without a full stop, with the right and its consequence. */
  readonly fact: string;
}

/** A write of the agent that the API server rejected. */
export interface RefusedWrite {
  readonly kind: 'deletePod' | 'evictPod' | 'scaleStatefulSet' | 'setPartition' | 'writeBackReplicas' | 'advanceCurrentRevision';
  readonly namespace: string;
  /** The name of the pod, the StatefulSet or the mirrored object. */
  readonly target: string;
  /** The rejected number of replicas or partition; absent for other writes. */
  readonly to?: number;
  /** The answer of the API server, or the reason for its absence. */
  readonly message: string;
  /** The time of the next attempt. */
  readonly untilMs: number;
}

/** A group whose agent does not run. */
interface UnattendedGroup {
  readonly namespace: string;
  readonly group: string;
  /** A sentence without a full stop, such as `agent not running: Lease expired 14s ago`. */
  readonly fact: string;
}

/** The problems of webhooks by purpose, each as a sentence without a full stop. A webhook without an entry works. */
export interface WebhookProblems {
  /** The problem of the webhook that gives new pods their pinned revision. */
  readonly pins?: Known<string>;
  /** The StatefulSets for which the webhook of `pins` is not called yet. The agent adds them to the configuration of the webhook. */
  readonly coverage?: string;
  /** The problem of the webhook that records the requester of an approval. */
  readonly requesters?: string;
}

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

/** Returns a StatefulSet by name; undefined if it is missing or unreadable. */
export function setNamed(snapshot: Pick<Snapshot, 'statefulSets'>, namespace: string, name: string): StatefulSetView | undefined {
  return snapshot.statefulSets.find((set) => set.namespace === namespace && set.name === name);
}

/** Returns the pods of a StatefulSet by its name; undefined if they are not in the snapshot, unknown if they could not be read. */
export function podsNamed(snapshot: Pick<Snapshot, 'pods'>, namespace: string, statefulSet: string): PodsView['pods'] | undefined {
  return snapshot.pods.find((view) => view.namespace === namespace && view.statefulSet === statefulSet)?.pods;
}

/** Returns the ledger of a group for which nothing is stored. */
export function emptyLedger(namespace: string, group: string): Ledger {
  return { namespace, group, claims: [], downscales: [], preparations: [] };
}

/** Returns the stored ledger of a group, or an empty one. */
export function ledgerOf({ ledgers }: Pick<Snapshot, 'ledgers'>, { namespace, name }: Pick<GroupDefinition, 'namespace' | 'name'>): Ledger {
  return ledgers.find((ledger) => ledger.namespace === namespace && ledger.group === name) ?? emptyLedger(namespace, name);
}

/** Reports whether a stored time can be true: it is at most 30 s ahead of the clock. */
export function isWithinClockSkew({ nowMs }: { readonly nowMs: number }, instant: number): boolean {
  return instant <= nowMs + 30_000;
}
