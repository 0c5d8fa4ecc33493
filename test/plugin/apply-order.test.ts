// Tests the order in which apply writes policies and StatefulSets, with commands that run in the process of the test.
import { expect, it } from 'vitest';
import { type FakeOptions, fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { adoptedObjects } from './live-objects.ts';
import { folderWith } from './process.ts';
import type { FakeObject } from './served-objects.ts';

/** The group of the zones a, b and c; these zones are paused. */
function groupWith(...paused: readonly string[]): FakeObject {
  const zones = ['a', 'b', 'c'].map((name) => ({ name, statefulSet: `ingester-zone-${name}`, paused: paused.includes(name) }));
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutGroup',
    metadata: { name: 'ingester', namespace: 'mimir' },
    spec: { members: { zones }, rollout: { strategy: 'onDelete' } },
  };
}

const budget: FakeObject = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'ingester', namespace: 'mimir' },
  spec: { maxUnavailable: 1, selector: { matchLabels: { 'rollout-group': 'ingester' } } },
};

/** The StatefulSets with another image; no pod runs their present template. */
const current = adoptedObjects({ updateRevision: 'rev-2' });
const next = current
  .filter(({ kind }) => kind === 'StatefulSet')
  .map(({ status: _status, ...object }) => JSON.parse(JSON.stringify(object).replace('mimir:1', 'mimir:3')) as FakeObject);

async function world(before: FakeObject, after: FakeObject, options: FakeOptions = {}) {
  const cwd = folderWith({
    '1.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...next, budget] }),
    '2.json': JSON.stringify(after),
  });
  const { url, writes } = await fakeApiServer([before, ...current], { forbidden: ['nodes'], ...options });
  const written = () =>
    writes
      .filter(({ method, path }) => method === 'PATCH' && !path.includes('dryRun=All'))
      .map(({ path }) => /([^/]+)(?=\?)/.exec(path)?.[1]);
  return { written, run: (line: string) => runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], { cwd }) };
}

const sets = ['a', 'b', 'c'].map((zone) => `ingester-zone-${zone}`);
const note =
  /note: apply writes in the order members, policies and groups: with only the new policies and groups, the agent of mimir\/ingester would act on pod ingester-zone-a-1/;

it('writes the policies and budgets first', async () => {
  const { written, run } = await world(groupWith(), groupWith('a', 'b', 'c'));
  expect(await run('apply -f . --yes')).toMatchObject({ status: 0, stderr: expect.not.stringContaining('last') });
  expect(written()).toEqual(['ingester', 'ingester', ...sets]);
});

it('writes the members first if the group releases the present template, shows it in the plan, and keeps the order of a saved plan', async () => {
  const { written, run } = await world(groupWith('a', 'b', 'c'), groupWith());
  const planned = await run('plan --live -f . --desired . --out the.plan');
  expect(planned).toMatchObject({ status: 0, stderr: expect.stringMatching(note) });
  const applied = await run('apply the.plan --yes');
  expect([applied.status, applied.stderr]).toEqual([0, expect.stringMatching(note)]);
  expect(written()).toEqual([...sets, 'ingester', 'ingester']);
  expect(applied.stdout.match(/^\w+ mimir\/\S+ (?:configured|created)/gm)?.map((line) => line.split(' ')[0])).toEqual([
    ...sets.map(() => 'StatefulSet'),
    'PodDisruptionBudget',
    'RolloutGroup',
  ]);
});

