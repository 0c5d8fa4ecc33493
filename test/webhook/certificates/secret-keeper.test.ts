import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { namesOf } from '../../../webhook/certificates/authority.ts';
import { status } from '../../kit/virtual-env.ts';
import { pairOf, service } from './given.ts';
import { dayMs, isAccepted, newWorld, pass, secretName, type World } from './world.ts';

const other = { names: ['other.one.svc'] };
/** What a Secret may hold when the webhook starts, what is asked of the API server then, and what becomes of it. */
const states: readonly {
  readonly what: string;
  /** undefined: no Secret. */
  readonly data?: (nowMs: number) => Readonly<Record<string, string>> | undefined;
  readonly calls: readonly string[];
  readonly isKept: boolean;
  readonly reason?: string;
}[] = [
  { what: 'absent', calls: ['GET', 'POST'], isKept: false, reason: 'there is no Secret' },
  { what: 'without data', data: () => undefined, calls: ['GET', 'PUT'], isKept: false, reason: 'the Secret has no data' },
  { what: 'with a valid pair', data: (nowMs) => ({ ...pairOf({ nowMs }) }), calls: ['GET'], isKept: true },
  {
    what: 'with an expired pair',
    data: (nowMs) => ({ ...pairOf({ nowMs: nowMs - 2 * dayMs }) }),
    calls: ['GET', 'PUT'],
    isKept: false,
    reason: 'the certificate expired at 2026-01-14T12:00:00.000Z',
  },
  {
    what: 'with a pair past two thirds of its life',
    data: (nowMs) => ({ ...pairOf({ nowMs: nowMs - 0.7 * dayMs }) }),
    calls: ['GET', 'PUT'],
    isKept: false,
    reason: 'the certificate ends at 2026-01-15T19:12:00.000Z',
  },
  {
    what: 'with a pair for another name',
    data: (nowMs) => ({ ...pairOf({ nowMs, ...other }) }),
    calls: ['GET', 'PUT'],
    isKept: false,
    reason: 'the certificate is not valid for operator.one.svc',
  },
  {
    what: 'with the authority of another certificate',
    data: (nowMs) => ({ ...pairOf({ nowMs }), ca: pairOf({ nowMs }).ca }),
    calls: ['GET', 'PUT'],
    isKept: false,
    reason: 'the certificate was not issued by the CA in ca',
  },
  {
    what: 'with the key of another certificate',
    data: (nowMs) => ({ ...pairOf({ nowMs }), key: pairOf({ nowMs }).key }),
    calls: ['GET', 'PUT'],
    isKept: false,
    reason: 'the key does not match the certificate',
  },
  ...(['ca', 'cert', 'key'] as const).map((key) => ({
    what: `with a ${key} that is not PEM`,
    data: (nowMs: number) => ({ ...pairOf({ nowMs }), [key]: 'nonsense' }),
    calls: ['GET', 'PUT'],
    isKept: false,
    reason: { ca: 'the CA certificate is not PEM', cert: 'the certificate is not PEM', key: 'the key is not PEM, or is encrypted' }[key],
  })),
  ...(['ca', 'cert', 'key'] as const).map((key) => ({
    what: `without ${key}`,
    data: (nowMs: number) => Object.fromEntries(Object.entries(pairOf({ nowMs })).filter(([name]) => name !== key)),
    calls: ['GET', 'PUT'],
    isKept: false,
    reason: `it has no ${key}`,
  })),
];

function served(world: World, keeper: { readonly current: () => { readonly cert: string } | undefined }): boolean {
  return keeper.current()?.cert === world.text('cert');
}

