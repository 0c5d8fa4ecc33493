// Serves /admission/prepare-downscale, for StatefulSets with the label grafana.com/prepare-downscale. At a downscale it asks the leaving
// pods to prepare for removal. At a scale-up it asks pods that an earlier downscale has not yet removed to stay.
import { observeStatefulSet } from '../../../engine/observe/objects.ts';
import { isUnknown, orThrow, type StatefulSetView } from '../../../engine/snapshot.ts';
import { labelKeys } from '../../../policies/adopt/keys.ts';
import type { NativePreview, WebhookEnv } from '../../env.ts';
import type { Answer, Endpoint, Review } from '../../review/review.ts';
import { lastDownscale, zoneTracker } from '../downscale-times.ts';
import {
  problemText,
  type Resize,
  readParent,
  refused,
  replicaChange,
  requestMs,
  subjectOf,
  type WithoutShrinking,
  withoutShrinking,
} from '../replicas.ts';
import { podsOf } from './members.ts';
import { askToStay, missingSetting, podsToCall } from './pods.ts';
import { GroupLocks, type PrepareRequest, prepare } from './step.ts';

export interface PrepareDownscaleConfig {
  /** Domain of pod host names; fully qualified with a trailing dot. */
  readonly clusterDomain: string;
  /** Timeout of each call to a pod; default 5 s. */
  readonly podTimeoutMs?: number;
  /** Stores the times of downscales in this ConfigMap of the request's namespace instead of annotations. */
  readonly zoneTracker?: { readonly configMapName: string };
  /** Returns the denial of `/admission/enforce` for the same request, if any. A denied request prepares no pod. */
  readonly native?: NativePreview;
}

const defaultPodTimeoutMs = 5_000;

/**
 * Returns the endpoint. Like grafana/rollout-operator, it allows a downscale if the other zones shrank long enough ago, all their pods are
 * updated and ready, and every pod to remove accepted a POST. Dry runs pass without a check, because the check calls pods. The API server
 * calls `/admission/enforce` later, so this endpoint finds out before it calls a pod whether that endpoint denies.
 */
export function prepareDownscale(env: WebhookEnv, config: PrepareDownscaleConfig): Endpoint {
  const { clusterDomain, podTimeoutMs = defaultPodTimeoutMs } = config;
  const times = config.zoneTracker === undefined ? lastDownscale(env) : zoneTracker(env, config.zoneTracker.configMapName);
  const native: NativePreview = config.native ?? (async () => undefined);
  const tools = { env, clusterDomain, podTimeoutMs, times, locks: new GroupLocks(), native };
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
      if ('problem' in set) return unread(set.problem);
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
      // Some pods may be prepared already. A client must not bypass the label by keeping the process busy.
      if (isStatefulSet(review, change)) return refused(review, change, problem);
      return unread(`${subjectOf(review)} in namespace ${review.namespace}: ${problem}`);
    },
  };
}

/** Allows a change whose StatefulSet cannot be read, as grafana/rollout-operator does. */
function unread(problem: string): Answer {
  return { allowed: true, warnings: [`${problem}, allowing the change`] };
}

/** Answers a request that is not a downscale. As in grafana/rollout-operator, `unreadable` and `countless` have the same message. */
function unprepared(change: WithoutShrinking): Answer {
  return withoutShrinking(change.kind === 'countless' ? { ...change, kind: 'unreadable' } : change);
}

function isStatefulSet({ resource }: Review, { old }: Resize): boolean {
  return old.kind === 'StatefulSet' || (old.kind === 'Scale' && resource.resource === 'statefulsets');
}

/** Returns the StatefulSet that shrinks: the old object, or the workload of a Scale. Returns a problem if it cannot be read. */
async function statefulSetOf(
  env: WebhookEnv,
  { review, change, call }: Pick<PrepareRequest, 'review' | 'change' | 'call'>,
): Promise<StatefulSetView | { readonly problem: string }> {
  const what = `${subjectOf(review)} in namespace ${review.namespace}`;
  if (change.old.kind !== 'StatefulSet' && change.old.kind !== 'Scale') {
    return { problem: `${what} is a ${change.old.kind}, but only pods of StatefulSets are prepared` };
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

/** The maximum delay of a scale-up by this work. A scale-up is allowed even if the calls fail. */
const maxDelayMs = 2_000;

/**
 * Sends DELETE to each existing pod between the old and the new replica count, even if the pod was never prepared. Skips
 * terminating pods. Never rejects.
 */
async function keepStaying(request: Omit<PrepareRequest, 'set'>): Promise<void> {
  const { env, review, change, call, clusterDomain, podTimeoutMs, native } = request;
  if (change.old.kind === 'StatefulSet' && change.old.labels[labelKeys.prepareDownscale] !== 'true') return;
  const endMs = env.clock.monotonicMs() + maxDelayMs;
  const leftMs = (): number => Math.min(requestMs(env, call), Math.max(0, endMs - env.clock.monotonicMs()));
  try {
    const site = 'prepareDownscale.readGrowing';
    const parent = await readParent(env, review, { of: ['statefulsets'], site, timeoutMs: leftMs() });
    if ('problem' in parent) throw new Error(parent.problem);
    const set = orThrow(observeStatefulSet(parent.found));
    if (set.labels[labelKeys.prepareDownscale] !== 'true' || set.replicas !== change.from || missingSetting(set) !== undefined) return;
    const deadlineMs = Math.min(call.deadlineMs, endMs);
    // A denied scale-up keeps no pods, so the pods stay prepared.
    if ((await native(review, { ...call, deadlineMs })) !== undefined) return;
    // Pods below the current replica count may prepare for another downscale.
    const first = set.firstOrdinal + change.from;
    const pods = await podsOf(env, set, { namespace: review.namespace, timeoutMs: leftMs });
    const back = pods
      .filter((pod) => pod.name === `${set.name}-${pod.ordinal}` && pod.ordinal >= first && pod.ordinal < set.firstOrdinal + change.to)
      .filter((pod) => !pod.isTerminating)
      .map(({ ordinal }) => ordinal)
      .sort((a, b) => a - b);
    await askToStay(env, podsToCall(set, back, clusterDomain), { timeoutMs: podTimeoutMs, leftMs });
  } catch (error) {
    const { namespace, name } = review;
    env.log.warn('prepared pods were not told to stay', { namespace, name, problem: problemText(error) });
  }
}
