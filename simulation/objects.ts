// Reads Kubernetes objects for judges, models and texts: fields, places of pods, and times since the simulation began.

import { tryParseJson } from '../policies/values/try-parse-json.ts';
import { runStartMs } from './process/clock.ts';
import type { Actor, ModelObject } from './server/request.ts';

export const podResource = 'pods';
export const statefulSetResource = 'statefulsets.apps';
export const nodeResource = 'nodes';
export const configMapResource = 'configmaps';
export const leaseResource = 'leases.coordination.k8s.io';
export const groupResource = 'rolloutgroups.rollout-group.dev';
export const intentResource = 'rolloutintents.rollout-group.dev';
export const policyResource = 'rolloutpolicies.rollout-group.dev';
export const exceptionResource = 'rolloutexceptions.rollout-group.dev';

/** The endpoints of generated groups, for delayed downscales and for the preparation before a removal. */
export const delayEndpoint = { port: 80, path: '/ingester/prepare-delayed-downscale' };
export const prepareEndpoint = { port: 80, path: '/ingester/prepare-shutdown' };

/** Returns the value at a path of keys; undefined if absent or null. */
export function field(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const name of path) {
    if (typeof current !== 'object' || current === null) return undefined;
    current = (current as Readonly<Record<string, unknown>>)[name];
  }
  return current ?? undefined;
}

export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = field(value, ...path);
  return typeof found === 'string' ? found : undefined;
}

export function numberAt(value: unknown, ...path: readonly string[]): number | undefined {
  const found = field(value, ...path);
  return typeof found === 'number' ? found : undefined;
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = field(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** Parses JSON. Returns undefined if the text is invalid. */
export const parsed: (text: string | undefined) => unknown = tryParseJson;

export function placeOf(pod: string): { readonly statefulSet: string; readonly ordinal: number } | undefined {
  const found = /^(.+)-(\d{1,9})$/.exec(pod);
  return found === null ? undefined : { statefulSet: found[1] ?? '', ordinal: Number(found[2]) };
}

/** Returns the UID of the controlling object. */
export function controllerOf({ metadata }: ModelObject): string | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
}

/** Returns the revision of the pod; empty if unknown. */
export function revisionLabelOf({ metadata }: ModelObject): string {
  return metadata.labels?.['controller-revision-hash'] ?? '';
}

export function isTerminating({ metadata }: ModelObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** Returns the condition Ready of a pod or a node. */
export function readyCondition(object: ModelObject | undefined): { readonly isTrue: boolean; readonly sinceMs: number | undefined } {
  const condition = listAt(object, 'status', 'conditions').find((one) => field(one, 'type') === 'Ready');
  return { isTrue: field(condition, 'status') === 'True', sinceMs: instantAt(condition, 'lastTransitionTime') };
}

/** Returns whether every container runs and is ready: grafana/rollout-operator counts such a pod as available. */
export function areContainersReady(pod: ModelObject): boolean {
  return listAt(pod, 'status', 'containerStatuses').every(
    (status) => field(status, 'ready') === true && field(status, 'state', 'running') !== undefined,
  );
}

/** Returns the RFC 3339 time at a path of keys, as milliseconds since the simulation began; undefined if absent or invalid. */
export function instantAt(value: unknown, ...path: readonly string[]): number | undefined {
  const ms = Date.parse(textAt(value, ...path) ?? '');
  return Number.isNaN(ms) ? undefined : ms - runStartMs;
}

/** Returns the container images of a pod or a template. */
export function imagesOf(value: unknown): readonly string[] {
  return listAt(value, 'spec', 'containers').map((container) => textAt(container, 'image') ?? '');
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns the duration at a path of keys, such as `90s` or `1h30m`, in milliseconds; undefined if absent or invalid. */
export function durationAt(value: unknown, ...path: readonly string[]): number | undefined {
  const text = textAt(value, ...path);
  if (text === undefined || !/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(text)) return undefined;
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g)) sum += Number(amount) * (unitMs[unit ?? ''] ?? 0);
  return sum;
}

/** Returns whether an agent made the request or change. */
export function isAgent(actor: Actor, agentUser: string): boolean {
  return actor.process !== undefined || actor.user === agentUser;
}

export function partitionOf(set: ModelObject | undefined): number {
  return numberAt(set, 'spec', 'updateStrategy', 'rollingUpdate', 'partition') ?? 0;
}

/** Returns the requested replicas of a StatefulSet. The API server defaults them to 1. */
export function replicasOf(set: ModelObject | undefined): number {
  return numberAt(set, 'spec', 'replicas') ?? 1;
}
