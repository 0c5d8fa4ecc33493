// What people said about a run. A word that lets a run go on counts only from somebody whom the API server vouches for; one that holds, from anybody.
import type { GroupDefinition, PolicyDefinition, PolicyRuleDefinition } from '../../policies/definition.ts';
import { inputsRead } from '../../policies/integrations/metric-input.ts';
import { sha256 } from '../../policies/values/hash.ts';
import type { GroupContext } from '../context.ts';
import { canonicalJson } from '../hash.ts';
import { isWithinClockSkew } from '../observe/clock-skew.ts';
import { type IntentView, isUnknown, type RunState } from '../snapshot.ts';

/** An intent with the identity that the webhook wrote into it. */
export type VouchedIntent = IntentView & { readonly requestedBy: NonNullable<IntentView['requestedBy']> };

/**
 * Whether the API server vouches for who asked, and the time beside it has come. A person may write the time of their own word where no webhook does:
 * one that lies ahead would outlast its end, and be about every run until then.
 */
export function isVouched(context: Pick<GroupContext, 'nowMs'>, intent: IntentView): intent is VouchedIntent {
  return intent.requestedBy !== undefined && isWithinClockSkew(context, intent.requestedBy.atMs);
}

/**
 * What an approval of a wave names beside it: a digest of the group's waves and of the gates that they name. Whoever approves one wave approves
 * it as the one after those before it, and with what is asked after it.
 */
export function digestOfWaves({ rollout: { waves }, gates }: Pick<GroupDefinition, 'rollout' | 'gates'>): string {
  const named = new Set(waves.flatMap(({ before, after }) => [...before.gates, ...after.gates]));
  const asked = gates.filter(({ name }) => named.has(name)).map((gate) => [gate.name, canonicalJson(gate)] as const);
  return digestOf([waves, asked.sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/** The same for a rule of a policy, with the metrics that it may read. Where it is written does not matter. */
export function digestOfRule({ metrics }: Pick<PolicyDefinition, 'metrics'>, rule: PolicyRuleDefinition): string {
  const { source: _source, ...asked } = rule;
  return digestOf([asked, inputsRead({ metrics, rules: [rule] }).map((name) => [name, metrics[name]])]);
}

/** Nobody can write another definition with the same digest, as they could with a hash that is only short. */
function digestOf(value: unknown): string {
  return sha256(canonicalJson(value)).slice(0, 32);
}

/** Whether it is about this run: it names it, or names none and came when this run had begun. */
export function isOfRun({ runId, requestedBy }: IntentView, run: Pick<RunState, 'id' | 'startedMs'> | undefined): boolean {
  if (runId !== undefined) return runId === run?.id;
  return run === undefined || requestedBy === undefined || requestedBy.atMs >= run.startedMs;
}

/** What people whom the API server vouches for said about this run, by the name of the intent. Nothing while intents cannot be read. */
export function requestsFor(
  context: Pick<GroupContext, 'intents' | 'nowMs'>,
  run: RunState,
  action: IntentView['action'],
): readonly VouchedIntent[] {
  const { intents } = context;
  if (isUnknown(intents)) return [];
  const vouched = intents.filter((intent) => isVouched(context, intent));
  return vouched.filter((intent) => intent.action === action && isOfRun(intent, run));
}

/** `anna (bad release)`; without a name where nobody vouches for one. */
export function requesterText({ requestedBy, reason }: IntentView): string {
  return [requestedBy?.user ?? 'somebody', ...(reason === undefined ? [] : [`(${reason})`])].join(' ');
}

/** The object that an answer rests on. */
export function objectOf({ namespace, name }: IntentView): { readonly object: string } {
  return { object: `RolloutIntent ${namespace}/${name}` };
}

/**
 * The word by which a person stopped this run, since it began or was last retried; undefined when nobody did. It must name the run: what names none only
 * holds, as a pause does.
 */
export function abortOf(context: GroupContext, run: RunState): VouchedIntent | undefined {
  return requestsFor(context, run, 'abort').find(
    ({ runId, requestedBy }) => runId !== undefined && requestedBy.atMs > (run.retriedMs ?? 0),
  );
}

/**
 * Whether an intent holds like a pause: pauses do, and aborts that cannot end a run: nobody vouches for who said so, their time is still to come,
 * or they name none. One that names a run holds no other.
 */
export function isHold(context: Pick<GroupContext, 'nowMs'>, intent: IntentView, run: Pick<RunState, 'id'> | undefined): boolean {
  const { action, runId } = intent;
  if (action === 'pause' || action === 'hold') return true;
  if (action !== 'abort') return false;
  return runId === undefined || (!isVouched(context, intent) && (run === undefined || runId === run.id));
}

/**
 * The word by which the soak and the gates of a wave, or one gate alone, are passed over. It skips no approval, no window and no rule of a policy:
 * whoever may write intents is not thereby somebody who may approve.
 */
export function promotionOf(context: GroupContext, run: RunState, wave: string, gate?: string): VouchedIntent | undefined {
  return requestsFor(context, run, 'promote').find(
    (intent) => (intent.wave === undefined || intent.wave === wave) && (intent.gate === undefined || intent.gate === gate),
  );
}

/** Who took back the revision that a zone is to run; undefined when nobody did. It holds whoever asks for that revision again. */
export function undoOf({ intents }: Pick<GroupContext, 'intents'>, zone: string, revision: string | undefined): IntentView | undefined {
  if (isUnknown(intents) || revision === undefined) return undefined;
  return intents.find(
    ({ action, undone }) => action === 'undo' && undone?.some((one) => one.zone === zone && one.revision === revision) === true,
  );
}

/** Who took back a decrease of the zone to this number of replicas; undefined when nobody did. */
export function cancelOf({ intents }: Pick<GroupContext, 'intents'>, zone: string, to: number): IntentView | undefined {
  if (isUnknown(intents)) return undefined;
  return intents.find(
    ({ action, zone: only, replicas }) =>
      action === 'cancel' && (only === undefined || only === zone) && (replicas === undefined || replicas === to),
  );
}
