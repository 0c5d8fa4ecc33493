// Decides when a group has its next turn: by the decision, the results of its actions, and changes that cause no event.
import { asksToPrepare, type GroupDecision } from '../../engine/decision.ts';
import { earliest } from '../../engine/rule.ts';
import type { NextTurn } from '../loop.ts';
import { directReadIntervalMs, type GroupMemory, longestWaitMs } from './gather.ts';
import { claimEndsMs } from './ledger-changes.ts';
import type { Outcome } from './perform.ts';
import { isRefused } from './refusals.ts';

interface TurnEnd {
  readonly decision: GroupDecision;
  readonly performed: readonly Outcome[];
  /** True if the decision violates a safety invariant, or if its results could not be stored. */
  readonly hasProblem: boolean;
  /** True if the turn did not begin all permitted actions. */
  readonly isCut: boolean;
  /** True if the caches contradict the decision. */
  readonly isStale: boolean;
  /** The minimum pause that the API server requested when it rejected the write of the results, in milliseconds. */
  readonly storePauseMs: number | undefined;
  /** True if every source of replicas was read and is watched. */
  readonly areSourcesKnown: boolean;
  /** The start of the turn (monotonic). The turn did not see the end of a pause or of a claim that ended since. */
  readonly startedMs: number;
  /** The current time (monotonic). */
  readonly nowMs: number;
}

/** The maximum number of consecutive stale decisions without a pause before the next turn. */
const maxStaleAtOnce = 3;
/** The pause before a source is read again if it cannot be watched or read. */
const sourceRetryMs = 30_000;
/** The pause after a conflict, and the first pause after a budget denied an eviction, if no event comes earlier. */
const conflictPauseMs = 5_000;
const denialPauseMs = 10_000;
const longestDenialPauseMs = 300_000;

/** Returns when the next turn is due. Updates in `memory` the counts of consecutive budget denials and of consecutive stale decisions. */
export function nextTurn(memory: GroupMemory, end: TurnEnd): NextTurn {
  const { decision, performed, hasProblem, isCut, isStale, storePauseMs, areSourcesKnown, startedMs, nowMs } = end;
  memory.isWaiting = decision.outcome === 'wait' || decision.outcome === 'blocked';
  const claimsEndMs = memory.ledger === undefined ? [] : claimEndsMs(memory.ledger.current, memory.knownSinceMs, nowMs);
  const delaysMs = [
    // A waiting group is read again. The time of the last success of an idle group stays young, because alerts watch its age.
    directReadIntervalMs,
    delayAfter(memory, performed),
    ...[...memory.refusals.endsMs(), ...claimsEndMs].map((endMs) => (endMs > startedMs ? Math.max(0, endMs - nowMs) : undefined)),
    // A dead watch does not report the writes of this turn, so later turns must read the objects directly.
    memory.freshness.hasStaleCache() ? longestWaitMs : undefined,
    areSourcesKnown ? undefined : sourceRetryMs,
  ];
  // After a stale decision the caches already contain the new state, so the next turn follows at once, except after several in a row.
  memory.staleDecisions = isStale ? memory.staleDecisions + 1 : 0;
  // After a rejected write the group decides again at once, because only this write waits.
  const isRejected = performed.some((outcome) => isRefused(outcome) && !isConflict(outcome));
  const isAtOnce = isRejected || (isStale && memory.staleDecisions <= maxStaleAtOnce);
  const nextTurnInMs = earliest([...delaysMs, isAtOnce ? 0 : undefined]);
  // No event reports when this process may act again, or when the ledger can be written again.
  const needsRetry = hasProblem || (isCut && !isAtOnce) || performed.some(needsPause);
  const retryAfterMs = performed.find(needsPause)?.retryAfterMs ?? storePauseMs;
  if (needsRetry) return { wakeAtMs: decision.wakeAtMs, retry: { afterMs: retryAfterMs } };
  // Only a successful action shows that a failed action can succeed too.
  const hasSucceeded = decision.outcome === 'done' || performed.some(({ result }) => result === 'done');
  return { wakeAtMs: decision.wakeAtMs, nextTurnInMs, isInconclusive: !hasSucceeded };
}

/** Returns the milliseconds until the next turn if the actions of this turn cause no event. */
function delayAfter(memory: GroupMemory, outcomes: readonly Outcome[]): number | undefined {
  const isBudget = outcomes.some(isRefusedByBudget);
  memory.budgetDenials = isBudget ? memory.budgetDenials + 1 : 0;
  // The answers of the pods changed the ledger, and no watch reports changes of the ledger.
  if (outcomes.some(({ answers = [] }) => answers.some(({ result }) => result === 'done'))) return 0;
  if (outcomes.some(({ action, answers = [] }) => asksToPrepare(action) && answers.length > 0)) return 0;
  if (isBudget) {
    const requestedMs = Math.max(0, ...outcomes.map(({ retryAfterMs = 0 }) => retryAfterMs));
    return Math.max(requestedMs, Math.min(longestDenialPauseMs, denialPauseMs * 2 ** Math.min(memory.budgetDenials - 1, 10)));
  }
  return outcomes.some(isConflict) ? conflictPauseMs : undefined;
}

export function isConflict({ result, action }: Outcome): boolean {
  return result === 'conflict' && action.kind !== 'callPods';
}

/** Returns whether a budget denied the eviction. This is not a failure: an event reports when the budget permits an eviction. */
function isRefusedByBudget({ action, status }: Outcome): boolean {
  return action.kind === 'evictPod' && status === 429;
}

/** Returns whether the action must be retried and no event reports when. The decision names the time of further calls that prepare pods. */
function needsPause(outcome: Outcome): boolean {
  const { action, result } = outcome;
  if (result === 'done' || result === 'conflict' || isRefusedByBudget(outcome) || isRefused(outcome)) return false;
  return !asksToPrepare(action);
}
