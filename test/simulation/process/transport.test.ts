import { describe, expect, it } from 'vitest';
import type { KubernetesRequest, KubernetesResponse } from '../../../cluster/env.ts';
import { TransportFailure } from '../../../cluster/request/failure.ts';
import type { PlacedFault, RequestFault } from '../../../simulation/faults/fault.ts';
import { Transport, verbOf } from '../../../simulation/process/transport.ts';
import { lifeWith, nowOnly } from './lives.ts';

const deletion: KubernetesRequest = {
  method: 'DELETE',
  path: '/api/v1/namespaces/mimir/pods/ingester-zone-a-0',
  timeoutMs: 5_000,
  site: 'act.deletePod',
  body: '{"preconditions":{"uid":"1"}}',
};
const at = (fault: RequestFault, count = 1): PlacedFault => ({ at: `a1/act.deletePod#${count}`, port: 'request', fault });

type Outcome = { readonly atMs: number } & ({ readonly response: KubernetesResponse } | { readonly error: TransportFailure });

function client(...placed: readonly PlacedFault[]) {
  const world = lifeWith(...placed);
  const { life, server, touched, scheduler } = world;
  const options = { life, server, user: 'agent', frontEnds: 3, touch: () => touched.push('touched'), frozenFrontEnd: () => 7, ...nowOnly };
  const http = new Transport(options, 'acting');
  const outcomes: Outcome[] = [];
  const ask = (request: KubernetesRequest = deletion): void => {
    http.request(request).then(
      (response) => outcomes.push({ atMs: scheduler.nowMs(), response }),
      (error: unknown) => outcomes.push({ atMs: scheduler.nowMs(), error: error as TransportFailure }),
    );
  };
  return { ...world, http, ask, outcomes };
}

/** How the one request ended: when, and as what. */
async function endOf(fault: RequestFault) {
  const world = client(at(fault));
  world.ask();
  await world.scheduler.runUntil(200_000);
  const [outcome, ...others] = world.outcomes;
  expect(others).toEqual([]);
  const error = outcome !== undefined && 'error' in outcome ? outcome.error : undefined;
  const response = outcome !== undefined && 'response' in outcome ? outcome.response : undefined;
  if (error !== undefined) expect(error).toBeInstanceOf(TransportFailure);
  return { ...world, outcome, error, response, arrivedMs: world.arrived.map(({ atMs }) => atMs) };
}

describe('a request through the network', () => {
  it('takes some milliseconds each way and carries who sent it', async () => {
    const { ask, arrived, outcomes, scheduler, life } = client();
    ask({ ...deletion, contentType: 'application/json', accept: 'text/plain' });
    expect(life.open.requests).toBe(1);
    await scheduler.runUntil(10_000);
    const [{ atMs, request } = { atMs: 0, request: undefined }] = arrived;
    expect(atMs).toBeGreaterThanOrEqual(1);
    expect(atMs).toBeLessThanOrEqual(30);
    expect(request).toEqual({
      method: 'DELETE',
      path: deletion.path,
      body: deletion.body,
      contentType: 'application/json',
      accept: 'text/plain',
      actor: {
        user: 'agent',
        process: 'a1',
        site: 'act.deletePod',
        point: 'a1/act.deletePod#1',
        sentAtMs: 0,
        sentWallMs: Date.UTC(2026, 0, 15, 12),
      },
    });
    expect(outcomes).toEqual([{ atMs: expect.any(Number), response: { status: 200, headers: {}, body: '{"count":1}' } }]);
    expect(outcomes[0]?.atMs).toBeGreaterThan(atMs);
    expect([life.open.requests, life.time.timerCount(), scheduler.pendingCount()]).toEqual([0, 0, 0]);
  });

  it('takes now and then much longer, never as long as it may take', async () => {
    const { ask, outcomes, scheduler } = client();
    const tookMs: number[] = [];
    for (let count = 0; count < 1_000; count += 1) {
      const sentMs = scheduler.nowMs();
      ask();
      await scheduler.runUntil(sentMs + 10_000, () => outcomes.length > count);
      tookMs.push((outcomes[count]?.atMs ?? 0) - sentMs);
    }
    const slow = tookMs.filter((ms) => ms > 60);
    expect(slow.length).toBeGreaterThan(1);
    expect(slow.length).toBeLessThan(40);
    expect(outcomes.filter((outcome) => 'error' in outcome && !outcome.error.message.includes('no answer'))).toEqual([]);
  });

  it('is over when its time is, by the clock of its process', async () => {
    const { outcome, error, arrivedMs } = await endOf({ class: 'F1', kind: 'lost', isSilent: true });
    expect([outcome?.atMs, error?.mayBeApplied, error?.site, arrivedMs]).toEqual([5_000, true, 'act.deletePod', []]);
  });
});

