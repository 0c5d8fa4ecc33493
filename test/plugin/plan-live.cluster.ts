import { beforeAll, expect, it } from 'vitest';
import { fieldAt } from '../../engine/observe/raw.ts';
import { withRevisions } from '../../engine/observe/revisions.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { TestGroup } from '../control-plane/group.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod, type StatefulSet, statefulSet } from '../control-plane/workloads.ts';
import { filesOf, listOf, type Person, person, readerRules, writerRules } from './live-people.ts';

const namespace = 'mimir';
const budget = { metadata: { name: 'ingester' }, spec: { maxUnavailable: 1, selector: { matchLabels: { name: 'ingester-zone-a' } } } };

/** The StatefulSet of a zone as it would stand in Git: without replicas, with another image. */
function asked(zone: string, image: string, more: object = {}): object {
  const name = `ingester-zone-${zone}`;
  const object = statefulSet({ name, replicas: 2, nodeZone: `zone-${zone}`, image, setLabels: { 'rollout-group': 'ingester' } }) as {
    readonly metadata: object;
    readonly spec: object;
  };
  const { replicas: _replicas, ...spec } = object.spec as { readonly replicas: number };
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { ...object.metadata, namespace }, spec: { ...spec, ...more } };
}

function allAsked(image: string, ...more: readonly object[]): object {
  return { apiVersion: 'v1', kind: 'List', items: [...['a', 'b', 'c'].map((zone) => asked(zone, image)), ...more] };
}

