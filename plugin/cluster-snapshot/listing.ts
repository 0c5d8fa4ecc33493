// Lists the objects of a cluster that the verbs need, once or with watches.
import { isStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resources } from '../../cluster/request/resource.ts';
import { Reflector } from '../../cluster/watch/reflector.ts';
import { isUnknown, type Known, type Unknown, type UnreadObject } from '../../engine/snapshot.ts';
import { zoneBudgetResource } from '../../policies/adopt/keys.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import type { Cluster } from '../connection.ts';
import { forbiddenFailure } from '../connection-failure.ts';
import { Failure } from '../failure.ts';
import { rolloutExceptions, rolloutGroups, rolloutIntents, rolloutPolicies } from './kinds.ts';

/** A list that the user may not read. */
interface Forbidden extends Unknown {
  /** The message of the API server, which names the user and the missing permission. */
  readonly denial?: string;
}

type ObjectList = readonly KubernetesObject[] | Forbidden;

/** The lists by name. A list that was not requested is absent. */
export type Listing = Readonly<Partial<Record<ListedName, ObjectList>>>;

/** The namespaces to list; undefined for all. */
export type Namespaces = readonly string[] | undefined;

interface Listed {
  /** True if only the agent's namespace is listed, because policies in it may apply to other namespaces. */
  readonly isOfAgent?: true;
  readonly resource: Resource;
  readonly site: string;
  readonly labelSelector?: string;
  /** The name of the list in messages; absent if decisions are possible without the list. */
  readonly title?: string;
}

/** The lists with groups, ledgers, published decisions and members. */
const definitions = {
  groups: { resource: rolloutGroups, site: 'live.groups', title: 'RolloutGroups' },
  documents: { resource: resources.configMaps, site: 'live.documents', labelSelector: 'rollout-group.dev/document', title: 'ledgers' },
  statefulSets: { resource: resources.statefulSets, site: 'live.statefulSets', title: 'StatefulSets' },
} as const satisfies Record<string, Listed>;

/** The other lists for a decision. Nodes have no title: a decision without the list of nodes counts every node as ready. */
const evidence = {
  policies: { resource: rolloutPolicies, site: 'live.policies', title: 'RolloutPolicies' },
  agentPolicies: {
    resource: rolloutPolicies,
    site: 'live.agentPolicies',
    isOfAgent: true,
    title: "RolloutPolicies of the agent's namespace",
  },
  exceptions: { resource: rolloutExceptions, site: 'live.exceptions', title: 'RolloutExceptions' },
  intents: { resource: rolloutIntents, site: 'live.intents', title: 'RolloutIntents' },
  pods: { resource: resources.pods, site: 'live.pods', title: 'pods' },
  nodes: { resource: resources.nodes, site: 'live.nodes' },
  podBudgets: { resource: resources.podDisruptionBudgets, site: 'live.podBudgets', title: 'PodDisruptionBudgets' },
  zoneBudgets: { resource: zoneBudgetResource, site: 'live.zoneBudgets', title: 'ZoneAwarePodDisruptionBudgets' },
} as const satisfies Record<string, Listed>;

/** The templates of earlier revisions, which only plans need. */
const revisions: Listed = { resource: resources.controllerRevisions, site: 'plan.revisions' };

type ListedName = keyof typeof definitions | keyof typeof evidence | 'revisions';

const listed: Readonly<Record<ListedName, Listed>> = { ...definitions, ...evidence, revisions };
export const definitionNames: readonly ListedName[] = namesOf(definitions);
/** The lists that show whether a published decision is outdated. */
export const shownNames: readonly ListedName[] = [...definitionNames, 'intents'];
export const evidenceNames: readonly ListedName[] = namesOf(evidence);
export const snapshotNames: readonly ListedName[] = [...definitionNames, ...evidenceNames];

function namesOf<Name extends ListedName>(lists: Readonly<Record<Name, Listed>>): readonly Name[] {
  return Object.keys(lists) as Name[];
}

