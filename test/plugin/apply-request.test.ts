// Tests which groups and which rights an apply depends on, with commands that run in the process of the test.
import { describe, expect, it } from 'vitest';
import { runOf } from '../kit/questions.ts';
import { type FakeOptions, fakeApiServer } from './api-server.ts';
import { type Ended, runInProcess } from './in-process.ts';
import { done } from './live-kit.ts';
import { adoptedObjects, ledgerObject, publishedObject, statefulSetObject } from './live-objects.ts';
import { groupObject } from './live-requests-kit.ts';
import { folderWith } from './process.ts';
import type { FakeObject } from './served-objects.ts';

/** A group with one zone, whose StatefulSet runs. */
function groupOf(name: string, rollout: object = {}): FakeObject {
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutGroup',
    metadata: { name, namespace: 'mimir' },
    spec: { members: { zones: [{ name: 'a', statefulSet: `${name}-a` }] }, rollout: { strategy: 'onDelete', ...rollout } },
  };
}

function setOf(name: string): FakeObject {
  const object = statefulSetObject('a', { replicas: 0 });
  const metadata = { ...object.metadata, name: `${name}-a`, uid: `uid-${name}`, labels: {} };
  return { ...object, metadata };
}

const exception: FakeObject = {
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutException',
  metadata: { name: 'hotfix', namespace: 'mimir' },
  spec: { target: { group: 'cache' }, rule: 'window', reason: 'CHG-1', expires: '2126-01-01T00:00:00Z', allow: { anything: true } },
};

/** The group `ingester` is undone in the middle of its rollout, so no plan of it completes. */
const undone = ['a', 'b', 'c'].map((zone) => ({ zone, revision: 'rev-2' }));
const undo: FakeObject = {
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutIntent',
  metadata: { name: 'undo.ingester', namespace: 'mimir' },
  spec: { group: 'ingester', action: 'undo', undone },
};
const ingester = [...adoptedObjects({ updateRevision: 'rev-2' }), undo];

const node: FakeObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node-1' },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
};

/** Identifies the cluster, also on another port. */
const system: FakeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } };
const objects = [system, groupOf('cache'), setOf('cache'), exception];
const changed = JSON.stringify(groupOf('cache', { maxUnavailable: 2 }));

async function on(given: readonly FakeObject[], options: FakeOptions = {}) {
  const { url } = await fakeApiServer(given, options);
  return (line: string, cwd: string): Promise<Ended> =>
    runInProcess([...line.split(' '), '--server', url, ...(line.includes('--namespace') ? [] : ['-n', 'mimir'])], { cwd });
}

describe('a cancelled scale-down', () => {
  const group = (count: number): FakeObject => {
    const { spec, ...rest } = groupOf('cache');
    return { ...rest, spec: { ...Object(spec), replicas: { count } } };
  };
  const set = { ...setOf('cache'), spec: { ...Object(setOf('cache'))['spec'], replicas: 2 } };
  const cancel: FakeObject = {
    ...undo,
    metadata: { name: 'cancel.cache', namespace: 'mimir' },
    spec: { group: 'cache', action: 'cancel', zone: 'a', replicas: 1, reason: 'traffic peak' },
  };
  const end = 'kubectl rollout-group cancel mimir/cache cancel.cache';
  const note = `mimir/cache: zone a stays at 2 replicas: an unverified requester (traffic peak) cancelled the decrease to 1. To continue it, run: ${end}`;

  it.each([
    [1, true],
    [3, false],
  ])('is named by plan, diff and apply of the same number, and of no other: %i replicas', async (count, isNamed) => {
    const run = await on([system, group(1), set, cancel, node]);
    const cwd = folderWith({ 'cache.json': JSON.stringify(group(count)) });
    for (const line of ['plan -f cache.json', 'diff -f cache.json', 'apply -f cache.json --dry-run=server'])
      expect([line, (await run(line, cwd)).stderr.includes(`note: ${note}\n`)]).toEqual([line, isNamed]);
  });
});

