import { describe, expect, it } from 'vitest';
import type { GateAnswer } from '../../agent/env.ts';
import { GateReader } from '../../agent/gates/gate-reader.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { gate, group } from '../kit/groups.ts';
import { type VirtualEnv, virtualEnv } from '../kit/virtual-env.ts';
import { type MetricServer, metricServer } from './gate-kit.ts';

interface World {
  readonly env: VirtualEnv;
  readonly metrics: MetricServer;
  readonly reader: GateReader;
  readonly woken: readonly string[];
  readonly leading: { is: boolean };
}

function world(gates?: () => Promise<GateAnswer>): World {
  const env = virtualEnv();
  const metrics = metricServer(env);
  const woken: string[] = [];
  const leading = { is: true };
  const reader = new GateReader({
    env: {
      clock: env.clock,
      timers: env.timers,
      pods: { call: () => Promise.reject(new Error('no pod listens')) },
      gates: { query: gates ?? metrics.gates, health: () => Promise.reject(new Error('no Consul listens')) },
    },
    clusterDomain: 'cluster.local.',
    seen: () => undefined,
    written: () => undefined,
    isLeading: () => leading.is,
    onReading: (key) => woken.push(key),
  });
  return { env, metrics, reader, woken, leading };
}

const provider = { prometheus: { source: 'prod', query: 'errors' } };
const errors = gate({ provider, everyMs: 10_000, consecutive: 3 });
const ingester = group({ gates: [errors] });

function readingsOf(reader: GateReader, of: GroupDefinition = ingester) {
  return reader.readings(of).flatMap(({ readings }) => readings);
}

