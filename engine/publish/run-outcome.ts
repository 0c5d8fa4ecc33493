// How a recorded run stands when somebody looks: one that nobody carries on any more does not run, although nobody closed its record.
import type { RolloutRun } from '../../policies/schema/kinds.ts';

type Spec = RolloutRun['spec'];

/** `abandoned`: it was under way when its group went, or when another run began without ending it. It is never stored. */
type ShownOutcome = Spec['outcome'] | 'abandoned';

/** A record as it is shown. */
export type ShownRun = Omit<Spec, 'outcome'> & { readonly outcome: ShownOutcome };

/** The records of one group, the newest first, as they stand. A change of replicas and a rollout go on beside each other. */
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
