// Reads the groups of a verb, once or after each change, with one decision per group. Also finds the object that a name means.
import { decideGroup } from '../../engine/decide/decide.ts';
import { isOvertaken, isStopRequest, type RequestedRevisions } from '../../engine/decide/stops.ts';
import { isAtRest } from '../../engine/decision.ts';
import { observeStatefulSet } from '../../engine/observe/objects.ts';
import { publishedDecision } from '../../engine/publish/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isNewerThan } from '../../engine/publish/template-change.ts';
import { objectOf, requestOf } from '../../engine/run/requests.ts';
import { type IntentView, isUnknown, type ReplicaSourceView, type Snapshot } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { readIntent } from '../../policies/live/intents.ts';
import { valueAt } from '../../policies/schema/schema-walk.ts';
import { defined } from '../../policies/values/defined.ts';
import { listed } from '../../policies/wording.ts';
import {
  definitionDenial,
  evidenceNames,
  itemsOf,
  type Listing,
  listCluster,
  type Namespaces,
  noPermissionText,
  shownNames,
  snapshotNames,
  unreadLists,
  watchListing,
} from '../cluster-snapshot/listing.ts';
import { type ClusterState, clusterSnapshot, clusterState, readReplicaSources } from '../cluster-snapshot/snapshot.ts';
import type { Cluster } from '../connection.ts';
import { forbiddenFailure } from '../connection-failure.ts';
import { type AgentFacts, readAgentFacts, unseenText } from '../doctor/gather/accounts.ts';
import { type Failure, notFoundFailure } from '../failure.ts';
import { agentNamespaceFor } from './agent.ts';
import { type InstallationFacts, withInstallation } from './installation.ts';
import { releaseFailure } from './removed-group.ts';
import { type GroupName, nameOf } from './target.ts';

export interface Scope {
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
  /** Empty for every group. */
  readonly names: readonly GroupName[];
  /** Limits the groups to these (`namespace/group`). */
  readonly only?: ReadonlySet<string>;
}

/** Returns the scope of the named groups, limited to one namespace if possible. */
export function scopeOf(names: readonly GroupName[]): Scope {
  const [first] = names;
  const isOne = names.every(({ namespace }) => namespace === first?.namespace);
  return { namespace: isOne ? first?.namespace : undefined, names };
}

export interface ReadGroups {
  readonly groups: readonly LiveGroup[];
  /** The published decisions that could not be read, each as a part of a sentence. */
  readonly problems: readonly string[];
  readonly world: ClusterState;
  readonly listing: Listing;
  /** The replica sources that were read for decisions, estimates or judgements of this command. */
  readonly replicaSources: readonly ReplicaSourceView[];
  readonly agents?: AgentFacts;
}

interface ReadOptions {
  /** True to read also the objects that the estimate of a rollout needs. */
  readonly forEstimate?: boolean;
}

type Sources = Omit<ReadGroups, 'groups' | 'problems'>;

/** Reads the groups of the scope. Throws Failure if a named group does not exist, or if no group is found because reading is forbidden. */
export async function readGroups(cluster: Cluster, scope: Scope, options: ReadOptions = {}): Promise<ReadGroups> {
  const isWanted = wanted(scope);
  const shown = await readSources(cluster, scope, shownNames);
  const missing = evidenceFor(shown, cluster.env.clock.nowMs(), isWanted, options);
  if (missing.length === 0) return found(cluster, scope, shown);
  const reading = withEvidence(cluster, scope, shown.listing, missing);
  // Only a group without a published decision needs the evidence.
  const isNeeded = unpublished(shown.world, isWanted).length > 0;
  return found(cluster, scope, isNeeded ? await reading : await reading.catch(() => shown));
}

async function readSources(cluster: Cluster, scope: Scope, names: Parameters<typeof listCluster>[1]): Promise<Sources> {
  const listing = await listCluster(cluster, names, inScope(scope));
  return { listing, world: clusterState(listing, cluster.agentNamespace), replicaSources: [] };
}

async function withEvidence(cluster: Cluster, scope: Scope, shown: Listing, groups: readonly GroupDefinition[]): Promise<Sources> {
  const rest = evidenceNames.filter((name) => !shownNames.includes(name));
  const [more, replicaSources] = await Promise.all([listCluster(cluster, rest, inScope(scope)), readReplicaSources(cluster, groups)]);
  const listing = { ...shown, ...more };
  return { listing, world: clusterState(listing, cluster.agentNamespace), replicaSources };
}

