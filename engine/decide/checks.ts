// Every check of a step of a rollout, a scale-up and a scale-down, in the order in which plans and explanations print the results.
import type { RuleResult } from '../decision.ts';
import { type PodChoice, podBudgets } from '../rules/budget.ts';
import { progressDeadline, runDeadline } from '../rules/deadline.ts';
import { withException } from '../rules/exception.ts';
import type { PolicyAnswer } from '../rules/policy.ts';
import { leavingOrdinals, protectedResult } from '../rules/protected.ts';
import {
  ledgerHasRoom,
  minInterval,
  noReplicaWrite,
  notFailed,
  notPaused,
  otherZonesReady,
  type RollQuestion,
  updateStrategy,
  viewComplete,
} from '../rules/roll.ts';
import { type ScaleQuestion, scaleDownRules, scaleUpRules } from '../rules/scale.ts';
import { undoneResult } from '../rules/undone.ts';
import type { WaveAnswer } from '../rules/wave.ts';
import { windowResult } from '../rules/window.ts';
import { strategyOf } from '../strategies/strategy.ts';

/** The question of a rollout step: may the chosen pods of this zone be replaced now? */
interface RollStepQuestion extends RollQuestion {
  /** The results of the wave: its approval and its gates. */
  readonly wave: WaveAnswer;
  readonly policies: PolicyAnswer;
  readonly choice: PodChoice;
}

/** The question of a step that changes replicas. */
interface ScaleStepQuestion extends ScaleQuestion {
  /** The result of reading the wanted number of replicas. */
  readonly source: RuleResult;
  readonly policies: PolicyAnswer;
}

interface Check<Question> {
  readonly id: string;
  /** Returns one result, several, or undefined where there is nothing to say. */
  readonly evaluate: (question: Question) => RuleResult | readonly RuleResult[] | undefined;
}

/** The checks of a rollout step. */
export const rollChecks: readonly Check<RollStepQuestion>[] = [
  updateStrategy, // the StatefulSets have the update strategy that the rollout strategy needs
  viewComplete, // every zone was read and its status is new
  notFailed, // the run has not failed
  notPaused, // no setting and no person paused the zone
  noReplicaWrite, // no zone grows or shrinks
  otherZonesReady, // all pods of every other zone are available
  minInterval, // the last replacement was long enough ago
  ledgerHasRoom, // the ledger has room for another claim
  { id: 'strategy', evaluate: (question) => strategyOf(question.context.group).checkStep(question) }, // partition, pins
  { id: 'undone', evaluate: ({ context, zone }) => undoneResult(context, zone.view) }, // no person undid the revision
  { id: 'protected', evaluate: ({ context, zone }) => protectedResult(context, zone.view, 'all') }, // no person protects the zone
  { id: 'wave', evaluate: ({ wave }) => wave.results }, // approval and gates before the wave
  { id: 'window', evaluate: (question) => windowResult(question.context, 'rollout', underWay(question)) }, // the windows are open
  { id: 'policies', evaluate: ({ policies }) => policies.results }, // no rule of a RolloutPolicy blocks
  { id: 'progress-deadline', evaluate: ({ context, run }) => progressDeadline(context, run) }, // fails the run, blocks no step
  { id: 'run-deadline', evaluate: ({ context, run }) => runDeadline(context, run) }, // fails the run, blocks no step
  { id: podBudgets, evaluate: ({ choice }) => choice.results }, // zone-budget, disruption-budget, eviction-budget, protected pods
];

/** The checks of a scale-up. A paused group still grows: more pods endanger nothing. */
export const scaleUpChecks: readonly Check<ScaleStepQuestion>[] = [
  { id: 'replica-source', evaluate: ({ source }) => source }, // the wanted number of replicas could be read
  { id: 'scale-up', evaluate: (question) => (question.isForced ? [] : scaleUpRules.map((rule) => rule.evaluate(question))) }, // view, ceiling, leader
  { id: 'window', evaluate: ({ context }) => windowResult(context, 'scaleUp', 'nothing') }, // the windows are open
  { id: 'policies', evaluate: ({ policies }) => policies.results }, // no rule of a RolloutPolicy blocks
];

/** The checks of a scale-down. Only when all of them pass are the leaving pods asked to prepare: a prepared pod serves less. */
export const scaleDownChecks: readonly Check<ScaleStepQuestion>[] = [
  { id: 'replica-source', evaluate: ({ source }) => source }, // the wanted number of replicas could be read
  ...scaleDownRules.map((rule): Check<ScaleStepQuestion> => rule), // pause, owner, floor, leader, rollout, other zones, time between zones
  { id: 'protected', evaluate: (question) => protectedResult(question.context, question.zone, leavingOrdinals(question.zone, question)) },
  { id: 'window', evaluate: ({ context }) => windowResult(context, 'scaleDown', 'nothing') }, // the windows are open
  { id: 'policies', evaluate: ({ policies }) => policies.results }, // no rule of a RolloutPolicy blocks
];

/** Returns how much of the rollout is under way when a window closes. A run that has replaced no pod yet is not under way. */
function underWay({ run, zone }: RollQuestion): 'nothing' | 'zone' | 'run' {
  if ((run.lastDisruptionMs ?? -1) < run.startedMs) return 'nothing';
  return run.openZone === zone.view.zone.name ? 'zone' : 'run';
}

/** Returns the results of all checks of a rollout step. An exception may allow a result that blocks. */
export function checkRoll(question: RollStepQuestion): readonly RuleResult[] {
  const { context, zone, choice } = question;
  const subject = { zone: zone.view.zone.name, podCount: choice.chosen.length };
  return rollChecks.flatMap((check) => {
    const results = listOf(check.evaluate(question));
    // The budgets have counted their exceptions already: the pods that they allow are chosen.
    return check.id === podBudgets ? results : results.map((answer) => withException(context, answer, subject));
  });
}

/** Returns the results of the checks of a step that changes replicas. An exception may allow a result that blocks. */
export function checkScale(checks: readonly Check<ScaleStepQuestion>[], question: ScaleStepQuestion): readonly RuleResult[] {
  const results = checks.flatMap((check) => listOf(check.evaluate(question)));
  return results.map((answer) => withException(question.context, answer, { zone: question.zone.zone.name, to: question.to }));
}

function listOf(answer: RuleResult | readonly RuleResult[] | undefined): readonly RuleResult[] {
  if (answer === undefined) return [];
  return 'rule' in answer ? [answer] : answer;
}
