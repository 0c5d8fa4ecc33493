// Tests that apply writes only what the plan of --group or -n shows, with commands that run in the process of the test.
import { describe, expect, it } from 'vitest';
import { fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { statefulSetObject } from './live-objects.ts';
import { folderWith } from './process.ts';
import type { FakeObject } from './served-objects.ts';

function groupOf(name: string, maxUnavailable: number): FakeObject {
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutGroup',
    metadata: { name, namespace: 'mimir' },
    spec: { members: { zones: [{ name: 'a', statefulSet: `${name}-a` }] }, rollout: { strategy: 'onDelete', maxUnavailable } },
  };
}

function setOf(name: string, image: string): FakeObject {
  const { status: _status, ...object } = statefulSetObject('a', { replicas: 0 });
  const metadata = { ...object.metadata, name: `${name}-a`, uid: `uid-${name}`, labels: {} };
  return JSON.parse(JSON.stringify({ ...object, metadata }).replace('mimir:1', image)) as FakeObject;
}

function budgetOf(name: string, maxUnavailable: number): FakeObject {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: `${name}-budget`, namespace: 'mimir' },
    spec: { maxUnavailable, selector: { matchLabels: { app: name } } },
  };
}

const exception: FakeObject = {
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutException',
  metadata: { name: 'hotfix', namespace: 'mimir' },
  spec: { target: { group: 'ga' }, rule: 'window', reason: 'CHG-1', expires: '2126-01-01T00:00:00Z', allow: { anything: true } },
};
const system: FakeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } };
const service: FakeObject = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'mimir' }, spec: { ports: [] } };

function objectsOf(name: string, version: 1 | 2): readonly FakeObject[] {
  return [groupOf(name, version), setOf(name, `mimir:${version}`), budgetOf('other', version)];
}

type Files = Readonly<Record<string, readonly FakeObject[]>>;

async function world(namespace?: string) {
  const files = { 'ga.json': objectsOf('ga', 2).slice(0, 2), 'gb.json': objectsOf('gb', 2), 'more.json': [exception, service] };
  return worldOf(files, [...objectsOf('ga', 1).slice(0, 2), ...objectsOf('gb', 1)], namespace);
}

async function worldOf(files: Files, live: readonly FakeObject[], namespace?: string) {
  const texts = Object.entries(files).map(([file, items]) => [file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items })]);
  const cwd = folderWith(Object.fromEntries(texts));
  const { url, writes } = await fakeApiServer([system, ...live]);
  const written = () =>
    writes
      .filter(({ method, path }) => method === 'PATCH' && !path.includes('dryRun=All'))
      .map(({ path }) => /([^/]+\/[^/]+)(?=\?)/.exec(path)?.[1]);
  const flags = ['--server', url, ...(namespace === undefined ? [] : ['-n', namespace])];
  const tried = () => writes.map(({ path }) => path).filter((path) => path.includes('dryRun=All'));
  return { written, tried, run: (line: string) => runInProcess([...line.split(' '), ...flags], { cwd }) };
}

const note = expect.stringMatching(/^note: the flags select mimir\/ga; not applied: \w+ mimir\/\S+ and 3 more$/m);
const ofGa = ['rolloutexceptions/hotfix', 'rolloutgroups/ga', 'statefulsets/ga-a'];

