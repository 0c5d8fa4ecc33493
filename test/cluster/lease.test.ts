import { describe, expect, it } from 'vitest';
import { microTime } from '../../cluster/request/write.ts';
import { ModelApi } from '../kit/model-server.ts';
import { type Serve, type ServedRequest, status, type VirtualEnv, virtualEnv } from '../kit/virtual-env.ts';
import { edit, leases, type Process, type ProcessOptions, specOf, startProcess } from './contending.ts';

function setUp(serve: (api: ModelApi) => Serve = (api) => api.serve) {
  const env = virtualEnv();
  const api = new ModelApi({ env });
  env.replaceServer(serve(api));
  return {
    api,
    env,
    start: (identity: string, options: Partial<ProcessOptions> = {}): Process => startProcess(env, { identity, ...options }),
  };
}

/** A process that holds the Lease. */
async function leading(serve?: (api: ModelApi) => Serve, options: Partial<ProcessOptions> = {}) {
  const set = setUp(serve);
  const process = set.start('one', options);
  await set.env.advance(1);
  expect(process.told).toEqual(['acquired 1']);
  return { ...set, ...process };
}

const writesOf = (env: VirtualEnv): readonly ServedRequest[] => env.requests.filter(({ method }) => method !== 'GET');

describe('a Lease', () => {
  it('is written like client-go writes it', async () => {
    const { api, env, lease } = await leading();
    expect(specOf(api)).toEqual({
      holderIdentity: 'one',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-15T12:00:00.000000Z',
      renewTime: '2026-01-15T12:00:00.000000Z',
      leaseTransitions: 1,
    });
    await env.advance(2100);
    expect(specOf(api)).toMatchObject({ acquireTime: '2026-01-15T12:00:00.000000Z', renewTime: '2026-01-15T12:00:02.000000Z' });
    expect([lease.epoch(), lease.holder(), lease.problem()]).toEqual([1, 'one', undefined]);
  });

  it('has times with six fractional digits', () => {
    expect(microTime(Date.UTC(2026, 0, 2, 3, 4, 5, 6))).toBe('2026-01-02T03:04:05.006000Z');
  });

  it('is renewed once in each retry period, without being read', async () => {
    const { env } = await leading();
    await env.advance(60_000);
    expect(env.requests.slice(2).every(({ site }) => site === 'lease.renew')).toBe(true);
    expect(writesOf(env).length).toBe(31);
  });

  it('keeps foreign fields', async () => {
    const { api, start, env } = setUp();
    edit(api, { holderIdentity: '', preferredHolder: 'x' }, { labels: { a: 'b' } });
    start('one');
    await env.advance(5000);
    expect(api.get(leases, 'ns', 'agent')).toMatchObject({
      metadata: { labels: { a: 'b' } },
      spec: { holderIdentity: 'one', preferredHolder: 'x' },
    });
  });

  it('leaves no timer after a stop, and does not change the record', async () => {
    const { api, env, lease, told } = await leading();
    lease.stop();
    await env.advance(60_000);
    expect([env.timerCount(), lease.mayAct(0), lease.epoch(), told.at(-1)]).toEqual([0, false, undefined, 'lost: stopped']);
    expect(specOf(api)?.['holderIdentity']).toBe('one');
  });

  it('is not lost if a listener throws', async () => {
    const throws = () => {
      throw new Error('a defect');
    };
    const { api, env, start } = setUp();
    const { lease } = start('one', { onAcquired: throws, onHolder: throws, onProblem: throws, onLost: throws });
    await env.advance(30_000);
    expect([lease.mayAct(0), specOf(api)?.['holderIdentity']]).toEqual([true, 'one']);
    lease.stop();
  });
});

