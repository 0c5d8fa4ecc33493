// The outcome of a recorded run as shown: an open record without a current run is not shown as running.
import type { RolloutRun } from '../../policies/schema/kinds.ts';

type Spec = RolloutRun['spec'];

/** `abandoned`: it was under way when its group went, or when another run began without ending it. It is never stored. */
type ShownOutcome = Spec['outcome'] | 'abandoned';

/** A record as it is shown. */
export type ShownRun = Omit<Spec, 'outcome'> & { readonly outcome: ShownOutcome };

/** Returns the records of one group, the newest first. A change of replicas and a rollout may run at the same time. */
export function shownRuns(runs: readonly Spec[], isDefined: boolean): readonly ShownRun[] {
  return runs.map((run, index) => {
    if (run.outcome !== 'running') return run;
    const hasSuccessor = runs.slice(0, index).some((newer) => isScale(newer) === isScale(run));
    return isDefined && !hasSuccessor ? run : { ...run, outcome: 'abandoned' };
  });
}

function isScale({ kind }: Pick<Spec, 'kind'>): boolean {
  return kind === 'scale';
}
