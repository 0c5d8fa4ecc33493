import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Asked, type FakeOptions, fakeApiServer } from './api-server.ts';
import { type Ended, type InProcess, runInProcess } from './in-process.ts';
import { paused as pausedDecision, rolling } from './live-kit.ts';
import { adoptedObjects, publishedObject, type SetOptions, uidOf } from './live-objects.ts';
import type { FakeObject } from './served-objects.ts';

interface Acted extends Ended {
  readonly writes: readonly Asked[];
  readonly objects: readonly FakeObject[];
}

async function act(
  line: string,
  { extra = [], options = {}, ...rest }: { set?: SetOptions; extra?: readonly FakeObject[]; options?: FakeOptions } & InProcess = {},
): Promise<Acted> {
  const { set, ...circumstances } = rest;
  const server = await fakeApiServer([...adoptedObjects(set), ...extra], options);
  // Values of flags may hold spaces.
  const words = [...line.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word);
  const ended = await runInProcess([...words, '--server', server.url, '-n', 'mimir'], circumstances);
  return { ...ended, writes: server.writes, objects: server.objects() };
}

const pauseOf = (zone?: string): FakeObject => ({
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutIntent',
  metadata: { name: zone === undefined ? 'pause.ingester' : `pause-zone.${zone}.ingester`, namespace: 'mimir' },
  spec: { group: 'ingester', action: 'pause', ...(zone === undefined ? {} : { zone }) },
});

