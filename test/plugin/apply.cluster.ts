import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { TestGroup } from '../control-plane/group.ts';
import { grant } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { statefulSet } from '../control-plane/workloads.ts';
import { commitSeed, rounds } from '../kit/share.ts';
import { bundleOf, serveKinds, untilServed } from './apply-kit.ts';
import { itKeepsPartitions } from './held-partitions.ts';
import { filesOf, type Person, person, readerRules, requesterRules, writerRules } from './live-people.ts';
import {
  changedPaths,
  contentOf,
  createClientSide,
  createServerSide,
  drawManifestPair,
  kindPath,
  lastApplied,
  pathOf,
  type Stored,
  shareWithPlatform,
} from './manifest-pairs.ts';
import { itShowsRefusedChanges } from './refused-dry-runs.ts';

const fieldManager = 'rollout-group';

interface Managed extends KubernetesObject {
  readonly metadata: KubernetesObject['metadata'] & {
    readonly managedFields?: readonly { readonly manager: string; readonly operation: string }[];
  };
  readonly spec: {
    readonly replicas: number;
    readonly template: { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
  };
}

let count = 0;

describeOnControlPlane('apply', (controlPlane) => {
  let namespace: string;
  let group: TestGroup;
  let writer: Person;

  beforeEach(async () => {
    count += 1;
    namespace = `apply-${count}`;
    group = new TestGroup(controlPlane().client, { namespace, zones: ['a', 'b'], replicas: 1 });
    await group.create();
    writer = await person(controlPlane(), namespace, `writer-${count}`, writerRules);
  });

  /** Only what is added, so that it claims no field that somebody else was given. */
  function asked(zone: string, overrides: object = {}): object {
    return {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: `ingester-zone-${zone}`, namespace, labels: { 'rollout-group': 'ingester' }, annotations: { team: 'storage' } },
      spec: overrides,
    };
  }

  /** The group of both StatefulSets, with waves unless `after` is undefined. */
  function stores(after: object | undefined): object {
    const waves = [
      { name: 'canary', zones: ['a'], percent: 100, ...(after && Object.keys(after).length > 0 ? { after } : {}) },
      { name: 'rest', zones: ['b'], percent: 100 },
    ];
    return {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'stores', namespace },
      spec: {
        members: { zones: ['a', 'b'].map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` })) },
        rollout: { strategy: 'onDelete', ...(after === undefined ? {} : { waves }) },
      },
    };
  }

  function service(name = 'ingester'): object {
    return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec: { ports: [{ port: 80 }] } };
  }

  const setOf = (zone: string) => controlPlane().client.get<Managed>(`${group.setsPath}/ingester-zone-${zone}`);

  /** Requests of people that changed something. */
  async function writes(): Promise<readonly string[]> {
    const events = await controlPlane().auditLog();
    return events
      .filter(({ user, verb, requestURI, objectRef }) => {
        const isPerson = user.username.startsWith('system:serviceaccount:people:') && objectRef?.namespace === namespace;
        return isPerson && !/^(?:get|list|watch)$/.test(verb) && !requestURI.includes('dryRun=All');
      })
      .map(({ verb, objectRef, responseStatus }) => `${verb} ${objectRef?.resource}/${objectRef?.name} ${responseStatus?.code}`);
  }

  it('shows the plan, applies with our field manager, and marks its writes with the plan', async () => {
    const cwd = filesOf({ 'a.json': asked('a'), 'service.json': service() });
    const { status, stdout, stderr } = await writer.run(['apply', '-f', '.', '--yes'], { cwd });
    expect({ status, stderr: stderr.replace(/^note: .*\n/gm, '') }).toEqual({ status: 0, stderr: '' });
    const digest = /2 objects applied as plan ([0-9a-f]{16})\./.exec(stdout)?.[1];
    expect(stdout).toContain(`StatefulSet ${namespace}/ingester-zone-a configured`);
    expect(stdout).toContain(`Service ${namespace}/ingester created`);
    const set = await setOf('a');
    expect(set.metadata.annotations).toMatchObject({ team: 'storage', 'rollout-group.dev/plan': digest });
    expect(set.metadata.managedFields?.filter(({ manager }) => manager === fieldManager)).toMatchObject([{ operation: 'Apply' }]);
    const again = await writer.run(['apply', '-f', '.', '--yes'], { cwd });
    expect({ status: again.status, last: again.stdout.trim().split('\n').at(-1) }).toEqual({
      status: 0,
      last: 'Nothing to apply: the cluster already has the requested state.',
    });
  });

  it('carries out a saved plan, and only in its unchanged cluster', async () => {
    const cwd = filesOf({ 'a.json': asked('a'), 'b.json': asked('b') });
    const planned = await writer.run(['plan', '-f', '.', '--out', 'the.plan'], { cwd });
    expect(planned.status).toBe(0);
    const digest = JSON.parse(readFileSync(join(cwd, 'the.plan'), 'utf8')).metadata.digest.slice(0, 16);
    expect(planned.stderr).toContain(`saved the.plan (sha256 ${digest})`);
    const { status, stdout } = await writer.run(['apply', 'the.plan', '--yes'], { cwd });
    expect(status).toBe(0);
    expect(stdout).toContain(`2 objects applied as plan ${digest}.`);
    expect((await setOf('b')).metadata.annotations?.['rollout-group.dev/plan']).toBe(digest);
    const repeated = await writer.run(['apply', 'the.plan', '--yes'], { cwd });
    expect({ status: repeated.status, isNamed: repeated.stderr.includes(`StatefulSet ${namespace}/ingester-zone-a changed`) }).toEqual({
      status: 9,
      isNamed: true,
    });
  });

  it('rejects a stale plan, names the changes, and writes nothing', async () => {
    const cwd = filesOf({ 'a.json': asked('a') });
    await writer.run(['plan', '-f', 'a.json', '--out', 'the.plan'], { cwd });
    await group.scale('ingester-zone-b', 2);
    await group.untilReady(3);
    const { status, stderr } = await writer.run(['apply', 'the.plan', '--yes'], { cwd });
    expect(status).toBe(9);
    expect(stderr).toContain('the plan is stale; nothing was applied');
    expect(stderr).toContain(`StatefulSet ${namespace}/ingester-zone-b changed (replicas)`);
    expect(stderr).toContain(`Pod ${namespace}/ingester-zone-b-1 appeared`);
    expect(await writes()).toEqual([]);
  });

  it('detects a change during the confirmation', async () => {
    const cwd = filesOf({ 'a.json': asked('a') });
    const answer = async (): Promise<string> => {
      await group.annotate('ingester-zone-b', { 'rollout-max-unavailable': '2' });
      return 'y';
    };
    const { status, stderr } = await writer.run(['apply', '-f', 'a.json'], { cwd, answer });
    expect({ status, isNamed: stderr.includes('ingester-zone-b changed (annotations)') }).toEqual({ status: 9, isNamed: true });
    expect(await writes()).toEqual([]);
  });

  it('ignores a newer status', async () => {
    const { client } = controlPlane();
    const cwd = filesOf({ 'a.json': asked('a') });
    await writer.run(['plan', '-f', 'a.json', '--out', 'the.plan'], { cwd });
    const before = await setOf('a');
    await client.patch(`${group.setsPath}/ingester-zone-a/status`, 'merge', { status: { collisionCount: 1 } });
    expect((await setOf('a')).metadata.resourceVersion).not.toBe(before.metadata.resourceVersion);
    expect((await writer.run(['apply', 'the.plan', '--yes'], { cwd })).status).toBe(0);
  });

  it('asks for confirmation, and accepts only yes', async () => {
    const cwd = filesOf({ 'a.json': asked('a') });
    const refused = await writer.run(['apply', '-f', 'a.json'], { cwd, answer: '' });
    expect({ status: refused.status, stderr: refused.stderr.includes('nothing was applied') }).toEqual({ status: 5, stderr: true });
    expect((await writer.run(['apply', '-f', 'a.json'], { cwd })).status).toBe(3);
    expect((await writer.run(['apply', '-f', 'a.json', '--no-input'], { cwd, answer: 'y' })).status).toBe(3);
    expect(await writes()).toEqual([]);
    expect((await writer.run(['apply', '-f', 'a.json'], { cwd, answer: 'yes' })).status).toBe(0);
  });

  it('keeps fields of other managers, names them, and applies nothing else', async () => {
    const { client } = controlPlane();
    await client.patch(`${group.setsPath}/ingester-zone-a?fieldManager=platform&force=true`, 'apply', {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'ingester-zone-a', annotations: { team: 'platform' } },
    });
    const cwd = filesOf({ 'a.json': asked('a'), 'service.json': service() });
    const { status, stderr } = await writer.run(['apply', '-f', '.', '--yes'], { cwd });
    expect(status).toBe(5);
    expect(stderr).toContain(`StatefulSet ${namespace}/ingester-zone-a .metadata.annotations.team (platform)`);
    expect(await writes()).toEqual([]);
  });

  it('takes over the fields that restart wrote to a template, reports this before and after, and takes no field of a third manager', async () => {
    const key = 'kubectl.kubernetes.io/restartedAt';
    const field = `.spec.template.metadata.annotations.${key}`;
    const template = (at: string) => ({ template: { metadata: { annotations: { [key]: at } } } });
    expect((await writer.run(['restart', 'ingester'])).status).toBe(0);
    expect((await setOf('a')).metadata.managedFields?.map(({ manager }) => manager)).toContain('rollout-group');
    const cwd = filesOf({ 'a.json': asked('a', template('2026-01-01T00:00:00Z')) });
    const tried = await writer.run(['apply', '-f', 'a.json', '--dry-run', 'server'], { cwd });
    expect({ status: tried.status, isSaid: tried.stdout.includes(field) }).toEqual({ status: 0, isSaid: true });
    const { status, stdout, stderr } = await writer.run(['apply', '-f', 'a.json', '--yes'], { cwd });
    expect(status).toBe(0);
    const said = `the manifest overwrites fields written by undo, restart or scale: ${field}`;
    expect(stderr).toContain(`note: StatefulSet ${namespace}/ingester-zone-a: ${said}`);
    expect(stdout).toContain(`StatefulSet ${namespace}/ingester-zone-a configured; ${said}`);
    // Ours and somebody else's at once: the field is not taken.
    expect((await writer.run(['restart', 'ingester'])).status).toBe(0);
    const { client } = controlPlane();
    const platform = { ...asked('a'), metadata: { name: 'ingester-zone-a', annotations: { team: 'storage', tier: 'gold' } } };
    await client.patch(`${group.setsPath}/ingester-zone-a?fieldManager=platform&force=true`, 'apply', platform);
    const both = { ...(asked('a', template('2026-02-01T00:00:00Z')) as { readonly metadata: object }) };
    const more = { ...both, metadata: { ...both.metadata, annotations: { tier: 'silver' } } };
    const refused = await writer.run(['apply', '-f', 'b.json', '--yes'], { cwd: filesOf({ 'b.json': more }) });
    expect(refused.status).toBe(5);
    expect(refused.stderr).toContain('.metadata.annotations.tier (platform)');
    expect(JSON.stringify(await setOf('a'))).not.toContain('2026-02-01T00:00:00Z');
  });

  it('rejects objects that another tool syncs from Git', async () => {
    await group.annotate('ingester-zone-a', { 'argocd.argoproj.io/tracking-id': 'mimir:apps/StatefulSet:x/ingester-zone-a' });
    const cwd = filesOf({ 'a.json': asked('a') });
    const { status, stderr } = await writer.run(['apply', '-f', 'a.json', '--yes'], { cwd });
    expect({ status, isNamed: stderr.includes('Argo CD owns StatefulSet') }).toEqual({ status: 5, isNamed: true });
    expect((await writer.run(['diff', '-f', 'a.json'], { cwd })).stderr).toContain('apply refuses this: Argo CD owns StatefulSet');
    expect(await writes()).toEqual([]);
  });

  it('rejects a change that a policy denies', async () => {
    const { client } = controlPlane();
    await client.patch(`${group.setsPath}/ingester-zone-a`, 'merge', { metadata: { labels: { 'grafana.com/no-downscale': 'true' } } });
    const cwd = filesOf({ 'a.json': asked('a', { replicas: 0 }) });
    const { status, stdout, stderr } = await writer.run(['apply', '-f', 'a.json', '--yes'], { cwd });
    expect({ status, isShown: stdout.includes('DENIED'), isSaid: stderr.includes('policy denies a part of the plan') }).toEqual({
      status: 5,
      isShown: true,
      isSaid: true,
    });
    expect(await writes()).toEqual([]);
  });

  it('does a dry run without a change', async () => {
    const cwd = filesOf({ 'a.json': asked('a') });
    const server = await writer.run(['apply', '-f', 'a.json', '--dry-run', 'server', '--detailed-exitcode'], { cwd });
    expect({ status: server.status, said: server.stdout.includes('configured (dry run, server)') }).toEqual({ status: 2, said: true });
    const reader = await person(controlPlane(), namespace, `reader-${count}`, readerRules);
    expect((await reader.run(['apply', '-f', 'a.json', '--dry-run', 'client'], { cwd })).status).toBe(0);
    expect(await writes()).toEqual([]);
  });

  it('names the missing permission, and writes nothing', async () => {
    const reader = await person(controlPlane(), namespace, `reader-${count}`, readerRules);
    const cwd = filesOf({ 'a.json': asked('a') });
    const { status, stderr } = await reader.run(['apply', '-f', 'a.json', '--yes'], { cwd });
    expect(status).toBe(11);
    expect(stderr).toContain(`may not patch statefulsets in namespace ${namespace}`);
    expect(await writes()).toEqual([]);
  });

  it('names the applied and the remaining objects if it is interrupted', async () => {
    const { client } = controlPlane();
    // The permission goes while the question stands: between the dry run and the writes.
    const cwd = filesOf({ '1.json': service('first'), '2.json': asked('a'), '3.json': service('last') });
    const answer = async (): Promise<string> => {
      const rules = writerRules.map((rule) => (rule.resources.includes('statefulsets') ? { ...rule, verbs: ['get', 'list'] } : rule));
      await grant(client, writer.identity, namespace, rules);
      await untilForbidden(controlPlane(), writer, `${group.setsPath}/ingester-zone-a?dryRun=All`);
      return 'y';
    };
    const { status, stdout, stderr } = await writer.run(['apply', '-f', '.', '--desired', '.', '-o', 'json'], { cwd, answer });
    const results = JSON.parse(stdout).objects.map(({ object, result }: { object: string; result: string }) => `${object} ${result}`);
    expect(results).toEqual([
      `Service ${namespace}/first created`,
      `StatefulSet ${namespace}/ingester-zone-a failed`,
      `Service ${namespace}/last notAttempted`,
    ]);
    expect({ status, isNamed: stderr.includes('may not patch statefulsets') }).toEqual({ status: 11, isNamed: true });
  });

  it('names the installation of missing kinds, and applies policies after it', async () => {
    const { client } = controlPlane();
    const policy = {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutPolicy',
      metadata: { name: 'calm', namespace },
      spec: { targets: { all: true }, limits: { maxUnavailable: 1 } },
    };
    const cwd = filesOf({ 'policy.yaml': stringify(policy) });
    const { status, stderr } = await writer.run(['apply', '-f', '.', '--yes'], { cwd });
    expect({ status, isSaid: stderr.includes('schema RolloutPolicy -o crd | kubectl apply -f -') }).toEqual({ status: 10, isSaid: true });
    await client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', customResourceDefinition('RolloutPolicy'));
    const path = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutpolicies`;
    await untilServed(controlPlane(), path);
    const applied = await writer.run(['apply', '-f', '.', '--yes'], { cwd });
    expect({ status: applied.status, stderr: applied.stderr.replace(/^note: .*\n/gm, '') }).toEqual({ status: 0, stderr: '' });
    const [stored] = await client.list<KubernetesObject & { readonly spec: object }>(path);
    expect(stored?.spec).toEqual(policy.spec);
    writeFileSync(join(cwd, 'policy.yaml'), stringify({ ...policy, spec: { ...policy.spec, limits: { maxUnavailable: 'x' } } }));
    expect((await writer.run(['apply', '-f', '.', '--yes'], { cwd })).status).toBe(4);
  });

  it('reads a group from a file, then from the object that it wrote, and a plan of it is stale if that object changes', async () => {
    const { client } = controlPlane();
    await client.ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', customResourceDefinition('RolloutGroup'));
    const path = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutgroups`;
    await untilServed(controlPlane(), path);
    const definition = {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'stores', namespace },
      spec: {
        members: { zones: ['a', 'b'].map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` })) },
        rollout: { strategy: 'onDelete', maxUnavailable: 1 },
      },
    };
    const cwd = filesOf({ 'group.json': definition, 'a.json': asked('a') });
    expect((await writer.run(['apply', '-f', 'group.json', '--yes'], { cwd })).status).toBe(0);
    const plan = JSON.parse((await writer.run(['plan', '-f', 'a.json', '-o', 'json'], { cwd })).stdout);
    expect(plan.groups.map(({ group: name }: { group: string }) => name)).toEqual(['stores']);
    await writer.run(['plan', '-f', 'a.json', '--out', 'the.plan'], { cwd });
    await client.patch(`${path}/stores`, 'merge', { spec: { rollout: { maxUnavailable: 2 } } });
    const { status, stderr } = await writer.run(['apply', 'the.plan', '--yes'], { cwd });
    expect({ status, isNamed: stderr.includes(`RolloutGroup ${namespace}/stores changed (spec)`) }).toEqual({ status: 9, isNamed: true });
    expect((await setOf('a')).metadata.annotations ?? {}).not.toHaveProperty('team');
    const difference = await writer.run(['diff', '-f', 'group.json'], { cwd });
    expect({ status: difference.status, isShown: difference.stdout.includes('maxUnavailable') }).toEqual({ status: 1, isShown: true });
    expect((await writer.run(['diff', '-f', 'group.json', '--against', 'group.json'], { cwd })).status).toBe(0);
  });

  it('waits like status, with its exit codes', async () => {
    const fresh = (image: string) => {
      const object = statefulSet({ name: 'fresh-zone-a', replicas: 1, image, setLabels: { 'rollout-group': 'fresh' } });
      return { apiVersion: 'apps/v1', kind: 'StatefulSet', ...object };
    };
    const cwd = filesOf({ '1.json': fresh('example.com/server:1'), '2.json': fresh('example.com/server:2') });
    // Without the right to watch, the command reads again only now and then.
    const waiter = await person(controlPlane(), namespace, 'waiter', requesterRules);
    const created = await waiter.run(['apply', '-f', '1.json', '--yes', '--wait', '--timeout', '60s'], { cwd });
    expect({ status: created.status, isSaid: created.stdout.includes('fresh-zone-a created') }).toEqual({ status: 0, isSaid: true });
    // Nobody replaces the pod: no agent runs here.
    const changed = await waiter.run(['apply', '-f', '2.json', '--yes', '--wait', '--timeout', '2s'], { cwd });
    expect({ status: changed.status, isSaid: changed.stdout.includes('fresh-zone-a configured') }).toEqual({ status: 7, isSaid: true });
    // A repeated command changes nothing, and waits for the same rollout.
    const again = await waiter.run(['apply', '-f', '2.json', '--yes', '--wait', '--timeout', '2s'], { cwd });
    expect({ status: again.status, isSaid: again.stdout.includes('Nothing to apply') }).toEqual({ status: 7, isSaid: true });
  });

  it('removes fields that the manifest no longer has, as plan and diff show before', async () => {
    await serveKinds(controlPlane(), namespace);
    const folder = filesOf({ 'a.json': asked('a', withEnv('A', 'B')), 'group.json': stores({ soak: '10m', approval }) });
    const bundle = bundleOf(writer, folder);
    const run = (line: string) => writer.run(line.split(' '), { cwd: folder });
    expect(await run('apply -f . --yes')).toMatchObject({ status: 0 });
    expect(await run('diff -f .')).toMatchObject({ status: 0, stdout: expect.not.stringContaining('spec') });
    writeFileSync(join(folder, 'a.json'), JSON.stringify(asked('a', withEnv('A'))));
    writeFileSync(join(folder, 'group.json'), JSON.stringify(stores({})));
    const difference = bundle('diff -f .');
    expect(difference).toMatchObject({ status: 1, stdout: expect.stringMatching(/env\[B\]/) });
    expect(difference.stdout).toMatch(/soak/);
    const plan = bundle('plan -f . --out the.plan');
    expect(plan).toMatchObject({ status: 0, stdout: expect.stringMatching(/env/) });
    expect(plan.stdout).not.toMatch(/approve|soak +canary/);
    expect(bundle('apply the.plan --yes')).toMatchObject({ status: 0, stdout: expect.stringContaining('2 objects applied') });
    expect(JSON.stringify(await setOf('a'))).not.toContain('"B"');
    const stored = await controlPlane().client.get<Stored>(`${kindPath(namespace, 'rolloutgroups')}/stores`);
    expect(JSON.stringify(stored.spec)).not.toMatch(/soak|approval/);
    expect(await run('diff -f .')).toMatchObject({ status: 0 });
    expect((await run('apply -f . --yes')).stdout).toContain('Nothing to apply');
    writeFileSync(join(folder, 'group.json'), JSON.stringify(stores(undefined)));
    expect(await run('diff -f .')).toMatchObject({ status: 1, stdout: expect.stringMatching(/waves/) });
    expect((await run('apply -f . --yes')).stdout).toContain('1 object applied');
    expect(await run('diff -f .')).toMatchObject({ status: 0 });
  });

  it.each([
    ['kubectl-client-side-apply', 'adopted-zone-a', createClientSide],
    ['kubectl', 'served-zone-a', createServerSide],
  ] as const)('rejects fields of %s, reports this before, and takes them with --force-conflicts', async (manager, name, create) => {
    const { client } = controlPlane();
    const manifest = (image: string, more: object) => {
      const { metadata, spec } = statefulSet({ name, replicas: 1, image }) as {
        readonly metadata: object;
        readonly spec: object;
      };
      return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { ...metadata, namespace }, spec: { ...spec, ...more } };
    };
    await create(client, group.setsPath, manifest('example.com/server:1', { minReadySeconds: 7 }));
    const folder = filesOf({ 'a.json': manifest('example.com/server:2', {}) });
    const bundle = bundleOf(writer, folder);
    const run = (line: string) => writer.run(line.split(' '), { cwd: folder });
    const same = await writer.run(['diff', '-f', '.'], { cwd: filesOf({ 'a.json': manifest('example.com/server:1', {}) }) });
    expect(same.stderr).toContain(`minReadySeconds of ${manager} stays; --force-conflicts`);
    for (const line of ['plan -f .', 'diff -f .']) {
      const { stderr } = bundle(line);
      expect(stderr, line).toContain(`(${manager}); take over the fields of kubectl with --force-conflicts`);
      expect(stderr, line).toMatch(/apply refuses this: 1 field belongs/);
    }
    expect(await run('apply -f . --yes')).toMatchObject({ status: 5, stderr: expect.stringContaining('--force-conflicts') });
    const difference = bundle('diff -f . --force-conflicts');
    expect(difference).toMatchObject({ status: 1, stdout: expect.stringContaining('minReadySeconds') });
    expect(difference.stderr).toContain(`apply moves the fields of ${manager} to rollout-group`);
    expect(await run('plan -f . --force-conflicts --out the.plan')).toMatchObject({ status: 0 });
    expect(await run('apply the.plan --yes')).toMatchObject({ status: 0 });
    const adopted = await client.get<Managed>(`${group.setsPath}/${name}`);
    expect(adopted.spec).not.toHaveProperty('minReadySeconds');
    expect(adopted.metadata.annotations ?? {}).not.toHaveProperty(lastApplied);
    expect(adopted.metadata.managedFields?.map(({ manager }) => manager)).not.toContain(manager);
    expect(await run('diff -f .')).toMatchObject({ status: 0 });
    expect((await run('apply -f . --yes')).stdout).toContain('Nothing to apply');
    await client.patch(`${group.setsPath}/${name}/scale?fieldManager=kube-controller-manager`, 'merge', { spec: { replicas: 2 } });
    const forced = await run('apply -f . --force-conflicts --yes');
    expect(forced).toMatchObject({ status: 5, stderr: expect.stringContaining('.spec.replicas (kube-controller-manager)') });
  });

  it.each([
    ['of our manager', false],
    ['of client-side apply', true],
  ])('reaches the state that diff showed, from manifests %s', async (_what, isClientSide) => {
    const { client } = controlPlane();
    await serveKinds(controlPlane(), namespace);
    const pairs = Array.from({ length: rounds(60, 6) }, (_, index) =>
      drawManifestPair(commitSeed + index * 2 + Number(isClientSide), { namespace, name: `drawn-${index}` }),
    );
    const folder = filesOf({});
    const write = (objects: readonly object[]): void =>
      writeFileSync(join(folder, 'all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
    write(pairs.flatMap(({ first }) => first));
    const flags = isClientSide ? ['--force-conflicts'] : [];
    if (isClientSide) for (const object of pairs.flatMap(({ first }) => first)) await createClientSide(client, pathOf(object), object);
    else expect((await writer.run(['apply', '-f', '.', '--yes'], { cwd: folder })).status).toBe(0);
    for (const { first } of pairs) await shareWithPlatform(client, first[0] ?? {});
    write(pairs.flatMap(({ second }) => second));
    const env = { KUBECTL_EXTERNAL_DIFF: `sh ${join(folder, 'keep.sh')}` };
    writeFileSync(join(folder, 'keep.sh'), `cp -r "$2" ${folder}/promised\n`);
    const diff = ['diff', '-f', 'all.json', ...flags];
    expect((await writer.run([...diff, '-o', 'external'], { cwd: folder, env })).stderr).not.toContain('is computed here');
    // Without the permission for a dry run the result is computed from the field managers.
    const reader = await person(controlPlane(), namespace, `reader-${count}`, readerRules);
    const [tried, computed] = [writer, reader].map((one) => one.run([...diff, '-o', 'json'], { cwd: folder }));
    // It also shows a removed field that the API server sets again by default.
    expect(changedPaths(await computed)).toEqual(expect.arrayContaining([...changedPaths(await tried)]));
    expect((await computed)?.stderr).toContain('is computed here, without changes by webhooks');
    const applied = await writer.run(['apply', '-f', 'all.json', '--yes', ...flags], { cwd: folder });
    expect({ status: applied.status, stderr: applied.stderr.replace(/^note: .*\n/gm, '') }).toEqual({ status: 0, stderr: '' });
    for (const object of pairs.flatMap(({ second }) => second)) {
      const { kind, metadata } = object as unknown as KubernetesObject;
      const text = readFileSync(join(folder, 'promised', `${kind}.${namespace}.${metadata.name}.yaml`), 'utf8');
      const promised = parse(text) as Stored;
      const { spec, ...stored } = await client.get<Stored>(`${pathOf(object)}/${metadata.name}`);
      // A plan takes replicas that no manifest names for those of another controller.
      const { replicas, ...rest } = { replicas: undefined, ...spec };
      const compared = { ...stored, spec: { ...rest, ...('replicas' in promised.spec ? { replicas } : {}) } };
      expect(contentOf(compared), `${kind} ${metadata.name} of seed ${commitSeed}`).toEqual(contentOf(promised));
    }
    expect(await writer.run(['diff', '-f', 'all.json'], { cwd: folder })).toMatchObject({ status: 0 });
    expect((await writer.run(['apply', '-f', 'all.json', '--yes'], { cwd: folder })).stdout).toContain('Nothing to apply');
  });

  itKeepsPartitions(() => ({ controlPlane: controlPlane(), namespace, writer }));

  itShowsRefusedChanges(() => ({ controlPlane: controlPlane(), namespace, writer, number: count }));

  it('accepts only unchanged saved plans', async () => {
    const cwd = filesOf({ 'a.json': asked('a') });
    await writer.run(['plan', '-f', 'a.json', '--out', 'the.plan'], { cwd });
    const text = readFileSync(join(cwd, 'the.plan'), 'utf8');
    writeFileSync(join(cwd, 'changed.plan'), text.replace('"storage"', '"somebody"'));
    const changed = await writer.run(['apply', 'changed.plan', '--yes'], { cwd });
    expect({ status: changed.status, isSaid: changed.stderr.includes('does not match its digest') }).toEqual({ status: 3, isSaid: true });
    expect((await writer.run(['apply', 'no.plan', '--yes'], { cwd })).status).toBe(10);
    expect((await writer.run(['apply', 'the.plan', '-f', 'a.json', '--yes'], { cwd })).status).toBe(3);
    expect((await writer.run(['apply', '--yes'], { cwd })).status).toBe(3);
  });
});

const approval = { count: 1, from: ['oncall'] };

function withEnv(...names: readonly string[]): object {
  const env = names.map((name) => ({ name, value: '1' }));
  return { template: { spec: { containers: [{ name: 'server', env }] } } };
}

async function untilForbidden(controlPlane: ControlPlane, { identity }: Person, path: string): Promise<void> {
  const client = controlPlane.clientOf(identity);
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const { status } = await client.ask('PATCH', path, { metadata: {} }, 'application/merge-patch+json');
    if (status === 403) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${identity.user} may still patch ${path} after 10 s`);
}
