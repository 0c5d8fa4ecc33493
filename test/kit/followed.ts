// The two watches that the parts of one process share, on their own.
import type { AgentEnv } from '../../agent/env.ts';
import { cachedPod, type SharedWatches } from '../../agent/watched/caches.ts';
import { Watched } from '../../agent/watched/watched.ts';
import { resources } from '../../cluster/request/resource.ts';
import { observeZoneBudgetVersion, type ZoneBudgetVersion } from '../../engine/observe/budget.ts';
import { zoneBudgetResource } from '../../policies/adopt/keys.ts';

const silent = (): void => undefined;

interface FollowedWatches extends SharedWatches {
  readonly stop: () => void;
}

/** Starts the one of budgets, as the caches of a process do. */
export function followedBudgets(env: AgentEnv, namespaces?: readonly string[]): Watched<ZoneBudgetVersion> {
  return new Watched({
    env,
    namespaces,
    resource: zoneBudgetResource,
    project: observeZoneBudgetVersion,
    onChange: silent,
    onState: silent,
    withoutIt: 'nothing is known',
    mayBeMissing: true,
    outlivesContact: true,
    relistMs: 300_000,
  });
}

/** Starts both. */
export function followedIn(env: AgentEnv): FollowedWatches {
  const common = { env, namespaces: undefined, onChange: silent, onState: silent, withoutIt: 'nothing is known' };
  const pods = new Watched({ ...common, resource: resources.pods, project: cachedPod });
  const zoneBudgets = followedBudgets(env);
  return {
    pods,
    zoneBudgets,
    stop: () => {
      pods.stop();
      zoneBudgets.stop();
    },
  };
}
