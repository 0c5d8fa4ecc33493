// Tests the flags, names and outputs that users know from kubectl, and the completion of the built executable.
import { spawn } from 'node:child_process';
import { readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { ruleCatalog } from '../../engine/rules/catalog.ts';
import { timeoutFlag } from '../../plugin/live/target.ts';
import { verbs } from '../../plugin/verbs/all.ts';
import { type FakeApiServer, fakeApiServer } from './api-server.ts';
import { type Ended, runInProcess } from './in-process.ts';
import { done, rolling, waiting } from './live-kit.ts';
import { publishedObject, requesterWebhook } from './live-objects.ts';
import { builtFolder, folderWith, runPlugin } from './process.ts';

/** Runs the plugin against this server. */
function type({ url }: Pick<FakeApiServer, 'url'>, line: string): Promise<Ended> {
  return runInProcess([...line.split(' '), '--server', url, ...(line.includes('-A') ? [] : ['-n=mimir'])], { env: { HOME: tmpdir() } });
}

function now(decision: PublishedDecision): PublishedDecision {
  return { ...decision, decidedMs: Date.now() };
}

const published = [publishedObject(now(rolling)), publishedObject({ ...now(done), group: 'querier' })];

describe('flags of kubectl', () => {
  it('are understood with an equals sign, short and as plain booleans', async () => {
    const server = await fakeApiServer(published);
    expect(await type(server, 'get -o=json')).toMatchObject({ status: 0, stdout: expect.stringContaining('"GroupList"') });
    expect(await type(server, 'status querier -w')).toMatchObject({ status: 0 });
    expect(await type(server, 'status ingester --watch=false')).toMatchObject({ status: 0, stdout: expect.stringContaining('ROLLING') });
    expect(await type(server, 'status ingester -w=false -o json')).toMatchObject({ status: 0 });
  });

  it('-v=6 shows the requests, as in kubectl, and -v=1 does not', async () => {
    const server = await fakeApiServer(published);
    expect((await type(server, 'get -v=6')).stderr).toMatch(/^GET \S+ 200 \d+ms$/m);
    expect((await type(server, 'get -v=1')).stderr).not.toContain('GET ');
  });

  it('get -w --timeout ends with 0 when every group is done, and with 7 after its time', async () => {
    const server = await fakeApiServer(published);
    expect((await type(server, 'get querier -w --timeout 60s')).status).toBe(0);
    expect((await type(server, 'get -w --timeout 1s')).status).toBe(7);
    expect((await type(server, 'get -w --timeout 1ms')).status).toBe(7);
    expect((await type(server, 'status ingester --timeout 1ms')).status).toBe(7);
    expect((await type(server, 'get --timeout 1s')).status).toBe(3);
  });

  it('--timeout 0 sets no limit', async () => {
    const server = await fakeApiServer(published);
    expect((await type(server, 'get querier -w --timeout 0s')).status).toBe(0);
    expect((await type(server, 'status querier --timeout 0')).status).toBe(0);
    expect(['0', '0s', '1s', undefined].map(timeoutFlag)).toEqual([undefined, undefined, 1000, undefined]);
  });

  it('events -w --timeout ends with 7 after its time', async () => {
    const server = await fakeApiServer(published);
    expect(await type(server, 'events -w --timeout 1s')).toMatchObject({ status: 7, stdout: '' });
    expect((await type(server, 'events --timeout 1s')).status).toBe(3);
    expect((await type(server, 'events -w --timeout soon')).status).toBe(3);
  });

  it('have one name: --filename, --replicas and --yes', async () => {
    expect((await runInProcess(['lint', '--filename', 'examples/kafka'])).status).toBe(0);
    expect((await runInProcess(['lint', '--file', 'examples/kafka'])).status).toBe(3);
    for (const words of ['scale x --replicas 3 --to 3', 'apply x --auto-approve', 'undo x --confirm x', 'get --verbose'])
      expect((await runInProcess(words.split(' '))).stderr).toContain('unknown option');
  });

  it.each([
    ['apply x --set image=a', '--set is a flag of plan, diff, simulate and explain'],
    ['get --reason=x', '--reason is a flag of pause, resume, approve, reject and'],
    ['apply x --filenam y', 'Did you mean --filename? See kubectl rollout-group apply --help'],
    ['apply x --seed-it 1', 'do:  kubectl rollout-group apply --help\n'],
  ])('%s has a hint only for a similar flag or for a flag of other verbs', async (line, hint) => {
    expect(await runInProcess(line.split(' '))).toMatchObject({ status: 3, stderr: expect.stringContaining(hint) });
  });

  it('of the verb can be before the verb', async () => {
    const server = await fakeApiServer(published);
    const after = await runInProcess(['get', '-o', 'name', '--server', server.url, '-n', 'mimir']);
    const before = await runInProcess(['--server', server.url, '-n', 'mimir', '-o=name', 'get']);
    expect([before, before.status]).toEqual([after, 0]);
  });

  it('--for names a condition, and a duration is --duration', async () => {
    const flagsFor = verbs.map(({ options }) => options.map(({ flags }) => flags).filter((flags) => flags.startsWith('--for ')));
    expect(new Set(flagsFor.flat())).toEqual(new Set(['--for <condition>']));
    for (const line of ['pause x --for 2h', 'protect x --for 2h', 'approve x --for 2h', 'reject x --for 2h'])
      expect((await runInProcess(line.split(' '))).stderr).toContain('unknown option "--for"');
  });

  it('of the connection are listed once, by the help of the program', () => {
    expect(runPlugin(['--help']).stdout).toContain('--kubeconfig <file>');
    const { stdout } = runPlugin(['get', '--help']);
    expect(stdout).not.toContain('--kubeconfig');
    expect(stdout).toContain('connection flags');
  });
});

describe('get -o', () => {
  it.each([
    ['name', 'rolloutgroup.rollout-group.dev/ingester\nrolloutgroup.rollout-group.dev/querier\n'],
    ['jsonpath={.groups[*].group.name}', 'ingester querier'],
    ['jsonpath={.groups[?(@.phase=="Done")].group.name}{"\\n"}', 'querier\n'],
    ['jsonpath=.kind', 'GroupList'],
    ['jsonpath={.groups[0].nothing}', ''],
    ['custom-columns=NAME:.group.name,PHASE:.phase,X:.x', 'NAME      PHASE    X\ningester  Rolling  <none>\nquerier   Done     <none>\n'],
  ])('%s prints as kubectl', async (format, stdout) => {
    expect(await type(await fakeApiServer(published), `get -o ${format}`)).toEqual({ status: 0, stdout, stderr: '' });
  });

  it.each(['jsonpath={range', 'jsonpath=', 'jsonpath={.a', 'custom-columns=NAME', 'go-template={{.}}'])(
    '%s is rejected',
    async (format) => {
      const { status, stdout } = await type(await fakeApiServer(published), `get -o ${format}`);
      expect([status, stdout]).toEqual([3, '']);
    },
  );

  it('json, yaml and jsonpath of one name print the one object, and of several names a list', async () => {
    const server = await fakeApiServer(published);
    expect(await type(server, 'get ingester -o jsonpath={.kind}/{.phase}')).toMatchObject({
      status: 0,
      stdout: 'Group/Rolling',
      stderr: '',
    });
    expect((await type(server, 'get ingester -o yaml')).stdout).toMatch(/^kind: Group$/m);
    expect((await type(server, 'get ingester querier -o jsonpath={.kind}')).stdout).toBe('GroupList');
  });

  it.each([
    ['name', /^rolloutgroup.rollout-group.dev\/ingester\n$/],
    ['json', /"name": "ingester"/],
    ['table', /^NAMESPACE +NAME .*\nmimir +ingester /],
  ])('%s of several names prints the groups that exist, and the failure', async (format, stdout) => {
    const ended = await type(await fakeApiServer(published), `get nope ingester mimir2/x -o ${format}`);
    expect(ended).toMatchObject({ status: 10, stdout: expect.stringMatching(stdout) });
    expect(ended.stderr).toContain('error: the groups mimir/nope and mimir2/x do not exist');
  });

  it('of a kind without groups reports that the word is a namespace here', async () => {
    const { status, stderr } = await type(await fakeApiServer(published), 'get deploy/x');
    expect([status, stderr]).toEqual([
      10,
      expect.stringContaining('deploy is read as a namespace: the kinds before a name are rolloutgroup, statefulset and pod'),
    ]);
  });

  it('names are accepted by every verb', async () => {
    const server = await fakeApiServer(published);
    const [name] = (await type(server, 'get -o name')).stdout.split('\n');
    expect((await type(server, `status ${name} --watch=false`)).status).toBe(0);
  });
});

describe('names of groups', () => {
  const labelled = (name: string, labels: object) => ({
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutGroup',
    metadata: { name, namespace: 'mimir', labels },
    spec: { zones: [{ name: 'a', statefulSet: `${name}-zone-a` }] },
  });
  const groups = [...published, labelled('ingester', { team: 'metrics' }), labelled('querier', { team: 'logs' })];
  const shown = ({ stdout }: Ended) => stdout.split('\n').flatMap((line) => /^(?:mimir[/ ]+)?(ingester|querier)\b/.exec(line)?.[1] ?? []);

  it.each(['rolloutgroup/ingester', 'rg/ingester', 'mimir/ingester', 'sts/ingester-zone-a', 'pod/ingester-zone-a-0'])(
    '%s is the group ingester',
    async (name) => {
      const server = await fakeApiServer(published);
      expect(await type(server, `status ${name} --watch=false`)).toMatchObject({ stdout: expect.stringMatching(/^mimir\/ingester /) });
      expect(await type(server, `get ${name}`)).toMatchObject({ stdout: expect.stringMatching(/^mimir\/ingester /) });
      const paused = await type(server, `pause ${name} --reason x --dry-run=client`);
      expect([paused.status, paused.stdout]).toEqual([0, expect.stringContaining('group: ingester')]);
    },
  );

  it.each(['kafka', 'kafka/kafka', 'rg/kafka', 'sts/kafka-zone-b', 'pod/kafka-zone-b-3'])(
    '%s is the group kafka in files',
    async (name) => {
      const files = ['--current', 'examples/kafka/manifests', '-f', 'examples/kafka/policies', '-q'];
      expect(await runInProcess(['plan', ...files, '--group', name])).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/^Plan {2}kafka\/kafka /),
      });
      expect(await runInProcess(['explain', name, ...files])).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/^kafka\/kafka is /),
      });
    },
  );

  it('can be several for every verb, one after the other', async () => {
    const server = await fakeApiServer(published);
    expect(shown(await type(server, 'status ingester querier --watch=false'))).toEqual(['ingester', 'querier']);
    expect(shown(await type(server, 'explain ingester querier'))).toEqual(['ingester', 'querier']);
    const { stdout } = await type(server, 'pause ingester querier --reason x --dry-run=client');
    expect(stdout.match(/group: \S+/g)).toEqual(['group: ingester', 'group: querier']);
    expect((await type(server, 'explain ingester querier -o json')).status).toBe(3);
    expect((await type(server, 'status sts/missing --watch=false')).status).toBe(10);
  });

  it('are chosen by -l and -A', async () => {
    const server = await fakeApiServer(groups);
    expect(shown(await type(server, 'get -l team=metrics'))).toEqual(['ingester']);
    expect(shown(await type(server, 'get -A -l team'))).toEqual(['ingester', 'querier']);
    expect(shown(await type(server, 'status --selector team!=metrics --watch=false'))).toEqual(['querier']);
    expect(shown(await type(server, 'status -A --watch=false'))).toEqual(['ingester', 'querier']);
    expect((await type(server, 'history -A')).status).toBe(0);
    expect((await type(server, 'events -l team=logs')).status).toBe(0);
    expect((await type(server, 'status')).status).toBe(3);
    expect((await type(server, 'get ingester -l team=metrics')).status).toBe(3);
  });

  it.each([
    ['get -l team=none', 0, 'no groups found with the labels team=none in namespace mimir'],
    ['events -l team=none', 0, 'no events about groups with the labels team=none; '],
    ['history -A -l team=none', 0, 'no groups found with the labels team=none\n'],
    ['status -l team=none', 10, 'no groups found with the labels team=none in namespace mimir'],
  ])('%s without a match names the labels', async (line, status, text) => {
    expect(await type(await fakeApiServer(groups), line)).toMatchObject({ status, stderr: expect.stringContaining(text) });
  });

  it.each(['get', 'history', 'events'])('%s of several groups is one document for programs', async (verb) => {
    const run = (group: string) => ({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutRun',
      metadata: { name: `${group}-1`, namespace: 'mimir' },
      spec: {
        group,
        id: '1',
        kind: 'rollout',
        outcome: 'completed',
        startedAt: '2026-08-02T09:12:00Z',
        waited: 0,
        zones: [],
        steps: [],
        waits: [],
      },
    });
    const server = await fakeApiServer([...groups, run('ingester'), run('querier')]);
    for (const flags of ['-A', '-l team'])
      for (const output of ['json', 'yaml'])
        expect(await type(server, `${verb} ${flags} -o ${output}`)).toMatchObject({ status: 0, stdout: expect.stringContaining('List') });
    if (verb !== 'history') return;
    const { runs, ...document } = JSON.parse((await type(server, 'history -A -o json')).stdout);
    expect([
      Object.keys(document),
      runs.map(({ namespace, group }: { namespace: string; group: string }) => `${namespace}/${group}`),
    ]).toEqual([
      ['apiVersion', 'kind'],
      ['mimir/ingester', 'mimir/querier'],
    ]);
  });

  it.each(['ingester/b-12', 'mimir/ingester/b-12', 'ingester/ingester-zone-b-12'])(
    '%s is the pod that tables print as b-12',
    async (name) => {
      const { status, stdout } = await type(await fakeApiServer(published), `explain ${name}`);
      expect([status, stdout]).toEqual([0, expect.stringContaining('  pod      b-12: starting')]);
    },
  );

  it('names the group of a pod that does not exist', async () => {
    const { status, stderr } = await type(await fakeApiServer(published), 'explain ingester/z-9');
    expect([status, stderr]).toEqual([10, expect.stringContaining('kubectl rollout-group get mimir/ingester --pods=all')]);
    expect(stderr).toContain('z-9 is not a pod of ingester');
  });

  it('help is --help', async () => {
    const server = await fakeApiServer([]);
    expect((await type(server, 'help')).stdout).toContain('kubectl rollout-group');
  });
});

