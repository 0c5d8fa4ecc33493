// Finds what still blocks a group after a request of the user, by a decision about the cluster after the request.
import { decideGroup } from '../../engine/decide/decide.ts';
import { isOfStop } from '../../engine/decide/stops.ts';
import type { RuleResult, Stop } from '../../engine/decision.ts';
import { withRequestedRollback } from '../../engine/plan/controller.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { endsText } from '../../engine/publish/status.ts';
import { isUnknown, type Snapshot } from '../../engine/snapshot.ts';
import { traitsOf } from '../../policies/strategies.ts';
import type { Cluster } from '../connection.ts';
import { readWebhookProblems } from '../doctor/gather/admission.ts';
import { todoOf } from '../output/explain.ts';
import type { LiveGroup } from './groups.ts';
import { agentNamespaceFor } from './notes.ts';
import { nameOf } from './target.ts';

interface RequestEffect {
  readonly verb: string;
  /** The zones that get a new pod template. */
  readonly restarted?: readonly string[];
  /** True if the request rolls the current run back. */
  readonly isRollback?: boolean;
  /** Reports whether the rule can block the effect of the request; absent: every rule can. */
  readonly concerns?: (rule: string) => boolean;
}

/** Returns a sentence for each stop that remains after the request, and for each rule that then blocks until a person acts. */
export async function remainingStops(
  cluster: Cluster,
  { live: { decision, definition }, snapshot }: { readonly live: LiveGroup; readonly snapshot: Snapshot | undefined },
  { verb, restarted, isRollback = false, concerns = () => true }: RequestEffect,
): Promise<readonly string[]> {
  const changed = decision.zones.filter(({ zone }) => restarted?.includes(zone)).map(({ statefulSet }) => statefulSet);
  const statefulSets = (snapshot?.statefulSets ?? []).map((set) =>
    changed.includes(set.name) ? { ...set, status: { ...set.status, updateRevision: 'requested' } } : set,
  );
  const needs = { pins: definition !== undefined && traitsOf(definition).pinsPods, requesters: false };
  const problems = await readWebhookProblems(cluster, agentNamespaceFor(cluster, decision), needs);
  const webhookProblems = isUnknown(problems) ? {} : problems;
  const changedSnapshot = snapshot && { ...snapshot, statefulSets, webhookProblems };
  const { namespace, group: name, run } = decision;
  const requested = isRollback ? changedSnapshot && withRequestedRollback(changedSnapshot, { namespace, name }, run?.id) : changedSnapshot;
  const after = requested && definition && decideGroup(requested, definition);
  // The published waits are those of the run that the rollback ends.
  const before = isRollback ? { ...decision, waits: [] } : decision;
  const isLeft = (zones: readonly string[]): boolean => restarted === undefined || zones.some((zone) => restarted.includes(zone));
  return blockingTexts(after ?? before, verb, ({ rule, zones }) => concerns(rule) && (zones === undefined || isLeft(zones)));
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
    ...left.map((stop) => `${stop.fact}; ${verb} does not change it. To end it: ${endsText(stop)}`),
    ...others.map((wait) => [`${wait.fact}; ${verb} does not change it`, ...todoOf(wait, nameOf(decision))].join('; ')),
  ];
}