describe('apply of a saved plan', () => {
  it.each(['rolloutexceptions', 'pods', 'configmaps', 'rolloutgroups'])('names the missing permission to list %s', async (plural) => {
    const cwd = folderWith({ 'cache.json': changed });
    const given = [...objects, ...ingester, publishedObject(done)];
    expect(await (await on(given))('plan --live -f cache.json --out plan.json', cwd)).toMatchObject({ status: 5 });
    const { status, stderr } = await (await on(given, { forbidden: [plural] }))('apply plan.json --yes', cwd);
    expect([status, stderr]).toEqual([11, expect.stringMatching(`anna may not (?:list|get) ${plural} in namespace mimir`)]);
  });
});

describe('apply of a saved plan after its exception expired', () => {
  const at = (hours: number): number => Date.now() + hours * 3_600_000;
  const policy: FakeObject = {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutPolicy',
    metadata: { name: 'calm', namespace: 'mimir' },
    spec: { targets: { all: true }, rules: [{ name: 'freeze', actions: ['rollout'], effect: 'deny' }] },
  };
  const expiring = {
    ...exception,
    spec: { ...Object(exception['spec']), target: { group: 'ingester' }, rule: 'calm/freeze', expires: new Date(at(10)).toISOString() },
  };
  const given = [system, ...adoptedObjects(), policy, expiring, node];
  const files = { 'a.json': JSON.stringify(adoptedObjects()[0]).replace('mimir:1', 'mimir:2') };
  const run = async (line: string, { url, cwd, nowMs, answer }: { url: string; cwd: string; nowMs: number; answer?: string }) =>
    runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], { cwd, nowMs, ...(answer === undefined ? {} : { answer }) });

  it('evaluates and shows the current plan, like apply of the files, and names the differences', async () => {
    const { url, writes } = await fakeApiServer(given);
    const cwd = folderWith(files);
    const saved = await run('plan --live -f a.json --out plan.json', { url, cwd, nowMs: at(0) });
    expect([saved.status, saved.stdout]).toEqual([0, expect.stringContaining('completes')]);
    const differs =
      /note: the plan of mimir\/ingester differs from the saved one: the outcome was complete and is blocked; it has other steps, denials and permitting exceptions/;
    for (const line of ['apply plan.json --yes', 'apply plan.json --dry-run=server', 'apply plan.json --dry-run=client']) {
      const { status, stderr, stdout } = await run(line, { url, cwd, nowMs: at(11) });
      expect([status, stderr, stdout]).toEqual([5, expect.stringMatching(differs), expect.not.stringContaining('completes')]);
      expect((await run(line.replace('plan.json', '-f a.json'), { url, cwd, nowMs: at(11) })).status).toBe(5);
    }
    expect(writes.filter(({ path }) => !path.includes('dryRun=All'))).toEqual([]);
  });

  it('names no difference while only time has passed', async () => {
    const { url } = await fakeApiServer(given);
    const cwd = folderWith(files);
    await run('plan --live -f a.json --out plan.json', { url, cwd, nowMs: at(0) });
    const { status, stderr } = await run('apply plan.json --dry-run=server', { url, cwd, nowMs: at(1) });
    expect([status, stderr]).toEqual([0, expect.not.stringContaining('differs')]);
  });
});

it('apply of a saved plan rejects another namespace than that of the plan', async () => {
  const cwd = folderWith({ 'cache.json': changed });
  const run = await on(objects);
  expect(await run('plan --live -f cache.json --out plan.json', cwd)).toMatchObject({ status: 0 });
  const stderr = expect.stringContaining('the saved plan is not of namespace other');
  expect(await run('apply plan.json --yes --namespace other', cwd)).toMatchObject({ status: 3, stderr });
  expect(await run('apply plan.json --yes', cwd)).toMatchObject({ status: 0 });
});

