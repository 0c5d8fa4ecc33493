// Serves /admission/no-downscale, which denies a downscale of workloads with the label grafana.com/no-downscale=true.
import { reader } from '../../engine/observe/raw.ts';
import { labelKeys } from '../../policies/adopt/keys.ts';
import type { WebhookEnv } from '../env.ts';
import type { Answer, Endpoint, Review } from '../review/review.ts';
import {
  isReadable,
  type ParentResource,
  type Resize,
  readParent,
  refused,
  replicaChange,
  requestMs,
  withoutShrinking,
} from './replicas.ts';

interface NoDownscaleConfig {
  /** The answer if the workload of a Scale cannot be read: `deny`, or `allow` with a warning (default, as in grafana/rollout-operator). */
  readonly unreadableParent?: 'allow' | 'deny';
}

const parents: readonly ParentResource[] = ['statefulsets', 'deployments', 'replicasets'];

/**
 * Returns the endpoint. It denies a decrease of StatefulSets, Deployments and ReplicaSets that have the label before the request, also
 * through `/scale` and in dry runs. A denial has no code, so the API server returns 400.
 */
export function noDownscale(env: WebhookEnv, config: NoDownscaleConfig = {}): Endpoint {
  const unreadable = (review: Review, change: Resize, problem: string): Answer =>
    config.unreadableParent === 'deny' ? refused(review, change, problem) : { allowed: true, warnings: [problem] };
  return {
    path: '/admission/no-downscale',
    handle: async (review, call) => {
      const change = replicaChange(review);
      if (change.kind !== 'shrinkage') return withoutShrinking(change);
      if (change.old.kind !== 'Scale') return judged(review, change, change.old.labels);
      const parent = await readParent(env, review, {
        of: parents,
        site: 'noDownscale.readParent',
        timeoutMs: requestMs(env, call),
      });
      if ('problem' in parent) return unreadable(review, change, parent.problem);
      return judged(review, change, reader(parent.found).texts('metadata.labels'));
    },
    // An overload or a timeout is not a failed read: a client must not bypass the label by keeping the process busy.
    onFailure: (review, problem) => {
      const change = replicaChange(review);
      if (change.kind !== 'shrinkage') return withoutShrinking(change);
      if (change.old.kind !== 'Scale') return judged(review, change, change.old.labels);
      return isReadable(review, parents) ? refused(review, change, problem) : unreadable(review, change, problem);
    },
  };
}

function judged(review: Review, change: Resize, labels: Readonly<Record<string, string>>): Answer {
  if (labels[labelKeys.noDownscale] !== 'true') return { allowed: true };
  return refused(review, change, `it has the label ${labelKeys.noDownscale}=true`);
}
