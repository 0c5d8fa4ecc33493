// Evaluates the preparation of a downscale: pods prepare first, and are removed after their preparation and its delay.
import { formatDuration } from '../../policies/duration.ts';
import { counted } from '../../policies/wording.ts';
import { sourceOf } from '../context.ts';
import { isDatedAhead, isNewAnswer, wasAsked } from '../decide/preparations.ts';
import type { Action, RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { ageSince, earliest, leadingResult, result } from '../rule.ts';
import { requestPlace } from '../run/requests.ts';
import { isWithinClockSkew, type PodView, type Preparation } from '../snapshot.ts';
import { leavingPods } from './leaving.ts';
import type { ScaleQuestion } from './scale.ts';

export interface PrepareAnswer {
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
  const leaving = leavingAnswers(question, 'delayed');
  const { answers } = leaving;
  const failed = answers.filter(({ entry }) => entry?.state === 'failed');
  const missing = answers.filter(({ entry }) => entry?.state !== 'prepared' || isDatedAhead(entry, context.nowMs));
  const mayCall = missing.length > 0 && !failed.some((one) => isPausing(question, one));
  const actions = mayCall ? [callPods(question, 'delayed', 'POST', ordinalsFromLowest(answers))] : [];
  if (failed.length > 0) {
    const outcome = delayed.onUnreachable === 'fail' ? 'no' : 'wait';
    const details = { limit, source, earliestMs: retryTime(question, failed) };
    const failure = result('delayed-downscale', outcome, failureText(failed), details);
    return { result: failure, permitted: from, actions };
  }
  if (missing.length + leaving.lostCount > 0) {
    const wait = result('delayed-downscale', 'wait', missingText(question, leaving, missing), { limit, source });
    return { result: wait, permitted: from, actions };
  }
  return confirmed(question, answers, removableTail(question, answers, delayed.afterMs, source), delayed.afterMs);
}

function missingText({ zone }: ScaleQuestion, { lost, lostCount }: Leaving, missing: readonly Answer[]): string {
  const absent = lost === undefined ? '' : `; ${zone.zone.statefulSet}-${lost} does not exist`;
  return `${counted(missing.length + lostCount, 'pod')} must prepare${absent}`;
}

function failureText([first]: readonly Answer[]): string {
  return `${first?.pod.name} failed to prepare${first?.entry?.message ? `: ${first.entry.message}` : ''}`;
}

function ordinalsFromLowest(answers: readonly Answer[]): readonly number[] {
  return answers.map(({ pod }) => pod.ordinal).reverse();
}

/**
 * Requires that pods confirm their preparation after the delay, immediately before they leave. A pod that lost its preparation then reports
 * a different timestamp.
 */
function confirmed(
  question: ScaleQuestion,
  answers: readonly Answer[],
  ripe: Omit<PrepareAnswer, 'actions'>,
  afterMs: number,
): PrepareAnswer {
  const { context, zone, from } = question;
  const first = zone.set?.firstOrdinal ?? 0;
  const isConfirmed = ({ entry, sinceMs }: Answer): boolean =>
    entry !== undefined && isNewAnswer(entry, { nowMs: context.nowMs, ripeMs: sinceMs + afterMs });
  const removable = answers.filter(({ pod }) => pod.ordinal >= first + ripe.permitted);
  const old = removable.filter((one) => !isConfirmed(one));
  if (old.length === 0) return { ...ripe, actions: [] };
  const { limit, source } = ripe.result;
  const fact = `${counted(old.length, 'pod')} must confirm that ${old.length === 1 ? 'it is' : 'they are'} prepared`;
  return {
    result: result('delayed-downscale', 'wait', fact, { limit, source }),
    permitted: from,
    actions: [callPods(question, 'delayed', 'POST', ordinalsFromLowest(removable))],
  };
}

/** Returns the replicas that remain after the removal of all pods above the highest pod with an unfinished delay. */
function removableTail(question: ScaleQuestion, answers: readonly Answer[], afterMs: number, source: RuleResult['source']) {
  const { context, zone, from, to } = question;
  const rule = 'delayed-downscale';
  const limit = formatDuration(afterMs);
  const ripeCount = answers.findIndex(({ sinceMs }) => context.nowMs - sinceMs < afterMs);
  const unripe = answers[ripeCount];
  if (unripe === undefined) {
    return { result: result(rule, 'ok', preparedTop(answers.length, limit), { limit, source }), permitted: to };
  }
  const earliestMs = unripe.sinceMs + afterMs;
  const permitted = unripe.pod.ordinal + 1 - (zone.set?.firstOrdinal ?? 0);
  if (permitted !== from) return { result: result(rule, 'ok', preparedTop(ripeCount, limit), { limit, source, earliestMs }), permitted };
  const age = ageSince('for', unripe.sinceMs, context.nowMs);
  const fact = `${unripe.pod.name} has been prepared ${age.words}`;
  return { result: result(rule, 'wait', fact, { limit, source, earliestMs, age }), permitted };
}

function preparedTop(count: number, limit: string): string {
  if (count === 0) return 'no pod was created for the highest ordinals';
  return `${counted(count, 'pod')} with the highest ${count === 1 ? 'ordinal has' : 'ordinals have'} been prepared for ${limit}`;
}

/** Reports whether the delay applies. Adopted groups delay mirrored zones only; in native groups a forced number skips the delay. */
function appliesTo({ context, zone, isForced }: ScaleQuestion): boolean {
  if (profileOf(context.group).checksEveryDownscale) return !isForced;
  return zone.zone.replicas.kind === 'mirror' && zone.zone.follows === undefined;
}

/**
 * Returns the calls that prepare the running successors of prepared pods. They are sent even while a rule other than a pause blocks the
 * downscale.
 */
export function renewals(question: ScaleQuestion): readonly Action[] {
  const { context, zone } = question;
  if (zone.zone.delayed === undefined || !appliesTo(question)) return [];
  const asked = context.view.ledger.preparations.filter(
    (entry) => entry.zone === zone.zone.name && entry.call === 'delayed' && wasAsked(entry),
  );
  const successors = leavingPods(zone, context.view.ledger, question).pods.filter((pod) => {
    const entries = asked.filter((entry) => entry.ordinal === pod.ordinal);
    // An unanswered call may never have been sent: the agent may have stopped before the call.
    const isSuccessor = entries.length > 0 && entries.every((entry) => entry.podUid !== pod.uid || entry.state === 'asked');
    return isSuccessor && pod.containersReady && !pod.isTerminating;
  });
  const ordinals = successors.map(({ ordinal }) => ordinal);
  return ordinals.length === 0 ? [] : [callPods(question, 'delayed', 'POST', ordinals)];
}

/** Evaluates the preparation immediately before the removal. */
export function prepareDownscale(question: ScaleQuestion, to: number): PrepareAnswer {
  const { context, zone, from } = question;
  const prepare = question.isForced && profileOf(context.group).checksEveryDownscale ? undefined : zone.zone.prepare;
  if (prepare === undefined) return { result: result('prepare-downscale', 'skip', 'no preparation is set'), permitted: to, actions: [] };
  const source = sourceOf(context, `zones.${zone.zone.name}.prepare`);
  const leaving = leavingAnswers({ ...question, to }, 'prepare');
  const { answers } = leaving;
  const ordinals = answers.map(({ pod }) => pod.ordinal);
  const failed = answers.filter(({ entry }) => entry?.state === 'failed');
  if (failed.some((one) => isPausing(question, one))) {
    // All preparations are withdrawn, so that no pod stays read-only. A failed pod may have prepared before its answer was lost.
    const actions = answers.some(({ entry }) => entry !== undefined && entry.isWithdrawn !== true)
      ? [callPods(question, 'prepare', 'DELETE', ordinals)]
      : [];
    const outcome = prepare.onFailure === 'deny' ? 'no' : 'wait';
    const details = { source, earliestMs: retryTime(question, failed) };
    return { result: result('prepare-downscale', outcome, failureText(failed), details), permitted: from, actions };
  }
  const missing = answers.filter(({ entry }) => entry?.state !== 'prepared');
  if (missing.length + leaving.lostCount === 0) {
    const fact = `${counted(answers.length, 'pod')} ${answers.length === 1 ? 'is' : 'are'} prepared`;
    return { result: result('prepare-downscale', 'ok', fact, { source }), permitted: to, actions: [] };
  }
  const actions = missing.length === 0 ? [] : [callPods(question, 'prepare', 'POST', ordinals)];
  const wait = result('prepare-downscale', 'wait', missingText(question, leaving, missing), { source });
  return { result: wait, permitted: from, actions };
}

/**
 * Returns the calls that withdraw the preparation of pods that stay, and of their successors. An absent pod is called after it returns. While
 * a claim announces a decrease, its pods stay prepared: a decrease without an answer may still be applied.
 */
export function withdrawals(question: Pick<ScaleQuestion, 'context' | 'zone'>, staying: number): readonly Action[] {
  const { context, zone } = question;
  const preparations = context.view.ledger.preparations.filter((entry) => entry.zone === zone.zone.name && entry.isWithdrawn !== true);
  if (preparations.length === 0) return [];
  const announced = zone.claims.flatMap((claim) => (claim.verb === 'scaleDown' ? (claim.to ?? []) : []));
  const end = (zone.set?.firstOrdinal ?? 0) + Math.min(staying, ...announced);
  const present = new Set(zone.pods.map(({ ordinal }) => ordinal));
  const actions: Action[] = [];
  for (const call of ['delayed', 'prepare'] as const) {
    const ordinals = preparations.filter((entry) => entry.call === call && entry.ordinal < end).map((entry) => entry.ordinal);
    const distinct = [...new Set(ordinals)].filter((ordinal) => present.has(ordinal)).sort((a, b) => a - b);
    if (distinct.length > 0) actions.push(callPods(question, call, 'DELETE', distinct));
  }
  return actions;
}

/**
 * Returns a warning if pods stay prepared while a rule other than the preparation blocks their removal; undefined without such a rule or pod.
 * The pods stay prepared, because the preparation would start over after a withdrawal.
 */
export function keptPreparation(question: ScaleQuestion, results: readonly RuleResult[]): RuleResult | undefined {
  const { context, zone, to } = question;
  const rule = leadingResult(results)?.rule;
  const kept = (['delayed', 'prepare'] as const).flatMap((call) => leavingAnswers(question, call).answers);
  const ordinals = kept.filter(({ entry }) => entry?.state === 'prepared').map(({ pod }) => pod.ordinal);
  if (rule === undefined || rule === 'delayed-downscale' || rule === 'prepare-downscale' || ordinals.length === 0) return undefined;
  const distinct = [...new Set(ordinals)];
  const place = requestPlace({ ordinals: distinct, zone: zone.zone.name });
  const { namespace, name } = context.group;
  const end = `kubectl rollout-group cancel ${namespace}/${name} --zone ${zone.zone.name}`;
  const stay = distinct.length === 1 ? 'stays' : 'stay';
  const fact = `${place} ${stay} prepared while ${rule} blocks the decrease to ${counted(to, 'replica')}. To cancel the decrease, run: ${end}`;
  return result('prepare-downscale', 'ok', fact);
}

/** An existing pod that leaves, and its answer. */
interface Answer {
  readonly pod: PodView;
  readonly entry: Preparation | undefined;
  /** The instant from which the preparation counts; without an answer, the current time. */
  readonly sinceMs: number;
}

interface Leaving extends Pick<ReturnType<typeof leavingPods>, 'lost' | 'lostCount'> {
  /** From the highest ordinal down. */
  readonly answers: readonly Answer[];
}

/**
 * Returns the leaving pods with their answers. A successor inherits no answer. A lost pod must prepare too: its volume has data that its
 * successor must hand over.
 */
function leavingAnswers(question: Pick<ScaleQuestion, 'context' | 'zone' | 'from' | 'to'>, call: Preparation['call']): Leaving {
  const { context, zone } = question;
  const { ledger } = context.view;
  const { pods: existing, ...lost } = leavingPods(zone, ledger, question);
  const answers = existing.map((pod): Answer => {
    const entry = ledger.preparations.find(
      (candidate) =>
        candidate.zone === zone.zone.name && candidate.call === call && candidate.ordinal === pod.ordinal && candidate.podUid === pod.uid,
    );
    return { pod, entry, sinceMs: entry === undefined ? context.nowMs : preparedSince(context, entry) };
  });
  return { answers: answers.reverse(), ...lost };
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
function isPausing({ context }: Pick<ScaleQuestion, 'context'>, { entry }: Answer): boolean {
  const atMs = entry?.seenMs ?? 0;
  return isWithinClockSkew(context, atMs) && context.nowMs - atMs < retryAfterMs;
}

function retryTime({ context }: ScaleQuestion, failed: readonly Answer[]): number | undefined {
  return earliest(failed.filter((one) => isPausing({ context }, one)).map(({ entry }) => entry && entry.seenMs + retryAfterMs));
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
