// Reads the replica counts of a review, and the workload behind a Scale, as grafana/rollout-operator does.
import type { ClusterEnv } from '../../cluster/env.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resources } from '../../cluster/request/resource.ts';
import { reader } from '../../engine/observe/raw.ts';
import { messageOf } from '../../policies/error-message.ts';
import { type Answer, type Call, leftMs, type Review } from '../review/review.ts';

interface Scaled {
  readonly kind: 'Deployment' | 'ReplicaSet' | 'StatefulSet' | 'Scale';
  readonly labels: Readonly<Record<string, string>>;
}

/** The change of the replica count by a request, or the object whose count is unknown. */
type ReplicaChange =
  | { readonly kind: 'unreadable'; readonly side: Side; readonly problem: string }
  /** A kind without replicas, for example a Pod or a DaemonSet. */
  | { readonly kind: 'countless'; readonly side: Side; readonly problem: string }
  | { readonly kind: 'null'; readonly sides: readonly Side[] }
  | { readonly kind: 'same' }
  | (Resize & { readonly kind: 'growth' })
  | (Resize & { readonly kind: 'shrinkage' });

type Side = 'old' | 'new';

export interface Resize {
  readonly old: Scaled;
  readonly from: number;
  readonly to: number;
}

const countlessKinds: ReadonlySet<string> = new Set(['ControllerRevision', 'DaemonSet']);
const longestName = 64;
const greatestReplicas = 2_147_483_647;

interface Decoded {
  readonly scaled?: Scaled;
  /** Undefined if a workload has no `spec.replicas`. */
  readonly replicas?: number | undefined;
  readonly unreadable?: string;
  readonly countless?: string;
}

/** Compares the replicas of both objects, or returns the first problem. Without `spec.replicas`, the count of a Scale is 0. */
export function replicaChange({ oldObject, object }: Pick<Review, 'oldObject' | 'object'>): ReplicaChange {
  const before = decode(oldObject);
  if (before.scaled === undefined) return problemOf(before, 'old');
  const after = decode(object);
  if (after.scaled === undefined) return problemOf(after, 'new');
  const { replicas: from } = before;
  const { replicas: to } = after;
  if (from === undefined) return { kind: 'null', sides: to === undefined ? ['old', 'new'] : ['old'] };
  if (to === undefined) return { kind: 'null', sides: ['new'] };
  if (from === to) return { kind: 'same' };
  return { kind: from < to ? 'growth' : 'shrinkage', old: before.scaled, from, to };
}

/** Returns `<resource>/<name>`, the text for the object of a request in messages. */
export function subjectOf({ resource, name }: Pick<Review, 'resource' | 'name'>): string {
  return `${resource.resource}/${name}`;
}

/** A change that is not a downscale, or cannot be read. */
export type WithoutShrinking = Exclude<ReplicaChange, { readonly kind: 'shrinkage' }>;

/** Allows a request that is not a downscale. Adds a warning if only one count is null, or a count cannot be read. */
export function withoutShrinking(change: WithoutShrinking): Answer {
  switch (change.kind) {
    case 'unreadable':
      return { allowed: true, warnings: [`cannot decode the ${change.side} object: ${change.problem}`] };
    case 'countless':
      return { allowed: true, warnings: [`cannot get the ${change.side} replicas: ${change.problem}`] };
    case 'null':
      return change.sides.length === 2 ? { allowed: true } : { allowed: true, warnings: [`the ${change.sides[0]} replicas are nil`] };
    default:
      return { allowed: true };
  }
}

/** Returns the denial of a downscale. It has no code, as in grafana/rollout-operator. */
export function refused(review: Review, { from, to }: Pick<Resize, 'from' | 'to'>, why: string): Answer {
  const message = `downscale of ${subjectOf(review)} in namespace ${review.namespace} from ${from} to ${to} replicas is not allowed: ${why}`;
  return { allowed: false, message };
}

