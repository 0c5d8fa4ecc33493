// An undo restores fields that the undone manifests had removed. The same manifests must ask for exactly the undone revision again.
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeOnControlPlane, describeWithBinaries } from '../control-plane/suite.ts';
import { isReady, type Pod, revisionOf, type StatefulSet, statefulSet } from '../control-plane/workloads.ts';
import { kubeconfigOf, type LocalCluster, startCluster } from '../documents/local-cluster.ts';
import { serveKinds } from './apply-kit.ts';
import { filesOf, person, writerRules } from './live-people.ts';
import { runPlugin } from './process.ts';

const namespace = 'undone';
const name = 'ingester-zone-a';

/** The StatefulSet as it would stand in Git. */
function manifest(image: string, container: object): string {
  const object = statefulSet({ name, replicas: 1, nodeZone: 'zone-a', image, setLabels: { 'rollout-group': 'ingester' } }) as unknown as {
    readonly metadata: object;
    readonly spec: { readonly template: { readonly spec: { readonly containers: readonly object[] } } };
  };
  const { template, ...spec } = object.spec;
  const containers = template.spec.containers.map((one) => ({ ...one, ...container }));
  return JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { ...object.metadata, namespace },
    spec: { ...spec, template: { ...template, spec: { ...template.spec, containers } } },
  });
}

describeOnControlPlane('an undo of a change that removed a field', (controlPlane) => {
  it('blocks the same manifests, and accepts the next ones without the field', async () => {
    const { client } = controlPlane();
    const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    await serveKinds(controlPlane(), namespace);
    const writer = await person(controlPlane(), namespace, 'writer', writerRules);
    const cwd = filesOf({
      'one.json': manifest('example.com/server:1', { args: ['--old'] }),
      'two.json': manifest('example.com/server:2', {}),
      'three.json': manifest('example.com/server:3', {}),
    });
    const run = (line: string) => writer.run(line.split(' '), { cwd });
    const args = async () => JSON.stringify((await client.get<StatefulSet>(`${path}/${name}`)).spec).match(/"args":(\[[^\]]*\])/)?.[1];
    const seen = new Set<unknown>([undefined]);
    const untilNewRevision = async () => {
      const isNew = (set: StatefulSet | undefined) => !seen.has(set?.status?.updateRevision);
      const [set] = await client.until<StatefulSet>(path, 'a new update revision', ([first]) => isNew(first));
      seen.add(set?.status?.updateRevision);
    };

    for (const file of ['one.json', 'two.json']) {
      expect((await run(`apply -f ${file} --yes`)).status).toBe(0);
      await untilNewRevision();
    }
    expect(await args()).toBeUndefined();
    const undone = await run('undo ingester --yes');
    expect([undone.status, await args()], undone.stderr).toEqual([0, '["--old"]']);

    const plan = await run('plan -f two.json');
    expect([plan.status, plan.stdout]).toEqual([5, expect.stringContaining('undone')]);
    expect((await run('diff -f two.json')).stdout).toContain('--old');
    expect((await run('apply -f three.json --yes')).status).toBe(0);
    const after = await run('diff -f three.json');
    // The rollout of the third template may still be due.
    expect([await args(), after.status, after.stdout]).toEqual([undefined, 0, expect.stringMatching(/ no differences\n/)]);
  });
});

describeOnControlPlane('an undo of manifests that another manager applies by server-side apply', (controlPlane) => {
  it('makes the same manifests request exactly the undone revision, also if this tool once applied the template', async () => {
    const { client } = controlPlane();
    const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    await serveKinds(controlPlane(), namespace);
    const writer = await person(controlPlane(), namespace, 'writer', writerRules);
    const untilRevision = async (what: string, isMet: (revision: string | undefined) => boolean) => {
      const [set] = await client.until<StatefulSet>(path, what, ([first]) => isMet(first?.status?.updateRevision));
      return set?.status?.updateRevision;
    };
    const apply = (image: string, container: object) =>
      client.patch(`${path}/${name}?fieldManager=argocd-like&force=true`, 'apply', JSON.parse(manifest(image, container)));
    const cwd = filesOf({ 'one.json': manifest('example.com/server:1', {}) });
    expect((await writer.run('apply -f one.json --yes'.split(' '), { cwd })).status).toBe(0);
    const first = await untilRevision('the first revision', (revision) => revision !== undefined);
    await apply('example.com/server:2', { env: [{ name: 'EXTRA', value: '1' }] });
    const earlier = await untilRevision('the second revision', (revision) => revision !== first);
    await apply('example.com/server:3', {});
    const undone = await untilRevision('the third revision', (revision) => revision !== earlier);

    const done = await writer.run(['undo', 'ingester', '--yes'], { cwd });
    expect([done.status, done.stdout], done.stderr).toEqual([0, expect.not.stringContaining('can keep')]);
    // No agent replaced the pod, so it still runs the first template.
    await untilRevision('the restored revision', (revision) => revision === first);
    await apply('example.com/server:3', {});
    expect(await untilRevision('the revision of the same manifests', (revision) => revision !== first)).toBe(undone);
    expect((await writer.run(['explain', 'ingester'], { cwd })).stdout).toContain(
      `update revision ${undone} of zone ${name} was undone by`,
    );
  });
});

