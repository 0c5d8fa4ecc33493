// What is remembered of pods that are asked to prepare for their removal, before the question leaves and after the answer came.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { Action } from '../decision.ts';
import { isWithinClockSkew } from '../observe/clock-skew.ts';
import type { Ledger, Preparation, Snapshot } from '../snapshot.ts';

type CallPods = Extract<Action, { readonly kind: 'callPods' }>;

/**
 * How old the newest answer of a pod may be when it is removed after its delay, in milliseconds. A pod may restart, or be told to stay by
 * somebody else, while it waits; so it is asked once more before it goes. Long enough for asking a large zone, its turn and the next one.
 */
const newestAnswerMs = 60_000;

/**
 * Whether what a prepared pod last answered can still be relied on: it is not old, and was given when the delay was over, at `ripeMs`. An
 * answer of the future is that of another clock.
 */
export function isNewAnswer(
  { answeredMs, seenMs }: Preparation,
  { nowMs, ripeMs }: { readonly nowMs: number; readonly ripeMs: number },
): boolean {
  const atMs = answeredMs ?? seenMs;
  return atMs >= ripeMs && atMs <= nowMs && nowMs - atMs <= newestAnswerMs;
}

/** The answer of one pod to one call. */
export interface PodAnswer {
  readonly ordinal: number;
  readonly podUid: string;
  /** `failed`: refused, unreachable, or the answer was lost; it may have prepared all the same. */
  readonly result: 'done' | 'failed';
  /** The pod's own timestamp, when it reported one. */
  readonly reportedMs?: number;
  /** Why it failed. */
  readonly message?: string;
}

/**
 * The ledger in which these pods are about to be asked; to be stored before the first question leaves, so that whoever comes after a crash
 * knows which pods may have prepared. What is known of a pod already stays, and so does what its predecessor answered, until it answers
 * itself. Calls that withdraw need no note: what they withdraw is known.
 */
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
  // One that failed and was told to stay may prepare again from here on.
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
 * The ledger after these pods answered. Pods that did not answer at all are to be given as failed; those that are left out keep what is known
 * of them. A pod that was told to stay and did so is forgotten, unless it failed to prepare before: that is kept, marked as withdrawn, so that
 * it is not asked again at once. A withdrawal that failed changes nothing: it is still to be done.
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
  const answered = heard.map((answer) =>
    preparationOf(
      call,
      answer,
      before.filter(({ ordinal }) => ordinal === answer.ordinal),
      nowMs,
    ),
  );
  return { ...ledger, preparations: [...others, ...answered] };
}

/**
 * Since when an answer to `prepare` has been known, when it was known before: the same pod, or its successor reporting the same timestamp,
 * which it can only have kept. So a pod that is rolled while it waits to leave does not begin its delay again, and neither does one that once
 * did not answer. undefined when it is news: a pod that names a later time than before was not prepared in between, or began anew.
 */
export function preparedSince(before: Preparation | undefined, answer: Omit<Preparation, 'seenMs'>): number | undefined {
  const known = before === undefined ? undefined : knownSince(before);
  if (before === undefined || known === undefined) return undefined;
  const isSameReport = answer.reportedMs !== undefined && answer.reportedMs === before.reportedMs;
  const isLater = answer.reportedMs !== undefined && before.reportedMs !== undefined && answer.reportedMs > before.reportedMs;
  return isSameReport || (before.podUid === answer.podUid && !isLater) ? known : undefined;
}

/**
 * Whether it was a clock ahead of this one that dated what is known of a prepared pod: by the pod's own time it has happened already. Its delay
 * begins anew, and is not waited for as long as that clock was wrong. Where the pod names no time, or one that lies ahead too, it may be the
 * clock here that is slow, by which no delay must begin: it would seem to be over once this clock is right.
 */
export function isDatedAhead(entry: Preparation, nowMs: number): boolean {
  const since = knownSince(entry);
  if (since === undefined || isWithinClockSkew({ nowMs }, since)) return false;
  return entry.reportedMs !== undefined && isWithinClockSkew({ nowMs }, entry.reportedMs);
}

function knownSince({ state, seenMs, sinceMs }: Preparation): number | undefined {
  return state === 'prepared' ? seenMs : sinceMs;
}

/** Stands for whichever pod was in the place when somebody else may have asked it. */
const anyPod = '';

/** Whether it is known that this pod was asked, and not only that somebody else may have. */
export function wasAsked({ podUid }: Preparation): boolean {
  return podUid !== anyPod;
}

/**
 * The ledger of a group that no agent has written before: whoever looked after it until now may have asked any pod of a zone to prepare, so
 * that those which are not to leave are told to stay, once. Every other ledger is what it was.
 */
export function takenOver(
  ledger: Ledger,
  group: GroupDefinition,
  { statefulSets, nowMs }: Pick<Snapshot, 'statefulSets' | 'nowMs'>,
): Ledger {
  if (ledger.epoch !== undefined || ledger.preparations.length > 0) return ledger;
  const preparations = group.zones.flatMap((zone): Preparation[] => {
    const set = statefulSets.find(({ namespace, name }) => namespace === group.namespace && name === zone.statefulSet);
    // Whoever prepares pods without a delay does so within one request, and leaves none that waits.
    if (zone.delayed === undefined) return [];
    const ordinals = Array.from({ length: set?.replicas ?? 0 }, (_, index) => (set?.firstOrdinal ?? 0) + index);
    return ordinals.map((ordinal) => ({ zone: zone.name, ordinal, podUid: anyPod, call: 'delayed', state: 'asked', seenMs: nowMs }));
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
    const said = message === undefined ? {} : { message };
    return { ...identity, state: 'failed', seenMs: nowMs, ...lastPrepared(before), ...said };
  }
  const answered = { ...identity, state: 'prepared' as const, ...(reportedMs === undefined ? {} : { reportedMs }) };
  const counted = before.filter((entry) => !isDatedAhead(entry, nowMs));
  const since = counted.map((entry) => preparedSince(entry, answered)).filter((instant) => instant !== undefined);
  const seenMs = since.length === 0 ? nowMs : Math.min(...since);
  return { ...answered, seenMs, ...(seenMs === nowMs ? {} : { answeredMs: nowMs }) };
}

/** What a pod that fails now had answered before, so that its delay goes on if it still names that time when it answers again. */
function lastPrepared(before: readonly Preparation[]): Pick<Preparation, 'reportedMs' | 'sinceMs'> {
  for (const entry of before) {
    const { reportedMs } = entry;
    const sinceMs = knownSince(entry);
    if (reportedMs !== undefined && sinceMs !== undefined) return { reportedMs, sinceMs };
  }
  return {};
}