describe('S17: the holder may act', () => {
  it('until the deadline, counted from the start of the renewal, minus the time of the request', async () => {
    let isSlow = true;
    const { env, lease } = await leadingSlowly(() => isSlow);
    isSlow = false;
    // Sent at 0, answered at 2900. Nothing is renewed from now on.
    expect([lease.mayAct(7099), lease.mayAct(7101)]).toEqual([true, false]);
    await env.advance(5000);
    expect([lease.mayAct(2099), lease.mayAct(2101)]).toEqual([true, false]);
    await env.advance(2099);
    expect(lease.mayAct(0)).toBe(true);
    await env.advance(2);
    expect(lease.mayAct(0)).toBe(false);
  });

  it('not before it has the Lease, and not for a request longer than the deadline', async () => {
    const { env, start } = setUp();
    const { lease } = start('one');
    expect(lease.mayAct(0)).toBe(false);
    await env.advance(1);
    expect([lease.mayAct(9000), lease.mayAct(10_001)]).toEqual([true, false]);
  });

  it.each([-2000, 2000, 3_600_000])('not after the wall clock jumped by %i ms, until the Lease is renewed', async (jumpMs) => {
    let isSlow = false;
    const { env, lease, told } = await leading((api) => async (request) => ({
      ...(await api.serve(request)),
      ...(isSlow ? { delayMs: 500 } : {}),
    }));
    isSlow = true;
    env.jumpWallClock(jumpMs);
    expect(lease.mayAct(0)).toBe(false);
    await env.advance(400);
    expect(lease.mayAct(0)).toBe(false);
    await env.advance(200);
    expect([lease.mayAct(0), told]).toEqual([true, ['acquired 1']]);
  });

  it('still after the wall clock was corrected by less than a second', async () => {
    const { env, lease } = await leading();
    env.jumpWallClock(900);
    expect(lease.mayAct(0)).toBe(true);
  });

  it('not after a stall of the process for longer than a retry period, until a later renewal', async () => {
    let isSlow = false;
    const { env, lease } = await leading((api) => async (request) => ({
      ...(await api.serve(request)),
      ...(isSlow ? { delayMs: 500 } : {}),
    }));
    isSlow = true;
    // A renewal is on its way while the process stands still: it says nothing about what happened meanwhile.
    await env.advance(2100);
    await env.stall(2500);
    expect(lease.mayAct(0)).toBe(false);
    await env.advance(450);
    expect(lease.mayAct(0)).toBe(false);
    await env.advance(600);
    expect(lease.mayAct(0)).toBe(true);
  });

  it('still after a shorter stall', async () => {
    const { env, lease } = await leading();
    await env.stall(900);
    expect(lease.mayAct(0)).toBe(true);
  });
});

describe('a holder', () => {
  it('without a renewal stops at the deadline, reports the reason, and continues after the next renewal', async () => {
    let isAway = false;
    const { env, lease, told } = await leading((api) => (request) => (isAway ? { lost: 'before-apply' } : api.serve(request)));
    await env.advance(2100);
    isAway = true;
    await env.advance(12_000);
    expect([lease.mayAct(0), lease.epoch(), told]).toEqual([
      false,
      undefined,
      ['acquired 1', 'lost: the Lease was not renewed for 10000 ms'],
    ]);
    expect(lease.problem()).toEqual({ reason: 'unreachable', message: 'the connection was reset' });
    isAway = false;
    await env.advance(5000);
    expect([lease.mayAct(0), told.at(-1), lease.problem()]).toEqual([true, 'acquired 1', undefined]);
  });

  it('with a deleted Lease stops, and acquires it again with a larger epoch', async () => {
    const { api, env, told } = await leading();
    api.remove(leases, 'ns', 'agent');
    await env.advance(2100);
    expect(told).toEqual(['acquired 1', 'lost: the Lease was deleted']);
    await env.advance(3000);
    expect(told.at(-1)).toBe('acquired 2');
  });

  it.each([
    [{ holderIdentity: 'two' }, 'lost: two holds the Lease'],
    [{ holderIdentity: '' }, 'lost: the holder was removed from the Lease'],
    [{ leaseTransitions: 9 }, 'lost: the Lease was edited: leaseTransitions is 9, not 1'],
  ])('with a Lease edited to %j stops and reports the reason', async (spec, reason) => {
    const { api, env, lease, told } = await leading();
    edit(api, spec);
    await env.advance(2001);
    expect([told.at(-1), lease.mayAct(0), lease.epoch()]).toEqual([reason, false, undefined]);
  });

  it('ignores a label', async () => {
    const { api, env, told, lease } = await leading();
    edit(api, {}, { labels: { a: 'b' } });
    await env.advance(30_000);
    expect([told, lease.mayAct(0), api.get(leases, 'ns', 'agent')?.metadata.labels]).toEqual([['acquired 1'], true, { a: 'b' }]);
  });

  it('continues if a renewal succeeded without an answer', async () => {
    let isLosing = false;
    const { env, told, lease } = await leading((api) => async (request) => {
      const answer = await api.serve(request);
      return isLosing && request.method === 'PUT' ? { lost: 'reply' } : answer;
    });
    isLosing = true;
    await env.advance(5000);
    isLosing = false;
    await env.advance(2000);
    expect([told, lease.mayAct(6000)]).toEqual([['acquired 1'], true]);
  });
});