describe('a fault of a request', () => {
  it('F1: it never arrives, and the sender knows when it was refused', async () => {
    const { outcome, error, arrivedMs } = await endOf({ class: 'F1', kind: 'lost', isSilent: false });
    expect([error?.mayBeApplied, arrivedMs]).toEqual([false, []]);
    expect(outcome?.atMs).toBeLessThanOrEqual(30);
  });

  it('F2: it is applied, and its answer never arrives', async () => {
    const reset = await endOf({ class: 'F2', kind: 'replyLost', isSilent: false });
    expect([reset.error?.mayBeApplied, reset.arrivedMs.length]).toEqual([true, 1]);
    expect(reset.outcome?.atMs).toBeLessThan(100);
    const silent = await endOf({ class: 'F2', kind: 'replyLost', isSilent: true });
    expect([silent.error?.mayBeApplied, silent.arrivedMs.length, silent.outcome?.atMs]).toEqual([true, 1, 5_000]);
  });

  it('F3: it is applied late, when no process waits any more', async () => {
    const { outcome, error, arrivedMs, arrived } = await endOf({ class: 'F3', kind: 'held', delayMs: 40_000 });
    expect([error?.mayBeApplied, outcome?.atMs]).toEqual([true, 5_000]);
    expect(arrivedMs[0]).toBeGreaterThan(40_000);
    expect(arrived[0]?.request.actor.sentAtMs).toBe(0);
  });

  it('F3: it is applied when its sender is dead, and at once when faults are over', async () => {
    const { ask, arrived, scheduler, life, holds, outcomes } = client(at({ class: 'F3', kind: 'held', delayMs: 40_000 }));
    ask();
    await scheduler.runUntil(1_000);
    life.crash(0);
    await scheduler.runUntil(2_000);
    expect(arrived).toEqual([]);
    holds.release();
    await scheduler.runUntil(3_000);
    expect(arrived.map(({ atMs }) => atMs)).toEqual([2_000]);
    expect(outcomes).toEqual([]);
  });

  it('F4: another client changes the object just before it arrives', async () => {
    const { touched, response, arrivedMs } = await endOf({ class: 'F4', kind: 'foreignWrite' });
    expect([touched, response?.status, arrivedMs.length]).toEqual([['touched'], 200, 1]);
  });

  it('F5: it is answered with an error, whether or not it was applied', async () => {
    for (const what of [429, 500, 502, 503, 504] as const) {
      for (const isApplied of [false, true]) {
        const retry = what === 429 ? { retryAfterSeconds: 7 } : {};
        const { response, arrivedMs } = await endOf({ class: 'F5', kind: 'answer', what, isApplied, ...retry });
        expect(response?.status).toBe(what);
        // Nobody carries a request out and says that there were too many.
        expect(arrivedMs).toHaveLength(isApplied && what !== 429 ? 1 : 0);
        expect(response?.headers['retry-after']).toBe(what === 429 ? '7' : undefined);
        if (what !== 502) expect(JSON.parse(response?.body ?? '')).toMatchObject({ kind: 'Status', code: what });
      }
    }
  });

  it('F5: its answer is no JSON, or half of it, or nothing that TLS lets through', async () => {
    const malformed = await endOf({ class: 'F5', kind: 'answer', what: 'malformed', isApplied: true });
    expect([malformed.response?.status, malformed.arrivedMs.length]).toEqual([200, 1]);
    expect(() => JSON.parse(malformed.response?.body ?? '')).toThrow();
    const truncated = await endOf({ class: 'F5', kind: 'answer', what: 'truncated', isApplied: true });
    expect([truncated.response?.body, truncated.arrivedMs.length]).toEqual(['{"cou', 1]);
    const tls = await endOf({ class: 'F5', kind: 'answer', what: 'tls', isApplied: false });
    expect([tls.error?.mayBeApplied, tls.arrivedMs]).toEqual([false, []]);
  });

  it('F6: its continue token has expired, or the server has not come so far', async () => {
    const expired = await endOf({ class: 'F6', kind: 'expired' });
    expect([expired.response?.status, JSON.parse(expired.response?.body ?? '').reason]).toEqual([410, 'Expired']);
    const tooLarge = await endOf({ class: 'F6', kind: 'tooLarge' });
    expect([tooLarge.response?.status, tooLarge.arrivedMs]).toEqual([504, []]);
  });

  it('F11: the process dies before it is sent, after it was applied, or after its answer came', async () => {
    const crash = (moment: 'beforeSend' | 'afterApply' | 'afterReply') => endOf({ class: 'F11', kind: 'crash', moment, restartAfterMs: 9 });
    const before = await crash('beforeSend');
    expect([before.arrivedMs, before.outcome, before.changes]).toEqual([[], undefined, ['died at 0 for 9']]);
    const applied = await crash('afterApply');
    expect([applied.outcome, applied.changes]).toEqual([undefined, [`died at ${applied.arrivedMs[0]} for 9`]]);
    const replied = await crash('afterReply');
    expect([replied.arrivedMs.length, replied.outcome, replied.changes.length]).toEqual([1, undefined, 1]);
    expect(replied.changes).not.toEqual([`died at ${replied.arrivedMs[0]} for 9`]);
    expect(replied.life.time.isAlive()).toBe(false);
  });

  it('F12: the process stands still when the answer would be taken in, and takes it in afterwards', async () => {
    const { outcome, response, changes } = await endOf({ class: 'F12', kind: 'pause', durationMs: 60_000 });
    expect(response?.status).toBe(200);
    expect(outcome?.atMs).toBeGreaterThan(60_000);
    expect(changes).toHaveLength(2);
  });

  it('happens at its place only', async () => {
    const { ask, outcomes, scheduler } = client(at({ class: 'F2', kind: 'replyLost', isSilent: true }, 2));
    for (let count = 1; count <= 3; count += 1) ask();
    ask({ ...deletion, site: 'act.evictPod' });
    await scheduler.runUntil(10_000);
    expect(outcomes.filter((outcome) => 'error' in outcome)).toHaveLength(1);
    expect(outcomes).toHaveLength(4);
  });
});

