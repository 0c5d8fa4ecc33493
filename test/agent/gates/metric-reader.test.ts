import { describe, expect, it } from 'vitest';
import { MetricReader } from '../../../agent/gates/metric-reader.ts';
import type { PolicyDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { policy, policyRule } from '../../kit/questions.ts';
import { type VirtualEnv, virtualEnv } from '../../kit/virtual-env.ts';
import { type MetricServer, metricServer, value, vector } from '../gate-kit.ts';

interface World {
  readonly env: VirtualEnv;
  readonly metrics: MetricServer;
  readonly reader: MetricReader;
  readonly woken: readonly (readonly string[])[];
  readonly leading: { is: boolean };
}

function world(): World {
  const env = virtualEnv();
  const metrics = metricServer(env);
  const woken: (readonly string[])[] = [];
  const leading = { is: true };
  const reader = new MetricReader({
    env: {
      clock: env.clock,
      timers: env.timers,
      gates: { query: metrics.gates, health: () => Promise.reject(new Error('no Consul listens')) },
    },
    agentNamespace: 'rollout-group',
    written: () => undefined,
    isLeading: () => leading.is,
    onReading: (keys) => woken.push(keys),
  });
  return { env, metrics, reader, woken, leading };
}

const busy = { '>': [{ var: 'inputs.metrics.queue' }, 100] };
const queue = { source: 'prod', query: 'max(queue)', noData: 'unknown', maxAgeMs: 120_000 } as const;

function reading(overrides: Partial<PolicyDefinition> = {}): PolicyDefinition {
  return policy({ metrics: { queue }, rules: [policyRule({ when: busy })], ...overrides });
}

const ingester = group();
const name = { namespace: 'mimir', policy: 'safety', input: 'queue' };

describe('the reader of metric inputs', () => {
  it('queries four times within the maximum age of a reading, wakes the groups each time and keeps the last reading', async () => {
    const { env, metrics, reader, woken } = world();
    const store = group({ name: 'store' });
    reader.follow([ingester, store, group({ name: 'other', namespace: 'loki' })], [reading()]);
    await env.advance(90_100);
    expect(metrics.asked.map(({ sentAtMs }) => sentAtMs - (metrics.asked[0]?.sentAtMs ?? 0))).toEqual([0, 30_000, 60_000, 90_000]);
    expect(metrics.asked[0]).toMatchObject({
      namespace: 'mimir',
      source: 'prod',
      query: 'max(queue)',
      everyMs: 30_000,
      timeoutMs: 10_000,
      site: 'metric.read',
    });
    expect(woken).toEqual(Array.from({ length: 4 }, () => ['mimir/ingester', 'mimir/store']));
    expect(reader.readings()).toEqual([{ ...name, value: 0, atMs: env.clock.nowMs() - 100 }]);
  });

  it('queries no metric without a rule that reads it, no policy without a group, and no metric while the process is not the leader', async () => {
    const { env, metrics, reader, leading } = world();
    reader.follow([ingester], [reading({ rules: [policyRule({ when: { '>': [{ var: 'target.replicas' }, 3] } })] })]);
    reader.follow([ingester], [reading({ targets: { groups: ['other'] } })]);
    leading.is = false;
    reader.follow([ingester], [reading()]);
    await env.advance(600_000);
    expect(metrics.asked).toEqual([]);
    expect(env.timerCount()).toBe(0);
  });

  it('queries metrics that only a message contains', async () => {
    const { env, metrics, reader } = world();
    reader.follow([ingester], [reading({ rules: [policyRule({ message: 'queue is ${inputs.metrics.queue}' })] })]);
    await env.advance(100);
    expect(metrics.asked).toHaveLength(1);
  });

  it('uses the namespace of the policy, also for groups of another namespace', async () => {
    const { env, metrics, reader, woken } = world();
    const ours = reading({ namespace: 'rollout-group', targets: { all: true, namespaces: ['mimir'] } });
    reader.follow([ingester], [ours]);
    await env.advance(100);
    expect(metrics.asked.map(({ namespace }) => namespace)).toEqual(['rollout-group']);
    expect(woken).toEqual([['mimir/ingester']]);
  });

  it('keeps the value and its age from before a failed query, with the reason of the failure', async () => {
    const { env, metrics, reader } = world();
    metrics.tell = () => value(env, '12');
    reader.follow([ingester], [reading()]);
    await env.advance(10_000);
    metrics.tell = () => new Error('the provider refuses connections');
    await env.advance(300_000);
    expect(reader.readings()).toEqual([
      { ...name, value: 12, atMs: env.clock.nowMs() - 310_000, problem: 'the provider refuses connections' },
    ]);
    metrics.tell = () => value(env, '13');
    await env.advance(30_000);
    expect(reader.readings()).toMatchObject([{ value: 13 }]);
    expect(reader.readings()[0]?.problem).toBeUndefined();
  });

  it('has the reason if no query has succeeded, and no value for text that is not a number', async () => {
    const { env, metrics, reader } = world();
    metrics.tell = () => new Error('the provider refuses connections');
    reader.follow([ingester], [reading()]);
    await env.advance(30_100);
    expect(reader.readings()).toMatchObject([{ value: { unknown: 'the provider refuses connections' }, atMs: env.clock.nowMs() - 100 }]);
    metrics.tell = () => value(env, 'NaN');
    await env.advance(30_000);
    expect(reader.readings()).toMatchObject([{ value: { unknown: 'the value is NaN' } }]);
    metrics.tell = () => vector([]);
    await env.advance(30_000);
    expect(reader.readings()).toMatchObject([{ value: { unknown: 'no data' } }]);
  });

  it('runs one query at a time for each input, and waits ten seconds for its result', async () => {
    const { env, metrics, reader } = world();
    metrics.tell = () => 'hang';
    reader.follow(
      [ingester],
      [reading({ metrics: { queue, lag: queue }, rules: [policyRule({ when: { and: [busy, { var: 'inputs.metrics.lag' }] } })] })],
    );
    await env.advance(5_000);
    expect(metrics.openCount()).toBe(2);
    // What is asked otherwise waits until the question before it is over.
    reader.follow([ingester], [reading({ metrics: { queue: { ...queue, query: 'min(queue)' } } })]);
    await env.advance(4_000);
    expect(metrics.openCount()).toBe(2);
    await env.advance(2_000);
    expect(metrics.asked.map(({ query }) => query)).toEqual(['max(queue)', 'max(queue)', 'min(queue)']);
  });

  it('drops the readings of a changed query, and keeps the readings of an unchanged one', async () => {
    const { env, metrics, reader } = world();
    reader.follow([ingester], [reading()]);
    await env.advance(100);
    reader.follow([ingester, group({ name: 'store' })], [reading({ rules: [policyRule({ name: 'other', when: busy })] })]);
    expect(reader.readings()).toHaveLength(1);
    await env.advance(20_000);
    expect(metrics.asked).toHaveLength(1);
    reader.follow([ingester], [reading({ metrics: { queue: { ...queue, query: 'min(queue)' } } })]);
    expect(reader.readings()).toEqual([]);
    reader.follow([ingester], []);
    expect(env.timerCount()).toBeLessThanOrEqual(2);
    await env.advance(60_000);
    expect(env.timerCount()).toBe(0);
  });

  it('continues if the wall clock is set back, and ignores readings from the future', async () => {
    const { env, metrics, reader } = world();
    reader.follow([ingester], [reading()]);
    await env.advance(100);
    env.jumpWallClock(-3_600_000);
    expect(reader.readings()).toEqual([]);
    await env.advance(30_000);
    expect(metrics.asked).toHaveLength(2);
    expect(reader.readings()).toHaveLength(1);
  });

  it('drops all readings on request, and stops for good at the end', async () => {
    const { env, metrics, reader } = world();
    reader.follow([ingester], [reading()]);
    await env.advance(100);
    reader.clear();
    expect([reader.readings(), env.timerCount()]).toEqual([[], 0]);
    reader.follow([ingester], [reading()]);
    await env.advance(100);
    expect(metrics.asked).toHaveLength(2);
    reader.stop();
    reader.follow([ingester], [reading()]);
    await env.advance(60_000);
    expect([metrics.asked.length, env.timerCount()]).toEqual([2, 0]);
  });
});
