// Reads the fields of StatefulSets and pods for the models of controllers and kubelets, and computes revisions.

import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { keptByObject } from '../../policies/values/map.ts';
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

interface StatefulSetSpec extends Json {
  readonly replicas?: number;
  readonly serviceName?: string;
  readonly podManagementPolicy?: string;
  readonly minReadySeconds?: number;
  readonly ordinals?: { readonly start?: number };
  readonly updateStrategy?: {
    readonly type?: string;
    readonly rollingUpdate?: { readonly partition?: number; readonly maxUnavailable?: number | `${number}%` } | null;
  };
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

export interface PodFacts {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The ordinal; -1 if the name does not end in a number. */
  readonly ordinal: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly revision: string;
  readonly owner: { readonly name: string; readonly uid: string } | undefined;
  readonly isOrphan: boolean;
  readonly isTerminating: boolean;
  readonly graceSeconds: number;
  readonly phase: string;
  /** True if the pod runs and has the condition Ready. */
  readonly isReady: boolean;
  /** The time of the last transition of the condition Ready (wall clock). */
  readonly readyChangedMs: number;
  readonly node: string;
  readonly containers: readonly Container[];
  readonly service: string;
}

/** Returns the facts of the pod. Computes them once per version of the pod. */
export const podFacts = keptByObject((pod: ModelObject): PodFacts => {
  const { metadata } = pod;
  const spec = (pod['spec'] ?? {}) as PodSpec & { readonly subdomain?: string };
  const status = (pod['status'] ?? {}) as PodStatus;
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  const controller = metadata.ownerReferences?.find((reference) => reference.controller === true);
  return {
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
});

/** Returns whether the name of the pod consists of the name of the StatefulSet and an ordinal. */
export function isNamedAfter(pod: string, set: string): boolean {
  return pod.startsWith(`${set}-`) && /^\d+$/.test(pod.slice(set.length + 1));
}

interface WantedStrategy {
  /** The strategy of the manifest, and the strategy that a person set for a time. */
  readonly strategy: Json;
  readonly strategyNow: Json;
}

/** Returns the strategy of an apply. The manifests leave the partition out, so that an apply does not overwrite that of the agent. */
export function appliedStrategy(set: ModelObject, { strategy, strategyNow }: WantedStrategy): { readonly updateStrategy?: Json } {
  const isSame = strategyNow === strategy && specOf(set).updateStrategy?.type === strategy['type'];
  return isSame ? {} : { updateStrategy: strategyNow };
}

export function specOf(set: ModelObject): StatefulSetSpec {
  return (set['spec'] ?? {}) as StatefulSetSpec;
}

export function statusOf(set: ModelObject): StatefulSetStatus {
  return (set['status'] ?? {}) as StatefulSetStatus;
}

/** Returns the replicas; 1 if absent, which is the default of the API server. */
export function replicasOf(set: ModelObject): number {
  return specOf(set).replicas ?? 1;
}

export const controllerActor: Actor = { user: 'system:serviceaccount:kube-system:statefulset-controller' };

/** The letters and digits of generated names in Kubernetes, chosen so that no words appear. */
const alphabet = 'bcdfghjklmnpqrstvwxz2456789';

/** Returns the name of the ControllerRevision: the name of the StatefulSet and a hash of its template. */
export function revisionName(set: ModelObject): string {
  return `${set.metadata.name}-${templateHash(specOf(set).template ?? {})}`;
}

/** Returns the same hash for equal templates, regardless of the order of fields. */
const templateHash = keptByObject((template: PodTemplate): string => {
  const text = canonicalJson(template);
  let high = 0x811c9dc5;
  let low = 0x01000193;
  for (let index = 0; index < text.length; index += 1) {
    high = Math.imul(high ^ text.charCodeAt(index), 0x01000193);
    low = Math.imul(low ^ high ^ index, 0x85ebca6b);
  }
  return `${letters(high >>> 0)}${letters(low >>> 0)}`;
});

function letters(value: number): string {
  let rest = value;
  let text = '';
  for (let count = 0; count < 5; count += 1) {
    text += alphabet[rest % alphabet.length];
    rest = Math.floor(rest / alphabet.length);
  }
  return text;
}
