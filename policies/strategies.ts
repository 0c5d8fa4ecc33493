// Defines the properties of the rollout strategies as data. `engine/strategies/` contains their behaviour.

/** The properties of a rollout strategy. Code reads a property and never compares the name of a strategy. */
export interface StrategyTraits {
  /** `spec.updateStrategy.type` that every StatefulSet of the group must have. */
  readonly updateStrategy: 'OnDelete' | 'RollingUpdate';
  /** True if the agent keeps the partition of the StatefulSets at 1000000 between rollouts, so that a new template reaches no pod. */
  readonly holdsPartition: boolean;
  /** True if the agent lowers the partition and the StatefulSet controller replaces the pods. Otherwise the agent replaces them. */
  readonly lowersPartition: boolean;
  /** True if the ledger pins every pod to a revision. Such a strategy needs the webhook on pod creation and reads ControllerRevisions. */
  readonly pinsPods: boolean;
  /** True if a failed run can return pods to their previous revision without a write of the template. */
  readonly canRollBack: boolean;
}

/** The traits of each value of `spec.rollout.strategy`. */
export const strategyTraits = {
  pinned: { updateStrategy: 'RollingUpdate', holdsPartition: true, lowersPartition: false, pinsPods: true, canRollBack: true },
  partition: { updateStrategy: 'RollingUpdate', holdsPartition: true, lowersPartition: true, pinsPods: false, canRollBack: false },
  onDelete: { updateStrategy: 'OnDelete', holdsPartition: false, lowersPartition: false, pinsPods: false, canRollBack: false },
} as const satisfies Readonly<Record<string, StrategyTraits>>;

export type StrategyName = keyof typeof strategyTraits;

/** Every strategy, the recommended one first. */
export const strategyNames = Object.keys(strategyTraits) as [StrategyName, ...StrategyName[]];

export function traitsOf({ rollout }: { readonly rollout: { readonly strategy: StrategyName } }): StrategyTraits {
  return strategyTraits[rollout.strategy];
}

/** The partition that exposes no pod. It is above any number of replicas, so a scale-up exposes no pod either. */
export const holdingPartition = 1_000_000;
