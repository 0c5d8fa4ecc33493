// Updates the preparations in the ledger before the agent calls pods that will be removed, and after they answered.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { Action } from '../decision.ts';
import { createdOrdinals } from '../ledger/created.ts';
import { isWithinClockSkew, type Ledger, type Preparation } from '../snapshot.ts';

type CallPods = Extract<Action, { readonly kind: 'callPods' }>;

/** The maximum age of the last answer when a pod is removed after its delay. If the answer is older, the pod may have restarted since. */
const maxAnswerAgeMs = 60_000;

/** Reports whether the last answer of a pod is recent and came after the delay ended at `ripeMs`. Answers in the future do not count. */
export function isNewAnswer(
  { answeredMs, seenMs }: Preparation,
  { nowMs, ripeMs }: { readonly nowMs: number; readonly ripeMs: number },
): boolean {
  const atMs = answeredMs ?? seenMs;
  return atMs >= ripeMs && atMs <= nowMs && nowMs - atMs <= maxAnswerAgeMs;
}

export interface PodAnswer {
  readonly ordinal: number;
  readonly podUid: string;
  /** `failed`: the pod refused, was unreachable, or its answer was lost. The pod may have prepared nevertheless. */
  readonly result: 'done' | 'failed';
  /** The pod's own timestamp, if it reported one. */
  readonly reportedMs?: number;
  readonly message?: string;
}

/** Returns the ledger with an entry for each pod that will be asked to prepare. The caller stores the ledger before it calls the pods. */
export function noteAsked(
  ledger: Ledger,
  call: Pick<CallPods, 'zone' | 'call' | 'method'>,
  pods: readonly { readonly ordinal: number; readonly uid: string }[],
  nowMs: number,
): Ledger {
  if (call.method === 'DELETE') return ledger;
  const known = new Set(ledger.preparations.filter((entry) => isOfCall(entry, call)).map((entry) => `${entry.ordinal} ${entry.podUid}`));
  const added = pods
    .filter(({ ordinal, uid }) => !known.has(`${ordinal} ${uid}`))
    .map(({ ordinal, uid }): Preparation => ({ zone: call.zone, ordinal, podUid: uid, call: call.call, state: 'asked', seenMs: nowMs }));
  // This call may prepare a pod that failed before, so its entry no longer counts as failed or withdrawn.
  const asked = new Set(pods.map(({ ordinal, uid }) => `${ordinal} ${uid}`));
  const isAskedAgain = (entry: Preparation): boolean =>
    isOfCall(entry, call) && entry.state === 'failed' && asked.has(`${entry.ordinal} ${entry.podUid}`);
  if (added.length === 0 && !ledger.preparations.some(isAskedAgain)) return ledger;
  const preparations = ledger.preparations.map((entry): Preparation => {
    if (!isAskedAgain(entry)) return entry;
    const { isWithdrawn: _isWithdrawn, message: _message, ...rest } = entry;
    return { ...rest, state: 'asked', seenMs: nowMs };
  });
  return { ...ledger, preparations: [...preparations, ...added] };
}

/**
 * Returns the ledger after the answers of pods. The caller passes a pod without an answer as `failed`. A withdrawal removes the entry of
 * a pod. Only the entry of a failed preparation stays, marked as withdrawn, so that the withdrawal is not repeated.
 */
export function noteAnswers(
  ledger: Ledger,
  call: Pick<CallPods, 'zone' | 'call' | 'method'>,
  answers: readonly PodAnswer[],
  nowMs: number,
): Ledger {
  const heard = call.method === 'DELETE' ? answers.filter(({ result }) => result === 'done') : answers;
  const ordinals = new Set(heard.map(({ ordinal }) => ordinal));
  const isHeard = (entry: Preparation): boolean => isOfCall(entry, call) && ordinals.has(entry.ordinal);
  const others = ledger.preparations.filter((entry) => !isHeard(entry));
  const before = ledger.preparations.filter(isHeard);
  if (call.method === 'DELETE') return { ...ledger, preparations: [...others, ...withdrawn(before)] };
  const answered = heard.map((answer) => {
    const earlier = before.filter(({ ordinal, podUid }) => ordinal === answer.ordinal && podUid === answer.podUid);
    return preparationOf(call, answer, earlier, nowMs);
  });
  return { ...ledger, preparations: [...others, ...answered] };
}

