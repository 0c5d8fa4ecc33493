import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../engine/decide/decide.ts';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, type Cluster, nativeGroup, newCluster, rolled } from '../kit/cluster.ts';
import { VirtualWatch } from '../kit/virtual-env.ts';

const template = 'replicatemplates.rollout-operator.grafana.com';

/** Writes of ledgers take this long to be answered while the answer says so. */
function slowLedger(cluster: Cluster, delayMs: number): { isSlow: boolean } {
  const ledger = { isSlow: false };
  const { serve } = cluster.api;
  cluster.env.replaceServer(async (request) => {
    const isLedgerWrite = request.method !== 'GET' && request.pathname.includes('/configmaps');
    const answer = await serve(request);
    return ledger.isSlow && isLedgerWrite && 'status' in answer ? { ...answer, delayMs } : answer;
  });
  return ledger;
}

/** Zones that mirror a ReplicaTemplate of three. */
function mirroringGroup(cluster: Cluster): void {
  const annotations = {
    'grafana.com/rollout-mirror-replicas-from-resource-name': 'store',
    'grafana.com/rollout-mirror-replicas-from-resource-kind': 'ReplicaTemplate',
    'grafana.com/rollout-mirror-replicas-from-resource-api-version': 'rollout-operator.grafana.com/v1',
  };
  cluster.api.put(template, { metadata: { name: 'store', namespace: 'mimir' }, spec: { replicas: 3 }, status: { replicas: 3 } });
  adoptedGroup(cluster, { annotations });
}

function sizes({ api }: Cluster): readonly number[] {
  return api.list('statefulsets.apps', 'mimir').map(({ spec }) => (spec as { readonly replicas: number }).replicas);
}

