import { describe, expect, it } from 'vitest';
import { shareOf } from '../../kit/share.ts';
import { status } from '../../kit/virtual-env.ts';
import { bothLabels, encoded, isAccepted, mutating, newWorld, pass, secretName, validating, type World } from './world.ts';

const jane = { user: 'jane' };
const patches = (world: World): number => world.calls().filter((call) => call === 'PATCH certificates.inject').length;

interface Entry {
  readonly name: string;
  readonly clientConfig: Readonly<Record<string, unknown>>;
}

function webhooksOf(world: World, name: string, resource = validating): readonly Entry[] {
  return (world.server.get(resource, '', name)?.['webhooks'] ?? []) as readonly Entry[];
}

/** Everything but `caBundle` of the entries, and what the server itself counts. */
function bareOf(world: World, name: string, resource = validating): unknown {
  const { resourceVersion: _, generation: __, ...rest } = (world.server.get(resource, '', name)?.metadata ?? {}) as Record<string, unknown>;
  return [
    rest,
    webhooksOf(world, name, resource).map(({ clientConfig: { caBundle: ___, ...clientConfig }, ...entry }) => ({ ...entry, clientConfig })),
  ];
}

/** Takes the authority out of every entry, as a tool does that applies its own file. */
function strip(world: World, name: string, resource = validating): void {
  const entries = webhooksOf(world, name, resource).map((entry) => ({
    ...entry,
    clientConfig: { ...entry.clientConfig, caBundle: 'Cg==' },
  }));
  world.server.change(jane, { resource, namespace: '', name }, { webhooks: entries });
}

describe('a webhook configuration with both labels', () => {
  it.each([
    ['validating', validating],
    ['mutating', mutating],
  ])('gets the authority in every entry, without other changes (%s)', async (_, resource) => {
    const world = newWorld();
    const entries = [
      { name: 'a.grafana.com' },
      { name: 'b.grafana.com', failurePolicy: 'Ignore', clientConfig: { url: 'https://x/', caBundle: 'Cg==' } },
    ];
    world.configure('hooks', { resource, entries, annotations: { note: 'mine' } });
    const before = bareOf(world, 'hooks', resource);
    const certificates = world.certificates();
    await world.env.until(() => world.bundles('hooks', resource).every((bundle) => isAccepted(certificates.current(), bundle)));
    expect(world.bundles('hooks', resource)).toEqual([world.text('ca'), world.text('ca')]);
    expect(bareOf(world, 'hooks', resource)).toEqual(before);
    await world.env.advance(600_000);
    expect(patches(world)).toBe(1);
    expect(certificates.degradations()).toEqual([]);
    certificates.stop();
  });

  it('gets it if it is created later', async () => {
    const world = newWorld();
    const certificates = world.certificates();
    await world.env.until(() => certificates.current() !== undefined);
    world.configure('hooks');
    await world.env.until(() => isAccepted(certificates.current(), world.bundles('hooks')[0] ?? ''));
    certificates.stop();
  });

  it('gets it again if a user removes it, and its new entries get it too', async () => {
    const world = newWorld();
    world.configure('hooks');
    const certificates = world.certificates();
    await world.env.until(() => world.bundles('hooks')[0] !== '');
    await world.env.advance(5000);
    strip(world, 'hooks');
    await world.env.until(() => isAccepted(certificates.current(), world.bundles('hooks')[0] ?? ''));
    const added = { name: 'new.grafana.com', clientConfig: { service: { name: 'operator', namespace: 'one' } } };
    world.server.change(jane, { resource: validating, namespace: '', name: 'hooks' }, { webhooks: [added, ...webhooksOf(world, 'hooks')] });
    await world.env.until(() => world.bundles('hooks').every((bundle) => isAccepted(certificates.current(), bundle)));
    expect(world.bundles('hooks')).toHaveLength(2);
    certificates.stop();
  });

  it('is patched more and more slowly if a tool removes the authority each time, and the problem is reported', async () => {
    const world = newWorld();
    world.configure('hooks');
    world.server.observe({
      committed: ({ resource, actor }) => {
        if (resource === validating && actor.user === 'operator') world.env.timers.after(50, () => strip(world, 'hooks'));
      },
    });
    const certificates = world.certificates();
    await world.env.advance(3_600_000);
    expect(patches(world)).toBeGreaterThan(20);
    expect(patches(world)).toBeLessThan(120);
    expect(world.log.filter(({ message }) => message.startsWith('another tool repeatedly removes'))).toHaveLength(1);
    certificates.stop();
  });

  it('gets it if the permission to patch comes later; until then the problem names the permission', async () => {
    const world = newWorld();
    world.configure('hooks');
    world.server.forbid(`patch ${validating}`);
    const certificates = world.certificates();
    await world.env.advance(300_000);
    expect(world.bundles('hooks')).toEqual(['']);
    expect(certificates.degradations()).toEqual([
      expect.stringMatching(/^ValidatingWebhook configuration hooks: .*; grant patch on validatingwebhookconfigurations$/),
    ]);
    expect(world.log.filter(({ message }) => message === 'a webhook configuration lacks our CA certificate')).toHaveLength(1);
    world.server.permit(`patch ${validating}`);
    await world.env.until(() => isAccepted(certificates.current(), world.bundles('hooks')[0] ?? ''), 61_000);
    await world.env.advance(1000);
    expect(certificates.degradations()).toEqual([]);
    certificates.stop();
  });

  it('gets it if patches fail, or are carried out without an answer', async () => {
    const world = newWorld();
    world.configure('hooks');
    let failures = 0;
    world.interfere(({ method }) => {
      if (method !== 'PATCH' || failures > 5) return undefined;
      failures += 1;
      return failures % 2 === 0 ? status(503, 'ServiceUnavailable') : { lost: 'reply' };
    });
    const certificates = world.certificates();
    await world.env.until(() => isAccepted(certificates.current(), world.bundles('hooks')[0] ?? ''));
    expect(failures).toBe(6);
    certificates.stop();
  });

  it('that changes between read and patch nine times is patched in its last state, and the delays do not grow', async () => {
    const world = newWorld();
    world.configure('hooks', { entries: [{ name: 'a.grafana.com' }, { name: 'b.grafana.com' }] });
    const startMs = world.env.clock.monotonicMs();
    let changes = 0;
    world.interfere(({ method }) => {
      if (method !== 'PATCH' || changes === 9) return undefined;
      changes += 1;
      world.server.change(
        jane,
        { resource: validating, namespace: '', name: 'hooks' },
        { webhooks: webhooksOf(world, 'hooks').toReversed() },
      );
      return undefined;
    });
    const certificates = world.certificates();
    await world.env.until(() => world.bundles('hooks').every((bundle) => isAccepted(certificates.current(), bundle)));
    expect(webhooksOf(world, 'hooks').map(({ name }) => name)).toEqual(['b.grafana.com', 'a.grafana.com']);
    expect(world.env.clock.monotonicMs() - startMs).toBeLessThan(15_000);
    certificates.stop();
  });
});