describe('a Secret', () => {
  it.each(states)('$what: the webhook serves its content afterwards', async ({ data, calls, isKept, reason, what }) => {
    const world = newWorld();
    if (what !== 'absent') world.putSecret(data?.(world.env.clock.nowMs()));
    const before = what === 'absent' ? '' : world.text('cert');
    const keeper = world.keeper();
    await world.env.until(() => keeper.current() !== undefined);
    await world.env.advance(1000);
    expect(world.calls().map((call) => call.split(' ')[0])).toEqual(calls);
    expect(world.text('cert') === before).toBe(isKept);
    expect(served(world, keeper) || world.text('previous-cert') === keeper.current()?.cert).toBe(true);
    expect(isAccepted(keeper.current(), keeper.caBundle() ?? '', what.includes('another name') ? 'other.one.svc' : undefined)).toBe(true);
    const written = world.log.filter(({ message }) => message === 'wrote the certificate to its Secret');
    expect(written.map(({ fields }) => fields['reason'])).toEqual(reason === undefined ? [] : [reason]);
    expect(keeper.problem()).toBeUndefined();
    keeper.stop();
  });

  it('has the names and the keys of the original, and only the certificate of the authority', async () => {
    const world = newWorld();
    const keeper = world.keeper();
    await world.env.until(() => keeper.current() !== undefined);
    const secret = world.secret();
    expect(Object.keys(secret?.['data'] as object).sort()).toEqual(['ca', 'cert', 'key']);
    expect(secret?.['type']).toBeUndefined();
    expect(new X509Certificate(world.text('cert')).subjectAltName).toBe('DNS:operator.one.svc, DNS:operator.one');
    expect(world.text('ca').match(/BEGIN [A-Z ]+/g)).toEqual(['BEGIN CERTIFICATE']);
    keeper.stop();
  });

  it('keeps its other keys', async () => {
    const world = newWorld();
    world.putSecret({ ca: 'x', note: 'keep me' });
    const keeper = world.keeper();
    await world.env.until(() => keeper.current() !== undefined);
    expect(world.text('note')).toBe('keep me');
    keeper.stop();
  });

  it.each([
    ['kubernetes.io/tls', { 'tls.crt': 'x', 'tls.key': 'y' }, 'of type kubernetes.io/tls and holds tls.crt, tls.key'],
    ['Opaque', { password: 'x' }, 'of type Opaque and holds password, but no ca and no cert and no key'],
    ['Opaque', { ca: 'x', 'tls.crt': 'y', 'tls.key': 'z' }, 'of type Opaque and holds ca, tls.crt, tls.key, but no cert and no key'],
    ['Opaque', { ca: 'x', cert: 'y', 'tls.key': 'z' }, 'of type Opaque and holds ca, cert, tls.key, but no key'],
  ])('of another owner, of type %s, is unchanged, and the error names the owner', async (type, data, said) => {
    const world = newWorld();
    world.putSecret(data, type);
    const before = world.secret();
    const keeper = world.keeper();
    await world.env.advance(120_000);
    expect(keeper.current()).toBeUndefined();
    expect(world.secret()).toBe(before);
    expect(keeper.problem()).toContain(`Secret one/${secretName} contains other data: it is ${said}`);
    expect(world.log.filter(({ level }) => level === 'error')).toHaveLength(1);
    // Once somebody has taken it away, all is well.
    world.server.remove({ user: 'jane' }, { resource: 'secrets', namespace: 'one', name: secretName });
    await world.env.until(() => keeper.current() !== undefined);
    expect(keeper.problem()).toBeUndefined();
    keeper.stop();
  });

  it.each(['operator.one.svc', 'operator.one.svc.cluster.local', 'operator', 'hook.example.com', 'operator.one.svc.'])(
    'of the original, with the dns-name %s as its only name, is used until its renewal, which adds the other names',
    async (dnsName) => {
      const world = newWorld();
      world.putSecret({ ...pairOf({ nowMs: world.env.clock.nowMs(), names: [dnsName] }) });
      const version = world.secret()?.metadata.resourceVersion;
      const keeper = world.keeper({ names: namesOf({ ...service, dnsName }) });
      await world.env.advance(1000);
      expect(served(world, keeper)).toBe(true);
      await world.env.advance(dayMs / 2);
      expect(world.secret()?.metadata.resourceVersion).toBe(version);
      await world.env.advance(dayMs / 4);
      const names = new X509Certificate(world.text('cert')).subjectAltName?.split(', ') ?? [];
      expect(names).toEqual(expect.arrayContaining([`DNS:${dnsName}`, 'DNS:operator.one.svc']));
      keeper.stop();
    },
  );

  it('with a certificate that lacks a name gets one with the old names too, so replicas with other settings do not alternate', async () => {
    const world = newWorld();
    const one = world.keeper({ seed: 1, names: ['a.one.svc'] });
    await world.env.until(() => one.current() !== undefined);
    const two = world.keeper({ seed: 2, names: ['b.one.svc'] });
    await pass(world, dayMs);
    expect(new X509Certificate(world.text('cert')).subjectAltName).toBe('DNS:b.one.svc, DNS:a.one.svc');
    expect(world.log.filter(({ message }) => message === 'wrote the certificate to its Secret')).toHaveLength(2);
    one.stop();
    two.stop();
  });
});

