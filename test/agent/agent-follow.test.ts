import { describe, expect, it } from 'vitest';
import type { PodRequest, PodResponse } from '../../agent/env.ts';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, type Cluster, newCluster, rolled } from '../kit/cluster.ts';

/** Two adopted zones; b follows a, and its leaving pods are asked to prepare. */
function followed(): Cluster {
  const cluster = newCluster();
  const labels = { 'rollout-group': 'ingester', 'grafana.com/prepare-downscale': 'true' };
  const endpoint = { 'grafana.com/prepare-downscale-http-path': 'prepare', 'grafana.com/prepare-downscale-http-port': '80' };
  cluster.workloads.create({ name: 'ingester-zone-a', replicas: 4, labels, annotations: endpoint });
  const annotations = { ...endpoint, 'grafana.com/rollout-downscale-leader': 'ingester-zone-a' };
  cluster.workloads.create({ name: 'ingester-zone-b', replicas: 4, labels, annotations });
  return cluster;
}

function scale({ api }: Cluster, name: string, replicas: number): void {
  api.change('statefulsets.apps', 'mimir', name, { spec: { replicas } });
}

function replicasOf({ api }: Cluster, name: string): unknown {
  const spec = (api.get('statefulsets.apps', 'mimir', name)?.['spec'] ?? {}) as { readonly replicas?: number };
  return spec.replicas;
}

const fromFirst = (calls: readonly PodRequest[]): readonly PodRequest[] => {
  const first = calls.findIndex(({ method }) => method === 'POST');
  return first === -1 ? [] : calls.slice(first);
};
/** From the first pod on that is asked to leave; before that all are told to stay, since nobody knows whom a former operator had asked. */
const shown = (calls: readonly PodRequest[]): readonly string[] =>
  fromFirst(calls).map(({ method, url }) => `${method} ${new URL(url).hostname.split('.')[0]}`);

describe('a follower', () => {
  it('grows with its leader', async () => {
    const cluster = followed();
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    scale(cluster, 'ingester-zone-a', 6);
    await cluster.env.until(() => replicasOf(cluster, 'ingester-zone-b') === 6, 60_000);
    expect(shown(process.podCalls)).toEqual([]);
  });

  it('shrinks after its leaving pods have prepared, from the top', async () => {
    const cluster = followed();
    const process = startProcess({ env: cluster.env, pods: async () => ({ status: 204, body: '' }) });
    await cluster.env.advance(5000);
    scale(cluster, 'ingester-zone-a', 2);
    await cluster.env.until(() => replicasOf(cluster, 'ingester-zone-b') === 2, 60_000);
    expect(shown(process.podCalls)).toEqual(['POST ingester-zone-b-3', 'POST ingester-zone-b-2']);
    await cluster.env.advance(300_000);
    expect(shown(process.podCalls)).toHaveLength(2);
  });

  it('does not shrink while a pod fails to prepare, and cancels the preparation of the others', async () => {
    const cluster = followed();
    const answer = ({ method, url }: PodRequest): PodResponse => ({
      status: method === 'POST' && url.includes('zone-b-2') ? 500 : 200,
      body: '',
    });
    const process = startProcess({ env: cluster.env, pods: async (request) => answer(request) });
    await cluster.env.advance(5000);
    scale(cluster, 'ingester-zone-a', 2);
    await cluster.env.advance(20_000);
    expect(replicasOf(cluster, 'ingester-zone-b')).toBe(4);
    expect(shown(process.podCalls)).toEqual([
      'POST ingester-zone-b-3',
      'POST ingester-zone-b-2',
      'DELETE ingester-zone-b-3',
      'DELETE ingester-zone-b-2',
    ]);
  });

  it('is scaled once if the answer to a request was lost', async () => {
    const cluster = followed();
    let isLost = false;
    const process = startProcess({
      env: cluster.env,
      pods: async () => ({ status: 200, body: '' }),
      fault: (site, moment) => {
        if (isLost || site !== 'act.scaleStatefulSet' || moment !== 'afterReply') return undefined;
        isLost = true;
        return 'lose';
      },
    });
    await cluster.env.advance(5000);
    scale(cluster, 'ingester-zone-a', 2);
    await cluster.env.advance(120_000);
    expect(isLost).toBe(true);
    expect(replicasOf(cluster, 'ingester-zone-b')).toBe(2);
    const patches = cluster.env.requests.filter(({ site }) => site === 'act.scaleStatefulSet');
    expect(patches).toHaveLength(1);
    expect(process.reports.at(-1)?.ledger?.claims).toEqual([]);
  });
});

describe('a rollout', () => {
  it('brings three zones of three pods to the new image, one pod at a time, and is quiet afterwards', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const process = startProcess({ env: cluster.env });
    await cluster.env.until(() => process.agent.isReady());
    await cluster.env.advance(60_000);
    expect(cluster.writes()).toEqual([]);

    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(cluster.deletedPods()).toHaveLength(9);
    expect(new Set(cluster.deletedPods()).size).toBe(9);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });

    await cluster.env.advance(60_000);
    const before = cluster.writes().length;
    await cluster.env.advance(600_000);
    expect(cluster.writes().slice(before)).toEqual([]);
    await process.agent.stop();
  });
});
