// Counts the observed versions of ZoneAwarePodDisruptionBudgets in every form in which the executable runs.
import type { Timers } from '../../cluster/env.ts';
import { type BudgetOutcome, type KeptBudget, takeVersion, type ZoneBudgetVersion } from '../../engine/observe/budget.ts';
import type { SharedWatches } from '../watched/caches.ts';

/**
 * The interval at which every budget is counted again, as `ignored` or `invalid`. The alert of grafana/rollout-operator needs the count: it
 * asks for five minutes in which the rate of `invalid` over five minutes is above 0. So each window must contain a count.
 */
const recountMs = 240_000;

/** Calls `onObserved` for each version of a budget. Returns a function that ends the count. */
export function countZoneBudgets(
  { timers }: { readonly timers: Timers },
  followed: Pick<SharedWatches['zoneBudgets'], 'list' | 'onChange'>,
  onObserved: (outcome: BudgetOutcome) => void,
): () => void {
  const kept = new Map<string, KeptBudget>();
  const take = (key: string, version: ZoneBudgetVersion | undefined): void => {
    const next = takeVersion(kept.get(key), version);
    if (next.kept === undefined) kept.delete(key);
    else kept.set(key, next.kept);
    onObserved(next.outcome);
  };
  const stop = followed.onChange(({ kind, namespace, name, view }) => take(`${namespace}/${name}`, kind === 'deleted' ? undefined : view));
  let cancel = (): void => undefined;
  const recount = (): void => {
    for (const version of followed.list()) take(`${version.namespace}/${version.name}`, version);
    cancel = timers.after(recountMs, recount);
  };
  recount();
  return () => {
    stop();
    cancel();
  };
}