/** Reads each named list once. Rejects if the API server does not answer or does not know the user. */
export async function listCluster(cluster: Cluster, names: readonly ListedName[], namespaces: Namespaces): Promise<Listing> {
  const { agentNamespace = usualAgentNamespace } = cluster;
  const lists = names.map(async (name): Promise<readonly [ListedName, ObjectList]> => {
    const { resource, isOfAgent, ...options } = listed[name];
    if (isOfAgent !== true) return [name, await listKnown(cluster, resource, namespaces, options)];
    const isCovered = namespaces === undefined || namespaces.includes(agentNamespace);
    return [name, isCovered ? [] : await listKnown(cluster, resource, [agentNamespace], options)];
  });
  return Object.fromEntries(await Promise.all(lists));
}

interface ListOptions {
  readonly site?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** Lists a resource: empty if the kind is not installed, unknown if the user may not list it. Rejects for every other failure. */
export async function listKnown(
  cluster: Cluster,
  resource: Resource,
  namespaces: Namespaces,
  options: ListOptions = {},
): Promise<ObjectList> {
  try {
    return await listIn(cluster, resource, namespaces, options);
  } catch (error) {
    if (isStatus(error, 404)) return [];
    // The API server checks permissions first, so it answers 403 also for a kind that is not installed.
    if (isStatus(error, 403))
      return (await mayBeInstalled(cluster, resource)) ? { unknown: forbiddenText(resource), denial: error.message } : [];
    throw error;
  }
}

/**
 * Returns false only if the discovery shows that the kind is not installed: it answers 404, or 200 without the kind. Any other answer, such as
 * 403 or 503, shows nothing, so callers tell the user of the missing permission, and not of a missing kind.
 */
export async function mayBeInstalled({ env, timeoutMs }: Cluster, { group, version, plural }: Resource): Promise<boolean> {
  if (!group.includes('.') || group.endsWith('.k8s.io')) return true;
  const path = `/apis/${group}/${version}`;
  const { status, body } = await env.kubernetes.request({ method: 'GET', path, timeoutMs, site: 'list.discovery' });
  return status !== 404 && (status !== 200 || body.includes(`"name":"${plural}"`));
}

/** Lists a resource in each of the namespaces, in their order. */
export async function listIn(
  { env, timeoutMs }: Cluster,
  resource: Resource,
  namespaces: Namespaces,
  { site = 'source.list', ...selectors }: ListOptions = {},
): Promise<readonly KubernetesObject[]> {
  const options = { site, timeoutMs, ...selectors };
  if (namespaces === undefined || !resource.isNamespaced) return (await listObjects(env, resource, options)).items;
  const lists = await Promise.all(namespaces.map((namespace) => listObjects(env, resource, { ...options, namespace })));
  return lists.flatMap(({ items }) => items);
}

function forbiddenText({ plural, group }: Resource): string {
  return `no permission to list ${group === '' ? plural : `${plural}.${group}`}`;
}

/** The time between two lists of a user who may list but not watch: that of the Leases of agents. */
const deniedWatchMs = 5_000;

/** Prepares the watches. Calls `onChange` after each change, and when a list becomes complete or unreadable. */
export function watchListing({ env, agentNamespace = usualAgentNamespace }: Cluster, namespace: string | undefined, onChange: () => void) {
  /** The watches by list; undefined for a list whose objects are in the list of another watch. */
  const watches = new Map<ListedName, Reflector<KubernetesObject> | undefined>();
  const watch = (name: ListedName): Reflector<KubernetesObject> | undefined => {
    const { resource, site, labelSelector, isOfAgent } = listed[name];
    if (isOfAgent === true && (namespace === undefined || namespace === agentNamespace)) return undefined;
    const place = isOfAgent === true ? agentNamespace : namespace;
    return new Reflector<KubernetesObject>({
      env,
      resource,
      ...(resource.isNamespaced && place !== undefined ? { namespace: place } : {}),
      ...(labelSelector && { labelSelector }),
      // The managed fields of StatefulSets show drift.
      project: name === 'statefulSets' ? (object) => object : withoutManagedFields,
      onChange,
      onState: onChange,
      site,
      deniedWatchMs,
    });
  };
  return {
    /** Returns the current lists. A list that is not complete yet is absent. */
    current: (): Listing => Object.fromEntries([...watches].flatMap(([name, reflector]) => listOf(name, reflector))),
    /** Watches more lists. Running watches continue. */
    add: (names: readonly ListedName[]) => {
      for (const name of names) if (!watches.has(name)) watches.set(name, watch(name));
    },
    stop: () => {
      for (const reflector of watches.values()) reflector?.stop();
    },
  };
}

function listOf(name: ListedName, reflector: Reflector<KubernetesObject> | undefined): readonly (readonly [ListedName, ObjectList])[] {
  if (reflector === undefined) return [[name, []]];
  const state = reflector.state();
  if (state.kind === 'synced' || (state.kind === 'failing' && state.hasSynced)) return [[name, reflector.store.list()]];
  if (state.kind === 'starting') return [];
  if (state.reason === 'missing') return [[name, []]];
  return [[name, { unknown: state.reason === 'forbidden' ? forbiddenText(listed[name].resource) : state.message, denial: state.message }]];
}

export function withoutManagedFields(object: KubernetesObject): KubernetesObject {
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Returns the items of a list; none if the list is unknown or was not requested. */
export function itemsOf<Item>(list: Known<readonly Item[]> | undefined): readonly Item[] {
  return list === undefined || isUnknown(list) ? [] : list;
}

/** Returns the StatefulSets. Throws Failure with the missing permission if the user may not list them. */
export function requiredStatefulSets({ statefulSets }: Listing): readonly KubernetesObject[] {
  const failure = statefulSets === undefined ? undefined : denialOf(statefulSets);
  if (failure !== undefined) throw forbiddenFailure(failure);
  return itemsOf(statefulSets);
}

/** Throws Failure if the user may not list groups, ledgers and published decisions, or StatefulSets: the agent knows them, so no plan is true. */
export function refuseUnknownPlan(listing: Listing): void {
  const denial = definitionDenial(listing);
  if (denial === undefined) return;
  const { details } = forbiddenFailure(denial);
  throw new Failure({ ...details, what: `the plan is unknown: ${details.what}` });
}

/** Returns the message of the API server if the user may not read the list; undefined otherwise. */
function denialOf(list: ObjectList): string | undefined {
  return isUnknown(list) ? (list.denial ?? list.unknown) : undefined;
}

/** Returns the message of the API server if the user may not list one of the kinds that define groups; undefined otherwise. */
export function definitionDenial(listing: Listing): string | undefined {
  return definitionNames.map((name) => denialOf(listing[name] ?? [])).find((text) => text !== undefined);
}

/** Returns the message of the API server for each kind that the user may not list. `Ledger` is the kind of the ConfigMaps. */
export function denialsByKind(listing: Listing): ReadonlyMap<string, string> {
  const kindOf = (name: ListedName): string => (name === 'documents' ? 'Ledger' : listed[name].resource.kind);
  const rows = snapshotNames.map((name) => [kindOf(name), denialOf(listing[name] ?? []) ?? ''] as const);
  return new Map(rows.filter(([, denial]) => denial !== ''));
}

/** Returns the titles of the lists that the user may not read. */
export function unreadLists(listing: Listing): readonly string[] {
  return snapshotNames.flatMap((name) => (denialOf(listing[name] ?? []) === undefined ? [] : (listed[name].title ?? [])));
}

/** Returns the lists of RolloutPolicies that could not be read. An unknown policy may block a group, so no decision is certain. */
export function unreadPolicies({ policies = [], agentPolicies = [] }: Listing, agentNamespace: string): readonly UnreadObject[] {
  return [
    ...(isUnknown(policies) ? [{ kind: 'Policy', unknown: policies.unknown } as const] : []),
    ...(isUnknown(agentPolicies) ? [{ kind: 'Policy', unknown: agentPolicies.unknown, namespace: agentNamespace } as const] : []),
  ];
}

/** Returns a clause with the lists that the user may not read; undefined if there are no such lists. */
export function noPermissionText(lists: readonly string[]): string | undefined {
  return lists.length === 0 ? undefined : `no permission to list ${lists.join(', ')}`;
}
