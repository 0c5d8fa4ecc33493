import { describe, expect, it } from 'vitest';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, type Cluster, nativeGroup, newCluster, rolled } from '../kit/cluster.ts';
import type { VirtualEnv } from '../kit/virtual-env.ts';
import { gatedGroup, type MetricServer, metricServer, scalar, type Told, text, value, vector } from './gate-kit.ts';

interface World {
  readonly cluster: Cluster;
  readonly env: VirtualEnv;
  readonly metrics: MetricServer;
}

function world(gate: Readonly<Record<string, unknown>> = {}): World {
  const cluster = newCluster();
  gatedGroup(cluster, gate);
  return { cluster, env: cluster.env, metrics: metricServer(cluster.env) };
}

/** Rolls zone a and lets some time pass, in which the first reading comes. */
async function rollFirstZone({ cluster, env }: World): Promise<void> {
  await env.advance(5_000);
  cluster.rollTo('app:2');
  await env.until(() => cluster.deletedPods().length === 3, 120_000);
  await env.advance(10_000);
}

function leaseWrites({ requests }: VirtualEnv): readonly number[] {
  return requests.filter(({ method, path }) => method === 'PUT' && path.includes('/leases/')).map(({ sentAtMs }) => sentAtMs);
}

describe('a gate that enforces', () => {
  it('passes after the required number of good readings, one in each period, and is read only in its time', async () => {
    const given = world();
    const { cluster, env, metrics } = given;
    const process = startProcess({ env, gates: metrics.gates });
    await env.advance(60_000);
    expect(metrics.asked).toEqual([]);

    cluster.rollTo('app:2');
    await env.until(() => cluster.deletedPods().length === 4, 300_000);
    expect(metrics.asked).toHaveLength(3);
    const [first, second, third] = metrics.asked;
    expect(first).toEqual({
      namespace: 'mimir',
      source: 'prod',
      query: 'sum(rate(errors_total[1m]))',
      everyMs: 10_000,
      timeoutMs: 10_000,
      site: 'gate.read',
      sentAtMs: expect.any(Number),
    });
    expect([second, third].map((one) => (one?.sentAtMs ?? 0) - (first?.sentAtMs ?? 0))).toEqual([10_000, 20_000]);

    await env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
    await env.advance(60_000);
    const [questions, writes] = [metrics.asked.length, cluster.writes().length];
    await env.advance(600_000);
    expect(metrics.asked).toHaveLength(questions);
    expect(questions).toBe(3);
    expect(cluster.writes()).toHaveLength(writes);
    await process.agent.stop();
  });

  const unauthorized: Told = { status: 401, body: 'Unauthorized' };
  it.each<[string, (env: VirtualEnv) => Told, string]>([
    ['above its limit', (env) => value(env, '1.5'), 'errors is 1.5'],
    ['empty', () => vector([]), 'errors has no data'],
    ['NaN', (env) => value(env, 'NaN'), 'errors is NaN'],
    ['infinite', (env) => value(env, '-Inf'), 'errors is -Inf'],
    ['infinite the other way', (env) => value(env, '+Inf'), 'errors is +Inf'],
    ['a scalar that is too much', (env) => scalar(env, '3'), 'errors is 3'],
    ['a string', (env) => text(env, '0'), 'answers with a string'],
    ['an error with status 200', () => ({ status: 200, body: '{"status":"error","errorType":"execution","error":"x"}' }), 'execution'],
    ['of the past', (env) => value(env, '0', { ageMs: 600_000 }), 'the sample is 10m old'],
    ['partial', (env) => value(env, '0', { warnings: ['a store is missing'] }), 'may be partial'],
    [
      'of several series',
      () =>
        vector([
          { metric: { pod: 'a' }, value: [1, '0'] },
          { metric: { pod: 'b' }, value: [1, '0'] },
        ]),
      '2 series',
    ],
    ['a refusal', () => unauthorized, 'HTTP 401'],
    ['an error', () => ({ status: 503, body: '{"status":"error","errorType":"timeout","error":"x"}' }), 'HTTP 503: timeout'],
    ['a page', () => ({ status: 200, body: '<html>' }), 'the answer is not JSON'],
    ['a failure of the network', () => new Error('the connection was reset'), 'the connection was reset'],
    ['silence', () => 'hang', 'could not be read'],
  ])('blocks while the answer is %s, and continues on a good one', async (_what, tell, fact) => {
    const given = world();
    const { cluster, env, metrics } = given;
    metrics.tell = () => tell(env);
    const process = startProcess({ env, gates: metrics.gates });
    await rollFirstZone(given);
    await env.advance(300_000);
    expect(cluster.deletedPods()).toHaveLength(3);
    const held = process.reports.at(-1)?.decision;
    expect(held?.waits.map(({ rule }) => rule)).toContain('gate');
    expect(held?.waits.find(({ rule }) => rule === 'gate')?.fact).toContain(fact);
    // Each has been asked after the one before it was over.
    expect(metrics.asked.length).toBeGreaterThanOrEqual(28);
    expect(metrics.asked.length).toBeLessThanOrEqual(33);
    expect(metrics.openCount()).toBeLessThanOrEqual(1);

    metrics.tell = () => value(env, '0');
    await env.until(() => cluster.deletedPods().length === 4, 60_000);
    await env.until(() => rolled(cluster, 'app:2'), 600_000);
  });

  it('counts an answer that a cache repeats once', async () => {
    const given = world();
    const { cluster, env, metrics } = given;
    let told: Told | undefined;
    metrics.tell = () => {
      told ??= value(env, '0');
      return told;
    };
    const process = startProcess({ env, gates: metrics.gates });
    await rollFirstZone(given);
    await env.advance(25_000);
    expect(metrics.asked.length).toBeGreaterThanOrEqual(3);
    expect(process.reports.at(-1)?.decision?.waits.find(({ rule }) => rule === 'gate')?.fact).toContain('repeats the previous sample');
    await env.advance(120_000);
    expect(cluster.deletedPods()).toHaveLength(3);
  });

  it('is queried with the current source of the policy files', async () => {
    const given = world({ consecutive: 100 });
    const { cluster, env, metrics } = given;
    const source = (url: string, namespace = 'mimir'): string =>
      `apiVersion: rollout-group.dev/v1alpha1\nkind: MetricSource\nmetadata: { name: prod, namespace: ${namespace} }\nspec: { prometheus: { url: "${url}" }, usableFrom: { namespaces: [mimir] } }\n`;
    let text = source('http://one');
    let changed = (): void => undefined;
    const policyDirectory = {
      read: async () => [{ name: 'sources.yaml', text }],
      watch: (onChange: () => void) => {
        changed = onChange;
        return () => undefined;
      },
    };
    startProcess({ env, gates: metrics.gates, policyDirectory });
    await rollFirstZone(given);
    expect(metrics.asked.at(-1)?.written).toMatchObject({ name: 'prod', prometheus: { url: 'http://one' }, minIntervalMs: 15_000 });
    text = source('http://two');
    changed();
    await env.advance(15_000);
    expect(metrics.asked.at(-1)?.written).toMatchObject({ prometheus: { url: 'http://two' } });
    // Of another namespace than the agent's: nobody's.
    text = source('http://three', 'loki');
    changed();
    await env.advance(15_000);
    expect(metrics.asked.at(-1)?.written).toBeUndefined();
    expect(cluster.deletedPods()).toHaveLength(3);
  });

  it('starts a new series of successes after a failed reading', async () => {
    const given = world();
    const { cluster, env, metrics } = given;
    let count = 0;
    // good, good, bad, good, good, bad, ...
    metrics.tell = () => {
      count += 1;
      return value(env, count % 3 === 0 ? '1.5' : '0');
    };
    const process = startProcess({ env, gates: metrics.gates });
    await rollFirstZone(given);
    await env.advance(300_000);
    expect(cluster.deletedPods()).toHaveLength(3);
    expect(process.reports.at(-1)?.decision?.phase).toBe('Waiting');
  });

  it('fails the run at its failure limit, however long the time between the failures, and is then not read again', async () => {
    const given = world({ consecutive: 5, failureLimit: 4 });
    const { cluster, env, metrics } = given;
    let count = 0;
    metrics.tell = () => {
      count += 1;
      return value(env, count % 5 === 0 ? '1.5' : '0');
    };
    const process = startProcess({ env, gates: metrics.gates });
    await rollFirstZone(given);
    await env.until(() => process.reports.at(-1)?.decision?.phase === 'Failed', 300_000);
    expect(count).toBe(20);
    await env.advance(600_000);
    expect(count).toBeLessThanOrEqual(21);
    expect(cluster.deletedPods()).toHaveLength(3);
  });

  it.each<[string, Readonly<Record<string, unknown>>, (env: VirtualEnv) => Told]>([
    ['a value', {}, (env) => value(env, '1.5')],
    ['a scalar', {}, (env) => scalar(env, '1.5')],
    ['nothing', { noData: 'fail' }, () => vector([])],
    ['NaN', { noData: 'fail' }, (env) => value(env, 'NaN')],
    ['an error', { onError: 'fail' }, () => ({ status: 503, body: '' })],
    ['silence', { onError: 'fail' }, () => 'hang'],
  ])('that turns bad while its wave soaks stops the run within its period: %s', async (_what, gate, bad) => {
    const cluster = newCluster();
    gatedGroup(cluster, { failureLimit: 1, ...gate }, { soak: '10m' });
    const given = { cluster, env: cluster.env, metrics: metricServer(cluster.env) };
    const { env, metrics } = given;
    const process = startProcess({ env, gates: metrics.gates });
    await rollFirstZone(given);
    await env.advance(120_000);
    expect(process.reports.at(-1)?.decision?.phase).not.toBe('Failed');
    metrics.tell = () => bad(env);
    // Its period, and the longest that a question may take.
    await env.advance(20_500);
    expect(process.reports.at(-1)?.decision?.phase).toBe('Failed');
    metrics.tell = () => value(env, '0');
    await env.advance(1_200_000);
    expect(cluster.deletedPods()).toHaveLength(3);
    expect(process.reports.at(-1)?.decision?.phase).toBe('Failed');
  });

  it('blocks without a port for metrics, and the group makes no requests', async () => {
    const given = world();
    const { cluster, env } = given;
    const process = startProcess({ env });
    await rollFirstZone(given);
    await env.advance(60_000);
    const [writes, turns] = [cluster.writes().length, process.reports.length];
    await env.advance(600_000);
    expect(cluster.deletedPods()).toHaveLength(3);
    expect(process.reports.at(-1)?.decision?.waits.map(({ fact }) => fact)).toContain('errors has no reading yet');
    expect(cluster.writes()).toHaveLength(writes);
    expect(process.reports.length - turns).toBeLessThanOrEqual(2);
  });
});

