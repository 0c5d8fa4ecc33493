import { describe, expect, it } from 'vitest';
import { installation } from '../../../install/installation.ts';
import { membersNamed } from '../../../install/narrowing.ts';
import type { Member } from '../../../install/scope.ts';
import {
  type ConfigurationKind,
  configurationResources,
  type WebhookConfiguration,
  watchConfigurations,
} from '../../../webhook/certificates/webhook-configurations.ts';
import { startNarrowing } from '../../../webhook/registration/narrow.ts';
import { type RegistrationProblem, startRegistration } from '../../../webhook/registration/registration.ts';
import { optionsOf } from '../../install/given.ts';
import { moreKinds } from '../../kit/kinds.ts';
import { ModelApi } from '../../kit/model-server.ts';
import { virtualEnv } from '../../kit/virtual-env.ts';

type Rows = WebhookConfiguration['webhooks'];

const member = (statefulSet: string): Member => ({ namespace: 'mimir', statefulSet });
const silent = (): void => undefined;
const enforceLabel = 'rollout-group.dev/enforce';

function resourceOf(kind: ConfigurationKind): string {
  const { plural, group } = configurationResources[kind];
  return `${plural}.${group}`;
}

/** Our configurations on the API server, as a process of the webhook follows them. */
function newWorld() {
  const time = virtualEnv();
  const api = new ModelApi({ env: time, kinds: moreKinds });
  time.replaceServer(api.serve);
  for (const { kind, ...object } of installation(optionsOf())) {
    if (kind.endsWith('WebhookConfiguration'))
      api.put(resourceOf(kind.startsWith('Val') ? 'ValidatingWebhook' : 'MutatingWebhook'), object);
  }
  const warned: string[] = [];
  const log = { debug: silent, info: silent, error: silent, warn: (message: string) => void warned.push(message) };
  const pods = { call: () => Promise.reject(new Error('no pod is called')) };
  const env = { ...time, log, pods };
  const configurations = watchConfigurations(env, 'rollout-group');
  const put = (kind: ConfigurationKind, webhooks: Rows | undefined, name = 'rollout-group'): void => {
    if (webhooks === undefined) api.remove(resourceOf(kind), '', name);
    else api.change(resourceOf(kind), '', name, { webhooks });
  };
  const rows = (name = 'rollout-group'): Rows => {
    const kind = name === 'rollout-group' ? 'ValidatingWebhook' : 'MutatingWebhook';
    return (api.get(resourceOf(kind), '', name)?.['webhooks'] ?? []) as Rows;
  };
  return {
    env,
    time,
    api,
    configurations,
    warned,
    rows,
    put,
    /** Sets the label of the namespace, or removes it. */
    label: (name: string, value: string | undefined): void => {
      if (api.get('namespaces', '', name) === undefined) api.put('namespaces', { metadata: { name } });
      api.change('namespaces', '', name, { metadata: { labels: { [enforceLabel]: value ?? null } } });
    },
    patches: () => time.requests.filter(({ method }) => method === 'PATCH'),
    named: () => membersNamed(rows()).map(({ statefulSet }) => statefulSet),
  };
}

describe('the rows of our configuration', () => {
  it('name protected objects at once, and for ten minutes after their protection ends', async () => {
    const world = newWorld();
    let members: readonly Member[] | undefined;
    const replicas = [0, 1, 2].map(() =>
      startNarrowing({ ...world, namespace: 'rollout-group', members: () => members, pinned: () => undefined }),
    );
    await world.time.advance(10_000);
    expect(world.patches()).toEqual([]);
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
    const count = world.patches().length;
    await world.time.advance(600_000);
    expect(world.patches()).toHaveLength(count);
    expect(replicas.map(({ problem }) => problem())).toEqual([undefined, undefined, undefined]);
    for (const { stop } of [...replicas, world.configurations]) stop();
    await world.time.advance(10_000);
    expect(world.time.timerCount()).toBe(0);
  });

  it('are narrowed again if a user applies the original ones, and more and more slowly if that repeats', async () => {
    const world = newWorld();
    const installed = world.rows();
    const { stop } = startNarrowing({ ...world, namespace: 'rollout-group', members: () => [member('a')], pinned: () => undefined });
    await world.time.advance(3000);
    for (let round = 0; round < 300; round += 1) {
      world.put('ValidatingWebhook', installed);
      await world.time.advance(2000);
    }
    expect(world.patches().length).toBeLessThan(60);
    await world.time.advance(120_000);
    expect(world.named()).toEqual(['a']);
    stop();
  });

  it('for pinned pods name only the members of groups with that strategy', async () => {
    const world = newWorld();
    let pinned: readonly Member[] | undefined;
    const { problem, stop } = startNarrowing({
      ...world,
      namespace: 'rollout-group',
      members: () => [member('a'), member('b')],
      pinned: () => pinned,
    });
    const rows = (): Rows => world.rows('0-rollout-group-pinned');
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

  it('that must not be written stay unchanged, with one report', async () => {
    const world = newWorld();
    const installed = world.rows();
    const patch = `patch ${resourceOf('ValidatingWebhook')}`;
    world.api.forbid(patch);
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
    expect(world.patches().length).toBeLessThan(20);
    world.api.permit(patch);
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
      onCheck: (problems) => {
        last = problems;
      },
    });
    return { stop, told: () => last.map(({ message }) => message) };
  }

  it('is reported after two checks, and ends when it is reverted', async () => {
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
    expect(told()[0]).toContain('and 6 more');
    world.put('ValidatingWebhook', installed);
    await world.time.advance(16_000);
    expect(told()).toEqual([]);
    stop();
    world.configurations.stop();
    await world.time.advance(60_000);
    expect(world.time.timerCount()).toBe(0);
  });

  it('is reported if a configuration is deleted, unless it never existed', async () => {
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
    world.label('mimir', 'true');
    await world.time.advance(60_000);
    expect(never.told()).toHaveLength(1);
  });

  it('is reported if pods are pinned and no webhook is called, enforced or not', async () => {
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

  it('is reported for each namespace that loses its label, until it has it again or is gone', async () => {
    const world = newWorld();
    for (const namespace of ['mimir', 'loki', 'tempo']) world.label(namespace, namespace === 'tempo' ? undefined : 'true');
    const { told } = watched(world, ['mimir', 'loki', 'tempo']);
    await world.time.advance(20_000);
    world.label('mimir', 'false');
    world.label('loki', undefined);
    await world.time.advance(20_000);
    expect(told()).toEqual(
      ['loki', 'mimir'].map(
        (name) => `namespace ${name} lost the label rollout-group.dev/enforce=true: policies are no longer enforced there`,
      ),
    );
    world.label('mimir', 'true');
    world.api.remove('namespaces', '', 'loki');
    await world.time.advance(20_000);
    expect(told()).toEqual([]);
  });

  it('is reported in each of many namespaces, some of them at each check', async () => {
    const world = newWorld();
    const names = Array.from({ length: 450 }, (_, index) => `cell-${String(index).padStart(3, '0')}`);
    for (const name of names) world.label(name, 'true');
    const { told } = watched(world, names);
    await world.time.advance(50_000);
    for (const name of ['cell-000', 'cell-449']) world.label(name, undefined);
    await world.time.advance(16_000);
    const after = told().length;
    await world.time.advance(32_000);
    expect(told().map((message) => message.split(' ')[1])).toEqual(['cell-000', 'cell-449']);
    expect(after).toBeLessThan(2);
    world.label('cell-449', 'true');
    await world.time.advance(48_000);
    expect(told()).toHaveLength(1);
  });
});
