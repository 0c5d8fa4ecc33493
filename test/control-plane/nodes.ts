// Makes the nodes of a zone fail, like the loss of a node pool, and restores them.
import type { ApiClient, KubernetesObject } from './client.ts';
import type { Pod } from './workloads.ts';

const lost = 'test.rollout-group.dev/lost';

/** The nodes of the zone become Unknown and their pods unready. Deleted pods on them keep terminating. */
export async function loseZone(client: ApiClient, zone: string): Promise<void> {
  await mark(client, zone, 'true');
}

/** The nodes and their pods become Ready again. */
export async function findZone(client: ApiClient, zone: string): Promise<void> {
  await mark(client, zone, null);
}

async function mark(client: ApiClient, zone: string, value: string | null): Promise<void> {
  const patch = { metadata: { annotations: { [lost]: value } } };
  const selector = encodeURIComponent(`topology.kubernetes.io/zone=${zone}`);
  const nodes = await client.list<KubernetesObject>(`/api/v1/nodes?labelSelector=${selector}`);
  await Promise.all(nodes.map(({ metadata }) => client.patch(`/api/v1/nodes/${metadata.name}`, 'merge', patch)));
  const names = new Set(nodes.map(({ metadata }) => metadata.name));
  const pods = await client.list<Pod>('/api/v1/pods');
  const here = pods.filter(({ spec }) => names.has(spec.nodeName ?? ''));
  await Promise.all(
    here.map(({ metadata }) => client.patch(`/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`, 'merge', patch)),
  );
}