it('a bundle that was written after the read is not overwritten by the patch', async () => {
  const world = newWorld();
  world.configure('hooks');
  const statuses: number[] = [];
  world.server.observe({ answered: ({ verb, status: answered }) => void (verb === 'patch' && statuses.push(answered)) });
  world.interfere(({ method }) => {
    if (method === 'PATCH' && statuses.length === 0) strip(world, 'hooks');
    return undefined;
  });
  const certificates = world.certificates();
  await world.env.until(() => isAccepted(certificates.current(), world.bundles('hooks')[0] ?? ''));
  expect(statuses).toEqual([422, 200]);
  certificates.stop();
});

describe('a webhook configuration is not changed', () => {
  it.each([
    ['without the label that asks for it', { labels: { 'grafana.com/namespace': 'one' } }],
    ['of another namespace', { labels: { ...bothLabels, 'grafana.com/namespace': 'two' } }],
    ['whose label says something else than true', { labels: { ...bothLabels, 'grafana.com/inject-rollout-operator-ca': 'True' } }],
    ['that names a certificate of cert-manager', { annotations: { 'cert-manager.io/inject-ca-from': 'one/cert' } }],
    ['that names a Secret for cert-manager', { annotations: { 'cert-manager.io/inject-ca-from-secret': 'one/secret' } }],
  ])('%s', async (_, options) => {
    const world = newWorld();
    world.configure('hooks', options);
    const certificates = world.certificates();
    await world.env.advance(600_000);
    expect(world.bundles('hooks')).toEqual(['']);
    expect(patches(world)).toBe(0);
    certificates.stop();
  });

  it('if injection is disabled', async () => {
    const world = newWorld();
    world.configure('hooks');
    const certificates = world.certificates({ injectsAuthority: false });
    await world.env.advance(600_000);
    expect([world.bundles('hooks'), patches(world)]).toEqual([[''], 0]);
    certificates.stop();
  });
});