describe('pause', () => {
  it('writes an intent with zone, reason and end', async () => {
    const { status, stdout, writes } = await act('pause ingester --yes --zone c --duration 2h --reason "read latency"');
    expect([status, writes.length]).toEqual([0, 1]);
    expect(writes[0]?.path).toMatch(
      /\/namespaces\/mimir\/rolloutintents\/pause-zone\.c\.ingester\?fieldManager=rollout-group&force=false$/,
    );
    expect(writes[0]?.body).toMatchObject({
      spec: { group: 'ingester', action: 'pause', zone: 'c', reason: 'read latency' },
    });
    expect(stdout).toMatch(
      /^mimir\/ingester zone c paused until .* UTC \(read latency\)\n {2}no further pod of zone c is replaced; while the wave has a pod of zone c to replace, the rollout does not continue with later zones; the pause does not apply to the replicas of zones a and b\n$/,
    );
  });

  it.each([
    ['starting', 0, '1 pod in flight will finish; no further pod is replaced'],
    ['starting', 7_200_000, '1 pod that was in flight 2h ago will finish; no further pod is replaced'],
    ['crashing', 0, 'no further pod is replaced'],
  ] as const)('counts only pods that finish: %s, decided %d ms ago', async (state, ageMs, text) => {
    const pods = [{ zone: 'b', pod: 'ingester-zone-b-12', state }];
    const zones = rolling.zones.map((zone) => (zone.zone === 'b' ? { ...zone, available: 19 } : zone));
    const extra = [publishedObject({ ...rolling, decidedMs: Date.now() - ageMs, pods, zones })];
    const { stdout } = await act('pause ingester', { extra });
    expect(stdout).toBe(`mimir/ingester paused\n  ${text}\n`);
  });

  it.each([
    [
      'b',
      '2 pods in flight will finish; no further pod of zone b is replaced; while the wave has a pod of zone b to replace, the rollout does not continue with later zones; the pause does not apply to the replicas of zones a and c',
    ],
    [
      'c',
      'no further pod of zone c is replaced; while the wave has a pod of zone c to replace, the rollout does not continue with later zones; the pause does not apply to the replicas of zones a and b',
    ],
  ])('of zone %s counts the pods of this zone, and names the state of the other zones', async (zone, text) => {
    const extra = [publishedObject({ ...rolling, decidedMs: Date.now() })];
    expect((await act(`pause ingester --zone ${zone}`, { extra })).stdout).toBe(`mimir/ingester zone ${zone} paused\n  ${text}\n`);
  });

  it('pauses the group, as explain shows', async () => {
    const server = await fakeApiServer(adoptedObjects({ updateRevision: 'rev-2' }));
    const on = (...words: readonly string[]): Promise<Ended> => runInProcess([...words, '--server', server.url, '-n', 'mimir'], {});
    await on('pause', 'ingester', '--reason', 'INC-441');
    expect((await on('explain', 'ingester', '-o', 'jsonpath={.group.name}')).stdout).toBe('ingester');
    expect((await on('explain', 'ingester')).stdout).toContain('the group is paused by an unverified requester (INC-441)');
    expect((await on('status', 'ingester', '--for=paused')).status).toBe(0);
    await on('resume', 'ingester');
    expect((await on('explain', 'ingester')).stdout).not.toContain('is paused');
  });

  it('sends no request with --dry-run=client, and a dry run with server, and prints the object', async () => {
    const client = await act('pause ingester --dry-run client');
    expect(client.writes).toEqual([]);
    expect(parse(client.stdout)).toEqual(pauseOf());
    const server = await act('pause ingester --dry-run server');
    expect(server.writes.map(({ path }) => path)).toEqual([expect.stringContaining('dryRun=All')]);
    const { metadata, ...rest } = pauseOf();
    const given = { uid: expect.any(String), creationTimestamp: expect.any(String), generation: 1 };
    expect(parse(server.stdout)).toEqual({ ...rest, metadata: { ...metadata, ...given } });
  });

  it('gets another name while no webhook answers if a pause with this target is stored, also with an end in the past', async () => {
    const stored = { ...pauseOf(), spec: { group: 'ingester', action: 'pause', expires: '2020-01-01T00:00:00Z' } };
    const paused = (extra: readonly FakeObject[], line = 'pause ingester') => act(line, { extra, options: { isWebhookAway: true } });
    const namesIn = ({ objects }: Acted) => objects.flatMap(({ kind, metadata }) => (kind === 'RolloutIntent' ? [metadata.name] : []));
    const first = await paused([]);
    expect([first.status, namesIn(first)]).toEqual([0, ['pause.ingester']]);
    const second = await paused([stored]);
    expect([second.status, namesIn(second)]).toEqual([0, ['pause.ingester', expect.stringMatching(/^pause\.ingester\.[0-9a-f]{10}$/)]]);
    expect(second.stdout).toBe('mimir/ingester paused\n  no further pod is replaced\n');
    // A repetition writes the same object, which the API server accepts: it changes nothing.
    const [, again] = namesIn(second);
    expect(namesIn(await paused([stored], 'pause ingester --zone c'))).toContain('pause-zone.c.ingester');
    expect(again).toBe(namesIn(await paused([stored]))[1]);
  });

  it('of a zone and of a group whose name ends with this zone have distinct names', async () => {
    const [ofZone, ofGroup] = await Promise.all(
      ['pause ingester --zone c', 'pause ingester.c'].map(async (line) => {
        const group = line.split(' ')[1] ?? '';
        const objects = adoptedObjects().map((object) => JSON.parse(JSON.stringify(object).replaceAll('"ingester"', `"${group}"`)));
        const server = await fakeApiServer(objects);
        const { stderr } = await runInProcess([...line.split(' '), '--server', server.url, '-n', 'mimir']);
        return server.writes.map(({ path }) => /rolloutintents\/([^?]+)/.exec(path)?.[1] ?? stderr);
      }),
    );
    expect([ofZone, ofGroup]).toEqual([['pause-zone.c.ingester'], ['pause.ingester.c']]);
  });

  it('fails with the command that installs the CRD', async () => {
    const { status, stderr } = await act('pause ingester', { options: { missing: ['rolloutintents'] } });
    expect(status).toBe(10);
    expect(stderr).toBe(
      'error: nothing was paused\n  why: the kind RolloutIntent is not installed in this cluster\n  do:  kubectl rollout-group schema RolloutIntent -o crd | kubectl apply -f -\n',
    );
  });

  it.each([
    ['pause nonsense', 10],
    ['pause ingester --zone x', 3],
    ['pause ingester --duration soon', 3],
  ])('%s ends with %i', async (line, status) => {
    const ended = await act(line);
    expect([ended.status, ended.writes]).toEqual([status, []]);
  });
});

