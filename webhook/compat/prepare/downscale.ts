// The endpoint /admission/prepare-downscale: pods of StatefulSets with the label grafana.com/prepare-downscale=true are told before they leave.

import { observeStatefulSet } from '../../../engine/observe/objects.ts';
import { isUnknown, type StatefulSetView } from '../../../engine/snapshot.ts';
import { labelKeys } from '../../../policies/adopt/keys.ts';
import type { NativePreview, WebhookEnv } from '../../env.ts';
import type { Answer, Call, Endpoint, Review } from '../../review/review.ts';
import { GroupLocks } from '../group-lock.ts';
import { lastDownscale } from '../last-downscale.ts';
import { readParent, requestMs } from '../parent.ts';
import { type Resize, refused, replicaChange, subjectOf, type WithoutShrinking, withoutShrinking } from '../replicas.ts';
import { zoneTracker } from '../zone-tracker.ts';
import { keepStaying } from './growth.ts';
import { prepare } from './step.ts';

export interface PrepareDownscaleConfig {
  /** Of the pods' addresses; with the trailing dot when it is fully qualified. */
  readonly clusterDomain: string;
  /** Of each call to a pod; 5 s when left out. */
  readonly podTimeoutMs?: number;
  /** Keeps the times of downscales in this ConfigMap of the request's namespace instead of in annotations. */
  readonly zoneTracker?: { readonly configMapName: string };
  /**
   * What is answered when the StatefulSet behind a Scale cannot be read. `allow`, with a warning, is what grafana/rollout-operator does and the
   * default: pods of a marked StatefulSet may then leave unprepared. `deny` lets nobody scale down what cannot be read.
   */
  readonly unreadableParent?: 'allow' | 'deny';
  /** What native enforcement says of the same request, where it is on: what it would refuse prepares no pod. */
  readonly native?: NativePreview;
}

const defaultPodTimeoutMs = 5_000;

/**
 * Admits smaller replicas of a marked StatefulSet when the other zones of its group last shrank long enough ago, all their pods are updated and
 * ready, and all pods that leave answered a POST. It never returns a patch: what it records, it writes itself, so dry runs are allowed unseen.
 *
 * The rules are those of the original, on what the API server says now about whatever carries the labels, in a group that is known as one or not.
 * The engine judges groups that the agent has adopted, from caches and the ledger, and words its refusals otherwise; so it is not asked here. But
 * `/admission/enforce`, which comes after this endpoint, asks it where native enforcement is on: then it has its say before any pod is called.
 */
export function prepareDownscale(env: WebhookEnv, config: PrepareDownscaleConfig): Endpoint {
  const { clusterDomain, podTimeoutMs = defaultPodTimeoutMs, unreadableParent = 'allow' } = config;
  const times = config.zoneTracker === undefined ? lastDownscale(env) : zoneTracker(env, config.zoneTracker.configMapName);
  const native: NativePreview = config.native ?? (async () => undefined);
  const tools = { env, clusterDomain, podTimeoutMs, times, locks: new GroupLocks(), native };
  const unread = (review: Review, change: Resize, problem: string): Answer =>
    unreadableParent === 'deny' ? refused(review, change, problem) : { allowed: true, warnings: [`${problem}, allowing the change`] };

  return {
    path: '/admission/prepare-downscale',
    handle: async (review, call) => {
      if (review.dryRun) return { allowed: true };
      const change = replicaChange(review);
      if (change.kind === 'growth' && isStatefulSet(review, change)) {
        await keepStaying({ ...tools, review, change, call });
        return { allowed: true };
      }
      if (change.kind !== 'shrinkage') return unprepared(change);
      const set = await statefulSetOf(env, { review, change, call });
      if ('problem' in set) return unread(review, change, set.problem);
      if (set.labels[labelKeys.prepareDownscale] !== 'true') return { allowed: true };
      return await prepare({ ...tools, review, change, call, set });
    },
    onFailure: (review, problem) => {
      if (review.dryRun) return { allowed: true };
      const change = replicaChange(review);
      if (change.kind !== 'shrinkage') return unprepared(change);
      if (change.old.kind === 'StatefulSet') {
        return change.old.labels[labelKeys.prepareDownscale] === 'true' ? refused(review, change, problem) : { allowed: true };
      }
      // Some pods may have been asked and others not; and nobody gets past the label by keeping the process busy.
      if (isStatefulSet(review, change)) return refused(review, change, problem);
      return unread(review, change, `${subjectOf(review)} in namespace ${review.namespace}: ${problem}`);
    },
  };
}

/** The original words both kinds of object that it cannot use alike. */
function unprepared(change: WithoutShrinking): Answer {
  return withoutShrinking(change.kind === 'countless' ? { ...change, kind: 'unreadable' } : change);
}

function isStatefulSet({ resource }: Review, { old }: Resize): boolean {
  return old.kind === 'StatefulSet' || (old.kind === 'Scale' && resource.resource === 'statefulsets');
}

interface Asked {
  readonly review: Review;
  readonly change: Resize;
  readonly call: Call;
}

/** The StatefulSet that shrinks: the old object itself, or the one behind a Scale; or why there is none. */
async function statefulSetOf(env: WebhookEnv, { review, change, call }: Asked): Promise<StatefulSetView | { readonly problem: string }> {
  const what = `${subjectOf(review)} in namespace ${review.namespace}`;
  if (change.old.kind !== 'StatefulSet' && change.old.kind !== 'Scale') {
    return { problem: `${what} is a ${change.old.kind}, and only pods of StatefulSets are prepared` };
  }
  let raw: unknown = review.oldObject;
  if (change.old.kind === 'Scale') {
    const site = 'prepareDownscale.readParent';
    const parent = await readParent(env, review, { of: ['statefulsets'], site, timeoutMs: requestMs(env, call) });
    if ('problem' in parent) return parent;
    raw = parent.found;
  }
  const set = observeStatefulSet(raw);
  return isUnknown(set) ? { problem: `${what} cannot be decoded: ${set.unknown}` } : set;
}
