// Checks ZoneAwarePodDisruptionBudgets, and keeps the last valid version of each budget, as grafana/rollout-operator does.
import type { Log } from '../../cluster/env.ts';
import type { Change } from '../../cluster/watch/store.ts';
import { type KeptBudget, observeZoneBudget, takeVersion, type ZoneBudgetVersion } from '../../engine/observe/budget.ts';
import { isUnknown, type Known, type ZoneBudgetView } from '../../engine/snapshot.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import { getOrCreate } from '../../policies/values/map.ts';
import type { Followed } from '../env.ts';
import { type Answer, deny, type Endpoint, type Review } from '../review/review.ts';

interface UnusableBudget {
  readonly name: string;
  readonly problem: string;
  /** Absent if the selector cannot be read: it may select every pod. */
  readonly matchLabels?: Readonly<Record<string, string>>;
}

interface BudgetsInForce {
  readonly usable: readonly ZoneBudgetView[];
  /** The budgets without any valid version. */
  readonly unusable: readonly UnusableBudget[];
}

export interface ZoneBudgets {
  /** Returns the budgets of a namespace; unknown until they were listed, and for a namespace that is not watched. */
  readonly inForce: (namespace: string) => Known<BudgetsInForce>;
  /** Returns whether the budgets of every watched namespace are known, or are known to be unreadable. */
  readonly isSettled: () => boolean;
  readonly stop: () => void;
}

/**
 * Starts to follow the budgets. An invalid update leaves the previous version in force. The next list finds a deletion whose
 * event was lost. A cluster without the CRD has no budgets.
 */
export function startZoneBudgets({ log, followed }: { readonly log: Log; readonly followed: Followed<ZoneBudgetVersion> }): ZoneBudgets {
  const cache = new BudgetCache(log);
  const stop = followed.onChange((change) => cache.take(change));
  for (const view of followed.list()) cache.take({ kind: 'added', namespace: view.namespace, name: view.name, view });
  return {
    inForce: (namespace) => followed.neverRead(namespace) ?? cache.inForce(namespace),
    isSettled: () => followed.isSettled(),
    stop: () => void stop(),
  };
}

/** Returns the first unusable budget that selects, or may select, a pod with these labels. */
export function unusableFor({ unusable }: BudgetsInForce, labels: Readonly<Record<string, string>>): UnusableBudget | undefined {
  return unusable.find(({ matchLabels }) => matchLabels === undefined || matchesSelector({ matchLabels }, labels));
}

class BudgetCache {
  readonly #kept = new Map<string, Map<string, KeptBudget>>();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  inForce(namespace: string): BudgetsInForce {
    const kept = [...(this.#kept.get(namespace)?.values() ?? [])];
    return {
      usable: kept.flatMap(({ valid }) => (valid === undefined ? [] : [valid.view])),
      unusable: kept.flatMap(({ valid, invalid }) => {
        if (valid !== undefined || invalid === undefined) return [];
        const { name, view, matchLabels } = invalid;
        return [{ name, problem: view.unknown, ...(matchLabels === undefined ? {} : { matchLabels }) }];
      }),
    };
  }

  /** Applies one change of the store. A budget that was recreated under the same name arrives as a deletion and an addition. */
  take({ kind, namespace, name, view: version }: Change<ZoneBudgetVersion>): void {
    const inside = getOrCreate(this.#kept, namespace, () => new Map<string, KeptBudget>());
    const { kept, outcome } = takeVersion(inside.get(name), kind === 'deleted' ? undefined : version);
    if (kept === undefined) inside.delete(name);
    else inside.set(name, kept);
    if (outcome !== 'invalid') return;
    const consequence =
      kept?.valid === undefined ? 'until it is repaired, pods that it selects are not evicted' : 'the previous version stays in force';
    const problem = kept?.invalid?.view.unknown;
    this.#log.error('invalid ZoneAwarePodDisruptionBudget', { namespace, budget: name, problem, consequence });
  }
}

/** Returns the endpoint. It sends no requests: the same object always has the same answer, also in a dry run. */
export function zpdbValidation(): Endpoint {
  return {
    path: '/admission/zpdb-validation',
    handle: async (review) => validated(review),
    onFailure: (_review, problem) => deny(400, `the ZoneAwarePodDisruptionBudget could not be checked: ${problem}`),
  };
}

function validated({ object }: Review): Answer {
  if (object === undefined) return deny(400, 'the review has no object');
  const view = observeZoneBudget(object);
  return isUnknown(view) ? deny(400, view.unknown) : { allowed: true, code: 200 };
}