/** Returns the groups without a published decision or with an outdated one and, for an estimate, also the unfinished groups. */
function evidenceFor(
  { world, listing }: Pick<Sources, 'world' | 'listing'>,
  nowMs: number,
  isWanted: (name: GroupName) => boolean,
  { forEstimate = false }: ReadOptions,
): readonly GroupDefinition[] {
  const others = world.policies.groups.filter((group) => {
    const decision = isWanted(named(group)) ? world.published.get(nameOf(named(group))) : undefined;
    return decision !== undefined && ((forEstimate && isUnfinished(decision)) || mayStopsDiffer(decision, listing, nowMs));
  });
  return [...unpublished(world, isWanted), ...others];
}

interface ReadObjects extends ReadGroups {
  /** The snapshot of the objects alone. A webhook judges requests with such a snapshot. */
  readonly stored: Snapshot;
}

export interface ReadSnapshot extends ReadObjects, InstallationFacts {}

/** Reads what `readObjects` reads, and a snapshot for decisions, which also has the facts about the installation. */
export async function readSnapshot(
  cluster: Cluster,
  scope: Scope,
  isMirrorRead?: (group: GroupDefinition) => boolean,
): Promise<ReadSnapshot> {
  return addInstallation(cluster, scope, await readObjects(cluster, scope, isMirrorRead));
}

/** Adds the facts about the installation to the snapshot. */
export async function addInstallation(cluster: Cluster, scope: Scope, read: ReadObjects): Promise<ReadSnapshot> {
  const { listing, stored, world, groups: shown } = read;
  const isWanted = wanted(scope);
  const groups = stored.groups.filter((group) => isWanted(named(group)));
  const [first] = shown;
  const agentNamespace = first === undefined ? world.agentNamespace : agentNamespaceFor(cluster, first.decision);
  const { published } = world;
  return { ...read, ...(await withInstallation(cluster, stored, { groups, listing, published, agentNamespace })) };
}

/** Reads the objects of the scope, and their snapshot. Reads replica sources only of groups that `isMirrorRead` accepts. */
export async function readObjects(
  cluster: Cluster,
  scope: Scope,
  isMirrorRead: (group: GroupDefinition) => boolean = () => true,
): Promise<ReadObjects> {
  const read = await found(cluster, scope, await readSources(cluster, scope, snapshotNames));
  const { world, listing } = read;
  const replicaSources = await readReplicaSources(cluster, world.policies.groups.filter(isMirrorRead));
  const stored = clusterSnapshot(listing, { ...world, ...read, nowMs: cluster.env.clock.nowMs(), replicaSources });
  return { ...read, replicaSources, stored };
}

function inScope({ namespace }: Scope): Namespaces {
  return namespace === undefined ? undefined : [namespace];
}

/** Reports whether a rollout or a change of replicas is not complete. A failed run counts as not complete. */
export function isUnfinished({ outcome, phase }: Pick<PublishedDecision, 'outcome' | 'phase'>): boolean {
  return outcome !== 'done' && !isAtRest({ phase });
}

/** Reports whether a rollout or a change of replicas is not complete and the run has not failed. */
export function isUnderWay(decision: Pick<PublishedDecision, 'outcome' | 'phase'>): boolean {
  return isUnfinished(decision) && decision.phase !== 'Failed';
}

/** The delay that combines a burst of changes. It is too short to be noticed. */
const gatherMs = 50;

/** Calls `onGroups` after the first read and after changes, at most every 50 ms. Omits deleted groups. Rejects if the first read fails. */
export async function watchGroups(
  cluster: Cluster,
  scope: Scope,
  onGroups: (read: ReadGroups) => void,
  options: ReadOptions,
): Promise<() => void> {
  const { env } = cluster;
  // The first screen does not wait for the lists that only an estimate needs.
  const first = await readGroups(cluster, scope);
  const isWanted = wanted(scope);
  const isPublished = (group: GroupDefinition): boolean => isWanted(named(group)) && first.world.published.has(nameOf(named(group)));
  const replicaSources = [
    ...(await readReplicaSources(cluster, unpublished(first.world, isWanted))),
    ...(await readReplicaSources(cluster, first.world.policies.groups.filter(isPublished)).catch(() => [])),
  ];
  let cancel: (() => void) | undefined;
  const report = (): void => {
    cancel = undefined;
    const listing = watched.current();
    if (shownNames.some((name) => listing[name] === undefined)) return;
    const world = clusterState(listing, cluster.agentNamespace);
    const isNeeded = (how: ReadOptions): boolean => evidenceFor({ world, listing }, env.clock.nowMs(), isWanted, how).length > 0;
    if (isNeeded(options)) watched.add(evidenceNames);
    // A published decision with former stops would look like a transition between two decisions of this command.
    if (isNeeded({}) && evidenceNames.some((name) => watched.current()[name] === undefined)) return;
    onGroups(readingOf(cluster, scope, { world, listing, replicaSources, ...defined({ agents: first.agents }) }));
  };
  const watched = watchListing(cluster, scope.namespace, () => {
    cancel ??= env.timers.after(gatherMs, report);
  });
  onGroups(first);
  watched.add(shownNames);
  return () => {
    cancel?.();
    watched.stop();
  };
}

