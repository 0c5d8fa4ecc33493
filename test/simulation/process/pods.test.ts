import { describe, expect, it } from 'vitest';
import type { PodResponse } from '../../../agent/env.ts';
import type { PlacedFault, PodFault } from '../../../simulation/faults/fault.ts';
import type { PodCalled } from '../../../simulation/oracles/oracle.ts';
import { createPods } from '../../../simulation/process/pods.ts';
import { lifeWith } from './lives.ts';

const url = 'http://ingester-zone-a-2.ingester-zone-a.mimir.svc.cluster.local.:80/ingester/prepare-delayed-downscale?x=1';
const body = '{"timestamp":1768478400}';

async function call(fault?: PodFault, { isThere = true, answer = body, more = [] as readonly PlacedFault[] } = {}) {
  const world = lifeWith(...(fault === undefined ? [] : [{ at: 'a1/pods.prepare#1', port: 'pod', fault } as const]), ...more);
  const heard: PodCalled[] = [];
  const asked: unknown[] = [];
  const pods = createPods({
    life: world.life,
    podAnswer: (asking) => {
      asked.push(asking);
      return isThere ? { status: 200, body: answer, uid: 'uid-1', pod: 'ingester-zone-a-2', namespace: 'mimir' } : undefined;
    },
    podCalled: (one) => heard.push(one),
  });
  let end: { readonly atMs: number; readonly response?: PodResponse; readonly problem?: string } | undefined;
  pods.call({ method: 'POST', url, timeoutMs: 5_000, maxBodyBytes: 100, site: 'pods.prepare' }).then(
    (response) => {
      end = { atMs: world.scheduler.nowMs(), response };
    },
    (error: Error) => {
      end = { atMs: world.scheduler.nowMs(), problem: error.message };
    },
  );
  await world.scheduler.runUntil(60_000);
  return { ...world, heard, asked, end, response: end?.response, problem: end?.problem };
}

describe('a call of a pod', () => {
  it('arrives at the pod and is told with who sent it', async () => {
    const { heard, asked, response, life, scheduler } = await call();
    expect(asked).toEqual([
      {
        method: 'POST',
        host: 'ingester-zone-a-2.ingester-zone-a.mimir.svc.cluster.local.',
        path: '/ingester/prepare-delayed-downscale?x=1',
      },
    ]);
    expect(heard).toEqual([
      {
        process: 'a1',
        atMs: expect.any(Number),
        sentAtMs: 0,
        namespace: 'mimir',
        pod: 'ingester-zone-a-2',
        uid: 'uid-1',
        method: 'POST',
        path: '/ingester/prepare-delayed-downscale?x=1',
        reportedMs: 0,
      },
    ]);
    expect(heard[0]?.atMs).toBeGreaterThan(0);
    expect(response).toEqual({ status: 200, body });
    expect([life.open.requests, scheduler.pendingCount()]).toEqual([0, 0]);
  });

  it('is refused where no server listens', async () => {
    const { problem, heard } = await call(undefined, { isThere: false });
    expect([problem, heard]).toEqual(['connect ECONNREFUSED', []]);
  });

  it('fails when the body is longer than it may be', async () => {
    const { problem } = await call(undefined, { answer: 'x'.repeat(101) });
    expect(problem).toBe('the answer is longer than 100 bytes');
  });
});

describe('F21', () => {
  const kindOf = (kind: PodFault['kind'], byMs?: number) => call({ class: 'F21', kind, ...(byMs === undefined ? {} : { byMs }) });

  it('a pod refuses, or hangs until the time of the caller is over; it has heard nothing', async () => {
    const refused = await kindOf('refuse');
    expect([refused.problem, refused.heard]).toEqual(['connect ECONNREFUSED', []]);
    const hung = await kindOf('hang');
    expect([hung.problem, hung.end?.atMs, hung.heard]).toEqual(['no complete answer within 5000 ms', 5_000, []]);
  });

  it('a pod does what it is asked and its answer is lost, or a body without end', async () => {
    const lost = await kindOf('replyLost');
    expect([lost.problem, lost.heard.length]).toEqual(['socket hang up', 1]);
    const huge = await kindOf('hugeBody');
    expect([huge.problem, huge.heard.length]).toEqual(['the answer is longer than 100 bytes', 1]);
  });

  it('a pod answers with an error or sends the caller elsewhere', async () => {
    expect((await kindOf('error')).response?.status).toBe(500);
    expect((await kindOf('redirect')).response?.status).toBe(302);
  });

  it('a pod lies about its time, or leaves it out', async () => {
    expect((await kindOf('lie', -3_600_000)).response).toEqual({ status: 200, body: '{"timestamp":1768474800}' });
    expect((await kindOf('noTimestamp')).response).toEqual({ status: 200, body: '{}' });
    const { response } = await call({ class: 'F21', kind: 'lie', byMs: 1 }, { answer: 'no JSON' });
    expect(response?.body).toBe('no JSON');
  });

  it('the process dies or stands still at a call as at any request', async () => {
    const crash = (moment: 'beforeSend' | 'afterApply' | 'afterReply') =>
      call(undefined, {
        more: [{ at: 'a1/pods.prepare#1', port: 'request', fault: { class: 'F11', kind: 'crash', moment, restartAfterMs: 1 } }],
      });
    const [before, applied, replied] = [await crash('beforeSend'), await crash('afterApply'), await crash('afterReply')];
    expect([before.heard.length, applied.heard.length, replied.heard.length]).toEqual([0, 1, 1]);
    expect([before.end, applied.end, replied.end]).toEqual([undefined, undefined, undefined]);
    const paused = await call(undefined, {
      more: [{ at: 'a1/pods.prepare#1', port: 'request', fault: { class: 'F12', kind: 'pause', durationMs: 30_000 } }],
    });
    expect(paused.end?.atMs).toBeGreaterThan(30_000);
  });
});
