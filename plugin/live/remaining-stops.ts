// Finds what still blocks a group after a request of the user, by a decision about the cluster after the request.
import { decideGroup } from '../../engine/decide/decide.ts';
import { isOfStop } from '../../engine/decide/stops.ts';
import type { Stop } from '../../engine/decision.ts';
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
  /** Reports whether the rule can block the effect of the request; absent: every rule can. */
  readonly concerns?: (rule: string) => boolean;
}

/** Returns a sentence for each stop that remains after the request, and for each rule that then blocks until a person acts. */
export async function remainingStops(
  cluster: Cluster,
  { live: { decision, definition }, snapshot }: { readonly live: LiveGroup; readonly snapshot: Snapshot | undefined },
  { verb, restarted, concerns = () => true }: RequestEffect,
): Promise<readonly string[]> {
  const changed = decision.zones.filter(({ zone }) => restarted?.includes(zone)).map(({ statefulSet }) => statefulSet);
  const statefulSets = (snapshot?.statefulSets ?? []).map((set) =>
    changed.includes(set.name) ? { ...set, status: { ...set.status, updateRevision: 'requested' } } : set,
  );
  const needs = { pins: definition !== undefined && traitsOf(definition).pinsPods, requesters: false };
  const problems = await readWebhookProblems(cluster, agentNamespaceFor(cluster, decision), needs);
  const webhookProblems = isUnknown(problems) ? {} : problems;
  const after = snapshot && definition && decideGroup({ ...snapshot, statefulSets, webhookProblems }, definition);
  const { stops = [], waits } = after ?? decision;
  const isLeft = (zones: readonly string[]): boolean => restarted === undefined || zones.some((zone) => restarted.includes(zone));
  const left = stops.filter(({ isBlocking, rule, zones }) => isBlocking && concerns(rule) && isLeft(zones));
  const blocking = waits.filter(({ rule, outcome, earliestMs }) => outcome === 'no' && earliestMs === undefined && concerns(rule));
  const others = blocking.filter((wait) => !stops.some((stop) => isOfStop(wait, stop)));
  return [
    ...left.map((stop) => stopAfterText(stop, verb)),
    ...others.map((wait) => [`${wait.fact}; ${verb} does not change it`, ...todoOf(wait, nameOf(decision))].join('; ')),
  ];
}

/** Returns the sentence about a stop that the verb does not end. */
export function stopAfterText(stop: Stop, verb: string): string {
  return `${stop.fact}; ${verb} does not change it. To end it: ${endsText(stop)}`;
}