describe('resume', () => {
  it.each([
    [
      'resume ingester',
      'pause.ingester',
      'mimir/ingester resumed',
      'zone c is still paused. Run: kubectl rollout-group resume mimir/ingester --zone c',
    ],
    [
      'resume ingester --zone c',
      'pause-zone.c.ingester',
      'mimir/ingester zone c resumed',
      'the whole group is still paused. Run: kubectl rollout-group resume mimir/ingester',
    ],
  ])('%s ends only %s and names the other pause', async (line, ended, done, rest) => {
    const { stdout, writes, objects } = await act(line, { extra: [pauseOf(), pauseOf('c')] });
    expect(stdout).toBe(`${done}\n  deleted RolloutIntent ${ended}: the pause by an unverified requester without an end\n  ${rest}\n`);
    expect(writes.map(({ body }) => body)).toEqual([
      expect.objectContaining({ preconditions: { uid: expect.any(String), resourceVersion: expect.any(String) } }),
    ]);
    const left = objects
      .flatMap(({ kind, metadata }) => (kind === 'RolloutIntent' ? [metadata.name] : []))
      .sort()
      .reverse();
    expect(left).toEqual(['pause.ingester', 'pause-zone.c.ingester'].filter((name) => name !== ended));
    const preview = await act(`${line} --dry-run=client`, { extra: [pauseOf(), pauseOf('c')] });
    expect(preview.stdout.match(/name: pause\S+/g)).toEqual([`name: ${ended}`]);
    expect([preview.writes, preview.stderr]).toEqual([[], `note: would delete RolloutIntent ${ended}; nothing was changed\n`]);
    const served = await act(`${line} --dry-run=server`, { extra: [pauseOf(), pauseOf('c')] });
    expect(served.writes.map(({ body }) => body)).toEqual([expect.objectContaining({ dryRun: ['All'] })]);
  });

  it('names each pause and each abort that it deletes, also ones that a user wrote by hand', async () => {
    const written = {
      ...pauseOf(),
      metadata: { name: 'incident', namespace: 'mimir' },
      spec: { group: 'ingester', action: 'abort', reason: 'INC-441' },
    };
    expect((await act('resume ingester', { extra: [pauseOf(), written] })).stdout.split('\n').toSorted()).toEqual([
      '',
      '  deleted RolloutIntent incident: the abort by an unverified requester (INC-441) without an end',
      '  deleted RolloutIntent pause.ingester: the pause by an unverified requester without an end',
      'mimir/ingester resumed',
    ]);
  });

  it('changes no group if another named group does not exist', async () => {
    for (const line of ['resume ingester nonsense', 'resume nonsense ingester', 'pause ingester nonsense']) {
      const { status, stderr, writes } = await act(line, { extra: [pauseOf()] });
      expect([status, writes], line).toEqual([10, []]);
      expect(stderr).toContain('error: nothing was changed: group nonsense does not exist in namespace mimir');
    }
    expect((await act('resume ingester ingester', { extra: [pauseOf()] })).stdout).toContain('mimir/ingester resumed\n');
  });

  it('reports that nothing is paused', async () => {
    expect((await act('resume ingester')).stdout).toBe('mimir/ingester is not paused by a request\n');
    const preview = await act('resume ingester --dry-run=client');
    expect([preview.stdout, preview.stderr]).toEqual(['', 'note: mimir/ingester is not paused by a request\n']);
  });

  it('ends the pause of a zone that has left the group', async () => {
    const { status, stdout, objects } = await act('resume ingester --zone gone', { extra: [pauseOf('gone')] });
    expect([status, stdout, objects.some(({ kind }) => kind === 'RolloutIntent')]).toEqual([
      0,
      'mimir/ingester zone gone resumed\n  deleted RolloutIntent pause-zone.gone.ingester: the pause by an unverified requester without an end\n',
      false,
    ]);
    expect((await act('resume ingester --zone gone')).status).toBe(3);
  });

  it('names every other pause and the rules that block until a user acts', async () => {
    const { stdout } = await act('resume ingester --zone c', { extra: [pauseOf('a'), pauseOf('b'), pauseOf('c')] });
    const command = 'kubectl rollout-group resume mimir/ingester --zone';
    const lines = ['a', 'b'].map((zone) => `  zone ${zone} is still paused. Run: ${command} ${zone}\n`);
    expect(stdout).toContain(`mimir/ingester zone c resumed\n  deleted `);
    expect(stdout.endsWith(lines.join(''))).toBe(true);
    const waits = [{ rule: 'pin-webhook', outcome: 'no', fact: 'no webhook pins pods', sinceMs: 0, zones: ['a'] }] as const;
    const published = publishedObject({ ...pausedDecision, decidedMs: Date.now(), waits });
    const resumed = await act('resume ingester', { extra: [pauseOf(), published] });
    expect(resumed.stdout).toContain(
      '\n  no webhook pins pods; resume does not end this block; find out why: kubectl rollout-group doctor -n mimir\n',
    );
  });

  it('does not end the pause of the whole group for one zone', async () => {
    const { stdout, writes } = await act('resume ingester --zone c', { extra: [pauseOf()] });
    expect(writes).toEqual([]);
    expect(stdout).toContain('the whole group is still paused. Run: kubectl rollout-group resume mimir/ingester');
  });
});