describe('paths of fields', () => {
  it.each([
    ['get ingester -o jsonpath={.phase}', 'Rolling', ''],
    ['get ingester -o jsonpath={.groups[*].phase}', '', '{.groups[*].phase} finds nothing; the field phase is at {.phase}'],
    ['get -o jsonpath={.phase}', '', '{.phase} finds nothing; the field phase is at {.groups[*].phase}'],
    ['get -o jsonpath={.items[*].status.phase}', '', '{.items[*].status.phase} finds nothing; the field phase is at {.groups[*].phase}'],
    ['get -o jsonpath={.groups[*].unattended}', '', ''],
    ['status ingester --watch=false -o jsonpath={.phase}', 'Rolling', ''],
    ['status ingester --watch=false -o jsonpath={.groups[*].phase}', '', 'the field phase is at {.phase}'],
    ['get -o custom-columns=NAME:.group.name,PHASE:.phase', 'NAME      PHASE\ningester  Rolling\nquerier   Done\n', ''],
    ['get -o custom-columns=NAME:.metadata.name', 'NAME\n<none>\n<none>\n', 'the field name is at .group.name'],
    ['get -o jsonpath={.items[*].metadata.name}', '', 'the field name is at {.groups[*].group.name}'],
    ['get -o custom-columns=PHASE:.status.phase', 'PHASE\n<none>\n<none>\n', '.status.phase finds nothing; the field phase is at .phase'],
  ])('%s', async (line, stdout, note) => {
    const ended = await type(await fakeApiServer(published), line);
    expect([ended.status, ended.stdout]).toEqual([0, stdout]);
    expect(ended.stderr.match(/finds nothing.*/g)?.length ?? 0).toBe(note === '' ? 0 : 1);
    expect(ended.stderr).toContain(note);
  });

  it.each([
    ['custom-columns', 'custom-columns= needs a value: -o custom-columns=NAME:.group.name,PHASE:.phase'],
    ['custom-columns=', 'custom-columns= needs a value: -o custom-columns=NAME:.group.name,PHASE:.phase'],
    ['custom-columns=NAME', 'each column has a title and a path, as in -o custom-columns=NAME:.group.name,PHASE:.phase'],
    ['jsonpath', 'jsonpath= needs a value: -o jsonpath="{.groups[*].phase}"'],
    ['jsonpath={.groups', 'a brace is not closed'],
  ])('-o %s is rejected, with an example', async (format, text) => {
    const { status, stdout, stderr } = await type(await fakeApiServer(published), `get -o ${format}`);
    expect([status, stdout, stderr]).toEqual([3, '', expect.stringContaining(text)]);
  });
});

