// Lists the phases of a group. Every list of phases, in metrics, conditions, schemas and outputs, is derived from these lists.

/** `RolledBack`: the run is over, and pods keep an earlier revision because the requested revision failed. */
export const phases = ['Done', 'RolledBack', 'Rolling', 'Scaling', 'Waiting', 'Paused', 'Blocked', 'Failed'] as const;

export type Phase = (typeof phases)[number];

/** The phases that the run alone determines. Conditions of policies read only these: other phases depend on the results of conditions. */
export const runPhases = ['Done', 'RolledBack', 'Rolling', 'Failed'] as const satisfies readonly Phase[];

export type RunPhase = (typeof runPhases)[number];
