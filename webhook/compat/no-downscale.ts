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

const parents: readonly ParentResource[] = ['statefulsets', 'deployments', 'replicasets'];

/**
 * Returns the endpoint. It denies a decrease of the replicas of StatefulSets, Deployments and ReplicaSets that have the label before the
 * request, also through `/scale` and in dry runs. A denial has no code, so the API server returns 400.
 */
export function noDownscale(env: WebhookEnv): Endpoint {
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
      // As in grafana/rollout-operator, a Scale passes if its workload cannot be read.
      if ('problem' in parent) return { allowed: true, warnings: [parent.problem] };
      return judged(review, change, reader(parent.found).texts('metadata.labels'));
    },
    // An overload or a timeout is not a failed read: a client must not bypass the label by keeping the process busy.
    onFailure: (review, problem) => {
      const change = replicaChange(review);
      if (change.kind !== 'shrinkage') return withoutShrinking(change);
      if (change.old.kind !== 'Scale') return judged(review, change, change.old.labels);
      return isReadable(review, parents) ? refused(review, change, problem) : { allowed: true, warnings: [problem] };
    },
  };
}

function judged(review: Review, change: Resize, labels: Readonly<Record<string, string>>): Answer {
  if (labels[labelKeys.noDownscale] !== 'true') return { allowed: true };
  return refused(review, change, `it has the label ${labelKeys.noDownscale}=true`);
}