function wanted({ names, namespace, only }: Scope): (name: GroupName) => boolean {
  if (names.length === 0) return (name) => (namespace === undefined || name.namespace === namespace) && only?.has(nameOf(name)) !== false;
  const keys = new Set(names.map(nameOf));
  return (name) => keys.has(nameOf(name));
}

function readingOf({ env }: Cluster, scope: Scope, sources: Sources): ReadGroups {
  return { ...sources, groups: liveGroups(sources, env.clock.nowMs(), wanted(scope)), problems: sources.world.problems };
}

/** Returns the groups. Throws Failure if a named group does not exist, or if no group is found and definitions may not be read. */
async function found(cluster: Cluster, scope: Scope, sources: Sources): Promise<ReadGroups> {
  const { world, listing } = sources;
  const decided = evidenceFor(sources, cluster.env.clock.nowMs(), wanted(scope), {});
  const agents = await readAgentFacts(cluster, decided, listing, world.published);
  const read = readingOf(cluster, scope, { ...sources, agents });
  const denial = definitionDenial(listing);
  if (denial !== undefined && read.groups.length === 0) throw forbiddenFailure(denial);
  const failure = absenceFailure(cluster, read, scope.names);
  if (failure !== undefined) throw failure;
  return read;
}

/** Returns the failure for the named groups that were not found; undefined if each was found. */
export function absenceFailure(
  { namespace }: Cluster,
  { groups, listing, problems, world }: ReadGroups,
  names: readonly GroupName[],
): Failure | undefined {
  const lost = names.filter((name) => !groups.some(({ decision }) => nameOf(decision) === nameOf(name)));
  const [missing] = lost;
  if (missing === undefined) return undefined;
  const denial = definitionDenial(listing);
  if (denial !== undefined) return forbiddenFailure(denial);
  const released = releaseFailure(listing, missing);
  if (released !== undefined) return released;
  const cause =
    noPermissionText(unreadLists(listing)) ?? problems[0] ?? 'no RolloutGroup, published decision or labelled StatefulSet names it';
  const other = lost.find((one) => one.namespace !== namespace);
  return notFoundFailure(
    lost.length === 1
      ? `group ${missing.group} does not exist in namespace ${missing.namespace}`
      : `the groups ${listed(lost.map(nameOf), 'and')} do not exist`,
    {
      why:
        other === undefined
          ? cause
          : `${cause}; ${other.namespace} is read as a namespace: the kinds before a name are rolloutgroup, statefulset and pod`,
      todo: memberHint(world, missing) ?? 'list all groups: kubectl rollout-group get -A',
    },
  );
}

/** Returns the form with its kind of a name that is a StatefulSet or a pod of a group; undefined for another name. */
function memberHint({ policies, published }: ClusterState, { namespace, group: name }: GroupName): string | undefined {
  const groups: readonly { readonly namespace: string; readonly zones: readonly { readonly statefulSet: string }[] }[] = [
    ...policies.groups,
    ...published.values(),
  ];
  const sets = groups.flatMap((one) => (one.namespace === namespace ? one.zones.map(({ statefulSet }) => statefulSet) : []));
  const kind = sets.includes(name) ? 'sts' : sets.includes(name.replace(/-\d+$/, '')) ? 'pod' : undefined;
  return kind && `name it with its kind: ${kind}/${name}`;
}

