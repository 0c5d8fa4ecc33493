// The endpoint /admission/no-downscale: workloads with the label grafana.com/no-downscale=true do not shrink. What it cannot tell, it allows.
import { reader } from '../../engine/observe/raw.ts';
import { labelKeys } from '../../policies/adopt/keys.ts';
import type { WebhookEnv } from '../env.ts';
import type { Answer, Endpoint, Review } from '../review/review.ts';
import { isReadable, type ParentResource, readParent, requestMs } from './parent.ts';
import { type Resize, refused, replicaChange, withoutShrinking } from './replicas.ts';

interface NoDownscaleConfig {
  /**
   * What is answered when the workload behind a Scale cannot be read. `allow`, with a warning, is what grafana/rollout-operator does and the
   * default; whoever wants the label to hold without an API server chooses `deny`.
   */
  readonly unreadableParent?: 'allow' | 'deny';
}

const parents: readonly ParentResource[] = ['statefulsets', 'deployments', 'replicasets'];

/**
 * Denies smaller replicas of StatefulSets, Deployments and ReplicaSets, also through `/scale`, while the label is on the object as it was before
 * the request: taking it away in the same write does not help. Dry runs are denied too. A denial has no code, so the API server answers 400.
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
    // Not to be asked, or not to come to an end, is no reading that failed: nobody gets past the label by keeping the process busy.
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
