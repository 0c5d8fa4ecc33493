import { describe, expect, it } from 'vitest';
import { installation } from '../../../install/installation.ts';
import { membersNamed } from '../../../install/narrowing.ts';
import type { Member } from '../../../install/scope.ts';
import type { WebhookConfiguration } from '../../../webhook/certificates/webhook-configurations.ts';
import { startNarrowing } from '../../../webhook/registration/narrow.ts';
import { type RegistrationProblem, startRegistration } from '../../../webhook/registration/registration.ts';
import { optionsOf } from '../../install/given.ts';
import { type Served, type ServedRequest, status, virtualEnv } from '../../kit/virtual-env.ts';

type Row = Readonly<Record<string, unknown>>;
interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value: unknown;
}

const member = (statefulSet: string): Member => ({ namespace: 'mimir', statefulSet });
const silent = (): void => undefined;

/** Our configurations before an API server in memory that knows nothing else but labels of namespaces. */
function newWorld() {
  let version = 1;
  let stored: readonly WebhookConfiguration[] = installation(optionsOf())
    .filter(({ kind }) => kind.endsWith('WebhookConfiguration'))
    .map(({ kind, metadata, webhooks }) => ({
      kind: kind.startsWith('Val') ? 'ValidatingWebhook' : 'MutatingWebhook',
      name: metadata.name,
      uid: metadata.name,
      resourceVersion: '1',
      labels: {},
      annotations: {},
      entries: [],
      webhooks: webhooks as readonly Row[],
    })) as readonly WebhookConfiguration[];
  const listeners = new Set<() => void>();
  const labels = new Map<string, string | undefined>();
  const patches: string[] = [];
  let refuse: (() => Served | undefined) | undefined;
  const put = (
    kind: WebhookConfiguration['kind'],
    webhooks: WebhookConfiguration['webhooks'] | undefined,
    name = 'rollout-group',
  ): void => {
    version += 1;
    const [resourceVersion] = [`${version}`];
    stored = stored.flatMap((one) =>
      one.kind !== kind || one.name !== name ? [one] : webhooks === undefined ? [] : [{ ...one, webhooks, resourceVersion }],
    );
    for (const listener of listeners) listener();
  };
  const rows = (named = 'rollout-group'): WebhookConfiguration['webhooks'] =>
    stored.find(({ kind, name }) => name === named && (kind === 'ValidatingWebhook' || name !== 'rollout-group'))?.webhooks ?? [];
  const serve = ({ method, pathname, json }: ServedRequest): Served => {
    const namespace = /^\/api\/v1\/namespaces\/([^/]+)$/.exec(pathname)?.[1];
    if (namespace !== undefined) {
      const label = labels.get(namespace);
      const metadata = { name: namespace, ...(label === undefined ? {} : { labels: { 'rollout-group.dev/enforce': label } }) };
      const missing = status(404, 'NotFound', 'there is none', { name: namespace, kind: 'namespaces' });
      return labels.has(namespace) ? { status: 200, body: { apiVersion: 'v1', kind: 'Namespace', metadata } } : missing;
    }
    if (method !== 'PATCH') return status(404, 'NotFound');
    patches.push(pathname);
    const refused = refuse?.();
    if (refused !== undefined) return refused;
    const operations = json as readonly Operation[];
    const tested = operations.find(({ op, path }) => op === 'test' && path === '/metadata/resourceVersion');
    const kind = pathname.includes('/validating') ? 'ValidatingWebhook' : 'MutatingWebhook';
    const name = pathname.split('/').at(-1) ?? '';
    if (tested?.value !== stored.find((one) => one.kind === kind && one.name === name)?.resourceVersion) return status(422, 'Invalid');
    put(kind, operations.find(({ op }) => op === 'replace')?.value as WebhookConfiguration['webhooks'], name);
    const metadata = { name, uid: 'x', resourceVersion: `${version}` };
    return { status: 200, body: { apiVersion: 'admissionregistration.k8s.io/v1', kind: `${kind}Configuration`, metadata } };
  };
  const env = virtualEnv({ serve });
  const warned: string[] = [];
  const log = { debug: silent, info: silent, error: silent, warn: (message: string) => void warned.push(message) };
  const configurations = {
    list: () => stored,
    isSynced: () => true,
    onChange: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return {
    env: { ...env, log },
    time: env,
    configurations,
    labels,
    patches,
    warned,
    rows,
    put,
    refuse: (answer: (() => Served | undefined) | undefined) => {
      refuse = answer;
    },
    named: () => membersNamed(rows()).map(({ statefulSet }) => statefulSet),
  };
}

describe('the rows of our configuration', () => {
  it('name what is protected, at once when something is, and for ten minutes more when it no longer is', async () => {
    const world = newWorld();
    let members: readonly Member[] | undefined;
    const replicas = [0, 1, 2].map(() =>
      startNarrowing({ ...world, namespace: 'rollout-group', members: () => members, pinned: () => undefined }),
    );
    await world.time.advance(10_000);
    expect(world.patches).toEqual([]);
    members = [member('ingester-zone-a')];
    await world.time.advance(3000);
    expect(world.named()).toEqual(['ingester-zone-a']);
    members = [member('store')];
    await world.time.advance(5000);
    expect(world.named().sort()).toEqual(['ingester-zone-a', 'store']);
    await world.time.advance(590_000);
    expect(world.named()).toHaveLength(2);
    await world.time.advance(15_000);
    expect(world.named()).toEqual(['store']);
    const count = world.patches.length;
    await world.time.advance(600_000);
    expect(world.patches).toHaveLength(count);
    expect(replicas.map(({ problem }) => problem())).toEqual([undefined, undefined, undefined]);
    for (const { stop } of replicas) stop();
    await world.time.advance(10_000);
    expect(world.time.timerCount()).toBe(0);
  });

  it('are narrowed again when a user applies them as they were, and more and more slowly if that repeats', async () => {
    const world = newWorld();
    const installed = world.rows();
    const { stop } = startNarrowing({ ...world, namespace: 'rollout-group', members: () => [member('a')], pinned: () => undefined });
    await world.time.advance(3000);
    for (let round = 0; round < 300; round += 1) {
      world.put('ValidatingWebhook', installed);
      await world.time.advance(2000);
    }
    expect(world.patches.length).toBeLessThan(60);
    await world.time.advance(120_000);
    expect(world.named()).toEqual(['a']);
    stop();
  });

  it('by which pods are pinned name the members of groups of that strategy alone', async () => {
    const world = newWorld();
    let pinned: readonly Member[] | undefined;
    const { problem, stop } = startNarrowing({
      ...world,
      namespace: 'rollout-group',
      members: () => [member('a'), member('b')],
      pinned: () => pinned,
    });
    const rows = (): readonly Row[] => world.rows('0-rollout-group-pinned');
    await world.time.advance(10_000);
    expect([rows().length, membersNamed(rows())]).toEqual([1, []]);
    pinned = [member('b')];
    await world.time.advance(3000);
    expect([rows().length, membersNamed(rows())]).toEqual([1, [member('b')]]);
    expect(world.named().sort()).toEqual(['a', 'b']);
    pinned = [];
    await world.time.advance(620_000);
    expect(JSON.stringify(rows())).toContain('{"name":"is-a-member-now","expression":"false"}');
    expect(problem()).toBeUndefined();
    stop();
  });

  it('that may not be written stay as they are, which is said once', async () => {
    const world = newWorld();
    const installed = world.rows();
    world.refuse(() => status(403, 'Forbidden', 'not for you'));
    const { problem, stop } = startNarrowing({
      ...world,
      namespace: 'rollout-group',
      members: () => [member('a')],
      pinned: () => undefined,
    });
    await world.time.advance(300_000);
    expect(world.rows()).toEqual(installed);
    expect(problem()).toContain('grant patch on validatingwebhookconfigurations');
    expect(world.warned).toHaveLength(1);
    expect(world.patches.length).toBeLessThan(20);
    world.refuse(undefined);
    await world.time.advance(120_000);
    expect([world.named(), problem()]).toEqual([['a'], undefined]);
    stop();
  });
});

describe('changes of the registration', () => {
  function watched(world: ReturnType<typeof newWorld>, namespaces?: readonly string[], pinned: readonly Member[] = []) {
    let last: readonly RegistrationProblem[] = [];
    const stop = startRegistration({
      ...world,
      namespace: 'rollout-group',
      namespaces,
      members: () => [member('ingester-zone-a')],
      pinned: () => pinned,
      onLook: (problems) => {
        last = problems;
      },
    });
    return { stop, told: () => last.map(({ message }) => message) };
  }

  it('is told of after two looks, and is over when it is as it was', async () => {
    const world = newWorld();
    const installed = world.rows();
    const { told, stop } = watched(world);
    await world.time.advance(60_000);
    expect(told()).toEqual([]);
    world.put(
      'ValidatingWebhook',
      installed.map((row) => ({ ...row, namespaceSelector: { matchLabels: { nobody: 'yes' } } })),
    );
    await world.time.advance(16_000);
    expect(told()).toEqual([]);
    await world.time.advance(16_000);
    expect(told()).toHaveLength(1);
    expect(told()[0]).toContain('namespaceSelector of webhook statefulset-update.enforce.rollout-group.dev');
    expect(told()[0]).toContain('and 5 more');
    world.put('ValidatingWebhook', installed);
    await world.time.advance(16_000);
    expect(told()).toEqual([]);
    stop();
    await world.time.advance(60_000);
    expect(world.time.timerCount()).toBe(0);
  });

  it('is told of when a configuration is deleted, unless there never was one', async () => {
    const world = newWorld();
    const { told } = watched(world);
    await world.time.advance(40_000);
    world.put('ValidatingWebhook', undefined);
    for (const name of ['rollout-group', '0-rollout-group-pinned']) world.put('MutatingWebhook', undefined, name);
    await world.time.advance(40_000);
    expect(told()[0]).toContain('ValidatingWebhookConfiguration rollout-group does not exist');
    const never = watched(world);
    await world.time.advance(40_000);
    expect(never.told()).toEqual([]);
    // Somebody has asked for enforcement, and nothing is registered.
    world.labels.set('mimir', 'true');
    await world.time.advance(60_000);
    expect(never.told()).toHaveLength(1);
  });

  it('is reported where pods are to be pinned and no webhook is called, enforced or not', async () => {
    const world = newWorld();
    const { told } = watched(world, undefined, [member('ingester-zone-a')]);
    await world.time.advance(40_000);
    expect(told()).toEqual([]);
    world.put('MutatingWebhook', undefined, '0-rollout-group-pinned');
    await world.time.advance(40_000);
    expect(told()).toHaveLength(1);
    expect(told()[0]).toContain(
      '0-rollout-group-pinned does not exist, so no pod of mimir/ingester-zone-a is created at its pinned revision',
    );
    const without = newWorld();
    for (const kind of ['ValidatingWebhook', 'MutatingWebhook'] as const) without.put(kind, undefined);
    without.put('MutatingWebhook', undefined, '0-rollout-group-pinned');
    const missing = watched(without, undefined, [member('ingester-zone-a')]);
    await without.time.advance(40_000);
    expect(missing.told()).toHaveLength(1);
    expect(missing.told()[0]).not.toContain('ValidatingWebhookConfiguration');
  });

  it('is told of for each namespace that loses its label, until it has it again or is gone', async () => {
    const world = newWorld();
    for (const namespace of ['mimir', 'loki', 'tempo']) world.labels.set(namespace, namespace === 'tempo' ? undefined : 'true');
    const { told } = watched(world, ['mimir', 'loki', 'tempo']);
    await world.time.advance(20_000);
    world.labels.set('mimir', 'false');
    world.labels.set('loki', undefined);
    await world.time.advance(20_000);
    expect(told()).toEqual(
      ['loki', 'mimir'].map(
        (name) => `namespace ${name} lost the label rollout-group.dev/enforce=true: policies are no longer enforced there`,
      ),
    );
    world.labels.set('mimir', 'true');
    world.labels.delete('loki');
    await world.time.advance(20_000);
    expect(told()).toEqual([]);
  });

  it('is told of in each of many namespaces, some of them at each look', async () => {
    const world = newWorld();
    const names = Array.from({ length: 450 }, (_, index) => `cell-${String(index).padStart(3, '0')}`);
    for (const name of names) world.labels.set(name, 'true');
    const { told } = watched(world, names);
    await world.time.advance(50_000);
    for (const name of ['cell-000', 'cell-449']) world.labels.set(name, undefined);
    await world.time.advance(16_000);
    const after = told().length;
    await world.time.advance(32_000);
    expect(told().map((message) => message.split(' ')[1])).toEqual(['cell-000', 'cell-449']);
    expect(after).toBeLessThan(2);
    world.labels.set('cell-449', 'true');
    await world.time.advance(48_000);
    expect(told()).toHaveLength(1);
  });
});
