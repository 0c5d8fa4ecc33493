import { describe, expect, it } from 'vitest';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, newCluster, rolled, statusIn } from '../kit/cluster.ts';

describe('the agent', () => {
  it('deletes no pod twice as a new leader with stale caches', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const first = startProcess({ env: cluster.env, name: 'agent-1' });
    await cluster.env.advance(5000);
    const second = startProcess({ env: cluster.env, name: 'agent-2' });
    await cluster.env.advance(5000);
    cluster.rollTo('app:2');
    await cluster.env.until(() => cluster.deletedPods().length === 1);
    cluster.api.hold();
    await cluster.env.advance(2000);
    first.crash();
    await cluster.env.advance(60_000);
    const { updateRevision } = statusIn(cluster, 'ingester-zone-a');
    expect(second.reports[0]?.snapshot.pods.flatMap(({ pods }) => ('unknown' in pods ? [] : pods))).toContainEqual(
      expect.objectContaining({ revision: updateRevision }),
    );
    expect(cluster.deletedPods().length).toBeGreaterThan(1);
    cluster.api.release();
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(second.reports.flatMap(({ performed }) => performed).filter(({ result }) => result === 'conflict')).toEqual([]);
    expect(new Set(cluster.deletedPods()).size).toBe(9);
    expect(cluster.deletedPods()).toHaveLength(9);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
  });

  it('revokes the deletion that a former leader claimed but never sent, and does not wait for the end of the claim', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster, { replicas: 2 });
    const fault = (site: string) => (site === 'act.deletePod' ? ('crash' as const) : undefined);
    startProcess({ env: cluster.env, name: 'agent-1', fault });
    await cluster.env.advance(5000);
    startProcess({ env: cluster.env, name: 'agent-2' });
    cluster.rollTo('app:2');
    // The claim on an unchanged pod would otherwise block the group for two minutes.
    await cluster.env.until(() => rolled(cluster, 'app:2'), 100_000);
    const touches = cluster.env.requests.filter(({ site }) => site === 'revoke.touchPod');
    expect(touches).toHaveLength(1);
    expect(cluster.deletedPods()).toHaveLength(6);
  });

  it('sends no further request after it lost the Lease, although its other requests succeed', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    // While `losesLease` is true, the first leader's requests for the Lease fail before they are sent. Its other requests succeed.
    let losesLease = false;
    const first = startProcess({
      env: cluster.env,
      name: 'agent-1',
      fault: (site, moment) => (losesLease && site.startsWith('lease.') && moment === 'beforeSend' ? 'lose' : undefined),
    });
    await cluster.env.advance(5000);
    startProcess({ env: cluster.env, name: 'agent-2' });
    cluster.rollTo('app:2');
    await cluster.env.until(() => cluster.deletedPods().length === 1);
    losesLease = true;
    await cluster.env.advance(40_000);
    const reported = first.reports.length;
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(first.reports).toHaveLength(reported);
    expect(cluster.deletedPods()).toHaveLength(9);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
  });

  it('continues the rollout after the Lease was deleted, although leaseTransitions starts again', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const first = startProcess({ env: cluster.env, name: 'agent-1' });
    cluster.rollTo('app:2');
    await cluster.env.until(() => cluster.deletedPods().length === 2);
    first.crash();
    cluster.api.remove('leases.coordination.k8s.io', 'mimir', 'rollout-group');
    startProcess({ env: cluster.env, name: 'agent-2' });
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(cluster.deletedPods()).toHaveLength(9);
  });

  it('rolls out a group without delay while the pods of another group do not answer', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    cluster.api.put('replicatemplates.rollout-operator.grafana.com', {
      metadata: { name: 'store', namespace: 'mimir' },
      spec: { replicas: 1 },
      status: { replicas: 3 },
    });
    cluster.workloads.create({
      name: 'store-zone-a',
      labels: { 'rollout-group': 'store' },
      annotations: {
        'grafana.com/rollout-mirror-replicas-from-resource-name': 'store',
        'grafana.com/rollout-mirror-replicas-from-resource-kind': 'ReplicaTemplate',
        'grafana.com/rollout-mirror-replicas-from-resource-api-version': 'rollout-operator.grafana.com/v1',
        'grafana.com/rollout-delayed-downscale': '1h',
        'grafana.com/rollout-prepare-delayed-downscale-url': 'http://pod:8080/prepare',
      },
    });
    const process = startProcess({ env: cluster.env, pods: () => new Promise(() => undefined) });
    await cluster.env.advance(5000);
    // The agent first sends DELETE to the pod that the scale-down keeps, so that this pod is not prepared. The pod does not answer.
    expect(process.podCalls.map(({ method }) => method)).toEqual(['DELETE']);
    for (const name of ['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c']) cluster.workloads.setImage(name, 'app:2');
    const ingesters = (): boolean => cluster.workloads.images().every((line) => line.startsWith('store') || line.endsWith('app:2'));
    await cluster.env.until(ingesters, 120_000);
    const reactions = process.reports.flatMap(({ reactionMs }) => reactionMs ?? []);
    expect(Math.max(...reactions)).toBeLessThan(100);
  });
});
