// /admission/zpdb-validation: checks whether a ZoneAwarePodDisruptionBudget can be enforced, as grafana/rollout-operator does.
import { observeZoneBudget } from '../../engine/observe/budget.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import type { Answer, Endpoint, Review } from '../review/review.ts';

/** Returns the endpoint. It reads nothing: the same object has the same answer, dry run or not. */
export function zpdbValidation(): Endpoint {
  return {
    path: '/admission/zpdb-validation',
    handle: async (review) => validated(review),
    onFailure: (_review, problem) => refused(`the ZoneAwarePodDisruptionBudget could not be checked: ${problem}`),
  };
}

function validated({ object }: Review): Answer {
  if (object === undefined) return refused('the review has no object');
  const view = observeZoneBudget(object);
  return isUnknown(view) ? refused(view.unknown) : { allowed: true, code: 200 };
}

function refused(message: string): Answer {
  return { allowed: false, code: 400, reason: 'BadRequest', message };
}