describeOnControlPlane('plans of what runs', (controlPlane) => {
  let group: TestGroup;
  let reader: Person;
  let writer: Person;

  beforeAll(async () => {
    const { client } = controlPlane();
    group = new TestGroup(client, { namespace });
    await group.create();
    await client.create(`/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`, budget);
    reader = await person(controlPlane(), namespace, 'reader', readerRules);
    writer = await person(controlPlane(), namespace, 'writer', writerRules);
  });

  it('are the plans of the manifests that were exported from it', async () => {
    const exported = await exportedFiles(controlPlane());
    // What manifests leave out is gone where nothing but manifests is asked, and stays in a cluster.
    const kept = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', ...budget, metadata: { ...budget.metadata, namespace } };
    const cwd = filesOf({ ...exported, 'next.json': allAsked('example.com/server:2', kept) });
    const at = new Date().toISOString();
    const live = await reader.run(['plan', '--live', '--desired', 'next.json', '--at', at, '-o', 'json'], { cwd });
    const files = await reader.run(['plan', '--current', 'now.json', '--desired', 'next.json', '--at', at, '-o', 'json'], { cwd });
    expect({ live: live.status, files: files.status, stderr: files.stderr }).toEqual({ live: 0, files: 0, stderr: '' });
    const [fromCluster, fromFiles] = [JSON.parse(live.stdout), JSON.parse(files.stdout)];
    expect(fromCluster.groups[0].totals.restarts).toBe(6);
    expect(fromCluster.groups).toEqual(fromFiles.groups);
    const { metadata, notes } = fromCluster;
    expect(fromCluster).toEqual({ ...fromFiles, metadata, notes });
    expect(notes).toContain('no permission to list nodes; every node counts as ready');
    expect(live.stderr).toContain('no permission to list nodes; every node counts as ready');
  });

  it('are the same with and without a dry run of the API server', async () => {
    const cwd = filesOf({ 'next.json': allAsked('example.com/server:2') });
    const words = ['plan', '--desired', 'next.json', '--live', '--at', new Date().toISOString(), '-o', 'json'];
    const [tried, laidOver] = [await writer.run(words, { cwd }), await reader.run(words, { cwd })];
    expect(JSON.parse(tried.stdout).groups).toEqual(JSON.parse(laidOver.stdout).groups);
    expect(laidOver.stderr).toContain('the API server refused the dry run');
    expect(tried.stderr).not.toContain('would not try');
  });

  it('are empty if the cluster has the requested state, with defaults', async () => {
    const cwd = filesOf({ 'next.json': allAsked('example.com/server:1') });
    const { status, stdout } = await reader.run(['plan', '-f', 'next.json', '--detailed-exitcode', '-o', 'json'], { cwd });
    expect({ status, outcome: JSON.parse(stdout).outcome }).toEqual({ status: 0, outcome: 'unchanged' });
    const diff = await reader.run(['diff', '-f', 'next.json'], { cwd });
    expect({ status: diff.status, stdout: diff.stdout }).toMatchObject({ status: 0 });
  });

  it('see pods that are not ready, which manifests do not', async () => {
    const { client } = controlPlane();
    const [pod] = await group.pods();
    const crash = (value: string | null) =>
      client.patch(`${group.podsPath}/${pod?.metadata.name}`, 'merge', {
        metadata: { annotations: { 'test.rollout-group.dev/unready': value } },
      });
    await crash('CrashLoopBackOff');
    await client.until<Pod>(group.podsPath, 'an unready pod', (pods) => pods.some((one) => !isReady(one)));
    const cwd = filesOf({ 'next.json': { ...asked('c', 'example.com/server:2') } });
    const held = await reader.run(['plan', '-f', 'next.json', '-o', 'json'], { cwd });
    await crash(null);
    await group.untilReady();
    const free = await reader.run(['plan', '-f', 'next.json', '-o', 'json'], { cwd });
    expect(JSON.parse(free.stdout).outcome).toBe('complete');
    expect(JSON.parse(held.stdout).outcome).toBe('waits');
    expect(JSON.stringify(JSON.parse(held.stdout).groups[0].waits)).toContain('zone a has 1 of 2 pods available');
  });

  it('are shown as differences by zone, with exit code 1', async () => {
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'ingester', namespace }, spec: { ports: [{ port: 80 }] } };
    const cwd = filesOf({ 'next.json': { ...asked('c', 'example.com/server:2') }, 'service.json': service });
    const { status, stdout } = await writer.run(['diff', '-f', '.'], { cwd });
    expect(status).toBe(1);
    expect(stdout).toContain('example.com/server:2');
    expect(stdout).toContain('Service mimir/ingester');
    expect(stdout).not.toContain('zone-a');
    expect((await reader.run(['diff', '--zones', '--live'])).stdout).toContain('ingester');
  });

  it('name the missing permission', async () => {
    const nobody = await person(controlPlane(), namespace, 'nobody', []);
    const { status, stderr } = await nobody.run(['plan']);
    expect(status).toBe(11);
    expect(stderr).toContain('may not list statefulsets in namespace mimir');
    const blind = await person(
      controlPlane(),
      namespace,
      'blind',
      readerRules.map((rule) => ({ ...rule, resources: rule.resources.filter((resource) => resource !== 'pods') })),
    );
    const held = await blind.run(['plan', '-o', 'json']);
    expect(held.stderr).toContain('no permission to list pods');
  });

  it('name missing groups', async () => {
    expect((await reader.run(['plan', '--group', 'nobody'])).status).toBe(10);
    expect((await reader.run(['plan', '--live', '--current', 'x'])).status).toBe(3);
  });

  it('can be written as policy files, the same as from exported manifests', async () => {
    const cwd = filesOf(await exportedFiles(controlPlane()));
    const live = await reader.run(['init', '--from-cluster', '--out', 'live'], { cwd });
    const files = await reader.run(['init', '--from-dir', 'now.json', '--out', 'files'], { cwd });
    expect([live.status, files.status]).toEqual([0, 0]);
    const { readFileSync } = await import('node:fs');
    expect(readFileSync(`${cwd}/live/ingester.yaml`, 'utf8')).toBe(readFileSync(`${cwd}/files/ingester.yaml`, 'utf8'));
    expect((await reader.run(['init', '--from-cluster', '--from-dir', '.', '--out', 'x'], { cwd })).status).toBe(3);
    expect((await reader.run(['init', '--out', 'x'], { cwd })).status).toBe(3);
  });

  it('name the revision of a StatefulSet that does not run yet as Kubernetes does', async () => {
    const listed = (await controlPlane().client.list<StatefulSet>(group.setsPath)).map((set) => ({ ...set, kind: 'StatefulSet' }));
    const named = listed.map((set) => {
      const { status: _status, ...created } = set;
      const others = listed.filter((one) => one !== set);
      return fieldAt(withRevisions([created], others)[0], ['status', 'updateRevision']);
    });
    expect(named).toEqual(listed.map(({ status }) => status?.updateRevision));
    expect(named).toHaveLength(3);
  });

  it('need read access only: no agent wrote during any of them', async () => {
    const written = (await controlPlane().auditLog()).filter(
      ({ user, verb, requestURI }) =>
        user.username.startsWith('system:serviceaccount:people:') &&
        !/^(?:get|list|watch)$/.test(verb) &&
        // Reviews store nothing.
        !/\/\w+reviews$/.test(requestURI) &&
        !requestURI.includes('dryRun=All'),
    );
    expect(written.map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([]);
  });

  async function exportedFiles({ client }: ControlPlane): Promise<Readonly<Record<string, object>>> {
    const pods = await client.list(group.podsPath);
    const sets = await client.list(group.setsPath);
    const budgets = await client.list(`/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`);
    const lists = [listOf('apps/v1', 'StatefulSet', sets), listOf('v1', 'Pod', pods), listOf('policy/v1', 'PodDisruptionBudget', budgets)];
    const items = lists.flatMap((list) => (list as { readonly items: readonly object[] }).items);
    return { 'now.json': { apiVersion: 'v1', kind: 'List', items } };
  }
});
