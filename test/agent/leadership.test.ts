import { describe, expect, it } from 'vitest';
import { defaultConfig, startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, newCluster, rolled } from '../kit/cluster.ts';

const config = { lease: { ...defaultConfig.lease, mode: 'auto' as const } };

describe('an agent without a Lease', () => {
  it('works if Leases are forbidden', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    cluster.api.forbid('* leases.coordination.k8s.io');
    const process = startProcess({ env: cluster.env, config });
    await cluster.env.until(() => process.reports.length > 0);
    expect(process.degradations()).toContainEqual(
      expect.objectContaining({ id: 'lease', message: expect.stringContaining('acts without a Lease') }),
    );
  });

  it('does not start next to another one because a starting server denied it the Lease for a moment', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const first = startProcess({ env: cluster.env, name: 'agent-1', config });
    await cluster.env.until(() => first.reports.length > 0);
    const second = startProcess({ env: cluster.env, name: 'agent-2', config });
    await cluster.env.advance(10_000);
    cluster.api.forbid('get leases.coordination.k8s.io');
    await cluster.env.advance(5000);
    expect(second.degradations()).toContainEqual(
      expect.objectContaining({ id: 'lease', message: expect.stringContaining('no action is taken') }),
    );
    cluster.api.permit('get leases.coordination.k8s.io');
    cluster.rollTo('app:2');
    await cluster.env.advance(120_000);
    expect(cluster.deletedPods().length).toBeGreaterThan(0);
    expect(second.reports).toEqual([]);
    expect(second.degradations()).toEqual(first.degradations());
  });

  it.each([
    ['forbids the Lease', () => ({ status: 403, body: { kind: 'Status', reason: 'Forbidden', message: 'leases is forbidden' } })],
    ['does not serve Leases', () => ({ status: 404, body: '404 page not found' })],
  ])('leaves it to the holder when a server that starts %s for a moment', async (_, refusal) => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const first = startProcess({ env: cluster.env, name: 'agent-1', config });
    await cluster.env.until(() => first.reports.length > 0);
    let isStarting = true;
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) =>
      isStarting && request.pathname.includes('/leases') && request.site.startsWith('lease.read') ? refusal() : serve(request),
    );
    const second = startProcess({ env: cluster.env, name: 'agent-2', config });
    await cluster.env.advance(1000);
    isStarting = false;
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(second.reports).toEqual([]);
    expect(second.degradations()).toEqual(first.degradations());
  });

  it('waits if a review says that Leases are permitted, although the API server still denies them', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    cluster.api.forbid('* leases.coordination.k8s.io');
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) =>
      request.pathname.endsWith('/selfsubjectaccessreviews') ? { status: 201, body: { status: { allowed: true } } } : serve(request),
    );
    const process = startProcess({ env: cluster.env, config });
    await cluster.env.advance(120_000);
    expect(process.reports).toEqual([]);
  });

  it('ignores claims of another process under the same number', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const alone = { lease: { ...defaultConfig.lease, mode: 'off' as const } };
    const fault = (site: string) => (site === 'act.deletePod' ? ('crash' as const) : undefined);
    const first = startProcess({ env: cluster.env, name: 'agent-1', config: alone, fault });
    const second = startProcess({ env: cluster.env, name: 'agent-2', config: alone });
    await cluster.env.until(() => first.reports.length > 0 && second.reports.length > 0);
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(first.isAlive()).toBe(false);
    // Its deletion may be on the way when the second one finds what it announced.
    expect(cluster.env.requests.filter(({ site }) => site === 'revoke.touchPod')).toHaveLength(1);
    expect(cluster.deletedPods()).toHaveLength(9);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
  });
});

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
  it('stay the same during a decision, also if they change while the turn reads', async () => {
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

  it('end the turn if the group no longer exists after all reads', async () => {
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

  it('stop a deletion that was decided before the request but whose claim is not written yet', async () => {
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