export interface LiveGroup {
  readonly decision: PublishedDecision;
  /** Absent if the group is defined in files of the agent, or if the user may not list RolloutGroups. */
  readonly definition?: GroupDefinition;
  /** `agent`: the agent published the decision. `here`: no agent published one, so this command decided. */
  readonly from: 'agent' | 'here';
  /** A text that says that the agent of the decision does not run, and since when. Absent if the agent runs or its state is unknown. */
  readonly unattended?: string;
  /** A text that says that the present agent has not decided yet, so that the decision is that of an earlier agent. */
  readonly starting?: string;
  /** True if a member changed since the published decision, for example its template. */
  readonly isOutdated?: true;
  /** The lists that could not be read for a decision of this command. */
  readonly unread: readonly string[];
  /** The access that the agent lacks to publish the group, or that its access is unknown, as a clause. Absent if neither is the case. */
  readonly unseen?: string;
  /** The group as this command decides it. Absent if the published decision has the present stops, or if a list may not be read. */
  readonly present?: LiveGroup;
  /** The group as published, in `present`. */
  readonly published?: LiveGroup;
}

/** Returns the group of a scope with one name. Throws Failure if a watch finds that the group no longer exists. */
export function onlyGroup({ groups }: Pick<ReadGroups, 'groups'>): LiveGroup {
  const [live] = groups;
  if (live === undefined) throw notFoundFailure('the group no longer exists');
  return live;
}

function unpublished({ policies, published }: ClusterState, isWanted: (name: GroupName) => boolean): readonly GroupDefinition[] {
  return policies.groups.filter((group) => isWanted(named(group)) && !published.has(nameOf(named(group))));
}

function liveGroups(sources: Sources, nowMs: number, isWanted: (name: GroupName) => boolean) {
  const { world, listing, agents } = sources;
  const definitions = new Map(world.policies.groups.map((group) => [nameOf(named(group)), group]));
  const unread = unreadLists(listing);
  const isComplete = unread.length === 0 && evidenceNames.every((name) => listing[name] !== undefined);
  let snapshot: Snapshot | undefined;
  const decidedHere = (definition: GroupDefinition, previous?: PublishedDecision): LiveGroup => {
    snapshot ??= clusterSnapshot(listing, { ...world, ...sources, nowMs });
    return { decision: decideHere(world, snapshot, definition, previous), definition, from: 'here', unread };
  };
  const groups = [...world.published.values()].filter(isWanted).map((decision): LiveGroup => {
    // Labels may also define the group, but the policy files of the agent have precedence. Only the agent reads these files.
    const definition = decision.origin === 'directory' ? undefined : definitions.get(nameOf(decision));
    const isOutdated = haveMembersChanged(decision, listing) ? true : undefined;
    const live: LiveGroup = { decision, from: 'agent', unread: [], ...defined({ definition, isOutdated }) };
    if (definition === undefined || !isComplete || !mayStopsDiffer(decision, listing, nowMs)) return live;
    return { ...live, present: { ...decidedHere(definition, decision), published: live } };
  });
  for (const definition of unpublished(world, isWanted)) {
    groups.push({ ...decidedHere(definition), ...defined({ unseen: agents && unseenText(agents, definition) }) });
  }
  return groups.sort((a, b) => (nameOf(a.decision) < nameOf(b.decision) ? -1 : 1));
}

function decideHere(
  { policies }: ClusterState,
  snapshot: Snapshot,
  group: GroupDefinition,
  previous: PublishedDecision | undefined,
): PublishedDecision {
  const ledger = snapshot.ledgers.find((one) => one.namespace === group.namespace && one.group === group.name);
  const decision = decideGroup(snapshot, group);
  const kept = { ledger, previous, lease: previous?.lease, unenforced: previous?.unenforced, origin: policies.origin(group) };
  return publishedDecision({ group, decision, snapshot, atMs: snapshot.nowMs, ...defined(kept) });
}

/** Reports whether a member changed since the decision. Returns false if the user may not read StatefulSets. */
function haveMembersChanged(decision: PublishedDecision, { statefulSets }: Listing): boolean {
  const objects = itemsOf(statefulSets).filter(({ metadata }) => metadata.namespace === decision.namespace);
  return decision.zones.some((zone) => {
    const object = objects.find(({ metadata }) => metadata.name === zone.statefulSet);
    const set = object === undefined ? undefined : observeStatefulSet(object);
    if (set === undefined || isUnknown(set)) return false;
    return isNewerThan(decision, zone, set) || set.replicas !== zone.replicas;
  });
}

/** Reports whether the stops of the group may differ from those of the decision: they changed, or a person made a rejection since. */
function mayStopsDiffer(decision: PublishedDecision, listing: Listing, nowMs: number): boolean {
  const intents = intentsOf(decision, listing);
  const isNew = ({ action, requestedBy }: IntentView): boolean => action === 'reject' && (requestedBy?.atMs ?? 0) > decision.decidedMs;
  return haveStopsChanged(decision, listing, nowMs) || intents?.some(isNew) === true;
}

