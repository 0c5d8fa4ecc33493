// Collects the notes on live groups: no published decision, a stopped agent, an outdated decision, or a failing notification channel.
import { onStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { withoutAgent } from '../../engine/decide/stops.ts';
import type { RuleResult } from '../../engine/decision.ts';
import { ledgerLabel } from '../../engine/ledger/ledger-document.ts';
import { decodeNotes, notesKey, notesLabelValue, notesName } from '../../engine/notify/notes-document.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { withoutRequesters } from '../../engine/rules/approval.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { defined } from '../../policies/values/defined.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { itemsOf, type Listing, noPermissionText } from '../cluster-snapshot/listing.ts';
import type { Cluster } from '../connection.ts';
import { type CommandContext, writeNotes } from '../context.ts';
import type { ChannelFact } from '../doctor/check.ts';
import { readBlindNamespaces } from '../doctor/gather/accounts.ts';
import { readWebhookProblems } from '../doctor/gather/admission.ts';
import { ageText } from '../output/plan/plan-text.ts';
import { type AgentLeases, agentNamespaceFor, agentState, notRunningText, readAgentLeases } from './agent.ts';
import { haveStopsChanged, type LiveGroup, type ReadGroups } from './groups.ts';
import { releaseLines } from './removed-group.ts';
import { nameOf } from './target.ts';

export interface Notes {
  readonly lines: readonly string[];
  /** The groups whose agent stopped or has no access, as `namespace/group`, each with the sentence about its agent. */
  readonly unattended: ReadonlyMap<string, string>;
  /** The groups of `unattended` whose agent did not restart within the duration of a Lease. */
  readonly lost: ReadonlySet<string>;
  /** The groups whose decision an earlier leader made, each with this leader and the sentence about the present leader. */
  readonly starting: ReadonlyMap<string, { readonly leader: string | undefined; readonly text: string }>;
  /** The groups of `unattended` and `starting`, and those with an old decision if the state of the agent is unknown. */
  readonly silent: ReadonlySet<string>;
  /** The groups that wait for an approval which cannot count, each with the problem of the webhook that records requesters. */
  readonly unrecorded: ReadonlyMap<string, string>;
}

/**
 * Returns the group, as this command decides it if its agent may not run and its stops changed. If its agent stopped or has no access, adds
 * the sentence about the agent and removes the commands that only the agent carries out. If no webhook records requesters, the approvals
 * that the group waits for count as blocked, as in a plan, because `approve` would fail.
 */
export function withAgentState(live: LiveGroup, { unattended, starting, silent, unrecorded }: Omit<Notes, 'lines' | 'lost'>): LiveGroup {
  const name = nameOf(live.decision);
  const { unattended: _before, ...rest } = silent.has(name) ? (live.present ?? live) : live;
  const problem = unrecorded.get(name);
  const stopped = unattended.get(name);
  const decision = problem === undefined ? rest.decision : withoutApprovals(rest.decision, problem);
  const stops = stopped === undefined ? undefined : decision.stops?.map((stop) => withoutAgent(stop, name));
  // The present leader can have published its first decision after the notes were read.
  const begun = starting.get(name);
  const earlier = begun !== undefined && begun.leader === decision.leader ? begun.text : undefined;
  return { ...rest, decision: { ...decision, ...defined({ stops }) }, ...defined({ unattended: stopped, starting: earlier }) };
}

function withoutApprovals(decision: PublishedDecision, problem: string): PublishedDecision {
  const blocked = <Result extends RuleResult>(result: Result): Result => withoutRequesters(result, problem);
  const steps = decision.steps.map((step) => ({ ...step, ...defined({ results: step.results?.map(blocked) }) }));
  return { ...decision, waits: decision.waits.map(blocked), steps };
}

export function allWithAgentState(read: ReadGroups, notes: Notes): ReadGroups {
  return { ...read, groups: read.groups.map((live) => withAgentState(live, notes)) };
}

/** Collects the notes, with one read of the Leases. */
export async function notesOn(cluster: Cluster, { groups: shown, problems }: Pick<ReadGroups, 'groups' | 'problems'>): Promise<Notes> {
  const groups = shown.map((live) => (live.published === undefined ? live : { ...live.published, present: live }));
  const notUsed = problems.map((problem) => `not used: ${problem}`);
  if (groups.length === 0)
    return { ...agentsOf([], { leases: [], isComplete: true, nowMs: 0 }, new Map()), lines: notUsed, unrecorded: new Map() };
  const decisions = groups.map(({ decision }) => decision);
  const [agents, unrecorded] = await Promise.all([readAgentLeases(cluster, decisions), readUnrecorded(cluster, decisions)]);
  const published = groups.filter(({ from }) => from === 'agent').map(({ decision }) => decision);
  const blind = published.length === 0 ? new Map<string, string>() : await readBlindNamespaces(cluster, published, agents.leases);
  const { lines, ...stopped } = agentsOf(groups, agents, blind);
  const unenforced = new Set(decisions.flatMap((decision) => decision.unenforced ?? []));
  return { ...stopped, unrecorded, lines: [...hereLines(groups, stopped.unattended), ...lines, ...unenforced, ...notUsed] };
}

/** Reads the webhook that records requesters, once per namespace of an agent, for the groups that wait for an approval. */
async function readUnrecorded(cluster: Cluster, decisions: readonly PublishedDecision[]): Promise<Notes['unrecorded']> {
  const waiting = decisions.filter(({ waits }) => waits.some(({ digest }) => digest !== undefined));
  const byAgent = groupBy(waiting, (decision) => agentNamespaceFor(cluster, decision));
  const found = [...byAgent].map(async ([namespace, ofAgent]) => {
    const problems = await readWebhookProblems(cluster, namespace, { pins: false, requesters: true });
    const { requesters } = isUnknown(problems) ? {} : problems;
    return requesters === undefined ? [] : ofAgent.map((decision) => [nameOf(decision), requesters] as const);
  });
  return new Map((await Promise.all(found)).flat());
}

function hereLines(groups: readonly LiveGroup[], unattended: Notes['unattended']): readonly string[] {
  const here = groups.filter(({ from }) => from === 'here');
  const byReason = groupBy(here, ({ decision, unseen = '' }) => unattended.get(nameOf(decision)) ?? unseen);
  return [...byReason].map(([reason, [first, ...more]]) => {
    const names = more.length > 2 ? `${more.length + 1} groups` : [first, ...more].map(({ decision }) => nameOf(decision)).join(', ');
    const unread = noPermissionText(first.unread);
    return `no agent has published ${names}${reason && ` (${reason})`}; decided by this command${unread === undefined ? '' : `; ${unread}`}`;
  });
}

/** Writes the given notes, and the notes on the group, for example that its agent does not run: the stored request then has no effect yet. */
export async function writeAgentNote(
  context: CommandContext,
  cluster: Cluster,
  live: LiveGroup,
  more: readonly string[] = [],
): Promise<void> {
  writeNotes(context, [...more, ...(await notesOn(cluster, { groups: [live], problems: [] })).lines]);
}

/** The age above which a decision does not show that its agent still runs. */
const freshMs = 60_000;

/** The state of the agent with a sentence about it, if the shown decision may be old or nothing is carried out. */
type Standing =
  | { readonly kind: 'unattended'; readonly text: string; readonly isLost: boolean }
  | { readonly kind: 'starting'; readonly text: string }
  | { readonly kind: 'unknown'; readonly text: string };

/** Returns why no agent acts on the group, or why the decision may be old; undefined if the agent that decided runs. */
function standingOf(
  { decision, from }: LiveGroup,
  { agents, blind }: { readonly agents: AgentLeases; readonly blind: ReadonlyMap<string, string> },
): Standing | undefined {
  const state = agentState(agents, decision);
  if (state.kind === 'stopped') return { kind: 'unattended', text: notRunningText(state.why), isLost: state.isLost };
  const text = from === 'agent' ? blind.get(decision.namespace) : undefined;
  if (text !== undefined) return { kind: 'unattended', text, isLost: false };
  if (state.kind === 'starting' && from === 'agent') {
    const since = state.sinceMs === undefined ? '' : ` ${ageText(state.sinceMs, agents.nowMs)} ago`;
    return { kind: 'starting', text: `the agent started${since} and has not decided yet` };
  }
  const isOld = agents.nowMs - decision.decidedMs > freshMs;
  return state.kind === 'unknown' && isOld ? { kind: 'unknown', text: 'whether the agent is running is unknown' } : undefined;
}

/** `blind`: by namespace, why its agent has no access. */
function agentsOf(groups: readonly LiveGroup[], agents: AgentLeases, blind: ReadonlyMap<string, string>): Omit<Notes, 'unrecorded'> {
  const found = groups.flatMap((live) => {
    const standing = standingOf(live, { agents, blind });
    return standing === undefined ? [] : [{ live, name: nameOf(live.decision), standing }];
  });
  const lines = new Map<string, string>();
  for (const { live, name, standing } of found) {
    const { decision, from, present } = live;
    const age = `the decision was made ${ageText(decision.decidedMs, agents.nowMs)} ago`;
    if (standing.kind === 'unknown') lines.set('', `${age}; ${standing.text}`);
    else if (from === 'agent') lines.set(standing.text, `${standing.text}; ${age}`);
    if (present !== undefined) lines.set(name, `a stop of ${name} began or ended since; decided by this command`);
  }
  const unattended = found.flatMap(({ name, standing }) => (standing.kind === 'unattended' ? [{ name, ...standing }] : []));
  const starting = found.flatMap(({ live, name, standing }) =>
    standing.kind === 'starting' ? [[name, { leader: live.decision.leader, text: standing.text }] as const] : [],
  );
  return {
    lines: [...lines.values()],
    unattended: new Map(unattended.map(({ name, text }) => [name, text])),
    starting: new Map(starting),
    lost: new Set(unattended.filter(({ isLost }) => isLost).map(({ name }) => name)),
    silent: new Set(found.map(({ name }) => name)),
  };
}

/** Returns one sentence for each change since the shown decision. */
export function outdatedLines({ decision, from, isOutdated }: LiveGroup, listing: Listing, nowMs: number): readonly string[] {
  if (from === 'here') return [];
  const name = nameOf(decision);
  const changes = [
    ...(isOutdated === true ? [`the members of ${name} changed`] : []),
    ...(haveStopsChanged(decision, listing, nowMs) ? [`a stop of ${name} began or ended`] : []),
  ].map((change) => `${change} since the shown decision; the agent has not published a newer one yet`);
  return [...releaseLines(listing, decision), ...changes];
}

/** Reads the failing channels from the ConfigMap in which the agent records deliveries; none from any other ConfigMap. */
export function failingChannels(object: KubernetesObject): readonly ChannelFact[] {
  const { namespace = '', name, labels } = object.metadata;
  const text = fieldAt(object, ['data', notesKey]);
  const prefix = notesName('');
  if (labels?.[ledgerLabel.key] !== notesLabelValue || typeof text !== 'string' || !name.startsWith(prefix)) return [];
  const group = name.slice(prefix.length);
  const notes = decodeNotes(text, { namespace, group });
  if (isUnknown(notes)) return [];
  return Object.entries(notes.problems ?? {}).map(([channel, { text: problem }]) => ({ namespace, group, channel, problem }));
}

/** Returns a sentence for each failing channel of these groups, from their listing. */
export function listedChannelLines({ groups, listing }: Pick<ReadGroups, 'groups' | 'listing'>): readonly string[] {
  const shown = new Set(groups.map(({ decision }) => `${decision.namespace}/${decision.group}`));
  return itemsOf(listing.documents)
    .flatMap(failingChannels)
    .filter(({ namespace, group }) => shown.has(`${namespace}/${group}`))
    .map(({ group, channel, problem }) => `the channel ${channel} of ${group} fails: ${problem}`);
}

/** Returns a sentence for each failing channel of a group; none if the user may not read ConfigMaps. */
export async function channelLines(
  { env, timeoutMs }: Cluster,
  { namespace, group }: { readonly namespace: string; readonly group: string },
): Promise<readonly string[]> {
  const target = { namespace, name: notesName(group) };
  const read = getObject(env, resources.configMaps, target, { site: 'explain.channels', timeoutMs });
  const object = await read.catch(onStatus(undefined, 403, 404));
  const failing = object === undefined ? [] : failingChannels(object);
  return failing.map(({ channel, problem }) => `the channel ${channel} fails: ${problem}`);
}
