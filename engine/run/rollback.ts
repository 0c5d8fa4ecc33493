// Rollback of a failed run to the previous revisions, without another template.

import { traitsOf } from '../../policies/strategies.ts';
import { contextOf, type GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { isWithinClockSkew } from '../observe/clock-skew.ts';
import { result } from '../rule.ts';
import { type FailedRun, isUnknown, type RunState } from '../snapshot.ts';
import { followingRun, isRetried } from './run.ts';

/** The time from a failure to the rollback in milliseconds: enough to publish and notify the failure. */
export const standsFailedMs = 1_000;

/**
 * Returns the context with the run that follows a failed run or its rollback; the given context if none follows. A rollback has the same waves and
 * restores the previous revision of every zone. Only the strategy `pinned` can roll back without another template, because it can create pods at
 * any revision. The StatefulSets still name the failed template; the group ignores it until the template changes or a person retries. A rollback
 * that fails is not rolled back.
 */
export function withRollback(context: GroupContext): GroupContext {
  const { run } = context.view.ledger;
  // An unread zone hides which pods to restore.
  if (run === undefined || context.view.zones.some(({ unknown }) => unknown !== undefined)) return context;
  const next = startRollback(context, run) ?? restartRolledBack(context, run);
  if (next === undefined) return context;
  const { ledger } = context.view;
  const others = context.snapshot.ledgers.filter(({ namespace, group }) => namespace !== ledger.namespace || group !== ledger.group);
  return contextOf({ ...context.snapshot, ledgers: [...others, { ...ledger, run: next }] }, context.group);
}

function startRollback(context: GroupContext, run: RunState): RunState | undefined {
  if (!rollsBack(context, run) || context.nowMs < rollbackMs(context, run)) return undefined;
  const revisions = Object.fromEntries(
    Object.entries(run.target).filter(([zone, revision]) => (run.previous[zone] ?? revision) !== revision),
  );
  if (Object.keys(revisions).length === 0) return undefined;
  const target = Object.fromEntries(Object.entries(run.target).map(([zone, revision]) => [zone, run.previous[zone] ?? revision]));
  const back = followingRun(context, { kind: 'rollback', target, previous: run.target }, run);
  return { ...back, rolledBack: { revisions: { ...run.rolledBack?.revisions, ...revisions }, because: run.failure } };
}

/** Returns when a failed run is rolled back; at once if a fast clock dated the failure in the future. */
function rollbackMs(context: GroupContext, { failedMs }: FailedRun): number {
  return isWithinClockSkew(context, failedMs) ? failedMs + standsFailedMs : 0;
}

/** Reports whether a failed run is rolled back. The requester of an abort decides; for other failures the group's `onFailure` does. */
function rollsBack(context: GroupContext, run: RunState): run is FailedRun {
  if (!traitsOf(context.group).canRollBack || run.outcome !== 'failed' || run.kind !== 'rollout') return false;
  // An unread request may be a retry.
  if (isUnknown(context.intents) || isRetried(context, run.failedMs, run)) return false;
  return (run.onFailure ?? context.group.rollout.onFailure) === 'rollback';
}

/** Returns a new run to the rolled-back revision, from the first wave, when a person retries it after the rollback. */
function restartRolledBack(context: GroupContext, run: RunState): RunState | undefined {
  if (run.rolledBack === undefined || run.outcome !== 'completed' || !isRetried(context, run.completedMs, run)) return undefined;
  const target = Object.fromEntries(
    context.view.zones.flatMap(({ zone, set }) => (set === undefined ? [] : [[zone.name, set.status.updateRevision] as const])),
  );
  return followingRun(context, { kind: 'rollout', target, previous: run.target }, run);
}

/** Returns the warnings of a group that was rolled back or is about to be. */
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
