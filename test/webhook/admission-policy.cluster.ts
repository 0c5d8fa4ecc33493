// The ValidatingAdmissionPolicy on a real API server, with nobody of ours there: partitions and update strategies that would move pods are refused.
import { beforeAll, describe, expect, it } from 'vitest';
import { admissionPoliciesOf } from '../../install/admission-policy.ts';
import type { InstallOptions } from '../../install/object.ts';
import { everywhere } from '../../install/scope.ts';
import { ApiClient } from '../control-plane/client.ts';
import { agentRules, grant } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually } from '../control-plane/webhook.ts';
import { type StatefulSet, statefulSet } from '../control-plane/workloads.ts';
import { optionsOf } from '../install/given.ts';
import { apply, merge, type Outcome, setsOf, strategic, write } from './kit.ts';

const namespace = 'native';
const name = 'server-zone-a';
const holding = 1_000_000;
type Content = Readonly<Record<string, unknown>>;

describeOnControlPlane('a blocked StatefulSet while no webhook answers', (controlPlane) => {
  let admin: ApiClient;

  beforeAll(async () => {
    admin = controlPlane().client;
    await admin.create('/api/v1/namespaces', { metadata: { name: namespace, labels: { 'rollout-group.dev/enforce': 'true' } } });
    await grant(admin, controlPlane().identities.agent, namespace, agentRules());
    await install({});
    await createSet(name, holding);
    await eventually(
      'a policy that is in force',
      () => ask({ ...partition(0), ...image(4) }, strategic),
      ({ isRefused }) => isRefused,
    );
  });

  async function install(changes: Partial<InstallOptions>): Promise<void> {
    for (const object of admissionPoliciesOf(optionsOf(changes))) {
      const plural = `${object.kind.toLowerCase().replace(/y$/, 'ie')}s`;
      const policy = `/apis/${object.apiVersion}/${plural}/${object.metadata.name}?fieldManager=test&force=true`;
      await admin.patch(policy, 'apply', object);
    }
  }

  /** Waits until it stands still. */
  async function createSet(of: string, at: number): Promise<void> {
    const object = statefulSet({ name: of, replicas: 3, strategy: 'RollingUpdate' }) as { readonly spec: Content };
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition: at } };
    await admin.create(setsOf(namespace), { ...object, spec: { ...object.spec, updateStrategy } });
    await admin.until<StatefulSet>(setsOf(namespace), 'pods that are Ready', (items) =>
      items.some(({ metadata, status }) => metadata.name === of && status.readyReplicas === 3),
    );
  }

  const path = `${setsOf(namespace)}/${name}`;
  const image = (version: number): object => ({
    template: { spec: { containers: [{ name: 'server', image: `example.com/server:${version}` }] } },
  });
  const partition = (value: number | null): object => ({ updateStrategy: { rollingUpdate: { partition: value } } });
  const onDelete = { updateStrategy: { type: 'OnDelete', rollingUpdate: null } };
  const ask = (spec: object, type = merge): Promise<Outcome> => write(admin, 'PATCH', `${path}?dryRun=All`, { spec }, type);

  /** Waits until the StatefulSet controller has seen it. */
  async function setImage(of: string, version: number): Promise<void> {
    await admin.patch(`${setsOf(namespace)}/${of}`, 'strategic', { spec: image(version) });
    await admin.until<StatefulSet>(setsOf(namespace), 'another revision', (items) =>
      items.every(({ status, metadata }) => status.observedGeneration === metadata.generation),
    );
  }

  it.each<[string, object, string]>([
    ['a lower partition, alone', partition(0), merge],
    ['another strategy, alone', onDelete, merge],
    ['a template, alone', image(4), strategic],
    ['more replicas', { replicas: 6 }, merge],
  ])('allows writes that replace no pod: %s', async (_, spec, type) => {
    const { said } = await ask(spec, type);
    expect(said).toMatch(/^200/);
  });

  it.each<[string, object]>([
    ['a lower partition with a template', { ...partition(0), ...image(4) }],
    ['no partition with a template', { updateStrategy: { rollingUpdate: null }, ...image(4) }],
    ['another strategy with a template', { ...onDelete, ...image(4) }],
  ])('denies %s', async (_, spec) => {
    const { said } = await ask(spec, strategic);
    expect(said).toMatch(
      /^403 .*rollout-group-update-strategy.*with a template.*kubectl label namespace native rollout-group.dev\/enforce-/s,
    );
  });

  describe('during a rollout', () => {
    beforeAll(() => setImage(name, 5));

    it.each<[string, object]>([
      ['a lower partition', partition(3)],
      ['no partition', partition(null)],
      ['another strategy', onDelete],
    ])('denies %s', async (_, spec) => {
      const { said } = await ask(spec);
      expect(said).toMatch(/^403 .*in the middle of a rollout.*if no group contains the StatefulSet, define the group again/s);
    });

    it('denies them on every path: replaced, applied by force, and by an administrator', async () => {
      const live = await admin.get<StatefulSet & { readonly spec: Content }>(path);
      const lower = { type: 'RollingUpdate', rollingUpdate: { partition: 0 } };
      const replaced = { ...live, spec: { ...live.spec, updateStrategy: lower } };
      expect((await write(admin, 'PUT', `${path}?dryRun=All`, replaced)).said).toMatch(/^403/);
      const object = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name, namespace }, spec: { updateStrategy: lower } };
      const applied = await write(admin, 'PATCH', `${path}?dryRun=All&fieldManager=somebody&force=true`, object, apply);
      expect(applied.said).toMatch(/^403/);
    });

    it.each<[string, object, string]>([
      ['a template that goes on', image(6), strategic],
      ['more replicas', { replicas: 6 }, merge],
      ['a higher partition', partition(holding + 1), merge],
    ])('allows %s', async (_, spec, type) => {
      const { said } = await ask(spec, type);
      expect(said).toMatch(/^200/);
    });

    it('allows the agent to write its partition, and every user if the label is gone', async () => {
      const { url, authority, identities } = controlPlane();
      const agent = new ApiClient({ url, authority }, identities.agent);
      expect((await write(agent, 'PATCH', `${path}?dryRun=All`, { spec: partition(0) }, merge)).said).toMatch(/^200/);
      await admin.patch(`/api/v1/namespaces/${namespace}`, 'merge', { metadata: { labels: { 'rollout-group.dev/enforce': null } } });
      await eventually(
        'a namespace that is free',
        () => ask(partition(0)),
        ({ isRefused }) => !isRefused,
      );
    });
  });

  it('recognizes members of the strategy partition by their names, also during a rollout', async () => {
    const [other, unnamed] = ['other-zone-a', 'unnamed'];
    await admin.patch(`/api/v1/namespaces/${namespace}`, 'merge', { metadata: { labels: { 'rollout-group.dev/enforce': 'true' } } });
    const later = 'later-zone-a';
    const members = [other, later].map((statefulSet) => ({ namespace, statefulSet }));
    const scope = { ...everywhere, partition: { namespaces: [namespace], members } };
    await install({ namespace: 'ops', scope });
    const lower = (of: string): Promise<Outcome> =>
      write(admin, 'PATCH', `${setsOf(namespace)}/${of}?dryRun=All`, { spec: partition(0) }, merge);
    for (const of of [other, unnamed]) {
      await createSet(of, 2);
      await setImage(of, 2);
    }
    await eventually(
      'a policy that is in force',
      () => lower(other),
      ({ said }) => said.includes('rollout-group-update-strategy-ops'),
    );
    expect((await lower(unnamed)).said).toMatch(/^200/);
    await admin.create(setsOf(namespace), statefulSet({ name: later, replicas: 3, strategy: 'OnDelete' }));
    await setImage(later, 2);
    const change = (rollingUpdate: object): Promise<Outcome> => {
      const spec = { updateStrategy: { type: 'RollingUpdate', rollingUpdate } };
      return write(admin, 'PATCH', `${setsOf(namespace)}/${later}?dryRun=All`, { spec }, merge);
    };
    expect((await change({})).said).toMatch(/^403 .*rollout-group-update-strategy-ops/s);
    expect((await change({ partition: holding })).said).toMatch(/^200/);
  });
});