describe('apply --group', () => {
  it('writes the group, its members and the policies, and names the omitted objects', async () => {
    const { run, written } = await world();
    const diff = await run('diff -f . --group ga');
    expect([diff.status, diff.stdout, diff.stderr]).toEqual([1, expect.not.stringMatching(/gb|other|web/), note]);
    expect(diff.stdout).toContain('hotfix');
    const applied = await run('apply -f . --group ga --yes');
    expect([applied.status, applied.stdout, applied.stderr]).toEqual([0, expect.not.stringMatching(/gb|other|web/), note]);
    expect(written().sort()).toEqual(ofGa);
  });

  it('tries every object once', async () => {
    const { run, tried } = await world();
    await run('plan -f . --group ga');
    expect([tried().length, new Set(tried()).size]).toEqual([7, 7]);
  });

  it('saves and applies the same plan', async () => {
    const { run, written } = await world();
    expect(await run('plan -f . --group ga --out the.plan')).toMatchObject({ status: 0, stderr: note });
    const applied = await run('apply the.plan --yes -o json');
    expect([applied.status, applied.stderr]).toEqual([0, note]);
    const { groups, objects } = JSON.parse(applied.stdout) as { groups: string[]; objects: { object: string }[] };
    expect(groups).toEqual(['mimir/ga']);
    expect(objects.map(({ object }) => object).sort()).toEqual([
      'RolloutException mimir/hotfix',
      'RolloutGroup mimir/ga',
      'StatefulSet mimir/ga-a',
    ]);
    expect(written().sort()).toEqual(ofGa);
  });
});

describe('apply -n', () => {
  it('ends as plan does if the files have objects of another namespace only', async () => {
    const { run, written } = await world('default');
    for (const verb of ['plan -f .', 'diff -f .', 'apply -f . --yes'])
      expect(await run(verb)).toMatchObject({ status: 10, stderr: expect.stringContaining('there is no group in namespace default') });
    expect(written()).toEqual([]);
  });

  it('writes every object of its namespace', async () => {
    const { run, written } = await world('mimir');
    expect(await run('apply -f . --yes')).toMatchObject({ status: 0, stderr: expect.not.stringContaining('not applied') });
    expect(written()).toHaveLength(7);
  });
});

/** A group of the namespace whose agent holds its pods with a partition; the manifest sets no partition. */
function heldObjects(namespace: string, image: string, partition?: number): readonly FakeObject[] {
  const rollingUpdate = partition === undefined ? {} : { rollingUpdate: { partition } };
  const [group, set] = [groupOf('log', 1), setOf('log', image)];
  return [
    { ...group, spec: { ...Object(group['spec']), rollout: { strategy: 'partition' } } },
    { ...set, spec: { ...Object(set['spec']), updateStrategy: { type: 'RollingUpdate', ...rollingUpdate } } },
  ].map((object) => ({ ...object, metadata: { ...object.metadata, namespace } }));
}

describe('a kept partition of a group that the flags omit', () => {
  const files = (namespace: string, more: readonly FakeObject[] = []) => ({
    'ga.json': [...objectsOf('ga', 2).slice(0, 2), ...more],
    'log.json': heldObjects(namespace, 'mimir:2'),
  });
  const live = (namespace: string) => [...objectsOf('ga', 1).slice(0, 2), ...heldObjects(namespace, 'mimir:1', 1_000_000)];
  const cases = [
    ['--group', 'mimir', ' --group ga', undefined],
    ['-n', 'logs', '', 'mimir'],
  ] as const;

  it.each(cases)('is no finding in the files with %s', async (_flag, namespace, flag, selected) => {
    const { run, written } = await worldOf(files(namespace), live(namespace), selected);
    for (const [line, status] of [
      ['plan -f .', 0],
      ['diff -f .', 1],
      ['plan -f . --out the.plan', 0],
      ['apply -f . --yes', 0],
    ] as const) {
      const { stdout, stderr, ...ended } = await run(`${line}${flag}`);
      expect([line, ended.status, stderr]).toEqual([line, status, expect.stringContaining(`not applied: StatefulSet ${namespace}/log-a`)]);
      expect(stdout).not.toMatch(/log/);
    }
    expect(written().sort()).toEqual(['rolloutgroups/ga', 'statefulsets/ga-a']);
  });

  it('does not hide an error of the files, also in a part that the flags leave out', async () => {
    const broken = { ...files('mimir'), 'log.json': heldObjects('mimir', 'mimir:2', 3) };
    const { run } = await worldOf(broken, live('mimir'));
    expect(await run('plan -f . --group ga')).toMatchObject({ status: 4, stderr: expect.stringContaining('sets the partition 3') });
  });
});

