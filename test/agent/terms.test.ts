import { describe, expect, it } from 'vitest';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, newCluster, rolled } from '../kit/cluster.ts';

const template = 'replicatemplates.rollout-operator.grafana.com';
const statefulSets = 'statefulsets.apps';
const policies = 'rolloutpolicies.rollout-group.dev';

const freeze = {
  metadata: { name: 'freeze', namespace: 'mimir' },
  spec: { targets: { all: true }, rules: [{ name: 'no', actions: ['rollout'], effect: 'deny' }] },
};

const mirroring = {
  'grafana.com/rollout-mirror-replicas-from-resource-name': 'store',
  'grafana.com/rollout-mirror-replicas-from-resource-kind': 'ReplicaTemplate',
  'grafana.com/rollout-mirror-replicas-from-resource-api-version': 'rollout-operator.grafana.com/v1',
};

/** A group that mirrors an object whose reads take three seconds from now on, and an agent that leads it. */
async function slowToRead() {
  const cluster = newCluster();
  const { serve } = cluster.api;
  let isSlow = false;
  cluster.env.replaceServer(async (request) => {
    const answer = await serve(request);
    return isSlow && request.site === 'sources.read' && 'status' in answer ? { ...answer, delayMs: 3000 } : answer;
  });
  cluster.api.put(template, { metadata: { name: 'store', namespace: 'mimir' }, spec: { replicas: 3 }, status: { replicas: 3 } });
  adoptedGroup(cluster, { annotations: mirroring });
  const process = startProcess({ env: cluster.env });
  await cluster.env.advance(30_000);
  isSlow = true;
  return { cluster, process };
}

describe('requests about a group', () => {
  it('is the same in all of a decision, also when it changes while the turn reads', async () => {
    const { cluster, process } = await slowToRead();
    const reads = cluster.env.requests.length;
    cluster.rollTo('app:2');
    await cluster.env.until(() => cluster.env.requests.slice(reads).some(({ site }) => site === 'sources.read'));
    for (const name of ['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c']) {
      const annotations = { ...mirroring, 'rollout-max-unavailable': '2' };
      cluster.api.change(statefulSets, 'mimir', name, { metadata: { annotations } });
    }
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    const ofAnother = process.reports.filter(({ group, snapshot, decision }) => {
      const seen = snapshot.groups.find(({ name }) => name === group.name);
      return decision !== undefined && JSON.stringify(seen) !== JSON.stringify(group);
    });
    expect(ofAnother).toEqual([]);
    expect(process.reports.at(-1)?.group.zones.map(({ maxUnavailable }) => maxUnavailable)).toEqual([2, 2, 2]);
  });

  it('ends the turn when the group is gone once everything is read', async () => {
    const { cluster, process } = await slowToRead();
    const reads = cluster.env.requests.length;
    const reports = process.reports.length;
    cluster.rollTo('app:2');
    await cluster.env.until(() => cluster.env.requests.slice(reads).some(({ site }) => site === 'sources.read'));
    for (const name of ['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c']) {
      cluster.api.change(statefulSets, 'mimir', name, { metadata: { labels: { 'rollout-group': null } } });
    }
    await cluster.env.advance(60_000);
    expect(process.groups()).toEqual([]);
    expect(process.reports.slice(reports)).toEqual([]);
    expect(cluster.deletedPods()).toEqual([]);
  });

  it('lets no pod go by a decision that it has overtaken while the ledger was written', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const { serve } = cluster.api;
    let isSlow = false;
    cluster.env.replaceServer(async (request) => {
      const answer = await serve(request);
      const isWrite = request.method !== 'GET' && request.pathname.includes('/configmaps');
      return isSlow && isWrite && 'status' in answer ? { ...answer, delayMs: 3000 } : answer;
    });
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    isSlow = true;
    cluster.rollTo('app:2');
    // What goes is announced there, and gone after.
    const isAnnounced = ({ site, body }: { readonly site: string; readonly body?: unknown }): boolean =>
      site.startsWith('ledger.') && (JSON.stringify(body) ?? '').includes('deletePod');
    await cluster.env.until(() => cluster.env.requests.some(isAnnounced));
    cluster.api.put(policies, freeze);
    await cluster.env.advance(60_000);
    expect(cluster.env.requests.filter(({ site }) => site === 'act.deletePod')).toEqual([]);
    expect(process.reports.at(-1)?.ledger?.claims).toEqual([]);
    cluster.api.remove(policies, 'mimir', 'freeze');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
  });
});