function problemOf({ unreadable, countless }: Decoded, side: Side): ReplicaChange {
  return countless === undefined
    ? { kind: 'unreadable', side, problem: unreadable ?? 'its kind is unknown' }
    : { kind: 'countless', side, problem: countless };
}

function decode(raw: Review['object']): Decoded {
  if (raw === undefined) return { unreadable: 'it is missing' };
  const fields = reader(raw);
  const apiVersion = fields.text('apiVersion') ?? '';
  const kind = fields.text('kind') ?? '';
  const type = `${apiVersion.slice(0, longestName)} ${kind.slice(0, longestName)}`;
  const known = kindOf(apiVersion, kind);
  if (known === 'countless') return { countless: `${type} has no replicas` };
  if (known === undefined) return { unreadable: apiVersion === '' || kind === '' ? 'it has no kind' : `${type} is an unknown kind` };
  const replicas = fields.whole('spec.replicas');
  const labels = fields.texts('metadata.labels');
  const problem = fields.problem() ?? (Math.abs(replicas ?? 0) > greatestReplicas ? 'spec.replicas is out of range' : undefined);
  if (problem !== undefined) return { unreadable: problem };
  return { scaled: { kind: known, labels }, replicas: known === 'Scale' ? (replicas ?? 0) : replicas };
}

function kindOf(apiVersion: string, kind: string): Scaled['kind'] | 'countless' | undefined {
  if (apiVersion === 'autoscaling/v1') return kind === 'Scale' ? 'Scale' : undefined;
  if (apiVersion === 'v1') return kind === '' ? undefined : 'countless';
  if (apiVersion !== 'apps/v1') return undefined;
  if (kind === 'Deployment' || kind === 'ReplicaSet' || kind === 'StatefulSet') return kind;
  return countlessKinds.has(kind) ? 'countless' : undefined;
}

const resourcesOf: Readonly<Record<string, Resource>> = {
  statefulsets: resources.statefulSets,
  deployments: { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', isNamespaced: true },
  replicasets: { group: 'apps', version: 'v1', plural: 'replicasets', kind: 'ReplicaSet', isNamespaced: true },
};

/** The resources for which `readParent` can read the workload of a Scale. */
export type ParentResource = 'statefulsets' | 'deployments' | 'replicasets';

/** Reads the workload of the review. Returns a problem text if it cannot be read or does not exist. `timeoutMs` is 0 if no time is left. */
export async function readParent(
  env: Pick<ClusterEnv, 'kubernetes'>,
  { resource, namespace, name }: Review,
  { of, site, timeoutMs }: { readonly of: readonly ParentResource[]; readonly site: string; readonly timeoutMs: number },
): Promise<{ readonly found: KubernetesObject } | { readonly problem: string }> {
  const what = `${resource.resource}/${name} in namespace ${namespace}`;
  const parent = resourcesOf[resource.resource];
  if (parent === undefined || !isReadable({ resource }, of))
    return { problem: `${what} was not read: this webhook does not read the replicas of ${resource.resource}` };
  if (timeoutMs <= 0) return { problem: `${what} was not read: the deadline passed` };
  try {
    const found = await getObject(env, parent, { namespace, name }, { site, timeoutMs });
    return found === undefined ? { problem: `${what} was not found` } : { found };
  } catch (error) {
    return { problem: `${what} was not read: ${problemText(error)}` };
  }
}

/** Returns whether the Scale belongs to a workload of these resources. */
export function isReadable({ resource }: Pick<Review, 'resource'>, of: readonly ParentResource[]): boolean {
  return of.some((known) => known === resource.resource);
}

/** Time before the deadline that is reserved for the answer. */
const answerMs = 100;

/** Returns the timeout of the next request in whole milliseconds; 0 if no time is left. */
export function requestMs({ clock }: Pick<ClusterEnv, 'clock'>, call: Call): number {
  return Math.max(0, Math.floor(leftMs(call, clock.monotonicMs())) - answerMs);
}

/** Returns the message of an error, cut to a length that fits into an answer. */
export function problemText(error: unknown): string {
  return messageOf(error).slice(0, 256);
}
