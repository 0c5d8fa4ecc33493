// The assumptions of a plan: pod durations, gate results and the time people take. Every plan contains them, and a file can set them.

/** The median and the 90th percentile of a duration. */
export interface Quantiles {
  readonly p50Seconds: number;
  readonly p90Seconds: number;
}

export interface PodTimes {
  /** From the request to delete a pod until it is gone. */
  readonly drain: Quantiles;
  /** From the creation of a pod until it is ready. */
  readonly start: Quantiles;
}

export interface Assumptions {
  readonly pods: PodTimes;
  /** Times of single groups, by name, where they differ. */
  readonly groups: Readonly<Record<string, Partial<PodTimes>>>;
  readonly gates: 'pass' | 'fail';
  /** Approvals are taken as given at once, and the time of people is left out of every total. */
  readonly approvals: 'given' | 'missing';
  /** The answer of pods that are asked to prepare. */
  readonly preparations: 'succeed' | 'fail';
  /** Values of metrics that policies read, as `policy/input`; those left out get a value at which no rule of the policy holds, if there is one. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** Plain defaults, stated in every plan; measure your own and put them into a file. */
export const defaultAssumptions: Assumptions = {
  pods: { drain: { p50Seconds: 30, p90Seconds: 120 }, start: { p50Seconds: 60, p90Seconds: 180 } },
  groups: {},
  gates: 'pass',
  approvals: 'given',
  preparations: 'succeed',
  metrics: {},
};