describe('a metric server that hangs', () => {
  it('delays neither the Lease nor another group', async () => {
    const given = world();
    const { cluster, env, metrics } = given;
    const others = ['store-zone-a', 'store-zone-b'];
    for (const name of others) cluster.workloads.create({ name, labels: { 'rollout-group': 'store' } });
    metrics.tell = () => 'hang';
    const process = startProcess({ env, gates: metrics.gates });
    await rollFirstZone(given);
    expect(metrics.asked.length).toBeGreaterThan(0);

    const began = env.clock.monotonicMs();
    for (const name of others) cluster.workloads.setImage(name, 'app:2');
    const isRolled = (): boolean => cluster.workloads.images().every((line) => !line.startsWith('store') || line.endsWith('app:2'));
    await env.until(isRolled, 120_000);
    const reactions = process.reports.filter(({ group }) => group.name === 'store').flatMap(({ reactionMs }) => reactionMs ?? []);
    expect(reactions.length).toBeGreaterThan(0);
    expect(Math.max(...reactions)).toBeLessThan(100);
    await env.advance(120_000);
    const renewals = leaseWrites(env).filter((atMs) => atMs >= began);
    const gaps = renewals.slice(1).map((atMs, index) => atMs - (renewals[index] ?? 0));
    expect(gaps.length).toBeGreaterThan(50);
    expect(Math.max(...gaps)).toBeLessThan(2_500);
    // No turn of the gated group waited for an answer.
    expect(Math.max(...process.reports.map(({ durationMs }) => durationMs))).toBeLessThan(1_000);
  });

  it('with an endless query gets no second query, and the group is blocked', async () => {
    const given = world();
    const { cluster, env } = given;
    let asked = 0;
    const process = startProcess({
      env,
      gates: () => {
        asked += 1;
        return new Promise(() => undefined);
      },
    });
    await rollFirstZone(given);
    await env.advance(300_000);
    expect(asked).toBe(1);
    expect(cluster.deletedPods()).toHaveLength(3);
    expect(process.reports.at(-1)?.decision?.waits.find(({ rule }) => rule === 'gate')?.outcome).toBe('unknown');
    await process.agent.stop();
  });
});