it('that a user empties again and again is written more and more slowly', async () => {
  const world = newWorld();
  world.server.observe({
    committed: ({ resource, type, actor }) => {
      if (resource === 'secrets' && type !== 'DELETED' && actor.user === 'operator')
        void world.env.timers.after(100, () => world.putSecret({ ca: 'x' }));
    },
  });
  const keeper = world.keeper();
  await world.env.advance(3_600_000);
  const count = world.calls().filter((call) => call.startsWith('PUT')).length;
  expect(count).toBeGreaterThan(10);
  expect(count).toBeLessThan(100);
  expect(keeper.current()).toBeDefined();
  keeper.stop();
});

describe('without access to the API server', () => {
  it('the served certificate stays, and a missing one is created as soon as possible', async () => {
    const world = newWorld();
    const keeper = world.keeper();
    await world.env.until(() => keeper.current() !== undefined);
    const before = keeper.current();
    world.interfere(() => ({ lost: 'before-apply' }));
    world.server.remove({ user: 'jane' }, { resource: 'secrets', namespace: 'one', name: secretName });
    await world.env.advance(3_600_000);
    expect(keeper.current()).toEqual(before);
    expect(keeper.problem()).toContain('connection was reset');
    world.interfere(undefined);
    await world.env.advance(120_000);
    expect(world.text('previous-cert')).toBe(before?.cert);
    expect(keeper.current()?.cert).toBe(before?.cert);
    expect(keeper.problem()).toBeUndefined();
    keeper.stop();
  });

  it.each(['get', 'create'])('a missing permission to %s is named, and retried until it is granted', async (verb) => {
    const world = newWorld();
    world.server.forbid(`${verb} secrets`);
    const keeper = world.keeper();
    await world.env.advance(60_000);
    expect(keeper.current()).toBeUndefined();
    expect(keeper.problem()).toMatch(/^Secret one\/operator-certificate: .*; grant create on secrets, and get and update on this one$/);
    world.server.permit(`${verb} secrets`);
    await world.env.until(() => keeper.current() !== undefined);
    keeper.stop();
  });

  it('a Role without list and watch is enough, because another certificate is found by polling', async () => {
    const world = newWorld();
    world.server.forbid('list secrets', 'watch secrets');
    const keeper = world.keeper({ isTrusted: () => true });
    await world.env.until(() => keeper.current() !== undefined);
    world.putSecret({ ...pairOf({ nowMs: world.env.clock.nowMs() }) });
    await world.env.advance(180_000);
    expect(served(world, keeper)).toBe(true);
    keeper.stop();
  });

  it('a lost answer does not create a second authority', async () => {
    const world = newWorld();
    let lost = 0;
    world.interfere((request) => {
      if (request.method !== 'POST' || lost > 0) return undefined;
      lost += 1;
      const object = request.json as { readonly metadata: object };
      world.server.create({ user: 'operator' }, 'secrets', object as never);
      return { lost: 'reply' };
    });
    const keeper = world.keeper();
    await world.env.advance(60_000);
    expect(lost).toBe(1);
    expect(world.calls().filter((call) => !call.startsWith('GET'))).toHaveLength(1);
    expect(served(world, keeper)).toBe(true);
    keeper.stop();
  });
});