describe('a contender', () => {
  it('waits for a holder while its record changes', async () => {
    const { api, env, start } = setUp();
    edit(api, { holderIdentity: 'other', leaseDurationSeconds: 15, leaseTransitions: 4, renewTime: '1999-01-01T00:00:00.000000Z' });
    const { told, lease } = start('one');
    for (let seconds = 10; seconds <= 120; seconds += 10) {
      await env.advance(10_000);
      edit(api, { renewTime: microTime(Date.UTC(1999, 0, 1, 0, 0, seconds)) });
    }
    expect([told, lease.holder()]).toEqual([[], 'other']);
  });

  it.each(['1999-01-01T00:00:00.000000Z', '2050-01-01T00:00:00.000000Z'])(
    'does not compare its clock with renewTime %s',
    async (renewTime) => {
      const { api, env, start } = setUp();
      edit(api, { holderIdentity: 'other', leaseDurationSeconds: 15, leaseTransitions: 4, renewTime });
      const { told } = start('one');
      await env.advance(14_900);
      expect(told).toEqual([]);
      await env.advance(200);
      expect(told).toEqual(['acquired 5']);
    },
  );

  it('waits for the duration in the record if it is longer', async () => {
    const { api, env, start } = setUp();
    edit(api, { holderIdentity: 'other', leaseDurationSeconds: 60, leaseTransitions: 4 });
    const { told } = start('one');
    await env.advance(59_000);
    expect(told).toEqual([]);
    await env.advance(2000);
    expect(told).toEqual(['acquired 5']);
  });

  it('waits also after a user deletes the Lease of a holder, because the holder may not know it', async () => {
    const { api, env, start } = setUp();
    edit(api, { holderIdentity: 'other', leaseDurationSeconds: 15, leaseTransitions: 4 });
    const { told } = start('one');
    await env.advance(1000);
    api.remove(leases, 'ns', 'agent');
    await env.advance(13_000);
    expect(told).toEqual([]);
    await env.advance(4000);
    expect(told).toEqual(['acquired 5']);
  });

  it('has the Lease if its write succeeded without an answer, with one change of holder', async () => {
    let isLosing = true;
    const { api, env, start } = setUp((fake) => async (request) => {
      const answer = await fake.serve(request);
      const isLost = isLosing && request.method !== 'GET';
      if (isLost) isLosing = false;
      return isLost ? { lost: 'reply' } : answer;
    });
    const { told } = start('one');
    await env.advance(5000);
    expect([told, specOf(api)?.['leaseTransitions']]).toEqual([['acquired 1'], 1]);
  });

  it('acts only after a renewal if the process stalled during the acquisition', async () => {
    const { env, start } = setUp((api) => async (request) => ({ ...(await api.serve(request)), delayMs: 1000 }));
    const couldAct: boolean[] = [];
    const process = start('one', { onAcquired: () => couldAct.push(process.lease.mayAct(0)) });
    await env.advance(1500);
    process.pause(40_000);
    await env.advance(60_000);
    expect(couldAct).toEqual([true]);
  });

  it.each([
    [status(403, 'Forbidden', 'not you'), 'forbidden'],
    [status(404, '', '404 page not found'), 'missing'],
  ] as const)('without permission or resource reports it, and starts one retry period after it is allowed', async (answer, reason) => {
    let isRefusing = true;
    const { env, start } = setUp((api) => (request) => (isRefusing ? answer : api.serve(request)));
    const problems: (string | undefined)[] = [];
    const { told, lease } = start('one', { onProblem: (problem) => problems.push(problem?.reason) });
    await env.advance(600_000);
    expect(lease.problem()?.reason).toBe(reason);
    isRefusing = false;
    await env.advance(3000);
    expect([told, problems]).toEqual([['acquired 1'], [reason, undefined]]);
  });

  it('reports the holder of the Lease', async () => {
    const { api, env, start } = setUp();
    edit(api, { holderIdentity: 'other', leaseDurationSeconds: 15, leaseTransitions: 4 });
    const holders: (string | undefined)[] = [];
    start('one', { onHolder: (holder) => holders.push(holder) });
    await env.advance(3000);
    edit(api, { holderIdentity: 'third' });
    await env.advance(3000);
    edit(api, { holderIdentity: '' });
    await env.advance(3000);
    expect(holders).toEqual(['other', 'third', undefined, 'one']);
  });
});

