import { describe, expect, it } from 'vitest';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, type Cluster, nativeGroup, newCluster, rolled, sets } from '../kit/cluster.ts';
import { type Served, type ServedRequest, status } from '../kit/virtual-env.ts';

const template = 'replicatemplates.rollout-operator.grafana.com';
const denial = 'admission webhook "prepare-downscale-mimir.grafana.com" denied the request: the last downscale was 5m ago';

/** Zones that mirror the replicas of a ReplicaTemplate. */
function mirroringGroup(cluster: Cluster, replicas: number): void {
  const annotations = {
    'grafana.com/rollout-mirror-replicas-from-resource-name': 'store',
    'grafana.com/rollout-mirror-replicas-from-resource-kind': 'ReplicaTemplate',
    'grafana.com/rollout-mirror-replicas-from-resource-api-version': 'rollout-operator.grafana.com/v1',
  };
  cluster.api.put(template, { metadata: { name: 'store', namespace: 'mimir' }, spec: { replicas }, status: { replicas } });
  adoptedGroup(cluster, { annotations, replicas });
}

function sizes({ api }: Cluster): Readonly<Record<string, number>> {
  return Object.fromEntries(
    api.list(sets, 'mimir').map(({ metadata, spec }) => [metadata.name.slice(-1), (spec as { readonly replicas: number }).replicas]),
  );
}

function isScale({ method, pathname, body = '' }: ServedRequest, zone = ''): boolean {
  return method === 'PATCH' && pathname.endsWith(`ingester-zone-${zone || pathname.slice(-1)}`) && /"replicas"/.test(body);
}

/** Answers every change of the replicas of a zone, or of all zones, with `answer` while it is not undefined. */
function rejectScale(cluster: Cluster, zone: string, answer: () => Served | undefined) {
  const { serve } = cluster.api;
  cluster.env.replaceServer((request) => (isScale(request, zone) ? answer() : undefined) ?? serve(request));
  return { attempts: () => cluster.env.requests.filter((request) => isScale(request, zone)).length };
}

const answers: readonly (readonly [name: string, answer: Served])[] = [
  ['400 of a webhook', status(400, '', denial)],
  ['403 of a quota', status(403, 'Forbidden', 'statefulsets.apps "ingester-zone-b" is forbidden: exceeded quota: compute')],
  ['409 of a webhook', status(409, 'Conflict', denial)],
  ['409 at every attempt', status(409, 'Conflict', 'Operation cannot be fulfilled on statefulsets.apps "ingester-zone-b"')],
  ['422', status(422, 'Invalid', 'StatefulSet.apps "ingester-zone-b" is invalid')],
  ['429 of a webhook', status(429, 'TooManyRequests', denial)],
  ['500 of a webhook', status(500, 'InternalError', denial)],
  ['500 because a webhook does not answer', status(500, 'InternalError', 'Internal error occurred: failed calling webhook "x": timeout')],
  ['503', status(503, 'ServiceUnavailable')],
  ['a failed connection', { lost: 'before-apply' }],
  ['no answer', { lost: 'before-apply', forever: true }],
];