describe('a new leader', () => {
  it('starts a new series of successes', async () => {
    const given = world({ consecutive: 6 });
    const { cluster, env, metrics } = given;
    const first = startProcess({ env, name: 'agent-1', gates: metrics.gates });
    await rollFirstZone(given);
    const second = startProcess({ env, name: 'agent-2', gates: metrics.gates });
    await env.until(() => metrics.asked.length === 5, 120_000);
    first.crash();
    await env.until(() => metrics.asked.length === 10, 120_000);
    await env.advance(5_000);
    expect(cluster.deletedPods()).toHaveLength(3);
    expect(second.reports.at(-1)?.decision?.waits.find(({ rule }) => rule === 'gate')?.fact).toContain('5 of 6');
    await env.until(() => cluster.deletedPods().length === 4, 60_000);
    expect(metrics.asked).toHaveLength(11);
  });

  it('starts a new series of successes even in the same process', async () => {
    const given = world({ consecutive: 6 });
    const { cluster, env, metrics } = given;
    let isCut = false;
    const process = startProcess({
      env,
      gates: metrics.gates,
      fault: (site, moment) => (isCut && site.startsWith('lease.') && moment === 'beforeSend' ? 'lose' : undefined),
    });
    await rollFirstZone(given);
    await env.until(() => metrics.asked.length === 4, 120_000);
    isCut = true;
    await env.until(() => process.logs.some((line) => line.includes('leadership lost')), 60_000);
    const before = metrics.asked.length;
    expect(before).toBeLessThan(6);
    isCut = false;
    await env.until(() => cluster.deletedPods().length === 4, 180_000);
    expect(metrics.asked).toHaveLength(before + 6);
  });

  it('is the only reader: an agent without the Lease stops reading', async () => {
    const given = world({ consecutive: 100 });
    const { env, metrics } = given;
    let isCut = false;
    const byFirst: number[] = [];
    startProcess({
      env,
      name: 'agent-1',
      gates: (query) => {
        byFirst.push(env.clock.monotonicMs());
        return metrics.gates(query);
      },
      fault: (site, moment) => (isCut && site.startsWith('lease.') && moment === 'beforeSend' ? 'lose' : undefined),
    });
    await rollFirstZone(given);
    const second = startProcess({ env, name: 'agent-2', gates: metrics.gates });
    await env.advance(30_000);
    expect(metrics.asked).toHaveLength(byFirst.length);
    isCut = true;
    await env.advance(40_000);
    const before = byFirst.length;
    await env.advance(120_000);
    expect(byFirst).toHaveLength(before);
    expect(metrics.asked.length - byFirst.length).toBeGreaterThanOrEqual(11);
    expect(second.reports.at(-1)?.decision?.phase).toBe('Waiting');
  });
});

describe('gates without a wave that waits for them', () => {
  it('are not read: groups without gates, gates of other providers, and groups without a rollout', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const metrics = metricServer(cluster.env);
    const process = startProcess({ env: cluster.env, gates: metrics.gates });
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    await process.agent.stop();

    const other = newCluster();
    const gates = [{ name: 'service', consul: { source: 'consul', service: 'ingester', passing: 3 } }];
    const waves = [{ name: 'first', zones: ['a', 'b', 'c'], percent: 100, before: { gates: ['service'] } }];
    nativeGroup(other, { gates, rollout: { strategy: 'onDelete', rotateBy: 'delete', waves } });
    const otherProcess = startProcess({ env: other.env, gates: metrics.gates });
    await other.env.advance(5_000);
    other.rollTo('app:2');
    await other.env.advance(300_000);
    expect(otherProcess.reports.at(-1)?.decision?.wantedReadings.map(({ gate }) => gate)).toEqual(['service']);
    expect(other.deletedPods()).toEqual([]);
    expect(metrics.asked).toEqual([]);
  });
});
