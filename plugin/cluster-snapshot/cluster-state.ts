// The policies in force in a cluster and the decisions that agents published, from a listing.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { readPublished } from '../../engine/publish/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isStatusMapName } from '../../engine/publish/status-map.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { type LivePolicies, resolveLive } from '../../policies/live/sources.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { itemsOf, type Listing, textIn } from './listing.ts';

export interface ClusterState {
  readonly policies: LivePolicies;
  /** The namespace whose policies may name other namespaces. */
  readonly agentNamespace: string;
  /** By `namespace/group`. */
  readonly published: ReadonlyMap<string, PublishedDecision>;
  /** Published decisions that could not be read, one sentence part each. */
  readonly problems: readonly string[];
}

/** Precedence of the definitions of a group: the default of the agent's flag. */
const order = ['directory', 'objects', 'adopted'] as const;

/** Resolves the policies of a listing, as the agent does, and reads the published decisions. */
export function clusterState(listing: Listing, agentNamespace = usualAgentNamespace): ClusterState {
  const policies = resolveLive({
    objects: [listing.groups, listing.policies, listing.agentPolicies, listing.exceptions, listing.intents].flatMap(itemsOf),
    statefulSets: itemsOf(listing.statefulSets),
    order,
    agentNamespace,
    areIntentsStamped: true,
  });
  const published = new Map<string, PublishedDecision>();
  const problems: string[] = [];
  for (const object of [...itemsOf(listing.documents), ...itemsOf(listing.groups)]) {
    const stored = storedDecision(object);
    if (stored === undefined) continue;
    const decision = readPublished(stored);
    if (isUnknown(decision))
      problems.push(`what was published in ${object.kind} ${object.metadata.namespace}/${object.metadata.name}: ${decision.unknown}`);
    else published.set(`${decision.namespace}/${decision.group}`, decision);
  }
  return { policies, agentNamespace, published, problems };
}

/** Returns the decision inside of an object, if one was published there. */
function storedDecision(object: KubernetesObject): unknown {
  if (object.kind === 'ConfigMap') return isStatusMapName(object.metadata.name) ? jsonIn(object, 'decision') : undefined;
  const status = object['status'];
  return typeof status === 'object' && status !== null && 'decision' in status ? status.decision : undefined;
}

/** Parses a value of `data`. Returns a text that is no JSON as it is, so that it is reported as a problem. */
function jsonIn(object: KubernetesObject, key: string): unknown {
  const text = textIn(object, key);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
