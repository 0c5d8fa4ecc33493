// A marked StatefulSet that grows back: pods that were prepared and have not left yet are told to stay.
import { observeStatefulSet } from '../../../engine/observe/objects.ts';
import { isUnknown } from '../../../engine/snapshot.ts';
import { labelKeys } from '../../../policies/adopt/keys.ts';
import { problemText, readParent, requestMs } from '../parent.ts';
import { podsOf } from './members.ts';
import { askToStay, missingSetting, podsToCall } from './pods.ts';
import type { PrepareRequest } from './step.ts';

/** All that may delay a growth, in milliseconds: it is allowed whatever comes of this. */
const mostMs = 2_000;

/**
 * Sends DELETE to those pods that the growth brings back while they still stand: the StatefulSet controller, held up by another pod, has not
 * deleted them. Without this they would stay prepared to leave. Pods that are terminating or gone begin anew and are left alone. Never rejects.
 */
export async function keepStaying(request: Omit<PrepareRequest, 'set'>): Promise<void> {
  const { env, review, change, call, clusterDomain, podTimeoutMs, native } = request;
  if (change.old.kind === 'StatefulSet' && change.old.labels[labelKeys.prepareDownscale] !== 'true') return;
  const endMs = env.clock.monotonicMs() + mostMs;
  const leftMs = (): number => Math.min(requestMs(env, call), Math.max(0, endMs - env.clock.monotonicMs()));
  try {
    const site = 'prepareDownscale.readGrowing';
    const parent = await readParent(env, review, { of: ['statefulsets'], site, timeoutMs: leftMs() });
    if ('problem' in parent) throw new Error(parent.problem);
    const set = observeStatefulSet(parent.found);
    if (isUnknown(set)) throw new Error(set.unknown);
    // From the number that it has now: below it, pods may be preparing for somebody else's downscale.
    if (set.labels[labelKeys.prepareDownscale] !== 'true' || set.replicas !== change.from || missingSetting(set) !== undefined) return;
    const deadlineMs = Math.min(call.deadlineMs, endMs);
    // What does not come back leaves as it was prepared to.
    if ((await native(review, { ...call, deadlineMs })) !== undefined) return;
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
    env.log.warn('pods that may have been prepared were not told that they stay', { namespace, name, problem: problemText(error) });
  }
}
