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

async function world(namespace?: string) {
  const files = { 'ga.json': objectsOf('ga', 2).slice(0, 2), 'gb.json': objectsOf('gb', 2), 'more.json': [exception, service] };
  const texts = Object.entries(files).map(([file, items]) => [file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items })]);
  const cwd = folderWith(Object.fromEntries(texts));
  const { url, writes } = await fakeApiServer([system, ...objectsOf('ga', 1).slice(0, 2), ...objectsOf('gb', 1)]);
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
  it('writes the group, its members and the policies, and names what it leaves out', async () => {
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