describe('a change of replicas that the API server rejects', () => {
  it.each(answers)('with %s stops neither the rollout nor the other zones', async (_, answer) => {
    const cluster = newCluster();
    mirroringGroup(cluster, 4);
    const refused = rejectScale(cluster, 'b', () => answer);
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.api.change(template, 'mimir', 'store', { spec: { replicas: 3 } });
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 1_800_000);
    expect(sizes(cluster)).toEqual({ a: 3, b: 4, c: 3 });
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
    expect(refused.attempts()).toBeGreaterThan(2);
    expect(process.reports.at(-1)?.decision?.waits[0]).toMatchObject({ rule: 'write-accepted', outcome: 'wait' });
  });

  it('is repeated with growing pauses, also while other objects change', async () => {
    const cluster = newCluster();
    mirroringGroup(cluster, 4);
    let isRejected = true;
    const refused = rejectScale(cluster, 'b', () => (isRejected ? status(400, '', denial) : undefined));
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.api.change(template, 'mimir', 'store', { spec: { replicas: 3 } });
    const times: number[] = [];
    for (let second = 0; second < 300; second += 1) {
      cluster.api.change('pods', 'mimir', 'ingester-zone-a-0', { metadata: { annotations: { noise: `${second}` } } });
      await cluster.env.advance(1000);
      if (refused.attempts() > times.length) times.push(second);
    }
    expect(times.slice(1).map((time, index) => time - (times[index] ?? 0))).toEqual([5, 10, 20, 40, 60, 60, 60]);
    expect(process.logs.filter((line) => line.includes('rejects a write'))).toHaveLength(1);
    isRejected = false;
    await cluster.env.until(() => sizes(cluster)['b'] === 3, 61_000);
  });

  it('is repeated soon if the object was changed twice in a row, as by the StatefulSet controller', async () => {
    const cluster = newCluster();
    mirroringGroup(cluster, 4);
    const conflict = status(409, 'Conflict', 'Operation cannot be fulfilled on statefulsets.apps "ingester-zone-b"');
    const refused = rejectScale(cluster, 'b', () => (refused.attempts() <= 2 ? conflict : undefined));
    startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.api.change(template, 'mimir', 'store', { spec: { replicas: 3 } });
    await cluster.env.advance(1000);
    expect([refused.attempts(), sizes(cluster)['b']]).toEqual([3, 3]);
  });

  it('is not repeated before the time in the answer of the API server', async () => {
    const cluster = newCluster();
    mirroringGroup(cluster, 4);
    const headers = { 'retry-after': '45' };
    const refused = rejectScale(cluster, 'b', () => ({ status: 429, headers }));
    startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.api.change(template, 'mimir', 'store', { spec: { replicas: 3 } });
    await cluster.env.advance(44_000);
    expect(refused.attempts()).toBe(1);
    await cluster.env.advance(3000);
    expect(refused.attempts()).toBe(2);
  });

  it('to one number does not delay another number', async () => {
    const cluster = newCluster();
    mirroringGroup(cluster, 4);
    rejectScale(cluster, 'b', () => (cluster.env.requests.at(-1)?.body?.includes('"replicas":3') ? status(422, 'Invalid') : undefined));
    startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.api.change(template, 'mimir', 'store', { spec: { replicas: 3 } });
    await cluster.env.advance(60_000);
    expect(sizes(cluster)).toEqual({ a: 3, b: 4, c: 3 });
    cluster.api.change(template, 'mimir', 'store', { spec: { replicas: 5 } });
    await cluster.env.advance(4000);
    expect(sizes(cluster)).toEqual({ a: 5, b: 5, c: 5 });
  });

  it('leaves the status of the mirrored object as it is', async () => {
    const cluster = newCluster();
    mirroringGroup(cluster, 4);
    const refused = rejectScale(cluster, '', () => status(400, '', denial));
    startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.api.change(template, 'mimir', 'store', { spec: { replicas: 3 } });
    await cluster.env.advance(120_000);
    expect(refused.attempts()).toBeGreaterThan(6);
    expect(cluster.env.requests.filter(({ pathname }) => pathname.endsWith('/store/status'))).toEqual([]);
  });

  it('keeps its claim and its wait if it may have been applied', async () => {
    const cluster = newCluster();
    nativeGroup(cluster, { replicas: { count: 3 }, scaling: { duringRollout: 'allow' } }, { replicas: 4 });
    const refused = rejectScale(cluster, 'a', () => status(503, 'ServiceUnavailable'));
    const process = startProcess({ env: cluster.env });
    await cluster.env.until(() => refused.attempts() > 0, 60_000);
    cluster.rollTo('app:2');
    await cluster.env.advance(30_000);
    const report = process.reports.at(-1);
    expect(report?.ledger?.claims).toMatchObject([{ verb: 'scaleDown', zone: 'a', to: 3 }]);
    expect(report?.decision?.waits.map(({ rule }) => rule)).toContain('replica-write-in-flight');
    expect(cluster.deletedPods()).toEqual([]);
  });

  it('keeps the claim of a request without an answer for two minutes, although each retry is rejected', async () => {
    const cluster = newCluster();
    nativeGroup(cluster, { replicas: { count: 3 } }, { replicas: 4 });
    const answers: Served[] = [{ lost: 'before-apply', forever: true }];
    const refused = rejectScale(cluster, 'a', () => answers.shift() ?? status(403, 'Forbidden', 'exceeded quota'));
    const process = startProcess({ env: cluster.env });
    await cluster.env.until(() => refused.attempts() > 0, 60_000);
    await cluster.env.advance(100_000);
    expect(process.reports.at(-1)?.ledger?.claims).toMatchObject([{ verb: 'scaleDown', zone: 'a', to: 3 }]);
    await cluster.env.advance(60_000);
    expect(refused.attempts()).toBeGreaterThan(4);
    expect(process.reports.at(-1)?.ledger?.claims).toEqual([]);
    expect(sizes(cluster)).toEqual({ a: 4, b: 3, c: 3 });
  });
});
