import { describe, expect, it } from 'vitest';
import { encodeLedger, ledgerKey, ledgerLabel, ledgerName } from '../../engine/ledger/ledger-document.ts';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, type Cluster, nativeGroup, newCluster, rolled } from '../kit/cluster.ts';
import { VirtualWatch } from '../kit/virtual-env.ts';

function deletions({ env }: Cluster): readonly string[] {
  return env.requests.filter(({ site }) => site === 'act.deletePod').map(({ pathname }) => pathname);
}

/** Says whether the one node is ready. */
function readinessOf({ api }: Cluster) {
  return (ready: 'True' | 'False') => api.change('nodes', '', 'node-1', { status: { conditions: [{ type: 'Ready', status: ready }] } });
}

/** Such as a server that says again and again how far its watch has come. */
function everySecond({ env }: Cluster, callback: () => void): () => void {
  let cancel = (): void => undefined;
  const again = (): void => {
    callback();
    cancel = env.timers.after(1000, again);
  };
  again();
  return () => cancel();
}

describe('a stale cache', () => {
  it('is not used when a turn starts again because another writer changed the ledger', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    await cluster.env.advance(60_000);
    cluster.rollTo('app:2');
    await cluster.env.advance(5000);
    const { serve } = cluster.api;
    const seen = { isRead: false, isWritten: false };
    cluster.env.replaceServer((request) => {
      if (request.site === 'fresh.statefulSet' && !seen.isRead) {
        seen.isRead = true;
        cluster.api.hold();
        const notReady = {
          conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: new Date(cluster.env.clock.nowMs()).toISOString() }],
        };
        cluster.api.change('pods', 'mimir', 'ingester-zone-b-1', { status: notReady });
      }
      if (request.method !== 'GET' && request.site?.startsWith('ledger.') === true && !seen.isWritten) {
        seen.isWritten = true;
        const text = encodeLedger({ namespace: 'mimir', group: 'ingester', epoch: 0, claims: [], downscales: [], preparations: [] });
        const metadata = { name: ledgerName('ingester'), namespace: 'mimir', labels: { [ledgerLabel.key]: ledgerLabel.value } };
        cluster.api.put('configmaps', { metadata, data: { [ledgerKey]: text } });
      }
      return serve(request);
    });
    startProcess({ env: cluster.env });
    await cluster.env.advance(8000);
    expect(seen).toEqual({ isRead: true, isWritten: true });
    expect(deletions(cluster).filter((path) => !path.includes('ingester-zone-b-'))).toEqual([]);
  });

  it('brings no StatefulSet back that a direct read did not find', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    const first = startProcess({ env: cluster.env, name: 'agent-1' });
    await cluster.env.advance(5000);
    const second = startProcess({ env: cluster.env, name: 'agent-2' });
    await cluster.env.advance(30_000);
    first.crash();
    cluster.api.hold('statefulsets.apps');
    cluster.api.remove('statefulsets.apps', 'mimir', 'ingester-zone-b');
    await cluster.env.until(() => second.reports.length > 0, 30_000);
    cluster.api.change('pods', 'mimir', 'ingester-zone-a-0', { metadata: { labels: { team: 'db' } } });
    await cluster.env.advance(30_000);
    const seen = second.reports.map(({ snapshot }) => snapshot.statefulSets.map(({ name }) => name).join(' '));
    expect(seen.length).toBeGreaterThan(1);
    expect(new Set(seen)).toEqual(new Set(['ingester-zone-a ingester-zone-c']));
  });

  it('of requests that receives a pause while it is compared with the API server permits no claim', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    startProcess({ env: cluster.env });
    await cluster.env.advance(30_000);
    const intents = 'rolloutintents.rollout-group.dev';
    cluster.api.hold(intents);
    cluster.api.put(intents, { metadata: { name: 'wait', namespace: 'mimir' }, spec: { group: 'ingester', action: 'pause' } });
    const { serve, server } = cluster.api;
    const seen = { isCompared: false, hasClaims: false };
    cluster.env.replaceServer((request) => {
      if (request.site === 'written.list' && request.pathname.endsWith('/rolloutintents')) {
        seen.isCompared = true;
        cluster.api.release();
      }
      return serve(request);
    });
    server.observe({
      committed: ({ resource, after }) => {
        if (resource === 'configmaps') seen.hasClaims ||= JSON.stringify(after['data']).includes('deletePod');
      },
    });
    cluster.rollTo('app:2');
    await cluster.env.advance(60_000);
    expect(seen).toEqual({ isCompared: true, hasClaims: false });
    expect(deletions(cluster)).toEqual([]);
  });

  it('of requests does not complete a wave that a user has rejected since', async () => {
    const cluster = newCluster();
    const approval = { from: ['oncall'] };
    const waves = [
      { name: 'canary', zones: ['a'], pods: 1, after: { soak: '40s', approval } },
      { name: 'rest', zones: ['a', 'b', 'c'], percent: 100, before: { approval } },
    ];
    nativeGroup(cluster, { rollout: { strategy: 'onDelete', rotateBy: 'delete', waves } });
    const { reports } = startProcess({ env: cluster.env, config: { areIntentsStamped: true } });
    await cluster.env.advance(30_000);
    cluster.rollTo('app:2');
    const waitsForApproval = () => reports.at(-1)?.decision?.waits.find(({ rule }) => rule === 'approval');
    await cluster.env.until(() => waitsForApproval() !== undefined, 60_000);
    const run = () => reports.at(-1)?.ledger?.run;
    const answer = (user: string, action: 'approve' | 'reject', more: object) =>
      cluster.api.put('rolloutintents.rollout-group.dev', {
        metadata: { name: `${action}.${user}`, namespace: 'mimir' },
        spec: {
          ...{ group: 'ingester', action, wave: 'canary', runId: run()?.id, ...more },
          requestedBy: { user, groups: ['oncall'], at: new Date(cluster.env.clock.nowMs()).toISOString() },
        },
      });
    answer('bob', 'approve', { digest: waitsForApproval()?.digest });
    await cluster.env.advance(5000);
    expect(waitsForApproval()).toBeUndefined();
    expect(run()?.wave).toBe(0);
    cluster.api.hold('rolloutintents.rollout-group.dev');
    answer('alice', 'reject', {});
    await cluster.env.advance(120_000);
    expect(run()?.wave).toBe(0);
    expect(waitsForApproval()?.fact).toBe('alice rejected wave canary');
    expect(reports.some(({ error }) => error?.includes('the watch cache is behind'))).toBe(true);
    expect(reports.filter(({ decision }) => decision?.run?.wave === 1)).toEqual([]);
  });

  it('of nodes does not override a decision based on a direct read', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    let isSilent = false;
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) =>
      isSilent && request.isStream && request.pathname.endsWith('/nodes') ? { watch: new VirtualWatch() } : serve(request),
    );
    startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    const setReady = readinessOf(cluster);
    setReady('False');
    await cluster.env.advance(5000);
    isSilent = true;
    cluster.api.cutWatches();
    await cluster.env.advance(5000);
    cluster.rollTo('app:2');
    await cluster.env.advance(5000);
    setReady('True');
    expect(deletions(cluster)).toEqual([]);
    await cluster.env.advance(700_000);
    expect(deletions(cluster)).not.toEqual([]);
  });

  it('of nodes is listed again once a direct read contradicts it, so later pods need no direct read', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    const forgetful = new VirtualWatch();
    let isForgetful = false;
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) => {
      if (!isForgetful || !request.isStream || !request.pathname.endsWith('/nodes')) return serve(request);
      isForgetful = false;
      return { watch: forgetful };
    });
    startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    const setReady = readinessOf(cluster);
    setReady('False');
    await cluster.env.advance(5000);
    isForgetful = true;
    cluster.api.cutWatches();
    await cluster.env.advance(5000);
    const { metadata } = setReady('True');
    const stopBookmarks = everySecond(cluster, () => forgetful.bookmark(metadata.resourceVersion));
    cluster.rollTo('app:2');
    const lists = (): number => cluster.env.requests.filter(({ site }) => site === 'watch.nodes.list').length;
    const before = lists();
    // One look is due after five minutes; the nine pods need less than that together.
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(lists()).toBe(before + 1);
    stopBookmarks();
  });

  it('of nodes is bypassed by an agent that may list nodes but not get them', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    await cluster.env.advance(60_000);
    cluster.api.forbid('get nodes');
    cluster.api.change('nodes', '', 'node-1', { status: { conditions: [{ type: 'Ready', status: 'False' }] } });
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(10_000);
    expect(process.sites).toContain('fresh.node');
    expect(process.reports.at(-1)).toHaveProperty('decision');
  });

  it.each<[string, (cluster: Cluster) => void]>([
    ['is adopted', (cluster) => adoptedGroup(cluster)],
    ['has a selector', selectedGroup],
  ])('of StatefulSets does not decide the members of a group that %s', async (_, group) => {
    const cluster = newCluster();
    group(cluster);
    const first = startProcess({ env: cluster.env, name: 'agent-1' });
    await cluster.env.advance(5000);
    const second = startProcess({ env: cluster.env, name: 'agent-2' });
    await cluster.env.advance(30_000);
    first.crash();
    cluster.api.remove('statefulsets.apps', 'mimir', 'ingester-zone-b');
    const removePods = (): void => {
      for (const ordinal of [0, 1, 2]) cluster.api.remove('pods', 'mimir', `ingester-zone-b-${ordinal}`);
    };
    removePods();
    cluster.workloads.setImage('ingester-zone-a', 'app:2');
    await cluster.env.advance(1000);
    cluster.api.hold('statefulsets.apps');
    // It comes back and cannot start, and nothing but its labels says that it belongs to the group.
    cluster.workloads.create({ name: 'ingester-zone-b', image: 'broken/app:1', labels: { 'rollout-group': 'ingester' } });
    removePods();
    await cluster.env.advance(60_000);
    expect(second.reports[0]?.error).toContain('the watch cache is behind the API server');
    expect(second.reports[0]?.decision?.actions).toMatchObject([{ kind: 'deletePod', zone: expect.stringMatching(/a$/) }]);
    expect(second.reports.at(-1)?.snapshot.statefulSets).toHaveLength(3);
    expect(deletions(cluster)).toEqual([]);
  });
});

/** Three zones that nobody names but by a label. */
function selectedGroup(cluster: Cluster): void {
  nativeGroup(
    cluster,
    { members: { selector: { matchLabels: { 'rollout-group': 'ingester' } } } },
    { labels: { 'rollout-group': 'ingester' } },
  );
}
