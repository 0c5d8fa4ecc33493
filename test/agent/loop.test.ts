import { describe, expect, it } from 'vitest';
import { type NextTurn, TurnLoop } from '../../agent/loop.ts';
import { type VirtualEnv, virtualEnv } from '../kit/virtual-env.ts';

function loopOf(env: VirtualEnv, takeTurn: (key: string) => Promise<NextTurn> | NextTurn) {
  const turns: { readonly key: string; readonly atMs: number }[] = [];
  const beginMs = env.clock.monotonicMs();
  const loop = new TurnLoop({
    clock: env.clock,
    timers: env.timers,
    random: env.random,
    retryMs: 1000,
    takeTurn: async (key) => {
      turns.push({ key, atMs: env.clock.monotonicMs() - beginMs });
      return await takeTurn(key);
    },
  });
  return { loop, turns, keys: () => turns.map(({ key }) => key), instants: () => turns.map(({ atMs }) => atMs) };
}

describe('the loop', () => {
  it('gives a new group a turn at once, and one turn for several events', async () => {
    const env = virtualEnv();
    const { loop, keys } = loopOf(env, () => ({}));
    loop.setGroups(['a', 'b']);
    await env.settle();
    for (let event = 0; event < 100; event += 1) loop.wake('a');
    await env.settle();
    expect(keys()).toEqual(['a', 'b', 'a']);
  });

  it('runs one turn of a group at a time, and another one after an event during the turn', async () => {
    const env = virtualEnv();
    let running = 0;
    let most = 0;
    const { loop, keys } = loopOf(env, async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => env.timers.after(100, resolve));
      running -= 1;
      return {};
    });
    loop.setGroups(['a']);
    await env.advance(50);
    loop.wake('a');
    loop.wake('a');
    await env.advance(1000);
    expect(most).toBe(1);
    expect(keys()).toEqual(['a', 'a']);
  });

  it('does not delay other groups if one group hangs', async () => {
    const env = virtualEnv();
    const { loop, keys } = loopOf(env, (key) => (key === 'slow' ? new Promise(() => undefined) : {}));
    loop.setGroups(['slow', 'a']);
    await env.settle();
    loop.wake('a');
    await env.settle();
    expect(keys()).toEqual(['slow', 'a', 'a']);
  });

  it('does not delay another group if seventeen groups hang', async () => {
    const env = virtualEnv();
    const slow = Array.from({ length: 17 }, (_, index) => `slow-${index}`);
    const { loop, keys } = loopOf(env, (key) => (key.startsWith('slow') ? new Promise(() => undefined) : {}));
    loop.setGroups([...slow, 'a']);
    await env.settle();
    loop.wake('a');
    await env.settle();
    expect(keys()).toEqual([...slow, 'a', 'a']);
  });

  it('runs one turn at a time for a group that was removed and returns during its turn', async () => {
    const env = virtualEnv();
    let running = 0;
    let most = 0;
    const { loop, keys } = loopOf(env, async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => env.timers.after(100, resolve));
      running -= 1;
      return {};
    });
    loop.setGroups(['a']);
    await env.advance(50);
    loop.setGroups([]);
    loop.setGroups(['a']);
    await env.advance(10);
    loop.setGroups([]);
    loop.setGroups(['a']);
    await env.advance(1000);
    expect(most).toBe(1);
    expect(keys()).toEqual(['a', 'a']);
    loop.setGroups([]);
    loop.setGroups(['a']);
    await env.settle();
    expect(keys()).toEqual(['a', 'a', 'a']);
  });

  it('sleeps until the instant that a turn names, also when the wall clock jumps to it', async () => {
    const env = virtualEnv();
    const wakeAtMs = env.clock.nowMs() + 3_600_000;
    const { loop, instants } = loopOf(env, () => (env.clock.nowMs() < wakeAtMs ? { wakeAtMs } : {}));
    loop.setGroups(['a']);
    await env.advance(600_000);
    expect(instants()).toEqual([0]);
    env.jumpWallClock(3_600_000);
    await env.advance(180_000);
    expect(instants()).toHaveLength(2);
  });

  it('gives every group a turn soon after the wall clock was set forward or back, and none for a slow drift', async () => {
    const env = virtualEnv();
    const { loop, instants } = loopOf(env, () => ({ wakeAtMs: env.clock.nowMs() + 7_200_000 }));
    loop.setGroups(['a']);
    for (let minute = 0; minute < 10; minute += 1) {
      await env.advance(60_000);
      env.jumpWallClock(20);
    }
    expect(instants()).toEqual([0]);
    env.jumpWallClock(-3_600_000);
    await env.advance(60_000);
    expect(instants()).toHaveLength(2);
    env.jumpWallClock(600_000);
    await env.advance(60_000);
    expect(instants()).toHaveLength(3);
    await env.advance(600_000);
    expect(instants()).toHaveLength(3);
    await loop.stop();
  });

  it('tries a failed turn again after pauses that grow, and at once after success', async () => {
    const env = virtualEnv();
    let failures = 6;
    const { loop, instants } = loopOf(env, () => {
      failures -= 1;
      if (failures >= 0) throw new Error('the API server is away');
      return {};
    });
    loop.setGroups(['a']);
    await env.advance(300_000);
    const pauses = instants().map((atMs, index, all) => atMs - (all[index - 1] ?? 0));
    expect(pauses).toHaveLength(7);
    for (const [index, pauseMs] of pauses.slice(1).entries()) {
      expect(pauseMs).toBeGreaterThanOrEqual(500 * 2 ** index);
      expect(pauseMs).toBeLessThanOrEqual(1000 * 2 ** index);
    }
    loop.wake('a');
    await env.settle();
    expect(instants()).toHaveLength(8);
  });

  const inconclusive: NextTurn = { nextTurnInMs: 5000, isInconclusive: true };

  it('counts an inconclusive turn neither as a failure nor as a success', async () => {
    const env = virtualEnv();
    const failed: NextTurn = { retry: {} };
    const answers = [failed, failed, failed, inconclusive, failed, inconclusive, failed];
    const { loop, instants } = loopOf(env, () => answers.shift() ?? {});
    loop.setGroups(['a']);
    await env.advance(120_000);
    const pauses = instants().map((atMs, index, all) => atMs - (all[index - 1] ?? 0));
    expect([pauses[4], pauses[6]]).toEqual([5000, 5000]);
    expect(pauses[5]).toBeGreaterThanOrEqual(4000);
    expect(pauses[7]).toBeGreaterThanOrEqual(8000);
  });

  it.each<[string, (nowMs: number) => NextTurn]>([
    ['wall clock', (nowMs) => ({ wakeAtMs: nowMs + 3000 })],
    ['monotonic clock', () => ({ nextTurnInMs: 3000 })],
  ])('keeps a turn that is due before the one of an inconclusive turn (%s)', async (_, first) => {
    const env = virtualEnv();
    const answers = [first(env.clock.nowMs()), inconclusive];
    const { loop, instants } = loopOf(env, () => answers.shift() ?? {});
    loop.setGroups(['a']);
    await env.advance(1000);
    loop.wake('a');
    await env.advance(60_000);
    expect(instants()).toEqual([0, 1000, 3000]);
  });

  it('is back within a minute after an outage, however long it was, and not with all groups at once', async () => {
    const env = virtualEnv();
    const outageMs = 2 * 3_600_000;
    let isAway = true;
    const { loop, turns } = loopOf(env, () => (isAway ? { retry: {} } : {}));
    const keys = Array.from({ length: 20 }, (_, index) => `group-${index}`);
    loop.setGroups(keys);
    await env.advance(outageMs);
    const late = turns.filter(({ atMs }) => atMs > outageMs - 600_000).length;
    expect(late).toBeLessThanOrEqual(20 * 20);
    isAway = false;
    await env.advance(60_000);
    const back = turns.filter(({ atMs }) => atMs >= outageMs);
    expect(back.map(({ key }) => key).sort()).toEqual([...keys].sort());
    expect(new Set(back.map(({ atMs }) => atMs)).size).toBe(20);
  });

  it('shortens a long pause after an event, but not to zero', async () => {
    const env = virtualEnv();
    const { loop, instants } = loopOf(env, () => ({ retry: {} }));
    loop.setGroups(['a']);
    await env.advance(60_000);
    const before = instants().length;
    const lastMs = instants().at(-1) ?? 0;
    const timer = env.timers.after(0, () => loop.wake('a'));
    await env.advance(0);
    timer();
    await env.advance(1000);
    expect(instants()).toHaveLength(before + 1);
    expect((instants().at(-1) ?? 0) - lastMs).toBeGreaterThanOrEqual(500);
  });

  it('leaves no timer behind when it stops during a turn', async () => {
    const env = virtualEnv();
    const { loop } = loopOf(env, async () => {
      await new Promise<void>((resolve) => env.timers.after(100, resolve));
      return { wakeAtMs: env.clock.nowMs() + 60_000, retry: {} };
    });
    loop.setGroups(['a']);
    await env.settle();
    await env.finish(loop.stop());
    expect(env.timerCount()).toBe(0);
  });

  it('keeps events while it is paused, and starts no turn after its stop', async () => {
    const env = virtualEnv();
    const { loop, keys } = loopOf(env, () => ({}));
    loop.setPaused(true);
    loop.setGroups(['a']);
    await env.advance(1000);
    expect(keys()).toEqual([]);
    loop.setPaused(false);
    await env.settle();
    expect(keys()).toEqual(['a']);
    await loop.stop();
    loop.wake('a');
    await env.advance(1000);
    expect(keys()).toEqual(['a']);
    expect(env.timerCount()).toBe(0);
  });

  it('drops groups that no longer exist', async () => {
    const env = virtualEnv();
    const { loop, keys } = loopOf(env, () => ({ nextTurnInMs: 1000 }));
    loop.setGroups(['a', 'b']);
    await env.settle();
    loop.setGroups(['b']);
    await env.advance(1500);
    expect(keys()).toEqual(['a', 'b', 'b']);
  });
});
