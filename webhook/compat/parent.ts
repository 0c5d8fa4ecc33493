// Reads the workload behind a Scale: requests for `/scale` carry no labels.
import type { ClusterEnv } from '../../cluster/env.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resources } from '../../cluster/request/resource.ts';
import { messageOf } from '../../policies/error-message.ts';
import { type Call, leftMs, type Review } from '../review/review.ts';

const resourcesOf: Readonly<Record<string, Resource>> = {
  statefulsets: resources.statefulSets,
  deployments: { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', isNamespaced: true },
  replicasets: { group: 'apps', version: 'v1', plural: 'replicasets', kind: 'ReplicaSet', isNamespaced: true },
};

/** Resources whose Scale is resolved to its workload. */
export type ParentResource = 'statefulsets' | 'deployments' | 'replicasets';

/**
 * Returns the workload that the review names, or why it is unknown, as a sentence part with name and namespace. `timeoutMs` is 0 if no time
 * is left.
 */
export async function readParent(
  env: Pick<ClusterEnv, 'kubernetes'>,
  { resource, namespace, name }: Pick<Review, 'resource' | 'namespace' | 'name'>,
  { of, site, timeoutMs }: { readonly of: readonly ParentResource[]; readonly site: string; readonly timeoutMs: number },
): Promise<{ readonly found: KubernetesObject } | { readonly problem: string }> {
  const what = `${resource.resource}/${name} in namespace ${namespace}`;
  const parent = resourcesOf[resource.resource];
  if (parent === undefined || !isReadable({ resource }, of)) return { problem: `${what} has no replicas that are read` };
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

/** Reserved from every request, so that its result can still be answered in time. */
const answerMs = 100;

/** Returns the timeout of the next request in whole milliseconds; 0 if no time is left. */
export function requestMs({ clock }: Pick<ClusterEnv, 'clock'>, call: Call): number {
  return Math.max(0, Math.floor(leftMs(call, clock.monotonicMs())) - answerMs);
}

/** Returns the message of an error, cut to a length that fits into an answer. */
export function problemText(error: unknown): string {
  return messageOf(error).slice(0, 256);
}