describe('a turn', () => {
  it('deletes no pod from a snapshot before a slow write of the ledger', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    let isSlow = false;
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) =>
      isSlow && request.method !== 'GET' && request.pathname.includes('/configmaps')
        ? { lost: 'before-apply', forever: true }
        : serve(request),
    );
    startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    isSlow = true;
    cluster.rollTo('app:2');
    await cluster.env.advance(9000);
    const ready = (status: 'True' | 'False') =>
      cluster.api.change('pods', 'mimir', 'ingester-zone-b-1', {
        status: {
          conditions: [{ type: 'Ready', status }],
          containerStatuses: [{ name: 'a', ready: status === 'True', state: { running: {} } }],
        },
      });
    ready('False');
    isSlow = false;
    await cluster.env.advance(60_000);
    expect(cluster.env.requests.filter(({ site }) => site === 'act.deletePod')).toEqual([]);
    ready('True');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
  });

  it.each(['an adopted', 'a native'])('of %s group replaces no pod when another zone fails while the ledger is written', async (kind) => {
    const cluster = newCluster();
    if (kind === 'a native') nativeGroup(cluster);
    else adoptedGroup(cluster);
    const ledger = slowLedger(cluster, 3000);
    startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    ledger.isSlow = true;
    const setReady = (status: 'True' | 'False') => {
      const conditions = [{ type: 'Ready', status }];
      const containerStatuses = [{ name: 'a', ready: status === 'True', state: { running: {} } }];
      cluster.api.change('pods', 'mimir', 'ingester-zone-b-1', { status: { conditions, containerStatuses } });
    };
    cluster.rollTo('app:2');
    const before = cluster.env.requests.length;
    const isWriting = () => cluster.env.requests.slice(before).some(({ method, site }) => method !== 'GET' && site.startsWith('ledger.'));
    await cluster.env.until(isWriting);
    setReady('False');
    await cluster.env.advance(20_000);
    setReady('True');
    ledger.isSlow = false;
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(cluster.maxDown().zones).toBe(1);
  });

  it('that became stale during the write of the ledger is repeated at once when the conflict has ended', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const ledger = slowLedger(cluster, 1000);
    startProcess({ env: cluster.env, config: { retryMs: 60_000 } });
    await cluster.env.advance(5000);
    ledger.isSlow = true;
    const setReady = (status: 'True' | 'False') => {
      const containerStatuses = [{ name: 'a', ready: status === 'True', state: { running: {} } }];
      cluster.api.change('pods', 'mimir', 'ingester-zone-b-1', { status: { containerStatuses } });
    };
    cluster.rollTo('app:2');
    const isSent = (site: string) => () => cluster.env.requests.some((request) => request.site === site);
    await cluster.env.until(() => cluster.env.requests.some(({ method, site }) => method !== 'GET' && site.startsWith('ledger.')));
    setReady('False');
    await cluster.env.advance(1500);
    expect(isSent('act.deletePod')()).toBe(false);
    setReady('True');
    ledger.isSlow = false;
    // Far sooner than the pause after a turn that failed.
    await cluster.env.advance(3000);
    expect(isSent('act.deletePod')()).toBe(true);
  });

  it('adds no replicas from a snapshot before a slow read of the group', async () => {
    const cluster = newCluster();
    mirroringGroup(cluster);
    const { serve } = cluster.api;
    let isSlow = true;
    cluster.env.replaceServer(async (request) => {
      const answer = await serve(request);
      const isLook = request.method === 'GET' && request.pathname.endsWith('/statefulsets/ingester-zone-b');
      return isSlow && isLook && 'status' in answer ? { ...answer, delayMs: 15_000 } : answer;
    });
    const ask = (replicas: number) => cluster.api.change(template, 'mimir', 'store', { spec: { replicas } });
    ask(5);
    startProcess({ env: cluster.env });
    await cluster.env.until(() => cluster.env.requests.some(({ site }) => site === 'fresh.statefulSet'));
    await cluster.env.advance(5000);
    ask(3);
    await cluster.env.advance(25_000);
    isSlow = false;
    await cluster.env.advance(60_000);
    expect(cluster.env.requests.filter(({ site }) => site === 'act.scaleStatefulSet')).toEqual([]);
    ask(5);
    await cluster.env.until(() => sizes(cluster).every((size) => size === 5));
  });

  it('deletes no pod if the watch of the cache was silent for a while', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    let isStalled = false;
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) =>
      isStalled && request.isStream && request.pathname.endsWith('/pods') ? { watch: new VirtualWatch() } : serve(request),
    );
    startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    isStalled = true;
    cluster.api.cutWatches();
    await cluster.env.advance(15_000);
    cluster.api.change('pods', 'mimir', 'ingester-zone-b-1', {
      status: {
        conditions: [{ type: 'Ready', status: 'False' }],
        containerStatuses: [{ name: 'a', ready: false, state: { running: {} } }],
      },
    });
    await cluster.env.advance(15_000);
    cluster.rollTo('app:2');
    await cluster.env.advance(20_000);
    const gone = cluster.env.requests.filter(({ site }) => site === 'act.deletePod').map(({ pathname }) => pathname);
    expect(gone.length).toBeGreaterThan(0);
    // The zone that lacks a pod is the one that may go on.
    expect(gone.filter((path) => !path.includes('ingester-zone-b-'))).toEqual([]);
    isStalled = false;
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
  });

  it('ends at once if the ledger cannot be written for a while, and the requested pause is respected', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    let isBusy = false;
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) =>
      isBusy && request.method !== 'GET' && request.pathname.includes('/configmaps')
        ? { status: 429, headers: { 'retry-after': '60' } }
        : serve(request),
    );
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    isBusy = true;
    const turns = process.reports.length;
    const before = cluster.env.requests.length;
    cluster.rollTo('app:2');
    await cluster.env.advance(50_000);
    const writes = () => cluster.env.requests.slice(before).filter(({ method, path }) => method !== 'GET' && path.includes('/configmaps'));
    expect(writes()).toHaveLength(1);
    expect(process.reports.slice(turns).map(({ error }) => error)).toContain('the API server answered 429');
    isBusy = false;
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
  });

  it('counts a run as not started if its first replacement was denied', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.api.forbid('delete pods');
    cluster.rollTo('app:2');
    await cluster.env.advance(60_000);
    const refused = process.reports.findLast(({ performed }) => performed.length > 0);
    expect(refused?.performed.map(({ result }) => result)).toEqual(['refused']);
    expect(refused?.ledger).toMatchObject({ claims: [], run: { outcome: 'running' } });
    expect(refused?.ledger?.run).not.toHaveProperty('lastDisruptionMs');
    cluster.api.permit('delete pods');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(cluster.deletedPods()).toHaveLength(9);
  });

  it('reports a denied permission as a block until the permission is granted', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.rollTo('app:2');
    await cluster.env.until(() => cluster.deletedPods().length > 0, 60_000);
    cluster.api.forbid('delete pods');
    const blocks = () =>
      process.reports
        .at(-1)
        ?.decision?.waits.flatMap(({ rule, outcome, fact }) => (rule === 'agent-access' ? [`${outcome}: ${fact}`] : []));
    await cluster.env.until(() => blocks()?.length === 1, 600_000);
    expect(blocks()).toEqual([expect.stringMatching(/^no: \S+ may not delete pods in mimir: no pod is replaced by deletion$/)]);
    const since = process.reports.length;
    await cluster.env.advance(300_000);
    const later = process.reports.slice(since).map(({ decision }) => decision?.outcome);
    expect([later.length > 3, new Set(later)]).toEqual([true, new Set(['blocked'])]);
    cluster.api.permit('delete pods');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(blocks()).toEqual([]);
  });

  it('retries forbidden requests less and less often in every case, and reports them once', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.api.forbid('delete pods');
    cluster.rollTo('app:2');
    for (let second = 0; second < 120; second += 1) {
      cluster.api.change('pods', 'mimir', 'ingester-zone-a-0', { metadata: { annotations: { noise: `${second}` } } });
      await cluster.env.advance(1000);
    }
    const asked = cluster.env.requests.filter(({ site }) => site === 'act.deletePod').length;
    expect(asked).toBeGreaterThan(3);
    expect(asked).toBeLessThan(8);
    expect(process.logs.filter((line) => line.includes('rejects a write'))).toHaveLength(1);
    cluster.api.permit('delete pods');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
  });

  it.each([
    ['503', { status: 503 }],
    ['no answer', { lost: 'before-apply', forever: true }],
  ] as const)('with a delete that gets %s doubles the pause before the next, although each delete is revoked', async (_, answer) => {
    const cluster = newCluster();
    nativeGroup(cluster);
    const { serve } = cluster.api;
    let isBroken = true;
    const times: number[] = [];
    cluster.env.replaceServer((request) => {
      if (request.site !== 'act.deletePod') return serve(request);
      times.push(request.sentAtMs);
      return isBroken ? answer : serve(request);
    });
    startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.rollTo('app:2');
    await cluster.env.until(() => times.length === 8, 600_000);
    const pauses = times.slice(1).map((time, index) => (time - (times[index] ?? 0)) / 1000);
    // The first pause is half a second to a second. It doubles until a minute, with a random part of a half.
    expect(pauses.map((pause, index) => pause >= 0.5 * Math.min(60, 2 ** index))).toEqual(Array(7).fill(true));
    expect(cluster.env.requests.filter(({ site }) => site === 'revoke.touchPod').length).toBeGreaterThanOrEqual(7);
    isBroken = false;
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
  });

  it('without a readable source is followed by one with it, although the watch reports no further event', async () => {
    const cluster = newCluster();
    let isBusy = false;
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) => (isBusy && request.site === 'sources.read' ? { status: 429 } : serve(request)));
    mirroringGroup(cluster);
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(30_000);
    isBusy = true;
    cluster.api.change(template, 'mimir', 'store', { spec: { replicas: 4 } });
    await cluster.env.advance(5000);
    isBusy = false;
    expect(process.reports.at(-1)?.decision?.waits.map(({ rule }) => rule)).toContain('replica-source');
    await cluster.env.advance(60_000);
    expect(sizes(cluster)).toEqual([4, 4, 4]);
    // A source that was read and is followed is read again only in the turns of an idle group, every five minutes.
    const reads = cluster.env.requests.filter(({ site }) => site === 'sources.read').length;
    await cluster.env.advance(600_000);
    expect(cluster.env.requests.filter(({ site }) => site === 'sources.read')).toHaveLength(reads + 2);
  });

  it('makes no decision after a stall in which the Lease expired, so it does not overwrite the decision of the next leader', async () => {
    const cluster = newCluster();
    let isSlow = false;
    const { serve } = cluster.api;
    cluster.env.replaceServer(async (request) => {
      const answer = await serve(request);
      return isSlow && request.site === 'sources.read' && 'status' in answer ? { ...answer, delayMs: 1000 } : answer;
    });
    mirroringGroup(cluster);
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(30_000);
    isSlow = true;
    const before = process.reports.length;
    cluster.api.change(template, 'mimir', 'store', { spec: { replicas: 4 } });
    await cluster.env.advance(100);
    await cluster.env.stall(20_000);
    const [first] = process.reports.slice(before);
    expect(first?.error).toBe('the Lease was not renewed in time; another process may lead');
    expect(first).not.toHaveProperty('decision');
    await cluster.env.advance(60_000);
    expect(sizes(cluster)).toEqual([4, 4, 4]);
  });

  it('does not report its decision if the read after the decision fails', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    let isStalled = false;
    const { serve } = cluster.api;
    cluster.env.replaceServer(async (request) => {
      if (isStalled && request.isStream && request.pathname.endsWith('/pods')) return { watch: new VirtualWatch() };
      const answer = await serve(request);
      return isStalled && request.site === 'fresh.pods' && 'status' in answer ? { ...answer, status: 503 } : answer;
    });
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    isStalled = true;
    cluster.api.cutWatches();
    await cluster.env.advance(30_000);
    const before = process.reports.length;
    cluster.rollTo('app:2');
    await cluster.env.until(() => process.reports.slice(before).some(({ error }) => error !== undefined));
    expect(process.reports.find(({ error }) => error !== undefined)).not.toHaveProperty('decision');
    isStalled = false;
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    for (const { decision, snapshot, group } of process.reports) {
      if (decision !== undefined) expect(decideGroup(snapshot, group)).toEqual(decision);
    }
  });

  it('that may not act for a moment is followed by one that may', async () => {
    const cluster = newCluster();
    mirroringGroup(cluster);
    const process = startProcess({ env: cluster.env });
    await cluster.env.until(() => process.reports.length > 0);
    await cluster.env.advance(30_000);
    // The Lease is not believed until it is renewed.
    cluster.env.jumpWallClock(60_000);
    cluster.api.change(template, 'mimir', 'store', { spec: { replicas: 4 } });
    await cluster.env.advance(20_000);
    expect(sizes(cluster)).toEqual([4, 4, 4]);
  });

  it('records the time of a scale-down that arrived late, although its retry met a conflict', async () => {
    const cluster = newCluster();
    cluster.api.put(template, { metadata: { name: 'store', namespace: 'mimir' }, spec: { replicas: 3 }, status: { replicas: 3 } });
    const mirror = { from: { apiVersion: 'rollout-operator.grafana.com/v1', kind: 'ReplicaTemplate', name: 'store', read: 'scale' } };
    nativeGroup(cluster, { replicas: { mirror }, scaling: { down: { betweenZones: '10m' } } });
    const { serve } = cluster.api;
    let late: Parameters<typeof serve>[0] | undefined;
    cluster.env.replaceServer(async (request) => {
      if (request.site !== 'act.scaleStatefulSet') return serve(request);
      if (late === undefined) {
        late = request;
        return { lost: 'reply', forever: true };
      }
      if (sizes(cluster).every((size) => size === 3)) await serve(late);
      return serve(request);
    });
    startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.api.change(template, 'mimir', 'store', { spec: { replicas: 2 } });
    await cluster.env.advance(300_000);
    expect([...sizes(cluster)].sort()).toEqual([2, 3, 3]);
    await cluster.env.until(() => sizes(cluster).every((size) => size === 2), 3_600_000);
  });

  it('claims nothing from a snapshot before a slow read', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    const { serve } = cluster.api;
    let isSlow = true;
    cluster.env.replaceServer(async (request) => {
      const answer = await serve(request);
      return isSlow && request.site === 'fresh.pods' && 'status' in answer ? { ...answer, delayMs: 4000 } : answer;
    });
    await cluster.env.advance(60_000);
    cluster.rollTo('app:2');
    await cluster.env.advance(1000);
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(60_000);
    expect(process.reports.map(({ error }) => error)).toContain('the API server is slow: the objects were read more than 10 s ago');
    expect(process.reports.flatMap(({ ledger }) => ledger?.claims ?? [])).toEqual([]);
    isSlow = false;
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
  });

  it('sends the actions that need no fresh snapshot while reads are slow', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const { serve } = cluster.api;
    cluster.env.replaceServer(async (request) => {
      const answer = await serve(request);
      return request.site === 'fresh.pods' && 'status' in answer ? { ...answer, delayMs: 4000 } : answer;
    });
    await cluster.env.advance(60_000);
    cluster.rollTo('app:2');
    for (const ordinal of [0, 1, 2]) cluster.api.remove('pods', 'mimir', `ingester-zone-a-${ordinal}`);
    await cluster.env.advance(60_000);
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(60_000);
    expect(process.reports.map(({ error }) => error)).toContain('the API server is slow: the objects were read more than 10 s ago');
    expect(process.reports.flatMap(({ performed }) => performed.map(({ action, result }) => [action.kind, result]))).toEqual([
      ['advanceCurrentRevision', 'done'],
    ]);
    expect(cluster.deletedPods()).toEqual([]);
  });
});
