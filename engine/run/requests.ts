// Finds the requests (RolloutIntents) about a run. Requests that permit progress need a verified requester; a pause does not.
import type { GroupDefinition, PolicyDefinition, PolicyRuleDefinition } from '../../policies/definition.ts';
import { inputsRead } from '../../policies/integrations/metric-source.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { hashText, sha256 } from '../../policies/values/hash.ts';
import { ordinalRanges } from '../amount.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { type IntentView, isUnknown, isWithinClockSkew } from '../snapshot.ts';
import type { RunState } from './run-state.ts';

/** The actions that only stop a group. They count without a verified requester, so admission lets them pass while no webhook answers. */
export const stopActions: readonly IntentView['action'][] = ['pause', 'protect', 'undo'];

/** A request with the identity that the webhook wrote into it. */
export type VerifiedRequest = IntentView & { readonly requestedBy: NonNullable<IntentView['requestedBy']> };

/** Reports whether the requester is verified and the request is not dated in the future. A user could enter any date without the webhook. */
export function isVerified(context: Pick<GroupContext, 'nowMs'>, intent: IntentView): intent is VerifiedRequest {
  return intent.requestedBy !== undefined && isWithinClockSkew(context, intent.requestedBy.atMs);
}

/** Returns the digest of all waves of the group and their gates, which an approval of a wave must name. */
export function digestOfWaves({ rollout: { waves }, gates }: Pick<GroupDefinition, 'rollout' | 'gates'>): string {
  const named = new Set(waves.flatMap(({ before, after }) => [...before.gates, ...after.gates]));
  const used = gates.filter(({ name }) => named.has(name)).map((gate) => [gate.name, canonicalJson(gate)] as const);
  return digestOf([waves, used.sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/**
 * Returns the digest of a policy rule, the metrics that it reads, and the differences from an approved plan that an approval must have seen. The
 * digest does not depend on the place of the rule in a file.
 */
export function digestOfRule(
  { metrics }: Pick<PolicyDefinition, 'metrics'>,
  rule: PolicyRuleDefinition,
  deviations: readonly { readonly fact: string; readonly now?: string | undefined; readonly covered?: string }[] = [],
): string {
  const { source: _source, ...content } = rule;
  const inputs = inputsRead({ metrics, rules: [rule] }).map((name) => [name, metrics[name]]);
  return digestOf([content, inputs, ...deviations.map(({ fact, now = '', covered = fact }) => [covered, now])]);
}

/** Returns the first 128 bits of a SHA-256 digest, so that a user cannot construct another definition with the same digest. */
function digestOf(value: unknown): string {
  return sha256(canonicalJson(value)).slice(0, 32);
}

/** Reports whether a request is about this run: it names the run, or it names no run and is not known to be older than this run. */
export function isOfRun({ runId, requestedBy }: IntentView, run: Pick<RunState, 'id' | 'startedMs'> | undefined): boolean {
  if (runId !== undefined) return runId === run?.id;
  return run === undefined || requestedBy === undefined || requestedBy.atMs >= run.startedMs;
}

/** Returns the verified requests of one action about this run; [] while requests cannot be read. */
export function requestsFor(
  context: Pick<GroupContext, 'intents' | 'nowMs'>,
  run: RunState,
  action: IntentView['action'],
): readonly VerifiedRequest[] {
  const { intents } = context;
  if (isUnknown(intents)) return [];
  const verified = intents.filter((intent) => isVerified(context, intent));
  return verified.filter((intent) => intent.action === action && isOfRun(intent, run));
}

/** The requester and the reason of a request or an exception. */
export interface RequestedWith {
  readonly requestedBy?: Pick<NonNullable<IntentView['requestedBy']>, 'user'>;
  readonly reason?: string;
}

/** Returns the requester with the reason, such as `anna (bad release)`. */
export function requesterText({ requestedBy, reason }: RequestedWith): string {
  return [requestedBy?.user ?? 'an unverified requester', ...(reason === undefined ? [] : [`(${reason})`])].join(' ');
}

/** Returns the place of a request: `the group`, `zone a`, `a-2` or `pods 1-3 of zone a`. */
export function requestPlace({ ordinals, zone }: Pick<IntentView, 'ordinals' | 'zone'>): string {
  const place = zone === undefined ? 'the group' : `zone ${zone}`;
  if (ordinals === undefined) return place;
  return ordinals.length === 1 && zone !== undefined ? `${zone}-${ordinals[0]}` : `pods ${ordinalRanges(ordinals)} of ${place}`;
}

/** Returns the object of a request as the source of a result. */
export function objectOf({ namespace, name }: IntentView): { readonly object: string } {
  return { object: `RolloutIntent ${namespace}/${name}` };
}

/** Returns the name of the request that is the source of a result; undefined for another source. */
export function requestOf({ source }: Pick<RuleResult, 'source'>): string | undefined {
  return /^RolloutIntent [^/]+\/(.+)$/.exec(source?.object ?? '')?.[1];
}

/** Returns the requests that abort this run since its last retry. An abort that names no run only pauses. */
export function abortRequests(context: GroupContext, run: RunState): readonly VerifiedRequest[] {
  return unanswered(context, run, 'abort', run.retriedMs ?? 0).filter(({ runId }) => runId !== undefined);
}

/**
 * Returns the requests about the run that have had no effect yet, so that an answered retry does not retry the next failure. The clocks of the
 * agent and of the webhook differ, so times count only if the ledger does not name the answered requests: those after `sinceMs`.
 */
export function unanswered(context: GroupContext, run: RunState, action: 'retry' | 'abort', sinceMs: number): readonly VerifiedRequest[] {
  return requestsFor(context, run, action).filter((intent) =>
    run.answered === undefined ? intent.requestedBy.atMs > sinceMs : !run.answered.includes(digestOfRequest(intent)),
  );
}

/** Returns the run with its present requests of these actions, up to an instant, as answered. While requests are unknown, returns the run. */
export function withAnswered<Run extends RunState>(
  context: GroupContext,
  run: Run,
  actions: readonly ('retry' | 'abort')[],
  untilMs: number = Number.POSITIVE_INFINITY,
): Run {
  if (isUnknown(context.intents)) return run;
  const known = actions.flatMap((action) => requestsFor(context, run, action)).filter(({ requestedBy }) => requestedBy.atMs <= untilMs);
  const present = known.map(digestOfRequest);
  return { ...run, answered: [...new Set([...(run.answered ?? []), ...present])].sort() };
}

function digestOfRequest({ name, requestedBy }: VerifiedRequest): string {
  return hashText(`${name} ${requestedBy.atMs}`).slice(0, 10);
}

/** Reports whether a request pauses the run: a pause, an abort that names no run, or an abort of this run by an unverified requester. */
export function pauses(context: Pick<GroupContext, 'nowMs'>, intent: IntentView, run: Pick<RunState, 'id'> | undefined): boolean {
  const { action, runId } = intent;
  if (action === 'pause') return true;
  if (action !== 'abort') return false;
  return runId === undefined || (!isVerified(context, intent) && (run === undefined || runId === run.id));
}

/** Returns the request that skips soak and gates of a wave, or one gate. The request never skips an approval, a window or a policy rule. */
export function skipRequest(context: GroupContext, run: RunState, wave: string, gate?: string): VerifiedRequest | undefined {
  return requestsFor(context, run, 'promote').find(
    (intent) => (intent.wave === undefined || intent.wave === wave) && (intent.gate === undefined || intent.gate === gate),
  );
}

/** Returns the request that undid the update revision of a zone. The revision is blocked until a person cancels the request. */
export function undoRequest(
  { intents }: Pick<GroupContext, 'intents'>,
  zone: string,
  revision: string | undefined,
): IntentView | undefined {
  if (isUnknown(intents) || revision === undefined) return undefined;
  return intents.find(
    ({ action, undone }) => action === 'undo' && undone?.some((one) => one.zone === zone && one.revision === revision) === true,
  );
}

/**
 * Returns the undo that wrote the templates of a run, or the first of several. Undefined if another change wrote one of them, or if the run
 * also rolls out the template of another zone.
 */
export function undoOf(
  { intents }: Pick<GroupContext, 'intents'>,
  { kind, target, previous, from = {} }: Pick<RunState, 'kind' | 'target' | 'previous' | 'from'>,
): IntentView | undefined {
  const isWritten = (zone: string): boolean => from[zone] !== undefined && from[zone] !== target[zone];
  const written = Object.keys(target).filter(isWritten);
  if (isUnknown(intents) || written.length === 0) return undefined;
  // While the templates of an undo are written one after another, the zones that still have an undone template wait.
  const isRolledOut = (zone: string): boolean =>
    !isWritten(zone) && target[zone] !== previous[zone] && undoRequest({ intents }, zone, target[zone]) === undefined;
  if (kind === 'rollout' && Object.keys(target).some(isRolledOut)) return undefined;
  const undos = written.map((zone) =>
    intents.find(
      ({ action, undone = [] }) =>
        action === 'undo' && undone.some((one) => one.zone === zone && one.revision === from[zone] && one.to === target[zone]),
    ),
  );
  return undos.every((undo) => undo !== undefined) ? undos[0] : undefined;
}

/** Returns the request that cancels a downscale of the zone to this number of replicas, unless the ledger says that it has ended. */
export function cancelRequest(context: Pick<GroupContext, 'intents' | 'view'>, zone: string, to: number): IntentView | undefined {
  const { endedCancels = [] } = context.view.ledger;
  return cancelRequests(context, zone).find(
    (intent) => (intent.replicas === undefined || intent.replicas === to) && !endedCancels.includes(digestOfCancel(intent, zone)),
  );
}

/** Returns the requests that cancel downscales of the zone, also those that have ended; [] while requests cannot be read. */
export function cancelRequests({ intents }: Pick<GroupContext, 'intents'>, zone: string): readonly IntentView[] {
  if (isUnknown(intents)) return [];
  return intents.filter(({ action, zone: only }) => action === 'cancel' && (only === undefined || only === zone));
}

/** Returns a digest of a cancellation in one zone, by which the ledger remembers that it has ended there. */
export function digestOfCancel({ name, requestedBy }: IntentView, zone: string): string {
  return hashText(`${name} ${requestedBy?.atMs ?? ''} ${zone}`).slice(0, 10);
}
