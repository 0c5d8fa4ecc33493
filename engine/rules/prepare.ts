// Evaluates the preparation of a downscale: pods prepare first, and are removed after their preparation and its delay.
import { formatDuration } from '../../policies/duration.ts';
import { pods } from '../amount.ts';
import { sourceOf } from '../context.ts';
import { isDatedAhead, isNewAnswer, wasAsked } from '../decide/preparations.ts';
import type { Action, RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { ageSince, earliest, result } from '../rule.ts';
import { isWithinClockSkew, type Preparation } from '../snapshot.ts';
import { leavingOrdinals } from './protected.ts';
import type { ScaleQuestion } from './scale.ts';

interface PrepareAnswer {
  readonly result: RuleResult;
  /** The replicas that may be written now; at least the requested number. */
  readonly permitted: number;
  readonly actions: readonly Action[];
}

/** The pause before a failed preparation is tried again, in milliseconds. */
const retryAfterMs = 30_000;

/** Evaluates the delay. Pods leave from the highest ordinal down. Each is prepared for the whole delay, then confirms its preparation. */
export function delayedDownscale(question: ScaleQuestion): PrepareAnswer {
  const { context, zone, from, to } = question;
  const delayed = appliesTo(question) ? zone.zone.delayed : undefined;
  if (delayed === undefined) return { result: result('delayed-downscale', 'skip', 'no delay is set'), permitted: to, actions: [] };
  const source = sourceOf(context, `zones.${zone.zone.name}.delayed`);
  const limit = formatDuration(delayed.afterMs);
  const entries = leavingPods(question, 'delayed');
  const failed = entries.filter(({ entry }) => entry?.state === 'failed');
  const missing = entries.filter(({ entry }) => entry?.state !== 'prepared' || isDatedAhead(entry, context.nowMs));
  const mayCall = !failed.some((pod) => isPausing(question, pod));
  const actions =
    missing.some(({ exists }) => exists) && mayCall ? [callPods(question, 'delayed', 'POST', leavingOrdinals(zone, question))] : [];
  if (failed.length > 0) {
    const outcome = delayed.onUnreachable === 'fail' ? 'no' : 'wait';
    const details = { limit, source, earliestMs: retryTime(question, failed) };
    return { result: result('delayed-downscale', outcome, failureText(failed), details), permitted: from, actions };
  }
  if (missing.length > 0) {
    return { result: result('delayed-downscale', 'wait', missingText(missing), { limit, source }), permitted: from, actions };
  }
  return confirmed(question, entries, removableTail(question, entries, delayed.afterMs, source), delayed.afterMs);
}

function missingText(missing: readonly LeavingPod[]): string {
  const absent = missing.find(({ exists }) => !exists);
  return `${pods(missing.length)} must prepare${absent === undefined ? '' : `; ${absent.name} does not exist`}`;
}

function failureText([first]: readonly LeavingPod[]): string {
  return `${first?.name} failed to prepare${first?.entry?.message ? `: ${first.entry.message}` : ''}`;
}

/**
 * Requires that pods confirm their preparation after the delay, immediately before they leave. A pod that lost its preparation then reports
 * a different timestamp.
 */
function confirmed(
  question: ScaleQuestion,
  leaving: readonly LeavingPod[],
  ripe: Omit<PrepareAnswer, 'actions'>,
  afterMs: number,
): PrepareAnswer {
  const { context, zone, from } = question;
  const first = zone.set?.firstOrdinal ?? 0;
  const isConfirmed = ({ entry, sinceMs }: LeavingPod): boolean =>
    entry !== undefined && isNewAnswer(entry, { nowMs: context.nowMs, ripeMs: sinceMs + afterMs });
  const old = leaving.filter((pod) => pod.ordinal >= first + ripe.permitted && !isConfirmed(pod));
  if (old.length === 0) return { ...ripe, actions: [] };
  const { limit, source } = ripe.result;
  const fact = `${pods(old.length)} must confirm that ${old.length === 1 ? 'it is' : 'they are'} prepared`;
  return {
    result: result('delayed-downscale', 'wait', fact, { limit, source }),
    permitted: from,
    actions: [callPods(question, 'delayed', 'POST', leavingOrdinals(zone, { from, to: ripe.permitted }))],
  };
}

/** Returns the replicas that remain after the removal of all pods above the highest pod with an unfinished delay. */
function removableTail(question: ScaleQuestion, leaving: readonly LeavingPod[], afterMs: number, source: RuleResult['source']) {
  const { context, zone, from, to } = question;
  const rule = 'delayed-downscale';
  const limit = formatDuration(afterMs);
  const unripe = leaving.find(({ sinceMs }) => context.nowMs - sinceMs < afterMs);
  if (unripe === undefined) {
    return { result: result(rule, 'ok', preparedTop(from - to, limit), { limit, source }), permitted: to };
  }
  const earliestMs = unripe.sinceMs + afterMs;
  const permitted = unripe.ordinal + 1 - (zone.set?.firstOrdinal ?? 0);
  if (permitted !== from)
    return { result: result(rule, 'ok', preparedTop(from - permitted, limit), { limit, source, earliestMs }), permitted };
  const age = ageSince('for', unripe.sinceMs, context.nowMs);
  const fact = `${unripe.name} has been prepared ${age.words}`;
  return { result: result(rule, 'wait', fact, { limit, source, earliestMs, age }), permitted };
}

function preparedTop(count: number, limit: string): string {
  return `${pods(count)} with the highest ${count === 1 ? 'ordinal has' : 'ordinals have'} been prepared for ${limit}`;
}

/** Reports whether the delay applies. Adopted groups delay mirrored zones only; in native groups a forced number skips the delay. */
function appliesTo({ context, zone, isForced }: ScaleQuestion): boolean {
  if (profileOf(context.group).checksEveryDownscale) return !isForced;
  return zone.zone.replicas.kind === 'mirror' && zone.zone.follows === undefined;
}

/** Returns the calls that prepare the running successors of prepared pods. They are sent even while a rule blocks the downscale. */
export function renewals(question: ScaleQuestion): readonly Action[] {
  const { context, zone } = question;
  if (zone.zone.delayed === undefined || !appliesTo(question)) return [];
  const asked = context.view.ledger.preparations.filter(
    (entry) => entry.zone === zone.zone.name && entry.call === 'delayed' && wasAsked(entry),
  );
  const ordinals = leavingOrdinals(zone, question).filter((ordinal) => {
    const pod = zone.pods.find((candidate) => candidate.ordinal === ordinal);
    const entries = asked.filter((entry) => entry.ordinal === ordinal);
    // An unanswered call may never have been sent: the agent may have stopped before the call.
    const isSuccessor = entries.length > 0 && entries.every((entry) => entry.podUid !== pod?.uid || entry.state === 'asked');
    return isSuccessor && pod?.containersReady === true && !pod.isTerminating;
  });
  return ordinals.length === 0 ? [] : [callPods(question, 'delayed', 'POST', ordinals)];
}

/** Evaluates the preparation immediately before the removal. */
export function prepareDownscale(question: ScaleQuestion, to: number): PrepareAnswer {
  const { context, zone, from } = question;
  const prepare = question.isForced && profileOf(context.group).checksEveryDownscale ? undefined : zone.zone.prepare;
  if (prepare === undefined) return { result: result('prepare-downscale', 'skip', 'no preparation is set'), permitted: to, actions: [] };
  const source = sourceOf(context, `zones.${zone.zone.name}.prepare`);
  const entries = leavingPods({ ...question, to }, 'prepare');
  const ordinals = entries.map(({ ordinal }) => ordinal);
  const failed = entries.filter(({ entry }) => entry?.state === 'failed');
  if (failed.some((pod) => isPausing(question, pod))) {
    // All preparations are withdrawn, so that no pod stays read-only. A failed pod may have prepared before its answer was lost.
    const actions = entries.some(({ entry }) => entry !== undefined && entry.isWithdrawn !== true)
      ? [callPods(question, 'prepare', 'DELETE', ordinals)]
      : [];
    const outcome = prepare.onFailure === 'deny' ? 'no' : 'wait';
    const details = { source, earliestMs: retryTime(question, failed) };
    return { result: result('prepare-downscale', outcome, failureText(failed), details), permitted: from, actions };
  }
  const missing = entries.filter(({ entry }) => entry?.state !== 'prepared');
  if (missing.length === 0) {
    const fact = `${pods(entries.length)} ${entries.length === 1 ? 'is' : 'are'} prepared`;
    return { result: result('prepare-downscale', 'ok', fact, { source }), permitted: to, actions: [] };
  }
  const actions = missing.some(({ exists }) => exists) ? [callPods(question, 'prepare', 'POST', ordinals)] : [];
  return { result: result('prepare-downscale', 'wait', missingText(missing), { source }), permitted: from, actions };
}

/** Returns the calls that withdraw the preparation of pods that stay, and of their successors. */
export function withdrawals(question: Pick<ScaleQuestion, 'context' | 'zone'>, staying: number): readonly Action[] {
  const { context, zone } = question;
  const first = zone.set?.firstOrdinal ?? 0;
  const actions: Action[] = [];
  for (const call of ['delayed', 'prepare'] as const) {
    const ordinals = context.view.ledger.preparations
      .filter(
        (entry) => entry.zone === zone.zone.name && entry.call === call && entry.ordinal < first + staying && entry.isWithdrawn !== true,
      )
      .map((entry) => entry.ordinal);
    const distinct = [...new Set(ordinals)].sort((a, b) => a - b);
    if (distinct.length > 0) actions.push(callPods(question, call, 'DELETE', distinct));
  }
  return actions;
}

interface LeavingPod {
  readonly name: string;
  readonly ordinal: number;
  readonly exists: boolean;
  readonly entry: Preparation | undefined;
  /** The instant from which the preparation counts; without an answer, the current time. */
  readonly sinceMs: number;
}

/**
 * Returns the leaving pods with their answers, from the highest ordinal down. A successor inherits no answer. A pod that does not exist
 * must prepare too: it may have been lost, and its volume has data that its successor must hand over.
 */
function leavingPods(question: Pick<ScaleQuestion, 'context' | 'zone' | 'from' | 'to'>, call: Preparation['call']): readonly LeavingPod[] {
  const { context, zone, from, to } = question;
  return leavingFromTop(zone.set?.firstOrdinal ?? 0, from, to).map((ordinal) => {
    const pod = zone.pods.find((candidate) => candidate.ordinal === ordinal);
    const entry = context.view.ledger.preparations.find(
      (candidate) =>
        candidate.zone === zone.zone.name && candidate.call === call && candidate.ordinal === ordinal && candidate.podUid === pod?.uid,
    );
    const name = pod?.name ?? `${zone.zone.statefulSet}-${ordinal}`;
    const sinceMs = entry === undefined ? context.nowMs : preparedSince(context, entry);
    return { name, ordinal, exists: pod !== undefined, entry, sinceMs };
  });
}

/**
 * Returns the instant from which a preparation counts. Adopted groups use the time that the pod reported. Native groups use the time at
 * which the agent saw the answer, or the reported time if that is later and not in the future.
 */
function preparedSince(context: ScaleQuestion['context'], entry: Preparation): number {
  const reported = entry.reportedMs ?? entry.seenMs;
  if (profileOf(context.group).delayStart === 'reported') return reported;
  return isWithinClockSkew(context, reported) ? Math.max(reported, entry.seenMs) : entry.seenMs;
}

/** Reports whether the failure is too recent to ask again. A failure in the future was recorded by another clock and counts as old. */
function isPausing({ context }: Pick<ScaleQuestion, 'context'>, { entry }: LeavingPod): boolean {
  const atMs = entry?.seenMs ?? 0;
  return isWithinClockSkew(context, atMs) && context.nowMs - atMs < retryAfterMs;
}

function retryTime({ context }: ScaleQuestion, failed: readonly LeavingPod[]): number | undefined {
  return earliest(failed.filter((pod) => isPausing({ context }, pod)).map(({ entry }) => entry && entry.seenMs + retryAfterMs));
}

/** Returns the ordinals that leave, from the highest down, which is the order of the calls. */
export function leavingFromTop(firstOrdinal: number, from: number, to: number): readonly number[] {
  return Array.from({ length: from - to }, (_, index) => firstOrdinal + from - 1 - index);
}

function callPods(
  { context, zone }: { readonly context: ScaleQuestion['context']; readonly zone: ZoneView },
  call: Preparation['call'],
  method: 'POST' | 'DELETE',
  ordinals: readonly number[],
): Action {
  const { name, statefulSet } = zone.zone;
  return { kind: 'callPods', namespace: context.group.namespace, zone: name, statefulSet, call, method, ordinals };
}