/** Reports whether a stop ended or a person made a pause, protection or undo since the decision. False if the user may not read intents. */
export function haveStopsChanged({ stops, omitted, ...decision }: PublishedDecision, listing: Listing, nowMs: number): boolean {
  const intents = intentsOf(decision, listing);
  if (intents === undefined || stops === undefined || omitted.some((part) => part.startsWith('stops:'))) return false;
  if (stops.some(({ untilMs }) => untilMs !== undefined && untilMs > decision.decidedMs && untilMs <= nowMs)) return true;
  const before = new Set(stops.filter((stop) => requestOf(stop) !== undefined).map(({ source }) => source?.object));
  const requested = requestedRevisions(decision, listing);
  // Only a decision shows whether a new rejection blocks. A rejection in the decision counts while its request exists.
  const isStop = (view: IntentView): boolean =>
    view.action === 'reject'
      ? before.has(objectOf(view).object)
      : isStopRequest({ nowMs }, view, decision.run) && !isOvertaken(view, requested);
  const now = intents.filter(isStop).map((view) => objectOf(view).object);
  return now.length !== before.size || now.some((object) => !before.has(object));
}

/** Returns the update revisions of the members. Without permission to read a StatefulSet, returns the revision in the decision. */
function requestedRevisions({ namespace, zones }: Pick<PublishedDecision, 'namespace' | 'zones'>, listing: Listing): RequestedRevisions {
  const objects = itemsOf(listing.statefulSets).filter(({ metadata }) => metadata.namespace === namespace);
  return new Map(
    zones.map(({ zone, statefulSet, desiredRevision }) => {
      const revision = valueAt(
        objects.find(({ metadata }) => metadata.name === statefulSet),
        ['status', 'updateRevision'],
      );
      return [zone, typeof revision === 'string' ? revision : desiredRevision];
    }),
  );
}

/** Returns the requests of the group; undefined if the user may not read them. */
function intentsOf({ namespace, group }: GroupName, { intents }: Listing): readonly IntentView[] | undefined {
  if (intents === undefined || isUnknown(intents)) return undefined;
  // Only the requests of the group are parsed.
  const own = intents.filter((object) => object.metadata.namespace === namespace && valueAt(object, ['spec', 'group']) === group);
  return own.map(readIntent).flatMap((view) => (isUnknown(view) ? [] : [view]));
}

function named({ namespace, name }: GroupDefinition): GroupName {
  return { namespace, group: name };
}

export interface Subject {
  /** Present for a StatefulSet or a pod. */
  readonly zone?: string;
  readonly pod?: string;
}

/** Finds a group, else a StatefulSet, else a pod of that name. Throws Failure if nothing matches. */
export function findSubject({ groups, listing }: ReadGroups, wanted: GroupName): { readonly live: LiveGroup; readonly subject: Subject } {
  const inNamespace = groups.filter(({ decision }) => decision.namespace === wanted.namespace);
  const group = inNamespace.find(({ decision }) => decision.group === wanted.group);
  if (group !== undefined) return { live: group, subject: {} };
  const name = wanted.group;
  for (const live of inNamespace) {
    const zone = live.decision.zones.find(({ statefulSet }) => statefulSet === name)?.zone;
    if (zone !== undefined) return { live, subject: { zone } };
    const pod = findPod(live, name);
    if (pod?.pod === name) return { live, subject: pod };
  }
  const released = releaseFailure(listing, wanted);
  if (released !== undefined) throw released;
  throw notFoundFailure(`${nameOf(wanted)} is not a group, nor a StatefulSet or pod of a group`, {
    todo: `list the groups: kubectl rollout-group get -n ${wanted.namespace}`,
  });
}

/** Returns a pod of the group by its name, or by zone and ordinal such as `a-3`; undefined if the group has no such zone or StatefulSet. */
export function findPod({ decision: { zones } }: LiveGroup, text: string): Required<Subject> | undefined {
  const [, owner, ordinal] = /^(.+)-(\d{1,10})$/.exec(text) ?? [];
  const member = zones.find(({ statefulSet }) => statefulSet === owner) ?? zones.find(({ zone }) => zone === owner);
  return member && { zone: member.zone, pod: `${member.statefulSet}-${ordinal}` };
}
