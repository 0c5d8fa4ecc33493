// The objects that the live verbs look at: listed once, or kept up to date by watches. What may not be read or is not installed is unknown.
import { isStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resources } from '../../cluster/request/resource.ts';
import { type Reflector, startReflector } from '../../cluster/watch/reflector.ts';
import type { Known } from '../../engine/snapshot.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import type { Cluster } from '../connection.ts';
import { rolloutExceptions, rolloutGroups, rolloutIntents, rolloutPolicies, zoneBudgets } from './kinds.ts';

/** By the names below. */
export type Listing = Readonly<Partial<Record<ListedName, Known<readonly KubernetesObject[]>>>>;

interface Listed {
  /** Of the agent's namespace alone: policies there may name other namespaces. */
  readonly isOfAgent?: true;
  readonly resource: Resource;
  readonly site: string;
  readonly labelSelector?: string;
}

/** What says which groups there are, and what was published of them. */
const definitions = {
  groups: { resource: rolloutGroups, site: 'live.groups' },
  documents: { resource: resources.configMaps, site: 'live.documents', labelSelector: 'rollout-group.dev/document' },
  statefulSets: { resource: resources.statefulSets, site: 'live.statefulSets' },
} as const satisfies Record<string, Listed>;

/** What a decision needs besides. */
const evidence = {
  policies: { resource: rolloutPolicies, site: 'live.policies' },
  agentPolicies: { resource: rolloutPolicies, site: 'live.agentPolicies', isOfAgent: true },
  exceptions: { resource: rolloutExceptions, site: 'live.exceptions' },
  intents: { resource: rolloutIntents, site: 'live.intents' },
  pods: { resource: resources.pods, site: 'live.pods' },
  nodes: { resource: resources.nodes, site: 'live.nodes' },
  podBudgets: { resource: resources.podDisruptionBudgets, site: 'live.podBudgets' },
  zoneBudgets: { resource: zoneBudgets, site: 'live.zoneBudgets' },
} as const satisfies Record<string, Listed>;

export type ListedName = keyof typeof definitions | keyof typeof evidence;

const listed: Readonly<Record<ListedName, Listed>> = { ...definitions, ...evidence };
export const definitionNames: readonly ListedName[] = ['groups', 'documents', 'statefulSets'];
/** What tells whether a published decision is still about what is there. */
export const shownNames: readonly ListedName[] = [...definitionNames, 'intents'];
export const evidenceNames: readonly ListedName[] = [
  'policies',
  'agentPolicies',
  'exceptions',
  'intents',
  'pods',
  'nodes',
  'podBudgets',
  'zoneBudgets',
];

/** Reads each once. Rejects when the API server does not answer or does not know who asks. */
export async function listOnce(
  { env, timeoutMs, agentNamespace = usualAgentNamespace }: Cluster,
  names: readonly ListedName[],
  namespace: string | undefined,
): Promise<Listing> {
  const read = async (name: ListedName): Promise<readonly [ListedName, Known<readonly KubernetesObject[]>]> => {
    const { resource, site, labelSelector, isOfAgent } = listed[name];
    if (isOfAgent === true && includes(namespace, agentNamespace)) return [name, []];
    try {
      const options = {
        site,
        timeoutMs,
        ...inNamespace(resource, isOfAgent === true ? agentNamespace : namespace),
        ...(labelSelector && { labelSelector }),
      };
      return [name, (await listObjects(env, resource, options)).items];
    } catch (error) {
      // An absent CRD means that there is no such object, which is known.
      if (isStatus(error, 404)) return [name, []];
      if (isStatus(error, 403)) return [name, { unknown: error.message }];
      throw error;
    }
  };
  return Object.fromEntries(await Promise.all(names.map(read)));
}

/** Objects that are watched. */
interface WatchedListing {
  /** As they are now. A part that has not been listed yet is absent. */
  readonly current: () => Listing;
  /** Watches more; those that are watched already go on. */
  readonly add: (names: readonly ListedName[]) => void;
  readonly stop: () => void;
}

/** Watches; calls back after each change and whenever a part becomes known or unreadable. */
export function watchListing(
  { env, agentNamespace = usualAgentNamespace }: Cluster,
  namespace: string | undefined,
  onChange: () => void,
): WatchedListing {
  const reflectors = new Map<ListedName, Reflector<KubernetesObject>>();
  /** Seen already by another watch. */
  const known = new Set<ListedName>();
  return {
    current: () => ({
      ...Object.fromEntries([...known].map((name) => [name, []])),
      ...Object.fromEntries([...reflectors].flatMap(([name, reflector]) => partOf(name, reflector))),
    }),
    add: (names) => {
      for (const name of names) {
        if (reflectors.has(name)) continue;
        const { resource, site, labelSelector, isOfAgent } = listed[name];
        if (isOfAgent === true && includes(namespace, agentNamespace)) {
          known.add(name);
          continue;
        }
        const reflector = startReflector<KubernetesObject>({
          env,
          resource,
          ...inNamespace(resource, isOfAgent === true ? agentNamespace : namespace),
          ...(labelSelector && { labelSelector }),
          project: withoutManagedFields,
          onChange,
          onState: onChange,
          site,
        });
        reflectors.set(name, reflector);
      }
    },
    stop: () => {
      for (const reflector of reflectors.values()) reflector.stop();
    },
  };
}

/** Whether what is looked at includes the agent's namespace anyhow. */
function includes(namespace: string | undefined, agentNamespace: string): boolean {
  return namespace === undefined || namespace === agentNamespace;
}

function inNamespace({ isNamespaced }: Resource, namespace: string | undefined): { readonly namespace?: string } {
  return isNamespaced && namespace !== undefined ? { namespace } : {};
}

function partOf(
  name: ListedName,
  reflector: Reflector<KubernetesObject>,
): readonly (readonly [ListedName, Known<readonly KubernetesObject[]>])[] {
  const state = reflector.state();
  if (state.kind === 'synced' || (state.kind === 'failing' && state.hasSynced)) return [[name, reflector.store.list()]];
  if (state.kind === 'starting') return [];
  return [[name, state.reason === 'missing' ? [] : { unknown: state.message }]];
}

function withoutManagedFields(object: KubernetesObject): KubernetesObject {
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  return { ...object, metadata };
}