describe('completion from the cluster', () => {
  function complete(home: string, words: readonly string[]): Promise<Ended> {
    return new Promise((resolve) => {
      const child = spawn(process.execPath, [join(builtFolder(), 'kubectl_complete-rollout_group'), ...words], {
        env: { PATH: process.env['PATH'], HOME: home, KUBECONFIG: join(home, 'config') },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let [stdout, stderr] = ['', ''];
      child.stdout.on('data', (text: Buffer) => (stdout += text.toString()));
      child.stderr.on('data', (text: Buffer) => (stderr += text.toString()));
      child.on('close', (status) => resolve({ status: status ?? -1, stdout, stderr }));
    });
  }

  const configOf = (server: string, user: object = {}): string =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'dev',
      contexts: ['dev', 'prod'].map((name) => ({ name, context: { cluster: 'c', user: 'u', namespace: 'mimir' } })),
      clusters: [{ name: 'c', cluster: { server } }],
      users: [{ name: 'u', user }],
    });

  const pauseOf = {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutIntent',
    metadata: { name: 'pause.ingester', namespace: 'mimir' },
    spec: { group: 'ingester', action: 'pause' },
  };

  it('offers groups, zones, waves, gates, rules, requests and contexts', async () => {
    const other = { ...pauseOf, metadata: { name: 'pause.querier', namespace: 'mimir' }, spec: { group: 'querier', action: 'pause' } };
    const permitted = {
      ...pauseOf,
      kind: 'RolloutException',
      metadata: { name: 'hotfix', namespace: 'mimir' },
      spec: { target: { group: 'ingester' }, rule: 'window', allow: { anything: true }, reason: 'x', expires: '2126-01-01T00:00:00Z' },
    };
    const { url } = await fakeApiServer([...published, pauseOf, other, permitted]);
    const home = folderWith({ config: configOf(url) });
    const offered = async (line: string) => (await complete(home, line.split(' '))).stdout.split('\n').slice(0, -2);
    // The first answer on a loaded machine may be late, and a late answer is none.
    const within = (line: string) => expect.poll(() => offered(line), { timeout: 20_000 });
    await within('status ').toEqual(['ingester', 'querier']);
    await within('explain ingester q').toEqual(['querier']);
    await within('pause ingester --zone ').toEqual(['a', 'b', 'c']);
    await within('promote ingester --wave=').toEqual(['--wave=rest']);
    await within('promote ingester --gate ').toEqual(['errors']);
    await within('override ingester --rule zone').toEqual(['zone-budget', 'zone-gap']);
    await within('cancel ingester ').toEqual(['hotfix', 'pause.ingester']);
    await within('status ingester --for ').toEqual(['complete', 'paused', 'zone=a', 'zone=b', 'zone=c', 'wave=rest']);
    await within('status ingester --for=wave').toEqual(['--for=wave=rest']);
    await within('get --context ').toEqual(['dev', 'prod']);
  });

  it('offers the parts of a group without a decision, and groups of labels', async () => {
    const zones = ['a', 'b'].map((name) => ({ name, statefulSet: `store-${name}` }));
    const group = (name: string, rollout: object) => ({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name, namespace: 'mimir' },
      spec: {
        members: { zones },
        rollout: { strategy: 'onDelete', ...rollout },
        gates: [{ name: 'errors', podsAvailable: {}, every: '30s' }],
      },
    });
    const labelled = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'cache-zone-a', namespace: 'mimir', labels: { 'rollout-group': 'cache' } },
      spec: { replicas: 1, selector: { matchLabels: { name: 'cache' } }, template: { metadata: { labels: { name: 'cache' } }, spec: {} } },
    };
    const { url } = await fakeApiServer([
      group('store', { schedule: { kind: 'linear', start: '50%', step: '50%' } }),
      group('plain', {}),
      labelled,
    ]);
    const home = folderWith({ config: configOf(url) });
    const offered = async (line: string) => (await complete(home, line.split(' '))).stdout.split('\n').slice(0, -2);
    const within = (line: string) => expect.poll(() => offered(line), { timeout: 20_000 });
    await within('status ').toEqual(['cache', 'plain', 'store']);
    await within('pause store --zone ').toEqual(['a', 'b']);
    await within('promote store --wave ').toEqual(['rest', 'stage-1', 'stage-2']);
    await within('promote plain --wave ').toEqual(['all']);
    await within('promote plain --gate ').toEqual(['errors']);
  });

  it('offers exactly the rules that override accepts', async () => {
    const rule = (name: string, effect: string) => ({ name, actions: ['rollout'], effect });
    const freeze = {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutPolicy',
      metadata: { name: 'safety', namespace: 'mimir' },
      spec: { targets: { all: true }, rules: [rule('moves', 'hold'), rule('ask', 'requireApproval'), rule('told', 'warn')] },
    };
    const { url } = await fakeApiServer([...published, freeze]);
    const home = folderWith({ config: configOf(url) });
    const offered = async () => (await complete(home, ['override', 'ingester', '--rule', ''])).stdout.split('\n').slice(0, -2);
    const isAccepted = async (name: string): Promise<boolean> => {
      const line = `override ingester --rule ${name} --duration 1h --reason x --dry-run client -n mimir`;
      return (await runInProcess([...line.split(' '), '--server', url], {})).status === 0;
    };
    const names = [...ruleCatalog.map(({ id }) => id), 'safety/moves', 'safety/ask', 'safety/told', 'safety/nonsense'];
    const accepted: string[] = [];
    for (const name of names) if (await isAccepted(name)) accepted.push(name);
    await expect.poll(offered, { timeout: 20_000 }).toEqual(accepted.sort());
    expect(accepted).not.toEqual(expect.arrayContaining(['soak', 'rolled-back']));
  });

  it('offers the names of the last hour if the cluster does not answer in time', async () => {
    const { url } = await fakeApiServer(published);
    const home = folderWith({ config: configOf(url) });
    const offered = async () => (await complete(home, ['status', ''])).stdout.split('\n').slice(0, -2);
    await expect.poll(offered, { timeout: 20_000 }).toEqual(['ingester', 'querier']);
    const cache = join(home, '.kube', 'cache', 'rollout-group');
    const setAge = (minutes: number) => {
      for (const file of readdirSync(cache)) utimesSync(join(cache, file), new Date(), new Date(Date.now() - minutes * 60_000));
    };
    writeFileSync(join(home, 'config'), configOf('http://127.0.0.1:1'));
    setAge(59);
    expect(await offered()).toEqual(['ingester', 'querier']);
    setAge(61);
    expect(await offered()).toEqual([]);
  });

  it('ends without candidates and without a message if the cluster or the credentials do not answer', async () => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => server.closeAllConnections());
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const config = (user?: object) => folderWith({ config: configOf(`http://127.0.0.1:${port}`, user) });
    const plugin = (script: string) => ({
      exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh', args: ['-c', script], interactiveMode: 'IfAvailable' },
    });
    // The server and the second plugin never answer, so only the deadline of completion ends it.
    const homes = [config(), config(plugin('echo log in first >&2; exit 1')), config(plugin('exec sleep 20')), folderWith({})];
    const nothing = { status: 0, stdout: ':4\n', stderr: '' };
    expect(await Promise.all(homes.map((home) => complete(home, ['status', ''])))).toEqual(homes.map(() => nothing));
  });
});