describe('a StatefulSet in two groups of the cluster', () => {
  const twin = { ...groupOf('ga', 1), metadata: { name: 'twin', namespace: 'mimir' } };
  const live = [...objectsOf('ga', 1), ...objectsOf('gb', 1).slice(0, 2), twin];
  const shared = 'StatefulSet ga-a has several owners: zone a of group ga, zone a of group twin';

  it.each(['ga', 'twin'])('blocks the plans of %s, and every command names the way out', async (name) => {
    const { run } = await worldOf({ 'sets.json': [setOf('ga', 'mimir:2')] }, live);
    for (const [line, status] of [
      [`plan -f . --group ${name}`, 5],
      [`restart ${name} -n mimir --dry-run=server`, 0],
      [`explain ${name} -n mimir`, 0],
      [`status ${name} -n mimir --timeout 50ms`, 8],
    ] as const) {
      const { stdout, stderr, ...ended } = await run(line);
      expect([line, ended.status, stdout + stderr]).toEqual([line, status, expect.stringContaining(shared)]);
    }
    expect((await run(`explain ${name} -n mimir`)).stdout).toContain('keep each StatefulSet in one zone of one RolloutGroup');
  });

  it('does not block the apply of other objects', async () => {
    const { run, written } = await worldOf({ 'gb.json': objectsOf('gb', 2) }, live);
    expect(await run('apply -f . --yes')).toMatchObject({ status: 0 });
    expect(written()).toContain('statefulsets/gb-a');
  });
});

describe('--group NAMESPACE/GROUP without -n', () => {
  it.each([
    ['plan --group mimir/ga', 0, /^Plan {2}mimir\/ga /],
    ['diff --zones --group mimir/ga', 0, /^mimir\/ga /],
    ['plan --group mimir/ga -f log.json', 0, /^Plan {2}mimir\/ga /],
    ['plan --group other', 10, /^$/],
  ])('reads the namespace of the group: %s', async (line, status, stdout) => {
    const { run } = await worldOf({ 'log.json': heldObjects('logs', 'mimir:1') }, objectsOf('ga', 1));
    expect(await run(line)).toMatchObject({ status, stdout: expect.stringMatching(stdout) });
  });
});

describe('a StatefulSet that moves to another group', () => {
  const moved = (name: string, ...sets: readonly string[]): FakeObject => {
    const { spec, ...group } = groupOf(name, 1);
    return { ...group, spec: { ...Object(spec), members: { zones: sets.map((statefulSet) => ({ name: statefulSet, statefulSet })) } } };
  };

  it.each([
    ['ga', 'gb'],
    ['gb', 'ga'],
  ])('is denied if the flags select only %s, which gets it', async (to, from) => {
    const sets = ['x', 'y', 'z'].map((name) => setOf(name, 'mimir:1'));
    const live = [...sets, moved(to, 'x-a'), moved(from, 'y-a', 'z-a')];
    const { run } = await worldOf({ 'groups.json': [moved(to, 'x-a', 'z-a'), moved(from, 'y-a')] }, live);
    for (const [line, status] of [
      ['plan -f .', 0],
      [`plan -f . --group ${from}`, 0],
      [`plan -f . --group ${to}`, 4],
    ] as const) {
      const { stderr, ...ended } = await run(line);
      expect([line, ended.status, stderr.includes('RG2102')]).toEqual([line, status, status === 4]);
    }
  });

  it('can be named by an exception although the flags omit its new group', async () => {
    const sets = ['x', 'y', 'z'].map((name) => setOf(name, 'mimir:1'));
    const live = [...sets, moved('ga', 'x-a'), moved('gb', 'y-a')];
    const ofZone = { ...exception, spec: { ...Object(exception['spec']), target: { group: 'gb', zone: 'z-a' } } };
    const { run } = await worldOf({ 'groups.json': [moved('gb', 'y-a', 'z-a'), ofZone] }, live);
    expect(await run('plan -f . --group ga')).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('not applied: RolloutGroup mimir/gb'),
    });
  });
});