describe('apply of one group', () => {
  it('reports nothing about other groups of the namespace', async () => {
    const same = JSON.stringify(adoptedObjects()[0]);
    const cwd = folderWith({ 'cache.json': changed, 'ingester.json': same });
    const run = await on([...objects, ...ingester]);
    const plan = await run('plan --live -f cache.json', cwd);
    expect([plan.status, plan.stdout]).toEqual([5, expect.stringContaining('mimir/ingester')]);
    expect(await run('apply -f cache.json --dry-run=server', cwd)).toMatchObject({ status: 0 });
    const applied = await run('apply -f cache.json --yes', cwd);
    expect([applied.status, applied.stderr]).toEqual([0, expect.not.stringContaining('ingester')]);
    expect(await run('apply -f cache.json --yes', cwd)).toMatchObject({ status: 0, stdout: expect.stringContaining('Nothing to apply') });
    // A request that contains a member is about the group, also without a change.
    expect(await run('apply -f ingester.json --yes', cwd)).toMatchObject({ status: 5 });
  });
});

describe('an object in no group', () => {
  it('is in the plan before its change, and in no difference without a change', async () => {
    const alone = setOf('solo');
    const port = (number: number): FakeObject => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'cache', namespace: 'mimir' },
      spec: { ports: [{ name: 'http', port: number }] },
    });
    const cwd = folderWith({ 'cache.json': JSON.stringify(groupOf('cache')), 'service.json': JSON.stringify(port(81)) });
    const run = await on([system, groupOf('cache'), setOf('cache'), alone, port(80)]);
    expect(await run('diff -f cache.json', cwd)).toMatchObject({ status: 0, stdout: expect.not.stringContaining('solo') });
    const line = expect.stringMatching(/^OBJECT +Service mimir\/cache changed: spec\.ports\[http\]\.port, in no group$/m);
    expect(await run('plan --live -f service.json --detailed-exitcode', cwd)).toMatchObject({ status: 2, stdout: line });
    expect(await run('apply -f service.json --yes', cwd)).toMatchObject({ status: 0, stdout: line });
    expect(await run('plan --live -f service.json --detailed-exitcode', cwd)).toMatchObject({ status: 0 });
  });
});