describe('explain', () => {
  const marksOf = (stdout: string) => [...stdout.matchAll(/^ {3}\[(\w+)\] /gm)].map(([, mark]) => mark);

  it('shows the rules that block, and counts the rules that passed', async () => {
    const server = await fakeApiServer([publishedObject(now(waiting)), requesterWebhook]);
    const { stdout } = await type(server, 'explain ingester');
    expect(marksOf(stdout)).toEqual(['WAIT']);
    expect(stdout).toContain('12 rules passed or do not apply; explain --all-rules lists them');
    expect((await type(server, 'explain ingester -o json')).stdout).toContain('"outcome": "ok"');
  });

  it('--all-rules shows the rules that block before the rules that passed', async () => {
    const { stdout } = await type(await fakeApiServer([publishedObject(now(waiting)), requesterWebhook]), 'explain ingester --all-rules');
    expect(marksOf(stdout)[0]).toBe('WAIT');
    expect(marksOf(stdout)).toContain('ok');
    expect(stdout).not.toContain('explain --all-rules');
  });
});

describe('verbs of kubectl', () => {
  it.each([
    ['describe ingester', 'kubectl rollout-group explain ingester'],
    ['rollback ingester', 'kubectl rollout-group undo ingester'],
    ['wait ingester', 'kubectl rollout-group status ingester --for CONDITION'],
    ['list', 'kubectl rollout-group get'],
    ['describe -n mimir rolloutgroup ingester', 'kubectl rollout-group explain ingester'],
    ['rollout status ingester', 'kubectl rollout-group status ingester'],
    ['rollout undo rolloutgroup/ingester', 'kubectl rollout-group undo rolloutgroup/ingester'],
    ['rollout', 'kubectl rollout-group status GROUP'],
  ])('%s names the verb to use', async (line, verb) => {
    const { status, stderr } = await runInProcess(line.split(' '));
    expect([status, stderr]).toEqual([3, expect.stringContaining(verb)]);
  });
});
