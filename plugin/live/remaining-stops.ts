// Finds what still blocks a group after a request of the user, by a decision about the cluster after the request.
import { decideGroup } from '../../engine/decide/decide.ts';
import { isOfStop } from '../../engine/decide/stops.ts';
import type { RuleResult, Stop } from '../../engine/decision.ts';
import { withRequestedRollback } from '../../engine/plan/controller.ts';
import type { GroupPlan } from '../../engine/plan/document.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { endsText } from '../../engine/publish/status.ts';
import { policiesRead } from '../../engine/rules/policy.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import { todoOf } from '../output/explain.ts';
import type { LiveGroup } from './groups.ts';
import { type InstallationFacts, rejectedWrites } from './installation.ts';
import { nameOf } from './target.ts';

interface RequestEffect {
  readonly verb: string;
  /** True if the request rolls the current run back. */
  readonly isRollback?: boolean;
  /** Reports whether the rule can block the effect of the request. */
  readonly concerns: (rule: string) => boolean;
}

interface Forecast extends Pick<InstallationFacts, 'unread'> {
  readonly live: LiveGroup;
  readonly snapshot: Snapshot | undefined;
}

/** Returns a sentence for each stop that remains after the request, and for each rule that then blocks until a person acts. */
export function remainingStops(
  { live: { decision, definition }, snapshot, unread }: Forecast,
  { verb, isRollback = false, concerns }: RequestEffect,
): readonly string[] {
  const { namespace, group: name, run } = decision;
  const requested = isRollback ? snapshot && withRequestedRollback(snapshot, { namespace, name }, run?.id) : snapshot;
  const after = requested && definition && decideGroup(requested, definition);
  // The published waits are those of the run that the rollback ends.
  const before = isRollback ? { ...decision, waits: [] } : decision;
  const texts = blockingTexts(after ?? before, verb, ({ rule }) => concerns(rule));
  return [...texts, ...(after === undefined ? [] : rejectedWrites([before])), ...unreadNotes(snapshot, unread)];
}

/**
 * Returns the sentences of `remainingStops` for the zones with new templates, from their plan or else from the published decision. A plan has
 * only the stops that it meets. A stop of another zone can also block the run of the new templates.
 */
export function stopsOfTemplates(
  plan: GroupPlan | undefined,
  { live: { decision }, snapshot, unread }: Forecast,
  { verb, zones }: { readonly verb: string; readonly zones: readonly string[] },
): readonly string[] {
  const texts = blockingTexts(
    plan ?? decision,
    verb,
    (block) => plan !== undefined || (block.zones?.some((zone) => zones.includes(zone)) ?? true),
  );
  return [...texts, ...(plan === undefined ? [] : rejectedWrites([decision])), ...unreadNotes(snapshot, unread)];
}

/** Returns a note on each fact that the user could not read. The agent and the webhook know these facts. */
function unreadNotes(snapshot: Snapshot | undefined, unread: string | undefined): readonly string[] {
  const answer = snapshot && policiesRead(snapshot);
  const policies = answer === undefined ? [] : [`${answer.fact}; a policy that this command does not know may block the group`];
  return [...policies, ...(unread === undefined ? [] : [unread])];
}

/** Returns a sentence for each stop that the verb does not end, and for each rule that blocks until a person acts. */
export function blockingTexts(
  decision: Pick<PublishedDecision, 'namespace' | 'group' | 'stops'> & { readonly waits: readonly RuleResult[] },
  verb: string,
  isLeft: (block: Pick<Stop, 'rule' | 'source'> & { readonly zones?: readonly string[] }) => boolean,
): readonly string[] {
  const { stops = [], waits } = decision;
  const left = stops.filter((stop) => stop.isBlocking && isLeft(stop));
  const others = waits.filter(
    (wait) =>
      wait.outcome === 'no' && wait.earliestMs === undefined && isLeft({ rule: wait.rule }) && !stops.some((stop) => isOfStop(wait, stop)),
  );
  return [
    ...left.map((stop) => `${stop.fact}; ${verb} does not end this block. To end it: ${endsText(stop)}`),
    ...others.map((wait) => [`${wait.fact}; ${verb} does not end this block`, ...todoOf(wait, nameOf(decision))].join('; ')),
  ];
}
