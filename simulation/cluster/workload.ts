// Reads the few fields of StatefulSets and pods that controllers and kubelets use.
import type { Actor, Json, ModelObject } from '../server/request.ts';

export const statefulSetResource = 'statefulsets.apps';
export const revisionResource = 'controllerrevisions.apps';
export const budgetResource = 'poddisruptionbudgets.policy';
export const revisionLabel = 'controller-revision-hash';

export interface PodTemplate extends Json {
  readonly metadata?: { readonly labels?: Readonly<Record<string, string>>; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: PodSpec;
}

export interface Container extends Json {
  readonly name: string;
  readonly image?: string;
}

interface PodSpec extends Json {
  readonly nodeName?: string;
  readonly containers?: readonly Container[];
}

export interface StatefulSetSpec extends Json {
  readonly replicas?: number;
  readonly serviceName?: string;
  readonly podManagementPolicy?: string;
  readonly minReadySeconds?: number;
  readonly ordinals?: { readonly start?: number };
  readonly updateStrategy?: { readonly type?: string; readonly rollingUpdate?: { readonly partition?: number } };
  readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> };
  readonly template?: PodTemplate;
}

export interface StatefulSetStatus extends Json {
  readonly observedGeneration?: number;
  readonly replicas?: number;
  readonly readyReplicas?: number;
  readonly availableReplicas?: number;
  readonly updatedReplicas?: number;
  readonly currentReplicas?: number;
  readonly currentRevision?: string;
  readonly updateRevision?: string;
  readonly collisionCount?: number;
}

export interface Condition extends Json {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime?: string;
}

export interface PodStatus extends Json {
  readonly phase?: string;
  readonly conditions?: readonly Condition[];
}

/** A pod as controllers see it. */
export interface PodFacts {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** -1 if the name does not end in a number. */
  readonly ordinal: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly revision: string;
  /** Name and UID of the controlling StatefulSet. */
  readonly owner: { readonly name: string; readonly uid: string } | undefined;
  readonly isOrphan: boolean;
  readonly isTerminating: boolean;
  readonly graceSeconds: number;
  readonly phase: string;
  /** Running with the condition Ready. */
  readonly isReady: boolean;
  /** Wall-clock time of the last transition. */
  readonly readyChangedMs: number;
  readonly node: string;
  readonly containers: readonly Container[];
  readonly service: string;
}

const facts: WeakMap<ModelObject, PodFacts> = new WeakMap();

/** Computed once per version of the pod. */
export function podFacts(pod: ModelObject): PodFacts {
  const known = facts.get(pod);
  if (known !== undefined) return known;
  const { metadata } = pod;
  const spec = (pod['spec'] ?? {}) as PodSpec & { readonly subdomain?: string };
  const status = (pod['status'] ?? {}) as PodStatus;
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  const controller = metadata.ownerReferences?.find((reference) => reference.controller === true);
  const found: PodFacts = {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid,
    ordinal: Number(/-(\d+)$/.exec(metadata.name)?.[1] ?? -1),
    labels: metadata.labels ?? {},
    revision: metadata.labels?.[revisionLabel] ?? '',
    owner: controller?.kind === 'StatefulSet' ? { name: controller.name, uid: controller.uid } : undefined,
    isOrphan: controller === undefined,
    isTerminating: metadata.deletionTimestamp !== undefined,
    graceSeconds: metadata.deletionGracePeriodSeconds ?? 30,
    phase: status.phase ?? 'Pending',
    isReady: status.phase === 'Running' && ready?.status === 'True',
    readyChangedMs: Date.parse(ready?.lastTransitionTime ?? metadata.creationTimestamp),
    node: spec.nodeName ?? '',
    containers: spec.containers ?? [],
    service: spec.subdomain ?? '',
  };
  facts.set(pod, found);
  return found;
}

export function specOf(set: ModelObject): StatefulSetSpec {
  return (set['spec'] ?? {}) as StatefulSetSpec;
}

export function statusOf(set: ModelObject): StatefulSetStatus {
  return (set['status'] ?? {}) as StatefulSetStatus;
}

/** The API server's default. */
export function replicasOf(set: ModelObject): number {
  return specOf(set).replicas ?? 1;
}

/** RFC 3339 in whole seconds, as Kubernetes writes status times. */
export function instantText(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}

/** Its default in kube-controller-manager. */
export const controllerActor: Actor = { user: 'system:serviceaccount:kube-system:statefulset-controller' };