describe('the reader of gates', () => {
  it('reads each period from the instant on, wakes the group each time and keeps no more than counts', async () => {
    const { env, metrics, reader, woken } = world();
    const fromMs = env.clock.nowMs() + 25_000;
    reader.readGates(ingester, [{ gate: 'errors', fromMs }]);
    await env.advance(24_999);
    expect(metrics.asked).toEqual([]);
    await env.advance(100_021);
    expect(metrics.asked).toHaveLength(11);
    expect(woken).toEqual(Array.from({ length: 11 }, () => 'mimir/ingester'));
    expect(reader.readings(ingester)).toEqual([
      {
        namespace: 'mimir',
        group: 'ingester',
        gate: 'errors',
        readings: [80_000, 90_000, 100_000].map((afterMs) => ({ atMs: fromMs + afterMs, result: 'value', value: 0 })),
      },
    ]);
  });

  it('drops gates that are no longer requested, and leaves no timer', async () => {
    const { env, metrics, reader } = world();
    reader.readGates(ingester, [{ gate: 'errors', fromMs: env.clock.nowMs() }]);
    await env.advance(15_000);
    expect(readingsOf(reader)).toHaveLength(2);
    reader.readGates(ingester, []);
    expect(reader.readings(ingester)).toEqual([]);
    expect(env.timerCount()).toBe(0);
    await env.advance(60_000);
    expect(metrics.asked).toHaveLength(2);
  });

  it('ignores the result of a query that was running when its gate was dropped, and starts no second query meanwhile', async () => {
    const { env, metrics, reader, woken } = world();
    metrics.tell = () => 'hang';
    const fromMs = env.clock.nowMs();
    reader.readGates(ingester, [{ gate: 'errors', fromMs }]);
    await env.advance(1_000);
    reader.readGates(ingester, []);
    reader.readGates(ingester, [{ gate: 'errors', fromMs }]);
    await env.advance(8_999);
    expect(metrics.asked).toHaveLength(1);
    expect(woken).toEqual([]);
    // The first question ends with its time-out; only then the next one is asked.
    await env.advance(1);
    expect(metrics.asked).toHaveLength(2);
    expect(readingsOf(reader)).toEqual([]);
  });

  it('starts again when the definition of the gate changes', async () => {
    const { env, metrics, reader } = world();
    const fromMs = env.clock.nowMs();
    reader.readGates(ingester, [{ gate: 'errors', fromMs }]);
    await env.advance(15_000);
    const changed = group({ gates: [{ ...errors, pass: { '<=': [{ var: 'value' }, 9] } }] });
    expect(reader.readings(changed)).toEqual([]);
    reader.readGates(changed, [{ gate: 'errors', fromMs }]);
    expect(readingsOf(reader, changed)).toEqual([]);
    await env.advance(100);
    expect(readingsOf(reader, changed)).toHaveLength(1);
    expect(metrics.asked).toHaveLength(3);
  });

  it('drops readings from before the start of counting, also from a running query', async () => {
    const { env, metrics, reader, woken } = world();
    reader.readGates(ingester, [{ gate: 'errors', fromMs: env.clock.nowMs() }]);
    await env.advance(10_010);
    expect([metrics.asked.length, metrics.openCount(), woken.length]).toEqual([2, 1, 1]);
    reader.readGates(ingester, [{ gate: 'errors', fromMs: env.clock.nowMs() }]);
    await env.advance(100);
    expect(readingsOf(reader)).toEqual([]);
    expect(woken).toHaveLength(1);
    // The first of the new row comes at once, but for a pause that keeps a group which changes all the time from asking all the time.
    await env.advance(1_000);
    expect(readingsOf(reader)).toHaveLength(1);
  });

  it('drops groups that no longer exist', async () => {
    const { env, reader } = world();
    const store = group({ name: 'store', gates: [errors] });
    const fromMs = env.clock.nowMs();
    for (const one of [ingester, store]) reader.readGates(one, [{ gate: 'errors', fromMs }]);
    await env.advance(100);
    reader.keep([store]);
    expect(readingsOf(reader)).toEqual([]);
    expect(readingsOf(reader, store)).toHaveLength(1);
  });

  it('sends no query while the process is not the leader or has stopped', async () => {
    const { env, metrics, reader, leading } = world();
    const wanted = [{ gate: 'errors', fromMs: env.clock.nowMs() }];
    leading.is = false;
    reader.readGates(ingester, wanted);
    await env.advance(60_000);
    leading.is = true;
    reader.readGates(ingester, wanted);
    await env.advance(100);
    expect(metrics.asked).toHaveLength(1);
    leading.is = false;
    await env.advance(60_000);
    expect(metrics.asked).toHaveLength(1);
    leading.is = true;
    reader.stop();
    reader.readGates(ingester, wanted);
    await env.advance(60_000);
    expect(metrics.asked).toHaveLength(1);
    expect(env.timerCount()).toBe(0);
  });

  it('keeps its period by the monotonic clock if the wall clock jumps, and drops readings dated ahead', async () => {
    const { env, metrics, reader } = world();
    const fromMs = env.clock.nowMs();
    reader.readGates(ingester, [{ gate: 'errors', fromMs }]);
    await env.advance(15_000);
    env.jumpWallClock(3_600_000);
    await env.advance(10_000);
    expect(metrics.asked).toHaveLength(3);
    expect(readingsOf(reader).map(({ atMs }) => atMs - fromMs)).toEqual([0, 10_000, 3_620_000]);
    env.jumpWallClock(-3_600_000);
    await env.advance(10_000);
    expect(readingsOf(reader).map(({ atMs }) => atMs - fromMs)).toEqual([0, 10_000, 30_000]);
  });

  it('waits for its start, also if the wall clock is set back before it', async () => {
    const { env, metrics, reader } = world();
    const fromMs = env.clock.nowMs() + 5_000;
    reader.readGates(ingester, [{ gate: 'errors', fromMs }]);
    env.jumpWallClock(-3_600_000);
    await env.advance(600_000);
    expect(metrics.asked).toEqual([]);
    env.jumpWallClock(3_600_000);
    await env.advance(180_000);
    expect(metrics.asked.length).toBeGreaterThan(0);
  });

  it('sends at most one query per second, and limits a query to its period', async () => {
    const { env, metrics, reader } = world();
    const hasty = group({ gates: [gate({ provider, everyMs: 0 }), gate({ name: 'slow', provider, everyMs: 60_000 })] });
    reader.readGates(
      hasty,
      ['errors', 'slow'].map((name) => ({ gate: name, fromMs: env.clock.nowMs() })),
    );
    await env.advance(59_900);
    expect(metrics.asked).toHaveLength(60 + 1);
    expect(new Set(metrics.asked.map(({ timeoutMs }) => timeoutMs))).toEqual(new Set([1_000, 10_000]));
  });

  it('a provider that throws, or rejects with a value that is not an error, returns a failed reading', async () => {
    const { env, reader } = world(() => Promise.reject('x'));
    reader.readGates(ingester, [{ gate: 'errors', fromMs: env.clock.nowMs() }]);
    await env.settle();
    expect(readingsOf(reader)).toEqual([{ atMs: env.clock.nowMs(), result: 'error', message: 'x' }]);
    const other = world(() => {
      throw new Error('m'.repeat(1_000));
    });
    other.reader.readGates(ingester, [{ gate: 'errors', fromMs: other.env.clock.nowMs() }]);
    await other.env.settle();
    expect(readingsOf(other.reader)).toEqual([{ atMs: other.env.clock.nowMs(), result: 'error', message: 'm'.repeat(256) }]);
  });
});
