// The strategy `partition` with the webhooks there: the agent's own writes of partitions pass, and nobody else moves pods past the waves.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type InProcessAgent, startInProcess } from '../control-plane/agent-in-process.ts';
import type { ApiClient } from '../control-plane/client.ts';
import { agentRules, grant, grantNodes } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { type Pod, revisionOf, type StatefulSet, statefulSet } from '../control-plane/workloads.ts';
import { apply, createWorld, groupsOf, merge, type Outcome, podsOf, setsOf, strategic, type World, write } from './kit.ts';

const namespace = 'native';
const holding = 1_000_000;
const count = 3;
const waves = [
  { name: 'one', zones: ['server-zone-a'], pods: 1, after: { soak: '1h' } },
  { name: 'rest', zones: ['server-zone-a', 'server-zone-b'], percent: 100 },
];
type RollingSet = StatefulSet & {
  readonly spec: { readonly updateStrategy: { readonly rollingUpdate?: { readonly partition?: number } } };
};

describeOnControlPlane('a group of the strategy partition behind the webhooks', (controlPlane) => {
  let admin: ApiClient;
  let world: World;
  let agent: InProcessAgent;

  beforeAll(async () => {
    const { client, identities, url } = controlPlane();
    admin = client;
    world = await createWorld(controlPlane(), { namespaces: [namespace] });
    await admin.create(groupsOf(namespace), groupObject(waves));
    for (const zone of ['a', 'b']) {
      const set = statefulSet({ name: `server-zone-${zone}`, replicas: count, strategy: 'RollingUpdate', setLabels: { cell: 'server' } });
      await admin.create(setsOf(namespace), set);
    }
    await world.untilReady(namespace, 'server-zone-', 2 * count);
    await grant(admin, identities.agent, namespace, agentRules());
    await grantNodes(admin, identities.agent);
    agent = await startInProcess({ url, identity: identities.agent, namespace, name: 'agent' });
  });
  afterAll(async () => {
    await agent.stop();
    await world.close();
  });

  function groupObject(of: readonly object[]): object {
    return {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'server', namespace },
      spec: {
        members: { selector: { matchLabels: { cell: 'server' } } },
        replicas: { leader: true },
        rollout: { strategy: 'partition', maxUnavailable: 1, waves: of },
      },
    };
  }

  async function untilPartitions(a: number, b: number): Promise<void> {
    const of = (items: readonly RollingSet[], zone: string): number | undefined =>
      items.find(({ metadata }) => metadata.name === `server-zone-${zone}`)?.spec.updateStrategy.rollingUpdate?.partition;
    await admin.until<RollingSet>(
      setsOf(namespace),
      `partitions ${a} and ${b}`,
      (items) => of(items, 'a') === a && of(items, 'b') === b,
      90_000,
    );
  }

  async function updated(): Promise<readonly string[]> {
    const sets = await admin.list<StatefulSet>(setsOf(namespace));
    const pods = await admin.list<Pod>(podsOf(namespace));
    const targets = new Set(sets.map(({ status }) => status.updateRevision));
    return pods
      .filter((pod) => targets.has(revisionOf(pod)))
      .map(({ metadata }) => metadata.name)
      .sort();
  }

  const path = `${setsOf(namespace)}/server-zone-a`;
  const image = (version: number): object => ({
    template: { spec: { containers: [{ name: 'server', image: `example.com/server:${version}` }] } },
  });
  const partition = (value: number): object => ({ updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: value } } });
  const ask = (spec: object, type = strategic): Promise<Outcome> => write(admin, 'PATCH', `${path}?dryRun=All`, { spec }, type);

  it('is blocked by the agent, and the writes of the agent pass', async () => {
    await untilPartitions(holding, holding);
  });

  it('is lowered as its wave requires, by writes with a claim of the agent', async () => {
    for (const zone of ['a', 'b']) {
      const { isRefused, said } = await write(admin, 'PATCH', `${setsOf(namespace)}/server-zone-${zone}`, { spec: image(2) }, strategic);
      expect([isRefused, said]).toEqual([false, expect.anything()]);
    }
    await untilPartitions(count - 1, holding);
    await expect.poll(updated, { timeout: 30_000 }).toEqual([`server-zone-a-${count - 1}`]);
    await world.untilReady(namespace, 'server-zone-', 2 * count);
    const refused = agent.turns().flatMap(({ performed }) => performed.filter(({ result }) => result === 'refused'));
    expect(refused).toEqual([]);
  });

  it.each([
    ['a lower partition', () => ask(partition(0), merge)],
    ['a lower partition by server-side apply', () => applied({ ...partition(1) })],
    ['no partition at all', () => ask({ updateStrategy: { rollingUpdate: { partition: null } } }, merge)],
    ['a lower partition together with a template', () => ask({ ...partition(0), ...image(3) })],
    ['OnDelete', () => ask({ updateStrategy: { type: 'OnDelete', rollingUpdate: null } }, merge)],
  ])('denies all other users %s', async (_, asked) => {
    const { isRefused, said } = await asked();
    expect(said).toMatch(/denied the request: .*update-strategy/);
    expect(isRefused).toBe(true);
  });

  /** As somebody who takes the field from the agent. */
  function applied(spec: object): Promise<Outcome> {
    const object = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'server-zone-a', namespace }, spec };
    return write(admin, 'PATCH', `${path}?dryRun=All&fieldManager=somebody&force=true`, object, apply);
  }

  it('allows a template during a rollout, so that a broken one can be repaired', async () => {
    const { said, isRefused } = await ask(image(3));
    expect([isRefused, said]).toEqual([false, expect.anything()]);
  });

  it('completes and is blocked again', async () => {
    await write(
      admin,
      'PATCH',
      `${groupsOf(namespace)}/server`,
      { spec: { rollout: { waves: waves.map(({ after: _, ...wave }) => wave) } } },
      merge,
    );
    await untilPartitions(holding, holding);
    await expect.poll(async () => (await updated()).length, { timeout: 60_000 }).toBe(2 * count);
  });

  it('changes its strategy by the documented writes, also with a blocked template, and no pod is deleted', async () => {
    const strategy = (name: string): object => ({ spec: { rollout: { strategy: name } } });
    const member = (zone: string, spec: object, type = merge): Promise<Outcome> =>
      write(admin, 'PATCH', `${setsOf(namespace)}/server-zone-${zone}`, { spec }, type);
    const uids = async (): Promise<readonly string[]> =>
      (await admin.list<Pod>(podsOf(namespace))).map(({ metadata }) => metadata.uid).sort();
    const before = await uids();
    const written: string[] = [];
    const note = async (outcome: Promise<Outcome>): Promise<void> => void written.push((await outcome).said);
    const pending = { ...waves[1], before: { approval: { count: 1, from: ['approvers'] } } };
    const group = { spec: { rollout: { strategy: 'onDelete', waves: [pending] } } };
    await note(write(admin, 'PATCH', `${groupsOf(namespace)}/server`, group, merge));
    for (const zone of ['a', 'b']) await note(member(zone, { updateStrategy: { type: 'OnDelete', rollingUpdate: null } }));
    await note(write(admin, 'PATCH', `${groupsOf(namespace)}/server`, strategy('partition'), merge));
    for (const zone of ['a', 'b']) await note(member(zone, image(4), strategic));
    await expect.poll(updated, { timeout: 30_000 }).toEqual([]);
    const refused = await member('a', { updateStrategy: { type: 'RollingUpdate' } });
    expect(refused.said).toMatch(/update-strategy: RollingUpdate without the partition 1000000 would replace 3 pods/);
    for (const zone of ['a', 'b']) await note(member(zone, partition(holding)));
    expect(written.filter((said) => !said.startsWith('200'))).toEqual([]);
    await untilPartitions(holding, holding);
    await world.untilReady(namespace, 'server-zone-', 2 * count);
    expect(await uids()).toEqual(before);
  });
});
