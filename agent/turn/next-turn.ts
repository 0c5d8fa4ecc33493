// Decides when a group has its next turn: by the decision, the results of its actions, and changes that cause no event.
import { asksToPrepare, type GroupDecision } from '../../engine/decision.ts';
import { earliest } from '../../engine/rule.ts';
import type { NextTurn } from '../loop.ts';
import { type GroupMemory, longestWaitMs, waitingLookMs } from './gather.ts';
import { nextClaimEndInMs } from './ledger-changes.ts';
import type { Outcome } from './perform.ts';

/** The end of a turn. */
interface TurnEnd {
  readonly decision: GroupDecision;
  readonly performed: readonly Outcome[];
  /** The decision violates a safety invariant, or its results could not be stored. */
  readonly hasProblem: boolean;
  /** Some actions of the decision were not begun. */
  readonly isCut: boolean;
  /** The caches contradict the decision. */
  readonly isOvertaken: boolean;
  /** The least pause in milliseconds that the server asked for when the results could not be stored. */
  readonly storePauseMs: number | undefined;
  /** Every source of replicas was read and is watched. */
  readonly areSourcesKnown: boolean;
  /** Monotonic. */
  readonly nowMs: number;
}

/** Limits the stale decisions in a row without a pause between them. */
const overtakenAtOnce = 3;
/** Pause before a source is read again that cannot be watched or could not be read. */
const sourceLookMs = 30_000;
/** Pauses after a conflict and after a budget refusal, if no event comes first. */
const conflictLookMs = 5_000;
const refusalLookMs = 10_000;
const longestLookMs = 300_000;

/** Returns when the next turn is due. Counts budget refusals and stale decisions in a row in the memory. */
export function nextTurn(memory: GroupMemory, end: TurnEnd): NextTurn {
  const { decision, performed, hasProblem, isCut, isOvertaken, storePauseMs, areSourcesKnown, nowMs } = end;
  memory.isWaiting = decision.outcome === 'wait' || decision.outcome === 'blocked';
  const looks = [
    memory.isWaiting ? waitingLookMs : undefined,
    lookAfter(memory, performed),
    memory.ledger === undefined ? undefined : nextClaimEndInMs(memory.ledger.current, memory.knownSinceMs, nowMs),
    permissionLookMs(memory, decision, nowMs),
    // A dead watch does not report our own writes either; then the group is read past it.
    memory.freshness.hasStaleCache() ? longestWaitMs : undefined,
    areSourcesKnown ? undefined : sourceLookMs,
  ];
  // The caches already show the new state, so the next turn follows at once, unless several decisions in a row were stale.
  memory.overtaken = isOvertaken ? memory.overtaken + 1 : 0;
  const isAtOnce = isOvertaken && memory.overtaken <= overtakenAtOnce;
  const lookAgainInMs = earliest([...looks, isAtOnce ? 0 : undefined]);
  // No event reports when this process may act again, or when writes of the ledger are faster.
  const needsRetry = hasProblem || (isCut && !isAtOnce) || performed.some(needsPause);
  const retryAfterMs = performed.find(needsPause)?.retryAfterMs ?? storePauseMs;
  return { wakeAtMs: decision.wakeAtMs, lookAgainInMs, ...(needsRetry ? { retry: { afterMs: retryAfterMs } } : {}) };
}

/** Returns when a forbidden action may be tried again. */
function permissionLookMs({ forbidden }: GroupMemory, { actions }: GroupDecision, nowMs: number): number | undefined {
  const verbs = actions.flatMap(({ kind }) => (kind === 'callPods' ? [] : [kind]));
  return forbidden.nextInMs(verbs, nowMs);
}

/** Returns when to look again even if no event follows from the actions of this turn. */
function lookAfter(memory: GroupMemory, outcomes: readonly Outcome[]): number | undefined {
  const isBudget = outcomes.some(isRefusedByBudget);
  memory.refusals = isBudget ? memory.refusals + 1 : 0;
  // The answers of the pods changed the ledger, and no watch reports that.
  if (outcomes.some(({ answers = [] }) => answers.some(({ result }) => result === 'done'))) return 0;
  if (outcomes.some(({ action, answers = [] }) => asksToPrepare(action) && answers.length > 0)) return 0;
  if (isBudget) {
    const asked = Math.max(0, ...outcomes.map(({ retryAfterMs = 0 }) => retryAfterMs));
    return Math.max(asked, Math.min(longestLookMs, refusalLookMs * 2 ** Math.min(memory.refusals - 1, 10)));
  }
  return outcomes.some(({ result, action }) => result === 'conflict' && action.kind !== 'callPods') ? conflictLookMs : undefined;
}

/** Reports whether a budget denied the eviction. This is no failure: an event reports when the budget permits one. */
function isRefusedByBudget({ action, status }: Outcome): boolean {
  return action.kind === 'evictPod' && status === 429;
}

/** Reports whether the action must be tried again and no event reports when. The decision has the time of the next preparation calls. */
function needsPause(outcome: Outcome): boolean {
  const { action, result, status } = outcome;
  // A forbidden action has its own pause.
  if (status === 403 && action.kind !== 'callPods') return false;
  if (result === 'done' || result === 'conflict' || isRefusedByBudget(outcome)) return false;
  return !asksToPrepare(action);
}