describe('release', () => {
  it('clears the holder, keeps the epoch, and ends', async () => {
    const { api, env, lease, told } = await leading();
    await env.finish(lease.release());
    expect(specOf(api)).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 1 });
    expect([lease.mayAct(0), told.at(-1), env.timerCount()]).toEqual([false, 'lost: released', 0]);
  });

  it('prevents further actions from its request', async () => {
    const { lease, env } = await leading();
    const released = lease.release();
    expect(lease.mayAct(0)).toBe(false);
    await env.finish(released);
  });

  it('waits for a running renewal', async () => {
    let isSlow = false;
    const { api, env, lease } = await leading((fake) => async (request) => ({
      ...(await fake.serve(request)),
      ...(isSlow ? { delayMs: 500 } : {}),
    }));
    isSlow = true;
    await env.advance(2100);
    await env.finish(lease.release());
    expect(specOf(api)?.['holderIdentity']).toBe('');
  });

  it('reads again after another client changed the object, and leaves the Lease of another holder alone', async () => {
    for (const [spec, holder] of [
      [{}, ''],
      [{ holderIdentity: 'other' }, 'other'],
    ] as const) {
      const { api, env, lease } = await leading();
      edit(api, spec, { labels: { a: 'b' } });
      await env.finish(lease.release());
      expect(specOf(api)?.['holderIdentity']).toBe(holder);
    }
  });

  it('neither rejects nor waits without limit if no server answers', async () => {
    let isAway = false;
    const { env, lease } = await leading((api) => (request) => (isAway ? { lost: 'reply', forever: true } : api.serve(request)));
    isAway = true;
    await env.finish(lease.release(), 20_000);
    expect(env.timerCount()).toBe(0);
  });

  it('does not write the Lease of another holder', async () => {
    const { api, env, start } = setUp();
    edit(api, { holderIdentity: 'other', leaseDurationSeconds: 15, leaseTransitions: 4 });
    const { lease } = start('one');
    await env.advance(1000);
    await env.finish(lease.release());
    expect([writesOf(env), specOf(api)?.['holderIdentity']]).toEqual([[], 'other']);
  });
});

/** A holder whose first answer took 2.9 s, and whose renewals all get lost. */
async function leadingSlowly(isSlow: () => boolean) {
  const set = setUp((api) => async (request) => {
    if (request.method === 'PUT') return { lost: 'before-apply' };
    return { ...(await api.serve(request)), ...(isSlow() && request.method === 'POST' ? { delayMs: 2900 } : {}) };
  });
  const process = set.start('one');
  await set.env.advance(2900);
  expect(process.told).toEqual(['acquired 1']);
  return { ...set, ...process };
}