describe('a connection', () => {
  it('stays with one front end until something fails, then chooses another one', async () => {
    const one = client();
    for (let index = 0; index < 50; index += 1) one.ask();
    await one.scheduler.runUntil(10_000);
    expect([one.arrived.length, new Set(one.arrived.map(({ frontEnd }) => frontEnd)).size]).toEqual([50, 1]);
    const refusals = Array.from({ length: 40 }, (_, index) => at({ class: 'F1', kind: 'lost', isSilent: false }, 2 * index + 1));
    const other = client(...refusals);
    for (let index = 0; index < 80; index += 1) {
      other.ask();
      await other.scheduler.runUntil(other.scheduler.nowMs() + 5_000);
    }
    const seen = new Set(other.arrived.map(({ frontEnd }) => frontEnd));
    expect([...seen].sort()).toEqual([0, 1, 2]);
  });

  it('of one process is drawn apart from that of another, and of its other client', async () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 40; seed += 1) {
      const { life, server, arrived, scheduler } = lifeWith();
      const options = { server, user: 'agent', frontEnds: 3, touch: () => undefined, frozenFrontEnd: () => 7, ...nowOnly };
      for (const connection of ['acting', 'writing'] as const) {
        void new Transport({ ...options, life: { ...life, seed } }, connection).request(deletion);
      }
      await scheduler.runUntil(5_000);
      seen.add(arrived.map(({ frontEnd }) => frontEnd).join(''));
    }
    expect(seen.size).toBe(9);
  });
});

describe('a process that is over', () => {
  it('sends nothing and hears nothing', async () => {
    const { ask, arrived, outcomes, scheduler, life } = client();
    ask();
    life.crash(0);
    ask();
    await scheduler.runUntil(10_000);
    expect([arrived.length, outcomes]).toEqual([1, []]);
  });
});

describe('the verb of a request', () => {
  it('is what the API server would call it', () => {
    const get = (path: string): string => verbOf({ method: 'GET', path });
    expect(get('/api/v1/namespaces/mimir/pods?limit=500')).toBe('list');
    expect(get('/api/v1/pods')).toBe('list');
    expect(get('/api/v1/namespaces')).toBe('list');
    expect(get('/api/v1/namespaces/mimir')).toBe('get');
    expect(get('/apis/apps/v1/namespaces/mimir/statefulsets')).toBe('list');
    expect(get('/apis/apps/v1/namespaces/mimir/statefulsets/ingester-zone-a')).toBe('get');
    expect(get('/apis/apps/v1/namespaces/mimir/statefulsets/ingester-zone-a/scale')).toBe('get');
    expect(get('/apis/apps/v1')).toBe('get');
    expect(verbOf({ method: 'POST', path: '/api/v1/namespaces/mimir/pods/x/eviction' })).toBe('create');
    expect(verbOf({ method: 'PUT', path: '/x' })).toBe('update');
    expect(verbOf({ method: 'PATCH', path: '/x' })).toBe('patch');
    expect(verbOf({ method: 'DELETE', path: '/x' })).toBe('delete');
  });
});
