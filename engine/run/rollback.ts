// Back to what ran before when a run fails, without another template: whether a group does that, and which run follows.

import { traitsOf } from '../../policies/strategies.ts';
import { contextOf, type GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { isWithinClockSkew } from '../observe/clock-skew.ts';
import { result } from '../rule.ts';
import { isUnknown, type RunState } from '../snapshot.ts';
import { requestsFor } from './requests.ts';
import { newRun } from './run.ts';

/** How long a failed run stands as such before it is rolled back, in milliseconds: long enough to be published and told. */
export const standsFailedMs = 1_000;

/**
 * The context with the run that follows from a failed one: the same waves, back to what every zone ran before, by the strategy `pinned`, which can
 * make pods at any revision. The StatefulSets still name the template that failed; it is asked for no more until there is another one, or until
 * somebody says `retry`. Other engines cannot bring pods back without a template, and stop where they are. A run that goes back is not turned round
 * again when it fails.
 */
export function withRollback(context: GroupContext): GroupContext {
  const { run } = context.view.ledger;
  // Which pods are to go back is not known while a zone cannot be read.
  if (run === undefined || context.view.zones.some(({ unknown }) => unknown !== undefined)) return context;
  const next = rolledBackRun(context, run) ?? retriedRun(context, run);
  if (next === undefined) return context;
  const { ledger } = context.view;
  const others = context.snapshot.ledgers.filter(({ namespace, group }) => namespace !== ledger.namespace || group !== ledger.group);
  return contextOf({ ...context.snapshot, ledgers: [...others, { ...ledger, run: next }] }, context.group);
}

function rolledBackRun(context: GroupContext, run: RunState): RunState | undefined {
  if (!rollsBack(context, run) || context.nowMs < rollbackMs(context, run)) return undefined;
  const revisions = Object.fromEntries(
    Object.entries(run.target).filter(([zone, revision]) => (run.previous[zone] ?? revision) !== revision),
  );
  if (Object.keys(revisions).length === 0) return undefined;
  const target = Object.fromEntries(Object.entries(run.target).map(([zone, revision]) => [zone, run.previous[zone] ?? revision]));
  const back = newRun(context, { kind: 'rollback', target, previous: run.target }, run);
  return { ...back, rolledBack: { revisions: { ...run.rolledBack?.revisions, ...revisions }, because: run.failure ?? 'the run failed' } };
}

/** When a failed run is rolled back; at once where a fast clock has dated the failure ahead. */
function rollbackMs(context: GroupContext, { failedMs = 0 }: RunState): number {
  return isWithinClockSkew(context, failedMs) ? failedMs + standsFailedMs : 0;
}

/** Whether a failed run is to be rolled back. Who has aborted it said whether; otherwise the group does. */
function rollsBack(context: GroupContext, run: RunState): boolean {
  if (!traitsOf(context.group).canRollBack || run.outcome !== 'failed' || run.kind !== 'rollout') return false;
  // Somebody may have said that everything stays as it is.
  if (isUnknown(context.intents)) return false;
  if (requestsFor(context, run, 'retry').some(({ requestedBy }) => requestedBy.atMs > (run.failedMs ?? 0))) return false;
  return (run.onFailure ?? context.group.rollout.onFailure) === 'rollback';
}

/** What failed once is tried again when somebody says so: a run of its own, from the first wave on. */
function retriedRun(context: GroupContext, run: RunState): RunState | undefined {
  if (run.rolledBack === undefined || run.outcome !== 'completed') return undefined;
  if (!requestsFor(context, run, 'retry').some(({ requestedBy }) => requestedBy.atMs > (run.completedMs ?? run.startedMs)))
    return undefined;
  const target = Object.fromEntries(
    context.view.zones.flatMap(({ zone, set }) => (set === undefined ? [] : [[zone.name, set.status.updateRevision] as const])),
  );
  return newRun(context, { kind: 'rollout', target, previous: run.target }, run);
}

/** What is to be known of a group that was rolled back, or is about to be. */
export function rollbackWarnings(context: GroupContext, run: RunState | undefined): readonly RuleResult[] {
  if (run === undefined) return [];
  if (rollsBack(context, run)) {
    const fact = 'the run has failed, and every pod goes back to what it ran before';
    return [result('rolled-back', 'wait', fact, { earliestMs: Math.max(context.nowMs + 1, rollbackMs(context, run)) })];
  }
  const { rolledBack } = run;
  return context.view.zones.flatMap(({ zone, set, desiredRevision }) => {
    const failed = rolledBack?.revisions[zone.name];
    if (failed === undefined || failed !== set?.status.updateRevision) return [];
    const fact = `zone ${zone.name} is kept at ${desiredRevision}, since ${failed} failed: ${rolledBack?.because ?? ''}`;
    return [
      result('rolled-back', 'wait', fact, {
        limit: 'another template, or retry',
        source: { object: `StatefulSet ${set.namespace}/${set.name}`, field: 'spec.template' },
      }),
    ];
  });
}
