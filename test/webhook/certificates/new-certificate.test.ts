import { Agent, createServer, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { expiryOf } from '../../../webhook/certificates/certificates.ts';
import type { TlsSource } from '../../../webhook/certificates/source.ts';
import { pairOf } from './given.ts';
import { dayMs, isAccepted, newWorld, pass, secretName, type World } from './world.ts';

function served(world: World, keeper: { readonly current: () => { readonly cert: string } | undefined }): boolean {
  return keeper.current()?.cert === world.text('cert');
}

describe('a new certificate', () => {
  it('is served after clients have trusted its authority for half a minute', async () => {
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

  it('waits again if clients stop trusting it meanwhile', async () => {
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

  it('waits in a process that started meanwhile, too', async () => {
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

  it('is served when the previous one has expired, with any trust of the clients', async () => {
    const world = newWorld();
    world.putSecret({ ...pairOf({ nowMs: world.env.clock.nowMs() - 0.7 * dayMs }) });
    const keeper = world.keeper({ isTrusted: () => false });
    await pass(world, 0.29 * dayMs);
    expect(served(world, keeper)).toBe(false);
    await pass(world, 0.02 * dayMs);
    expect(served(world, keeper)).toBe(true);
    keeper.stop();
  });

  it('is served after one day if the trust of the clients is unknown', async () => {
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

  it('replaces a deleted Secret, and the served certificate stays in it', async () => {
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

  it('from a user in the Secret is adopted, and the served one stays until clients trust it', async () => {
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

const nowMs = Date.UTC(2026, 0, 15, 12);

describe('the end of the certificate', () => {
  it.each([
    [365, 15, undefined],
    [365, 13.9, 'expires in 13 days and has not been renewed'],
    [365, 1.5, 'expires in 36 hours and has not been renewed'],
    [365, -1, 'has expired: API servers refuse to call it'],
    // A certificate that lives for two weeks is renewed when five days are left.
    [14, 5, undefined],
    [14, 3, 'expires in 3 days and has not been renewed'],
  ])('of %d days, %d of them left: %s', (lifeDays, leftDays, said) => {
    const pair = pairOf({ nowMs: nowMs - (lifeDays - leftDays) * dayMs, lifetimeMs: lifeDays * dayMs });
    const expiry = expiryOf({ current: () => pair }, nowMs);
    expect(expiry).toMatchObject({ notAfterMs: nowMs + leftDays * dayMs });
    expect(expiry?.degradation ?? 'well').toContain(said ?? 'well');
  });

  it('is unknown while no certificate is served', () => {
    expect(expiryOf({ current: () => undefined }, nowMs)).toBeUndefined();
  });

  it('is a degradation if renewal is not possible', async () => {
    const world = newWorld();
    const certificates = world.certificates({ lifetimeMs: 90 * dayMs });
    await world.env.until(() => certificates.current() !== undefined);
    world.server.forbid('update secrets');
    await pass(world, 70 * dayMs);
    expect(certificates.degradations()).toEqual([expect.stringContaining('grant create on secrets, and get and update on this one')]);
    await pass(world, 10 * dayMs);
    expect(certificates.degradations()[1]).toContain('expires in 10 days');
    certificates.stop();
  });
});

/** A request with the bundle that the configuration has, as the API server makes it. */
function call(port: number, ca: string, agent?: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      ca,
      servername: 'operator.one.svc',
      ...(agent === undefined ? { agent: false as const } : { agent }),
    };
    const asked = request(options, (response) => {
      response.resume();
      response.on('end', () => resolve(String(response.statusCode)));
    });
    asked.on('error', reject);
    asked.end();
  });
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

it('TLS clients that trust the configuration get an answer before, during and after a renewal, on old connections too', async () => {
  const world = newWorld(1, Date.now());
  world.configure('hooks');
  const certificates = world.certificates();
  // What the server follows.
  const source: TlsSource = certificates;
  await world.env.until(() => world.bundles('hooks')[0] !== '');
  await world.env.advance(1000);
  const { cert, key } = certificates.current() ?? {};
  const server = createServer({ cert, key }, (_, response) => response.end());
  const contexts: string[] = [];
  source.onChange(() => {
    const { cert: nextCert = '', key: nextKey = '' } = certificates.current() ?? {};
    server.setSecureContext({ cert: nextCert, key: nextKey });
    contexts.push(nextCert);
  });
  const port = await listening(server);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const bundle = (): string => world.bundles('hooks')[0] ?? '';
  const answers: string[] = [];
  try {
    answers.push(await call(port, bundle(), agent));
    world.server.remove({ user: 'jane' }, { resource: 'secrets', namespace: 'one', name: secretName });
    for (let second = 0; second < 60; second += 1) {
      await world.env.advance(1000);
      answers.push(await call(port, bundle()));
    }
    answers.push(await call(port, bundle(), agent));
    expect(certificates.current()?.cert).not.toBe(cert);
    expect(contexts.at(-1)).toBe(certificates.current()?.cert);
    expect(new Set(answers)).toEqual(new Set(['200']));
    await pass(world, 0.1 * 86_400_000);
    expect(await call(port, bundle())).toBe('200');
  } finally {
    agent.destroy();
    server.close();
    certificates.stop();
  }
});