/** At every commit: does what each replica serves verify under what each configuration trusts? */
function watchTrust(world: World, replicas: readonly ReturnType<World['certificates']>[], names: readonly string[]) {
  const broken: string[] = [];
  const check = (): void => {
    for (const name of names) {
      for (const bundle of world.bundles(name)) {
        for (const [index, replica] of replicas.entries()) {
          if (!isAccepted(replica.current(), bundle))
            broken.push(`${world.env.clock.monotonicMs()}: ${name} does not trust replica ${index}`);
        }
      }
    }
  };
  world.server.observe({ committed: check });
  for (const replica of replicas) replica.onChange(check);
  return broken;
}

describe('during a renewal', () => {
  it.each(shareOf([1, 2, 3, 4, 5, 6, 7, 8], 2))('the served certificate is trusted at all times (seed %i)', async (seed) => {
    const world = newWorld(seed);
    world.configure('hooks', { entries: [{ name: 'a.grafana.com' }, { name: 'b.grafana.com' }] });
    world.configure('others');
    const replicas = [1, 2, 3].map((own) => world.certificates({ seed: own }));
    await world.env.advance(60_000);
    world.interfere(async ({ isStream }) => {
      if (!isStream) await new Promise<void>((resolve) => void world.env.timers.after(world.env.random() * 3000, resolve));
      return undefined;
    });
    const broken = watchTrust(world, replicas, ['hooks', 'others']);
    const first = world.text('cert');
    await pass(world, 6.6 * 86_400_000);
    expect(world.text('cert')).not.toBe(first);
    expect(replicas.map((replica) => replica.current()?.cert)).toEqual(Array(3).fill(world.text('cert')));
    await pass(world, 1.5 * 86_400_000);
    expect(world.bundles('hooks')[0]?.match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
    expect(broken).toEqual([]);
    for (const replica of replicas) replica.stop();
  });

  it('a replica without access to the API server meanwhile is trusted too, and updates later', async () => {
    const world = newWorld();
    world.configure('hooks');
    const replicas = [1, 2, 3].map((own) => world.certificates({ seed: own }));
    await world.env.advance(60_000);
    const first = world.text('cert');
    const broken = watchTrust(world, replicas, ['hooks']);
    world.cut(3, true);
    await pass(world, 6.6 * 86_400_000);
    await pass(world, 0.5 * 86_400_000);
    expect(replicas.map((replica) => replica.current()?.cert)).toEqual([world.text('cert'), world.text('cert'), first]);
    world.cut(3, false);
    await world.env.advance(600_000);
    expect(replicas[2]?.current()?.cert).toBe(world.text('cert'));
    expect(broken).toEqual([]);
    for (const replica of replicas) replica.stop();
  });

  it('the served certificate stays trusted while patches are forbidden, also in a replica that starts meanwhile', async () => {
    const world = newWorld();
    world.configure('hooks');
    const replicas = [1, 2].map((own) => world.certificates({ seed: own }));
    await world.env.advance(60_000);
    // From now on nobody may patch: the new authority cannot be put anywhere.
    world.server.forbid(`patch ${validating}`);
    await pass(world, 6.6 * 86_400_000);
    const late = world.certificates({ seed: 3 });
    const broken = watchTrust(world, [...replicas, late], ['hooks']);
    await world.env.until(() => late.current() !== undefined);
    await world.env.advance(600_000);
    expect(isAccepted(late.current(), world.bundles('hooks')[0] ?? '')).toBe(true);
    world.server.permit(`patch ${validating}`);
    await world.env.advance(600_000);
    expect(late.current()?.cert).toBe(world.text('cert'));
    expect(broken).toEqual([]);
    for (const replica of [...replicas, late]) replica.stop();
  });

  it.each(shareOf([1, 2, 3, 4, 5, 6], 2))(
    'replicas that learn of the new authority late do not remove it again (seed %i)',
    async (seed) => {
      const world = newWorld(seed);
      // The Secret is read once a minute only.
      world.server.forbid('list secrets', 'watch secrets');
      world.configure('hooks');
      const replicas = [1, 2, 3].map((own) => world.certificates({ seed: own }));
      await world.env.advance(100_000);
      const broken = watchTrust(world, replicas, ['hooks']);
      const seen: string[] = [];
      world.server.observe({ committed: ({ resource }) => void (resource === validating && seen.push(world.bundles('hooks')[0] ?? '')) });
      world.server.remove(jane, { resource: 'secrets', namespace: 'one', name: secretName });
      await world.env.advance(1_200_000);
      expect(new Set(replicas.map((replica) => replica.current()?.cert))).toEqual(new Set([world.text('cert')]));
      // Once with the new authority beside the old one; the old one is still there.
      expect(seen).toEqual([world.text('ca')]);
      expect(broken).toEqual([]);
      for (const replica of replicas) replica.stop();
    },
  );

  it('the same after the deletion of the Secret', async () => {
    const world = newWorld();
    world.configure('hooks');
    const replicas = [1, 2, 3].map((own) => world.certificates({ seed: own }));
    await world.env.advance(60_000);
    const first = world.text('cert');
    const broken = watchTrust(world, replicas, ['hooks']);
    world.server.remove(jane, { resource: 'secrets', namespace: 'one', name: secretName });
    await world.env.advance(600_000);
    expect(world.text('cert')).not.toBe(first);
    expect(replicas.map((replica) => replica.current()?.cert)).toEqual(Array(3).fill(world.text('cert')));
    expect(broken).toEqual([]);
    for (const replica of replicas) replica.stop();
  });
});

it.each([
  ['on', true],
  ['off', false],
])(
  'with injection %s, a certificate whose authority is copied by hand is served one day after its creation',
  async (_, injectsAuthority) => {
    const world = newWorld();
    const certificates = world.certificates({ injectsAuthority });
    await world.env.until(() => certificates.current() !== undefined);
    const clientConfig = { service: { name: 'operator', namespace: 'one' }, caBundle: encoded(world.text('ca')) };
    world.configure('hooks', { entries: [{ name: 'a', clientConfig }], labels: { 'grafana.com/namespace': 'one' } });
    await pass(world, 6.6 * 86_400_000);
    expect(isAccepted(certificates.current(), world.bundles('hooks')[0] ?? '')).toBe(true);
    await pass(world, 1.2 * 86_400_000);
    expect(certificates.current()?.cert).toBe(world.text('cert'));
    certificates.stop();
  },
);

it('the failure policy of each entry is reported, and dropped for deleted entries', async () => {
  const world = newWorld();
  // The entry for StatefulSets outside of groups is left out, because `Ignore` is right there.
  const others = { name: 'pod-eviction-of-others.enforce.rollout-group.dev', failurePolicy: 'Ignore' };
  const entries = [{ name: 'x' }, { name: 'y', failurePolicy: 'Ignore' }, others];
  world.configure('a', { labels: { 'grafana.com/namespace': 'one' }, entries });
  world.configure('b', {
    resource: mutating,
    labels: { 'grafana.com/namespace': 'one' },
    entries: [{ name: 'x', failurePolicy: undefined }],
  });
  world.configure('c', { labels: { 'grafana.com/namespace': 'two' }, entries: [{ name: 'z' }] });
  const certificates = world.certificates();
  const told = (): readonly string[] =>
    certificates.failurePolicies().map(({ type, webhook, policy, value }) => `${type} ${webhook} ${policy} ${value}`);
  await world.env.until(() => told().length === 6);
  expect(told()).toEqual([
    'ValidatingWebhook x Fail 1',
    'ValidatingWebhook x Ignore 0',
    'ValidatingWebhook y Fail 0',
    'ValidatingWebhook y Ignore 1',
    'MutatingWebhook x Fail 1',
    'MutatingWebhook x Ignore 0',
  ]);
  world.server.remove(jane, { resource: validating, namespace: '', name: 'a' });
  await world.env.until(() => told().length === 2);
  world.server.change(jane, { resource: mutating, namespace: '', name: 'b' }, { metadata: { labels: { 'grafana.com/namespace': 'two' } } });
  await world.env.until(() => told().length === 0);
  certificates.stop();
});

it('unreadable configurations are named, and the certificate is still served', async () => {
  const world = newWorld();
  world.server.forbid(`list ${validating}`);
  const certificates = world.certificates();
  await world.env.until(() => certificates.current() !== undefined);
  await world.env.advance(1000);
  expect(certificates.degradations()).toEqual([expect.stringContaining('webhook configurations cannot be read: ')]);
  // What they trust cannot be told: a new certificate is served after a day.
  await pass(world, 6.6 * 86_400_000);
  expect(certificates.current()?.cert).toBe(world.text('previous-cert'));
  await pass(world, 1.2 * 86_400_000);
  expect(certificates.current()?.cert).toBe(world.text('cert'));
  certificates.stop();
});