it('writes the StatefulSets with removed pods first, so the agent replaces no pod of another zone before', async () => {
  const fewer = next.map((object) =>
    object.metadata.name === 'ingester-zone-a' ? object : { ...object, spec: { ...Object(object['spec']), replicas: 1 } },
  );
  const cwd = folderWith({ '1.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items: fewer }) });
  const { url, writes } = await fakeApiServer(adoptedObjects(), { forbidden: ['nodes'] });
  const { status, stdout, stderr } = await runInProcess(['apply', '-f', '.', '--yes', '--server', url, '-n', 'mimir'], { cwd });
  const written = writes.filter(({ path }) => !path.includes('dryRun=All')).map(({ path }) => /([^/]+)(?=\?)/.exec(path)?.[1]);
  expect([status, written], `${stdout}${stderr}`).toEqual([0, ['ingester-zone-b', 'ingester-zone-c', 'ingester-zone-a']]);
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
    'RG5012 warning the StatefulSet controller replaces ingester-zone-b-1 at once: the change lowers the replicas of ingester-zone-b, and the agent raises them again; no gate',
  );
  // The StatefulSet controller removes several pods of a zone at the same time.
  const larger = fewer.map((object) =>
    object.metadata.name === 'ingester-zone-a' ? { ...object, spec: { ...Object(object['spec']), replicas: 4 } } : object,
  );
  const folder = folderWith({ '1.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items: larger }) });
  const server = (await fakeApiServer(adoptedObjects({ replicas: 4 }))).url;
  const { stdout: plan } = await runInProcess(['plan', '-f', '.', '--server', server, '-n', 'mimir'], { cwd: folder });
  expect(plan).toMatch(/ at once .*roll +b 1\.\.3 +3 +3 /);
});

it('keeps the usual order without an agent', async () => {
  const { written, run } = await world(groupWith('a', 'b', 'c'), groupWith(), { hasAgent: false });
  await run('apply -f . --yes');
  expect(written()).toEqual(['ingester', 'ingester', ...sets]);
});

it('rejects a change without a safe order until the group is paused', async () => {
  const { written, run } = await world(groupWith('a'), groupWith('b', 'c'));
  const refused = await run('apply -f . --yes');
  expect([refused.status, written()]).toEqual([5, []]);
  expect(refused.stderr).toContain(
    'nothing was applied: in every order of the writes, the agent would act on a part of the change of mimir/ingester',
  );
  expect(refused.stderr).toContain('do:  kubectl rollout-group pause mimir/ingester; then apply, and kubectl rollout-group resume');
  const refusal = 'apply refuses this: in every order of the writes, the agent would act on a part';
  expect((await run('plan --live -f . --desired .')).stderr).toContain(refusal);
  expect(JSON.parse((await run('plan --live -f . --desired . -o json')).stdout).notes).toContainEqual(expect.stringContaining(refusal));
  for (const format of ['markdown', 'html']) expect((await run(`plan --live -f . --desired . -o ${format}`)).stdout).toContain(refusal);
  expect(await run('pause ingester --yes')).toMatchObject({ status: 0 });
  expect(await run('apply -f . --yes')).toMatchObject({ status: 0 });
  expect(written().slice(1)).toEqual(['ingester', 'ingester', ...sets]);
});

it('names the applied objects, and how to stop the group, if a write fails', async () => {
  const { run } = await world(groupWith(), groupWith('a', 'b', 'c'), { dryRunsOnly: ['ingester-zone-b'] });
  const { status, stderr } = await run('apply -f . --yes');
  expect(status).toBe(11);
  expect(stderr).toContain(
    'in force already: PodDisruptionBudget mimir/ingester, RolloutGroup mimir/ingester, StatefulSet mimir/ingester-zone-a; the agent may already act on mimir/ingester',
  );
  expect(stderr).toContain('to stop: kubectl rollout-group pause mimir/ingester');
});

it('names the order if the change of the group permits a downscale that the group still denies', async () => {
  const guarded = (noDownscale: boolean) => ({ ...groupWith(), spec: { ...Object(groupWith()['spec']), protect: { noDownscale } } });
  const idle = adoptedObjects();
  const fewer = JSON.stringify({ ...idle.find(({ kind }) => kind === 'StatefulSet'), status: undefined }).replace(
    '"replicas":2',
    '"replicas":1',
  );
  const cwd = folderWith({ '1.json': fewer, '2.json': JSON.stringify(guarded(false)) });
  const { url, writes } = await fakeApiServer([guarded(true), ...idle], { forbidden: ['nodes'] });
  const run = async (line: string) => {
    const { status, stdout, stderr } = await runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], { cwd });
    return [status, `${stdout}${stderr}`.replace(/\s+/g, ' ')] as const;
  };
  const hint = 'the requested change of the group permits this write, but is not in force yet: apply the group first, then the StatefulSet';
  for (const line of ['plan --live -f . --desired .', 'diff --live -f . --desired .', 'apply -f . --yes']) {
    const [status, shown] = await run(line);
    expect([status, shown]).toEqual([line.startsWith('diff') ? 1 : 5, expect.stringContaining(hint)]);
  }
  expect((await run('apply -f . --yes'))[1]).toContain(`do: ${hint}`);
  expect(writes.filter(({ path }) => !path.includes('dryRun=All'))).toEqual([]);
});
