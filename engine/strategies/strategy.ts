// Defines the interface of rollout strategies and their table. A new strategy is one file here, its entry in the table, and one entry in
// `policies/strategies.ts`.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { StrategyName } from '../../policies/strategies.ts';
import type { GroupContext } from '../context.ts';
import type { Action, RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import type { RollQuestion } from '../rules/roll.ts';
import type { RunState } from '../run/run-state.ts';
import type { PodView } from '../snapshot.ts';
import { onDelete } from './on-delete.ts';
import { partition, type SetPartition } from './partition.ts';
import { pinned } from './pinned.ts';

export interface ChosenPod {
  readonly pod: PodView;
  readonly because: 'outdated' | 'stuck';
}

/** The numbers of pods of a zone that may be replaced now. */
export interface Allowance {
  /** Number of pods that the budget of the zone still allows to become unavailable. */
  readonly free: number;
  /** Maximum number of pods in flight, at least 1. With OrderedReady always 1. Drop-in groups ignore it. */
  readonly cap: number;
}

/** A way to replace the pods of a group. `policies/strategies.ts` lists what each strategy requires from the cluster. */
export interface Strategy {
  /** Returns the outdated pods that are still to be replaced in this wave, in the order of their replacement. */
  readonly queuePods: (question: RollQuestion) => readonly PodView[];
  /** Chooses pods of the queue within the allowance. */
  readonly choosePods: (question: RollQuestion, queue: readonly PodView[], allowance: Allowance) => readonly ChosenPod[];
  /** Returns the chosen pods that can still be replaced if a budget allows only some of them. */
  readonly withoutDenied: (chosen: readonly ChosenPod[], allowed: readonly ChosenPod[]) => readonly ChosenPod[];
  readonly replacePods: (context: GroupContext, view: ZoneView, chosen: readonly ChosenPod[]) => readonly Action[];
  /** Returns the results of the rules that only this strategy adds to a rollout step. */
  readonly checkStep: (question: RollQuestion) => readonly RuleResult[];
  /** Returns writes of partitions that replace no pod. */
  readonly settlePartitions: (context: GroupContext) => readonly SetPartition[];
  /** Returns warnings about pods that a restart would bring, or brought, to another revision. */
  readonly warnOfRestarts: (context: GroupContext, run: RunState | undefined) => readonly RuleResult[];
}

const strategies: Readonly<Record<StrategyName, Strategy>> = { pinned, partition, onDelete };

export function strategyOf({ rollout }: Pick<GroupDefinition, 'rollout'>): Strategy {
  return strategies[rollout.strategy];
}