describe('apply after a rollback', () => {
  const at = (name: string) => ({ a: name, b: name, c: name });
  const run = runOf({
    kind: 'rollback',
    target: at('rev-1'),
    previous: at('rev-2'),
    restores: at('rev-1'),
    rolledBack: { revisions: at('rev-2'), because: 'no pod became available' },
    outcome: 'completed',
    completedMs: Date.now() - 60_000,
  });
  const strategy = { type: 'RollingUpdate', rollingUpdate: { partition: 1_000_000 } };
  const sets = adoptedObjects({ updateRevision: 'rev-2', strategy });
  const { rollout, ...members } = Object(groupObject['spec']);
  const pinned = { ...groupObject, spec: { ...members, rollout: { ...rollout, waves: undefined, gates: undefined, strategy: 'pinned' } } };
  const pinWebhook: FakeObject = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: '0-rollout-group-pinned' },
    webhooks: [
      {
        name: 'pinned.rollout-group.dev',
        clientConfig: { url: 'https://127.0.0.1:1/admission/pin-pod', caBundle: Buffer.from('ca').toString('base64') },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
        failurePolicy: 'Ignore',
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  };
  const given = [system, pinned, pinWebhook, ...sets, ledgerObject({ run }), publishedObject(done), node];
  const publishedName = publishedObject(done).metadata.name;
  const setOfZone = (zone: string, image = 'mimir:1'): string =>
    JSON.stringify(sets.find(({ metadata }) => metadata.name === `ingester-zone-${zone}`)).replace('mimir:1', image);

  it('of a corrected template in one zone is denied, and names the zones with the blocked template', async () => {
    const cwd = folderWith({ 'c.json': setOfZone('c', 'mimir:3') });
    const { status, stderr } = await (await on(given))('apply -f c.json --yes', cwd);
    expect([status, stderr]).toEqual([5, expect.stringContaining(', or apply another pod template to zones a and b\n')]);
  });

  it('creates a missing StatefulSet, and reports that the others are still blocked', async () => {
    const present = given.filter(({ metadata }) => metadata.name !== 'ingester-zone-c');
    const cwd = folderWith({ 'c.json': setOfZone('c') });
    const { status, stdout, stderr } = await (await on(present))('apply -f c.json --yes', cwd);
    expect([status, stderr]).toEqual([
      5,
      expect.stringContaining('the change was applied, but rolled-back blocks the plan of mimir/ingester\n'),
    ]);
    expect(stdout).toContain('StatefulSet mimir/ingester-zone-c created\n');
  });

  it('undo without a StatefulSet names the object to create, like explain, and explain offers no undo', async () => {
    const ask = await on(given.filter(({ metadata }) => metadata.name !== 'ingester-zone-c' && metadata.name !== publishedName));
    const todo = 'create StatefulSet ingester-zone-c, or remove zone c from the group\n';
    const undone = await ask('undo ingester', folderWith({}));
    expect([undone.status, undone.stderr]).toEqual([10, expect.stringContaining(`do:  ${todo}`)]);
    const explained = (await ask('explain ingester', folderWith({}))).stdout;
    expect(explained).toContain(`do       ${todo}           to continue: kubectl rollout-group retry mimir/ingester\n`);
    expect(explained).not.toContain('rollout-group undo');
  });

  it('plans that the pods of a missing StatefulSet are created at the revision that the rollback restored', async () => {
    // Kubernetes computes these names from the templates.
    const names = { a: 'rev-2', b: 'ingester-zone-b-7f8b5c68bb', c: 'ingester-zone-c-5bb5f49775' };
    const rolled = { ...run, previous: names, rolledBack: { revisions: names, because: 'no pod became available' } };
    const all: readonly FakeObject[] = [system, pinned, pinWebhook, ...sets, ledgerObject({ run: rolled }), publishedObject(done), node];
    const objects = all.flatMap((object): readonly FakeObject[] => {
      const { name } = object.metadata;
      if (name === 'ingester-zone-b') return [{ ...object, status: { ...Object(object).status, updateRevision: names.b } }];
      return name.startsWith('ingester-zone-c') ? [] : [object];
    });
    const orphans = sets.flatMap((object): readonly FakeObject[] => {
      const { ownerReferences: _owners, ...metadata } = object.metadata;
      return metadata.name.startsWith('ingester-zone-c-') ? [{ ...object, metadata }] : [];
    });
    const cwd = folderWith({ 'c.json': setOfZone('c') });
    const planOf = async (present: readonly FakeObject[]) => {
      const [plan] = JSON.parse((await (await on(present))('plan --live -f c.json -o json', cwd)).stdout).groups;
      const kinds = plan.waves.flatMap(({ steps }: { steps: { kind: string }[] }) => steps.map(({ kind }) => kind));
      return { stops: plan.stops, zone: plan.zones.at(-1), kinds };
    };
    const stops = [{ rule: 'rolled-back', zones: ['a', 'b', 'c'] }];
    expect(await planOf(objects)).toMatchObject({ stops, zone: { replicasBefore: 0 }, kinds: ['scaleUp'] });
    // After `kubectl delete --cascade=orphan`, the StatefulSet adopts its pods.
    expect(await planOf([...objects, ...orphans])).toMatchObject({ stops, zone: { replicasBefore: 2 }, kinds: [] });
    const shown = await (await on([...objects, ...orphans]))('plan --live -f c.json', cwd);
    expect(shown.stdout).toMatch(/^CHANGE +StatefulSet +new +\(c\) +2 pods adopted$/m);
    const smaller = folderWith({ 'c.json': setOfZone('c').replace('"replicas":2', '"replicas":1') });
    const shrunk = await (await on([...objects, ...orphans]))('plan --live -f c.json', smaller);
    expect(shrunk.stdout).toMatch(/^CHANGE +StatefulSet +new +\(c\) +2 pods adopted, 1 pod removed$/m);
  });
});
