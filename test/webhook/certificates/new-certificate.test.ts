import { describe, expect, it } from 'vitest';
import { pairOf } from './given.ts';
import { dayMs, isAccepted, newWorld, pass, secretName, type World } from './world.ts';

function served(world: World, keeper: { readonly current: () => { readonly cert: string } | undefined }): boolean {
  return keeper.current()?.cert === world.text('cert');
}

describe('a new certificate', () => {
  it('is served when clients have trusted its authority for half a minute, and not before', async () => {
    const world = newWorld();
    const old = pairOf({ nowMs: world.env.clock.nowMs() - 0.7 * dayMs });
    world.putSecret({ ...old });
    let isTrusted = false;
    const keeper = world.keeper({ isTrusted: () => isTrusted });
    await world.env.advance(600_000);
    expect(keeper.current()?.cert).toBe(old.cert);
    isTrusted = true;
    keeper.reconsider();
    await world.env.advance(25_000);
    expect(keeper.current()?.cert).toBe(old.cert);
    await world.env.advance(10_000);
    expect(served(world, keeper)).toBe(true);
    keeper.stop();
  });

  it('that clients stop trusting meanwhile has to wait again', async () => {
    const world = newWorld();
    const old = pairOf({ nowMs: world.env.clock.nowMs() - 0.7 * dayMs });
    world.putSecret({ ...old });
    let isTrusted = true;
    const keeper = world.keeper({ isTrusted: () => isTrusted });
    await world.env.advance(20_000);
    isTrusted = false;
    keeper.reconsider();
    await world.env.advance(60_000);
    expect(keeper.current()?.cert).toBe(old.cert);
    keeper.stop();
  });

  it('waits in a process that was started meanwhile, too', async () => {
    const world = newWorld();
    const old = pairOf({ nowMs: world.env.clock.nowMs() - 0.7 * dayMs });
    world.putSecret({ ...old });
    const first = world.keeper({ isTrusted: () => false });
    await world.env.advance(60_000);
    first.stop();
    const second = world.keeper({ seed: 2, isTrusted: () => false });
    await world.env.advance(60_000);
    expect(second.current()?.cert).toBe(old.cert);
    expect(second.caBundle()?.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    second.stop();
  });

  it('is served when the one before has ended, with any trust of the clients', async () => {
    const world = newWorld();
    world.putSecret({ ...pairOf({ nowMs: world.env.clock.nowMs() - 0.7 * dayMs }) });
    const keeper = world.keeper({ isTrusted: () => false });
    await pass(world, 0.29 * dayMs);
    expect(served(world, keeper)).toBe(false);
    await pass(world, 0.02 * dayMs);
    expect(served(world, keeper)).toBe(true);
    keeper.stop();
  });

  it('is served after a day when the trust of the clients is unknown', async () => {
    const world = newWorld();
    const keeper = world.keeper();
    await world.env.until(() => keeper.current() !== undefined);
    await pass(world, 7 * dayMs);
    expect(served(world, keeper)).toBe(false);
    expect(keeper.current()?.cert).toBe(world.text('previous-cert'));
    await pass(world, 1.2 * dayMs);
    expect(served(world, keeper)).toBe(true);
    keeper.stop();
  });

  it('takes the place of a Secret that was deleted, and what is served stays in it', async () => {
    const world = newWorld();
    const keepers = [1, 2].map((own) => world.keeper({ seed: own, isTrusted: () => false }));
    await world.env.until(() => keepers.every((keeper) => keeper.current() !== undefined));
    const before = world.text('cert');
    world.server.remove({ user: 'jane' }, { resource: 'secrets', namespace: 'one', name: secretName });
    await world.env.advance(60_000);
    expect(world.text('cert')).not.toBe(before);
    expect(world.text('previous-cert')).toBe(before);
    for (const keeper of keepers) {
      expect(keeper.current()?.cert).toBe(before);
      expect(isAccepted(keeper.current(), world.text('ca'))).toBe(true);
      keeper.stop();
    }
  });

  it('that a user puts into the Secret is adopted, and the served one stays until clients trust it', async () => {
    const world = newWorld();
    let isTrusted = false;
    const keepers = [1, 2].map((own) => world.keeper({ seed: own, isTrusted: () => isTrusted }));
    await world.env.until(() => keepers.every((keeper) => keeper.current() !== undefined));
    const before = world.text('cert');
    const theirs = pairOf({ nowMs: world.env.clock.nowMs() - 0.2 * dayMs, lifetimeMs: 10 * dayMs });
    world.putSecret({ ...theirs });
    await world.env.advance(60_000);
    expect([world.text('cert'), world.text('previous-cert')]).toEqual([theirs.cert, before]);
    expect(keepers.map((keeper) => keeper.current()?.cert)).toEqual([before, before]);
    isTrusted = true;
    await world.env.advance(120_000);
    expect(keepers.map((keeper) => keeper.current()?.cert)).toEqual([theirs.cert, theirs.cert]);
    await pass(world, 2 * dayMs);
    expect(world.text('previous-cert')).toBe('');
    for (const keeper of keepers) keeper.stop();
  });
});
