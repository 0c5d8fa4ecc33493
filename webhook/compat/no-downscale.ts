// /admission/no-downscale: denies a downscale of workloads with the label grafana.com/no-downscale=true. Unknown facts allow it.
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
  /** The answer if the workload behind a Scale cannot be read: `allow` with a warning (default), as the original, or `deny`. */
  readonly unreadableParent?: 'allow' | 'deny';
}

const parents: readonly ParentResource[] = ['statefulsets', 'deployments', 'replicasets'];

/**
 * Denies fewer replicas of StatefulSets, Deployments and ReplicaSets with the label before the request, also through `/scale` and in dry
 * runs. A denial has no code, so the API server returns 400.
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
    // An overload or a timeout is not a failed read: keeping the process busy must not bypass the label.
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