/**
 * Returns the instant from which the delay of a pod counts; undefined if the delay starts with this answer. The delay starts again with a
 * new pod, even if that pod reports the time of its predecessor: its volume may come from a pod that was removed. The delay also starts
 * again if the pod reports a later time.
 */
export function preparedSince(before: Preparation | undefined, answer: Omit<Preparation, 'seenMs'>): number | undefined {
  if (before === undefined || before.podUid !== answer.podUid) return undefined;
  const isLater = answer.reportedMs !== undefined && before.reportedMs !== undefined && answer.reportedMs > before.reportedMs;
  return isLater ? undefined : knownSince(before);
}

/** Reports whether an agent with a fast clock recorded the preparation: the recorded time is in the future, but the reported time is not. */
export function isDatedAhead(entry: Preparation, nowMs: number): boolean {
  const since = knownSince(entry);
  if (since === undefined || isWithinClockSkew({ nowMs }, since)) return false;
  return entry.reportedMs !== undefined && isWithinClockSkew({ nowMs }, entry.reportedMs);
}

function knownSince({ state, seenMs, sinceMs }: Preparation): number | undefined {
  return state === 'prepared' ? seenMs : sinceMs;
}

/** The pod UID in the entries of pods that another operator may have asked to prepare. */
const anyPod = '';

/** Reports whether this agent asked the pod to prepare; false if only another operator may have asked it. */
export function wasAsked({ podUid }: Preparation): boolean {
  return podUid !== anyPod;
}

/** Returns the ledger of a new group with an entry for each created pod of zones with a delay: another operator may have prepared the pod. */
export function withPossiblePreparations(ledger: Ledger, group: GroupDefinition, nowMs: number): Ledger {
  if (ledger.epoch !== undefined || ledger.preparations.length > 0) return ledger;
  const preparations = (ledger.created ?? []).flatMap((created): Preparation[] => {
    // Without a delay, an operator prepares and removes pods within one request, so that no prepared pod is left.
    if (group.zones.find(({ name }) => name === created.zone)?.delayed === undefined) return [];
    const asked = { zone: created.zone, podUid: anyPod, call: 'delayed', state: 'asked', seenMs: nowMs } as const;
    return createdOrdinals(created).map((ordinal) => ({ ...asked, ordinal }));
  });
  return preparations.length === 0 ? ledger : { ...ledger, preparations };
}

function isOfCall(entry: Preparation, { zone, call }: Pick<CallPods, 'zone' | 'call'>): boolean {
  return entry.zone === zone && entry.call === call;
}

function withdrawn(entries: readonly Preparation[]): readonly Preparation[] {
  return entries
    .filter((entry) => entry.state === 'failed')
    .map(({ reportedMs: _reportedMs, sinceMs: _sinceMs, ...entry }) => ({ ...entry, isWithdrawn: true }));
}

function preparationOf(
  { zone, call }: Pick<CallPods, 'zone' | 'call'>,
  { ordinal, podUid, result, reportedMs, message }: PodAnswer,
  before: readonly Preparation[],
  nowMs: number,
): Preparation {
  const identity = { zone, ordinal, podUid, call };
  if (result === 'failed') {
    const cause = message === undefined ? {} : { message };
    return { ...identity, state: 'failed', seenMs: nowMs, ...lastPrepared(before), ...cause };
  }
  const answered = { ...identity, state: 'prepared' as const, ...(reportedMs === undefined ? {} : { reportedMs }) };
  const counted = before.filter((entry) => !isDatedAhead(entry, nowMs));
  const since = counted.map((entry) => preparedSince(entry, answered)).filter((instant) => instant !== undefined);
  const seenMs = since.length === 0 ? nowMs : Math.min(...since);
  return { ...answered, seenMs, ...(seenMs === nowMs ? {} : { answeredMs: nowMs }) };
}

/** Returns the earlier answer of a pod that fails now. The delay continues if the pod later reports the same timestamp again. */
function lastPrepared(before: readonly Preparation[]): Pick<Preparation, 'reportedMs' | 'sinceMs'> {
  for (const entry of before) {
    const { reportedMs } = entry;
    const sinceMs = knownSince(entry);
    if (reportedMs !== undefined && sinceMs !== undefined) return { reportedMs, sinceMs };
  }
  return {};
}