describeOnControlPlane('an undo in the middle of a run of the strategy partition', (controlPlane) => {
  const namespace = 'undone-midway';
  const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const name = 'qart-a';
  const group = (strategy: string): object => ({
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutGroup',
    metadata: { name: 'qart' },
    spec: { members: { zones: [{ name: 'a', statefulSet: name }] }, rollout: { strategy } },
  });
  const withImage = (image: string, partition: number) => ({
    spec: {
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition } },
      template: { spec: { containers: [{ name: 'server', image: `example.com/server:${image}` }] } },
    },
  });

  it('names the pods that the StatefulSet controller replaces at once, which the plan also shows first', async () => {
    const { client } = controlPlane();
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    await serveKinds(controlPlane(), namespace);
    const writer = await person(controlPlane(), namespace, 'writer', writerRules);
    await client.create(path, statefulSet({ name, replicas: 3, strategy: 'RollingUpdate' }));
    const groups = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutgroups`;
    await client.create(groups, group('partition'));
    const untilReady = (what: string, isMet: (one: readonly Pod[]) => boolean) =>
      client.until<Pod>(pods, what, (items) => items.length === 3 && items.every(isReady) && isMet(items), 60_000);
    await untilReady('three pods', () => true);
    // As the agent writes it.
    await client.patch(`${path}/${name}`, 'strategic', withImage('2', 2));
    const midway = await untilReady('an updated pod', (items) => new Set(items.map(revisionOf)).size === 2);
    const old = revisionOf(midway.find(({ metadata }) => metadata.name === `${name}-0`) as Pod);
    const atOnce = `the StatefulSet controller replaces ${name}-2 at once: it is at or above the partition 2`;

    const manifest = statefulSet({ name, replicas: 3, strategy: 'RollingUpdate', image: 'example.com/server:3' });
    const cwd = filesOf({ 'three.json': JSON.stringify({ apiVersion: 'apps/v1', kind: 'StatefulSet', ...manifest }) });
    const planned = await writer.run(['plan', '-n', namespace, '-f', 'three.json', '-o', 'json'], { cwd });
    const [{ waves, totals, risks }] = JSON.parse(planned.stdout).groups;
    expect([waves[0].name, waves[0].steps[0].pods, totals.restarts]).toEqual(['at once', [`${name}-2`], 3]);
    expect(risks).toContainEqual(expect.objectContaining({ code: 'RG5012', message: expect.stringContaining(atOnce) }));

    const undone = await writer.run(['undo', 'qart', '-n', namespace, '--yes'], { cwd });
    expect([undone.status, undone.stdout], undone.stderr).toEqual([0, expect.stringContaining(atOnce)]);
    await untilReady('the earlier revision', (items) => items.every((pod) => revisionOf(pod) === old));
  });

  it('stays denied in a group with a strategy that does not keep the pods', async () => {
    const { client } = controlPlane();
    const writer = await person(controlPlane(), namespace, 'second-writer', writerRules);
    const groups = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutgroups`;
    await client.patch(`${groups}/qart`, 'merge', group('onDelete'));
    await client.patch(`${path}/${name}`, 'strategic', withImage('4', 0));
    const refused = await writer.run(['undo', 'qart', '-n', namespace, '--yes'], { cwd: filesOf({}) });
    expect([refused.status, refused.stderr]).toEqual([5, expect.stringContaining('a template under RollingUpdate would replace 3 pods')]);
  });
});

describeWithBinaries('an undo after the undo of one zone of a completed rollout', () => {
  let cluster: LocalCluster;
  let env: Readonly<Record<string, string>>;
  beforeAll(async () => {
    cluster = await startCluster('');
    env = { KUBECONFIG: resolve(kubeconfigOf(cluster)) };
  });
  afterAll(() => cluster?.stop());
  const kubectl = (line: string) => spawnSync('kubectl', line.split(' '), { encoding: 'utf8', env: { ...process.env, ...env } });
  const shown = (line: string): string => {
    const { status, stdout, stderr } = runPlugin(line.split(' '), { cwd: tmpdir(), env });
    expect(status, `${line}: ${stdout}${stderr}`).toBe(0);
    return stdout;
  };
  const images = (kind: string) => kubectl(`get ${kind} -o jsonpath={.items[*]..image}`).stdout;

  it('returns the other zones, and a repeated undo changes nothing', async () => {
    const waves = [{ name: 'all', zones: ['a', 'b', 'c'], percent: 100 }];
    const patch = JSON.stringify([{ op: 'replace', path: '/spec/rollout/waves', value: waves }]);
    expect(kubectl(`patch rolloutgroup cache --type=json -p ${patch}`)).toMatchObject({ status: 0 });
    shown(`apply -f ${resolve('examples/quick-start/manifests-next')} --yes`);
    shown('status cache --timeout 240s');
    expect(shown('undo cache --zone b --yes')).toContain('3 pods are replaced');
    shown('status cache --timeout 240s');
    const undone = shown('undo cache --yes');
    expect(undone).toMatch(/6 pods are replaced.*\n {2}a: .*, 3 pods\n {2}c: .*, 3 pods\n/);
    shown('status cache --timeout 240s');
    const kinds = ['statefulsets', 'pods'].map((kind) => images(kind));
    for (const text of kinds) expect([text.includes('cache:1.0.0'), text.includes('cache:1.1.0')]).toEqual([true, false]);
    expect(shown('undo cache --yes')).toContain('nothing was undone');
  });
});
