// The objects of one group as the API server has them now: for a leader that begins, and after a reply was lost.
import type { ClusterEnv } from '../../cluster/env.ts';
import { asJsonObject } from '../../cluster/request/json.ts';
import { getObject, listProjected } from '../../cluster/request/read.ts';
import { resources } from '../../cluster/request/resource.ts';
import type { Observed } from '../../engine/observe/cluster.ts';
import { type ObservedPod, observeNode } from '../../engine/observe/objects.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { type CachedStatefulSet, cachedPod, cachedStatefulSet, type FreshObjects } from '../watched/caches.ts';
import type { ChangedObject } from '../watched/freshness.ts';

export interface FreshRead extends FreshObjects {
  /** What the caches must show before they may be believed again. */
  readonly read: readonly ChangedObject[];
}

interface Member {
  readonly name: string;
  readonly set: CachedStatefulSet | undefined;
  readonly pods: readonly ObservedPod[];
}

export interface FreshOptions {
  /** Of each request, in milliseconds. */
  readonly timeoutMs: number;
  /** Which nodes are ready by the cache. */
  readonly nodes: Observed['nodes'];
}

/** At most so many nodes are asked for at once; when more of them are down, it is not for a line that a watch has lost. */
const askedNodes = 10;

/**
 * Reads every StatefulSet of the group and its pods from the quorum, and the nodes under them that are said not to be ready. Rejects when one of
 * them cannot be read.
 */
export async function readFresh(
  env: Pick<ClusterEnv, 'kubernetes'>,
  group: GroupDefinition,
  { timeoutMs, nodes: known }: FreshOptions,
): Promise<FreshRead> {
  const { namespace } = group;
  const objects = await Promise.all(
    group.zones.map(async ({ statefulSet: name }) => {
      const object = await getObject(env, resources.statefulSets, { namespace, name }, { site: 'fresh.statefulSet', timeoutMs });
      return { name, object };
    }),
  );
  const members: Member[] = [];
  // One after the other, so that the pages of one list are in memory at a time.
  for (const { name, object } of objects) {
    if (object === undefined) members.push({ name, set: undefined, pods: [] });
    else {
      const labelSelector = selectorText(asJsonObject(object['spec'])['selector']);
      const { items } = await listProjected(env, resources.pods, {
        namespace,
        labelSelector,
        project: cachedPod,
        site: 'fresh.pods',
        timeoutMs,
      });
      members.push({ name, set: cachedStatefulSet(object), pods: items });
    }
  }
  const statefulSets = new Map(members.map(({ name, set }) => [name, set]));
  const pods = distinct(members.flatMap((member) => member.pods));
  const doubtful = isUnknown(known)
    ? []
    : [...new Set(pods.map(({ node }) => node))].filter((name) => name !== '' && known.get(name) !== true);
  const nodes = await Promise.all(doubtful.slice(0, askedNodes).map((name) => readNode(env, name, timeoutMs)));
  return { statefulSets, pods, nodes: new Map(nodes), read: [...[...statefulSets.values()].flatMap(readSet), ...pods.map(readPod)] };
}

/** Whether the node is ready. Asked for as a list of one: the agent may list and watch nodes, and not get them. */
async function readNode(env: Pick<ClusterEnv, 'kubernetes'>, name: string, timeoutMs: number): Promise<readonly [string, boolean]> {
  const fieldSelector = `metadata.name=${name}`;
  const { items } = await listProjected(env, resources.nodes, { fieldSelector, project: observeNode, site: 'fresh.node', timeoutMs });
  return [name, items.find((node) => node.name === name)?.isReady === true];
}

function readSet(set: CachedStatefulSet | undefined): readonly ChangedObject[] {
  if (set === undefined) return [];
  const { namespace, name, uid, resourceVersion } = set.view;
  return [{ kind: 'statefulSet', namespace, name, uid, resourceVersion }];
}

function readPod({ namespace, name, uid, resourceVersion }: ObservedPod): ChangedObject {
  return { kind: 'pod', namespace, name, uid, resourceVersion };
}

/** Two StatefulSets may select the same pods. */
function distinct(pods: readonly ObservedPod[]): readonly ObservedPod[] {
  return [...new Map(pods.map((pod) => [pod.uid, pod])).values()];
}

/** A label selector of an object as the query of a list. A StatefulSet cannot change its selector, so it holds for pods of every revision. */
function selectorText(selector: unknown): string {
  const { matchLabels, matchExpressions } = asJsonObject(selector);
  const labels = Object.entries(asJsonObject(matchLabels)).map(([key, value]) => `${key}=${String(value)}`);
  const expressions = Array.isArray(matchExpressions) ? matchExpressions.map(expressionText) : [];
  return [...labels, ...expressions].join(',');
}

function expressionText(expression: unknown): string {
  const { key, operator, values } = asJsonObject(expression);
  const set = `(${Array.isArray(values) ? values.join(',') : ''})`;
  if (operator === 'Exists') return String(key);
  if (operator === 'DoesNotExist') return `!${String(key)}`;
  return `${String(key)} ${operator === 'NotIn' ? 'notin' : 'in'} ${set}`;
}