describe('restart', () => {
  it('changes one annotation of every template under a precondition and records the reason', async () => {
    const { status, stdout, writes } = await act('restart ingester --reason certificates');
    expect([status, stdout]).toEqual([
      0,
      '6 pods of mimir/ingester will be replaced in the order of the group\n  a: mimir:1 (2 pods)\n  b: mimir:1 (2 pods)\n  c: mimir:1 (2 pods)\n',
    ]);
    const patches = writes.filter(({ method }) => method === 'PATCH');
    expect(patches.map(({ path }) => path.split('/').at(-1))).toEqual(['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c']);
    for (const { body } of patches) {
      expect(body).toEqual({
        metadata: { uid: expect.any(String), resourceVersion: expect.any(String) },
        spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': expect.stringMatching(/Z$/) } } } },
      });
    }
    const events = writes.filter(({ method }) => method === 'POST');
    expect(events).toHaveLength(3);
    expect(events[0]?.body).toMatchObject({
      reason: 'Restarted',
      note: 'certificates',
      regarding: { kind: 'StatefulSet', name: 'ingester-zone-a' },
    });
  });

  it('restarts one zone, and changes nothing in a dry run', async () => {
    expect((await act('restart ingester --zone ingester-zone-b')).writes).toHaveLength(1);
    const dry = await act('restart ingester --dry-run client');
    expect([dry.writes, dry.stdout.split('---\n')]).toEqual([[], expect.arrayContaining([expect.stringContaining('restartedAt')])]);
  });

  it('fails if Kubernetes would replace all zones at once', async () => {
    const { status, stderr, writes } = await act('restart ingester', { set: { strategy: { type: 'RollingUpdate' } } });
    expect([status, writes]).toEqual([5, []]);
    expect(stderr).toContain('has the updateStrategy RollingUpdate with partition 0, so Kubernetes would replace its pods at once');
  });

  it('counts the partition that protects all pods from the first ordinal', async () => {
    const from = (partition: number) => ({ strategy: { type: 'RollingUpdate', rollingUpdate: { partition } }, firstOrdinal: 5 });
    expect((await act('restart ingester --zone a', { set: from(2) })).stderr).not.toContain('would not proceed zone by zone');
    expect((await act('restart ingester --zone a', { set: from(1) })).stderr).toContain('would not proceed zone by zone');
  });

  it('is denied by a policy, also from the namespace of the agent', async () => {
    const policy = (namespace: string): FakeObject => ({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutPolicy',
      metadata: { name: 'freeze', namespace },
      spec: {
        targets: { all: true, ...(namespace === 'mimir' ? {} : { namespaces: ['mimir'] }) },
        rules: [{ name: 'no-restarts', actions: ['restart'], effect: 'deny', message: 'nobody restarts in December' }],
      },
    });
    for (const namespace of ['mimir', 'rollout-group']) {
      const { status, stderr, writes } = await act('restart ingester', { extra: [policy(namespace)] });
      expect([status, writes]).toEqual([5, []]);
      expect(stderr).toContain('nobody restarts in December');
    }
  });

  it('asks for confirmation and accepts only yes', async () => {
    expect(await act('restart ingester', { answer: 'n' })).toMatchObject({ status: 5, writes: [] });
    expect((await act('restart ingester', { answer: 'y' })).writes).toHaveLength(3);
    expect((await act('restart ingester --yes', { answer: 'n' })).writes).toHaveLength(3);
  });

  it('names the restarted members after a failure, and that repeating is safe', async () => {
    const { status, stdout, stderr, writes } = await act('restart ingester', { options: { forbiddenWrites: ['ingester-zone-b'] } });
    expect([status, stdout]).toEqual([11, '']);
    expect(writes.map(({ path }) => path.split('/').at(-1))).toEqual(['ingester-zone-a', 'ingester-zone-b']);
    expect(stderr).toContain('error: mimir/ingester was restarted only in part: anna may not patch statefulsets in namespace mimir');
    expect(stderr).toContain('why: ingester-zone-a already has its new template; then: ');
    expect(stderr).toContain('then repeat the command. That is safe');
    const first = await act('restart ingester', { options: { forbiddenWrites: ['ingester-zone-a'] } });
    expect(first.stderr).not.toContain('only a part');
  });
});