describe('several replicas', () => {
  it.each(Array.from({ length: 40 }, (_, seed) => seed + 1))(
    'that start at the same time, requests in the order of seed %i, serve one certificate',
    async (seed) => {
      const world = newWorld(seed);
      // Each request takes up to a second to arrive, and its answer up to a second to come back.
      world.interfere(async ({ isStream }) => {
        if (!isStream) await new Promise<void>((resolve) => void world.env.timers.after(world.env.random() * 1000, resolve));
        return undefined;
      });
      if (seed % 3 === 0) world.putSecret(seed % 2 === 0 ? undefined : { ca: 'broken', cert: 'x', key: 'y' });
      const seen = new Set<string>();
      const keepers = [1, 2, 3].map((own) => world.keeper({ seed: own }));
      for (const keeper of keepers) keeper.onChange(() => void seen.add(keeper.current()?.cert ?? ''));
      await world.env.advance(60_000);
      expect(seen).toEqual(new Set([world.text('cert')]));
      for (const keeper of keepers) {
        expect(keeper.current()).toEqual(keepers[0]?.current());
        expect(keeper.caBundle()).toBe(world.text('ca'));
        keeper.stop();
      }
      expect(world.text('ca').match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
    },
  );

  it('renew once, before two thirds of the duration, and all serve the new one without a restart', async () => {
    const world = newWorld();
    const keepers = [1, 2, 3].map((own) => world.keeper({ seed: own, isTrusted: () => true }));
    await world.env.until(() => keepers.every((keeper) => keeper.current() !== undefined));
    const first = world.text('cert');
    await pass(world, 10 * dayMs * 0.6);
    expect(world.text('cert')).toBe(first);
    await pass(world, 10 * dayMs * 0.07);
    expect(world.text('cert')).not.toBe(first);
    for (const keeper of keepers) {
      expect(served(world, keeper)).toBe(true);
      expect(isAccepted(keeper.current(), keeper.caBundle() ?? '')).toBe(true);
    }
    expect(world.log.filter(({ fields }) => String(fields['reason']).startsWith('the certificate ends'))).toHaveLength(1);
    for (const keeper of keepers) keeper.stop();
  });

  it('drop the previous certificate and its authority after it was not served for a while', async () => {
    const world = newWorld();
    world.putSecret({ ...pairOf({ nowMs: world.env.clock.nowMs() - 0.7 * dayMs }) });
    const keepers = [1, 2].map((own) => world.keeper({ seed: own, isTrusted: () => true }));
    await world.env.advance(300_000);
    expect(world.text('ca').match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    expect(world.text('previous-cert')).not.toBe('');
    await pass(world, 1.1 * dayMs);
    expect(world.text('ca').match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
    expect(world.text('previous-cert')).toBe('');
    for (const keeper of keepers) {
      expect(served(world, keeper)).toBe(true);
      keeper.stop();
    }
  });
});

it('a stop leaves no timer, and no further write', async () => {
  const world = newWorld();
  const keeper = world.keeper();
  await world.env.until(() => keeper.current() !== undefined);
  await world.env.advance(5000);
  keeper.stop();
  await world.env.advance(60_000);
  world.server.remove({ user: 'jane' }, { resource: 'secrets', namespace: 'one', name: secretName });
  await world.env.advance(3_600_000);
  expect(world.secret()).toBeUndefined();
  expect(world.env.openWatchCount()).toBe(0);
  expect(keeper.current()).toBeDefined();
});

it('no line of the log and no problem contains a key or a certificate', async () => {
  const world = newWorld();
  world.putSecret({ ...pairOf({ nowMs: world.env.clock.nowMs() }), key: 'SECRET-CANARY' });
  const keeper = world.keeper();
  await world.env.advance(60_000);
  world.interfere(() => status(500, 'InternalError'));
  await world.env.advance(3_600_000);
  expect(JSON.stringify([world.log, keeper.problem()])).not.toMatch(/SECRET-CANARY|BEGIN/);
  expect(world.log.length).toBeGreaterThan(1);
  keeper.stop();
});
