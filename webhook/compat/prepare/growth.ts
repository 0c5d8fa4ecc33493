// Tells prepared pods to stay when a labelled StatefulSet grows back before they left.
import { observeStatefulSet } from '../../../engine/observe/objects.ts';
import { isUnknown } from '../../../engine/snapshot.ts';
import { labelKeys } from '../../../policies/adopt/keys.ts';
import { problemText, readParent, requestMs } from '../parent.ts';
import { podsOf } from './members.ts';
import { askToStay, missingSetting, podsToCall } from './pods.ts';
import type { PrepareRequest } from './step.ts';

/** Longest delay of a scale-up in milliseconds: it is allowed in any case. */
const mostMs = 2_000;

/**
 * Sends DELETE to pods that the scale-up keeps and that still exist, because the StatefulSet controller waits for another pod. Without it
 * they would stay prepared to leave. Terminating or absent pods are skipped. Never rejects.
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
    // Starts at the current replica count: pods below it may prepare for another downscale.
    if (set.labels[labelKeys.prepareDownscale] !== 'true' || set.replicas !== change.from || missingSetting(set) !== undefined) return;
    const deadlineMs = Math.min(call.deadlineMs, endMs);
    // Pods that do not come back leave as prepared.
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
    env.log.warn('prepared pods were not told to stay', { namespace, name, problem: problemText(error) });
  }
}