it('scale names the missing permission if the user may not list RolloutGroups', async () => {
  const members = JSON.parse(JSON.stringify(adoptedObjects()).replaceAll('"rollout-group":', '"team":'));
  const objects = [...members, publishedObject({ ...rolling, decidedMs: Date.now() })];
  const server = await fakeApiServer(objects, { forbidden: ['rolloutgroups'] });
  const { status, stderr } = await runInProcess(['scale', 'ingester', '--replicas', '4', '--server', server.url, '-n', 'mimir'], {});
  expect([status, stderr]).toEqual([11, expect.stringContaining('anna may not list rolloutgroups')]);
});

describe('a request under a stop', () => {
  const paused = (verb: string) =>
    `note: the group is paused by an unverified requester; ${verb} does not end this block. To end it: kubectl rollout-group resume mimir/ingester\n`;

  it.each([
    ['restart ingester', paused('restart')],
    ['restart ingester --dry-run=client', paused('restart')],
    ['scale ingester --replicas 4', paused('scale')],
  ])('names the stop and the command that ends it: %s', async (line, note) => {
    const { stdout, stderr } = await act(line, { extra: [pauseOf()] });
    expect(stderr).toContain(note);
    expect(stderr).toContain('no agent has published mimir/ingester');
    if (line === 'restart ingester') expect(stdout).toContain('will be replaced in the order of the group once nothing blocks it');
  });

  it('does not name a stop of another zone', async () => {
    const { stdout, stderr } = await act('restart ingester --zone a', { extra: [pauseOf('c')] });
    expect([stdout.includes('once nothing blocks it'), stderr.includes('paused')]).toEqual([false, false]);
    expect((await act('restart ingester --zone c', { extra: [pauseOf('c')] })).stderr).toContain('resume mimir/ingester --zone c');
  });

  it('names the missing webhook of a pinned group', async () => {
    const members = { zones: ['a', 'b', 'c'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` })) };
    const group: FakeObject = { ...pauseOf(), kind: 'RolloutGroup', metadata: { name: 'ingester', namespace: 'mimir' } };
    const pinned = { ...group, spec: { members, rollout: { strategy: 'pinned' } } };
    expect((await act('restart ingester', { extra: [pinned] })).stderr).toMatch(
      /no pod is replaced without the webhook on pod creation: .* does not exist; restart does not end this block; find out why: kubectl rollout-group doctor -n mimir\n/,
    );
  });

  it('names the command that approves it if a rule requires an approval', async () => {
    const rule = {
      name: 'reviewed',
      actions: ['scaleDown', 'restart'],
      effect: 'requireApproval',
      approval: { count: 1, from: ['oncall'] },
    };
    const policy: FakeObject = {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutPolicy',
      metadata: { name: 'p', namespace: 'mimir' },
      spec: { targets: { all: true }, rules: [rule] },
    };
    for (const line of ['scale ingester --replicas 1', 'restart ingester']) {
      const { status, stderr } = await act(line, { extra: [policy] });
      expect([status, stderr]).toEqual([
        5,
        expect.stringMatching(/do: +to approve: kubectl rollout-group approve mimir\/ingester --rule p\/reviewed\n/),
      ]);
    }
  });

  it('acts on the whole group with a note if the name is that of a StatefulSet', async () => {
    const note = 'note: sts/ingester-zone-b stands for its group, and restart acts on the whole group; for a part of it, add --zone\n';
    expect((await act('restart sts/ingester-zone-b')).stderr).toContain(note);
    expect((await act('restart sts/ingester-zone-b --zone b')).stderr).not.toContain('whole group');
    expect((await act('restart ingester')).stderr).not.toContain('whole group');
  });

  it('names the exception that permits it', async () => {
    const kinds = [
      ['RolloutPolicy', { targets: { all: true }, rules: [{ name: 'calm', actions: ['scaleDown', 'restart'], effect: 'deny' }] }],
      [
        'RolloutException',
        { rule: 'p/calm', target: { group: 'ingester' }, allow: { anything: true }, reason: 'CHG-1', expires: '2999-01-01T00:00:00Z' },
      ],
    ] as const;
    const extra = kinds.map(([kind, spec]) => ({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind,
      metadata: { name: 'p', namespace: 'mimir' },
      spec,
    }));
    for (const line of ['scale ingester --replicas 1', 'restart ingester'])
      expect((await act(line, { extra })).stderr).toMatch(
        /note: p\/calm: .*; permitted by exception p for any amount in all zones until 2999-01-01 .*\(CHG-1\)\n/,
      );
  });
});

describe('scale', () => {
  it('scales the leader and shows the followers', async () => {
    const { status, stdout, writes, objects } = await act('scale ingester --replicas 4');
    expect(status).toBe(0);
    expect(writes).toEqual([
      {
        method: 'PATCH',
        path: '/apis/apps/v1/namespaces/mimir/statefulsets/ingester-zone-a/scale',
        body: { spec: { replicas: 4 }, metadata: { uid: uidOf(objects, 'ingester-zone-a'), resourceVersion: expect.any(String) } },
      },
    ]);
    expect(stdout).toBe(
      'scaled statefulset/ingester-zone-a of mimir/ingester from 2 to 4\n  zone a: from 2 to 4\n  zone b: from 2 to 4\n  zone c: from 2 to 4\n',
    );
  });

  it('does nothing if the replicas are unchanged', async () => {
    expect(await act('scale ingester --replicas 2')).toMatchObject({
      status: 0,
      writes: [],
      stdout: 'statefulset/ingester-zone-a of mimir/ingester already has 2 replicas\n',
    });
  });

  const boundedBy = (bounds: object): readonly FakeObject[] => {
    const members = { zones: [{ name: 'a', statefulSet: 'ingester-zone-a' }] };
    const spec = { members, replicas: { count: 2, bounds }, rollout: { strategy: 'onDelete' } };
    return [{ apiVersion: 'rollout-group.dev/v1alpha1', kind: 'RolloutGroup', metadata: { name: 'ingester', namespace: 'mimir' }, spec }];
  };

  it('asks before zones shrink, and shows the reason of another number', async () => {
    const scaled = async (replicas: number): Promise<string> =>
      (await act(`scale ingester --replicas ${replicas} --yes`, { extra: boundedBy({ min: 2, max: 3 }) })).stdout;
    expect(await scaled(9)).toContain(
      '  the group asks for 9 replicas; the bounds change that to 3 (at least 2, at most 3)\n  zone a: from 2 to 3\n',
    );
    expect(await scaled(1)).toContain('the bounds change that to 2 (at least 2, at most 3)\n  no zone changes its replicas\n');
  });

  it.each([
    ['tries again if another writer changed another field', {}, 0],
    ['fails if another writer changed the replicas', { replicas: 5 }, 9],
  ])('%s', async (_case, change, expected) => {
    const server = await fakeApiServer(adoptedObjects());
    const answer = async (): Promise<string> => {
      const found = server.objects().find(({ metadata }) => metadata.name === 'ingester-zone-a');
      if (found !== undefined)
        server.put({
          ...found,
          metadata: { ...found.metadata, annotations: { by: 'agent' } },
          spec: { ...(found['spec'] as object), ...change },
        });
      return 'y';
    };
    const words = ['scale', 'ingester', '--replicas', '1', '--server', server.url, '-n', 'mimir'];
    expect((await runInProcess(words, { answer })).status).toBe(expected);
    expect(server.writes.filter(({ method }) => method === 'PATCH')).toHaveLength(expected === 0 ? 2 : 1);
  });

  it('is denied by policy with the rule', async () => {
    const { status, stderr, writes } = await act('scale ingester --replicas 1', {
      set: { labels: { 'grafana.com/no-downscale': 'true' } },
    });
    expect([status, writes]).toEqual([5, []]);
    expect(stderr).toContain('no-downscale');
    expect(stderr).toMatch(/do: +change the request, or no-downscale at StatefulSet mimir\/ingester-zone-a /);
  });

  it('fails for a zone that follows another', async () => {
    const { status, stderr } = await act('scale ingester --replicas 4 --zone ingester-zone-b');
    expect(status).toBe(3);
    expect(stderr).toContain('zone b follows a and takes its replicas from there');
  });

  it('scales to zero only with the name of the group, and names the exception that permits zero', async () => {
    expect(await act('scale ingester --replicas 0')).toMatchObject({ status: 3, writes: [] });
    expect(await act('scale ingester --replicas 0 --confirm other')).toMatchObject({ status: 3, writes: [] });
    expect(await act('scale ingester --replicas 0', { answer: 'y' })).toMatchObject({ status: 5, writes: [] });
    expect((await act('scale ingester --replicas 0', { answer: 'ingester' })).writes).toHaveLength(1);
    expect((await act('scale ingester --replicas 0 --confirm ingester')).writes).toHaveLength(1);
    const { stdout } = await act('scale ingester --replicas 0 --confirm ingester', { extra: boundedBy({ min: 0 }) });
    expect(stdout).toContain(
      '  blocked by scale-floor: zone a would have 0 replicas; change the request, or permit it: kubectl rollout-group override mimir/ingester --rule scale-floor --duration 1h --reason REASON --yes\n',
    );
  });

  it('changes nothing in a dry run', async () => {
    const { stdout, stderr, writes } = await act('scale ingester --replicas 4 --dry-run client');
    expect(writes).toEqual([]);
    expect(stderr).toContain('note: zone a: from 2 to 4\nnote: zone b: from 2 to 4\n');
    expect(parse(stdout)).toMatchObject({ kind: 'Scale', spec: { replicas: 4 } });
  });
});

describe('a missing permission', () => {
  it('is named with the Role that grants it, and nothing is changed', async () => {
    const { status, stderr } = await act('pause ingester', { options: { forbidden: ['rolloutintents'] } });
    expect(status).toBe(11);
    expect(stderr).toContain('verbs: ["patch"]');
  });
});
