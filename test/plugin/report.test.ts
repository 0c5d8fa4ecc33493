// The verb report: other verbs read the report as they read the cluster, and no text that may be secret is in it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { templateDigest } from '../../engine/diff/field-diff.ts';
import { approvedPlanAnnotation } from '../../engine/observe/objects.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { redactAnswers } from '../../plugin/report/redact.ts';
import { type TarFile, tar, untar } from '../../plugin/report/tar.ts';
import { type FakeOptions, fakeApiServer } from './api-server.ts';
import { type Ended, runInProcess, timeless } from './in-process.ts';
import { paused, rolling, waiting } from './live-kit.ts';
import { adoptedObjects, leaseObject, publishedObject } from './live-objects.ts';
import { folderWith } from './process.ts';
import type { FakeObject } from './served-objects.ts';

/** A group at rest, one that an agent rolls, and one that waits, each with or without its agent. */
const situations: Readonly<Record<string, readonly FakeObject[]>> = {
  'a group that no agent published': adoptedObjects(),
  'a rollout': [...adoptedObjects(), publishedObject(rolling)],
  'an agent that does not run': [...adoptedObjects(), publishedObject(waiting), leaseObject('agent-0', 0)],
  'a pause': [...adoptedObjects(), publishedObject(paused)],
};

const verbs = [
  'explain ingester',
  'explain ingester -o json',
  'explain ingester-zone-a-1',
  'plan',
  'plan --set image=mimir:2 -o json',
  'get',
  'get ingester -o json',
  'status ingester',
  'status ingester -o json',
  'events ingester -o json',
  'history ingester',
  'doctor',
  'version -o json',
];

interface Reported {
  readonly folder: string;
  readonly path: string;
  readonly live: (line: string) => Promise<Ended>;
  readonly read: (line: string) => Promise<Ended>;
}

async function report(objects: readonly FakeObject[], options: FakeOptions = {}): Promise<Reported> {
  const { url } = await fakeApiServer(objects, options);
  const cwd = folderWith({});
  const live = (line: string) => runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], { cwd });
  const written = await live(`report ingester -o r.tar.gz`);
  expect(written.stderr, written.stderr).toContain('note: the file names namespaces');
  expect(written.status).toBe(0);
  return {
    folder: cwd,
    path: join(cwd, 'r.tar.gz'),
    live,
    read: (line) => runInProcess([...line.split(' '), '--from-report', 'r.tar.gz'], { cwd }),
  };
}

describe.each(Object.entries(situations))('a report of %s', (_, objects) => {
  it('has the same result in every verb as the cluster', async () => {
    const { live, read } = await report(objects);
    for (const line of verbs) {
      // Without a cluster, status does not wait.
      const ofCluster = await live(line.replace(/^status \S+/, '$& --watch=false'));
      expect([line, timeless(await read(line))]).toEqual([line, timeless(ofCluster)]);
    }
  });
});

describe('a report', () => {
  it('has the same bytes if nothing changes, and the output of the verbs as text', async () => {
    const { url } = await fakeApiServer([...adoptedObjects(), publishedObject(rolling)]);
    const cwd = folderWith({});
    const written = ['one.tar.gz', 'two.tar.gz'].map((file) =>
      runInProcess(['report', 'mimir/ingester', '-o', file, '-q', '--server', url], { cwd, nowMs: Date.parse('2026-03-02T12:00:00Z') }),
    );
    expect((await Promise.all(written)).map(({ status }) => status)).toEqual([0, 0]);
    const [one = new Map<string, string>(), two = new Map<string, string>()] = ['one.tar.gz', 'two.tar.gz'].map((file) =>
      contentOf(join(cwd, file)),
    );
    const files = ['decision.json', 'doctor.json', 'doctor.txt', 'events.json', 'explain.txt', 'get.txt', 'ledger.json', 'plan.json'];
    expect([...one.keys()]).toEqual([...files, ...['plan.txt', 'report.json', 'runs.json', 'snapshot.json', 'status.txt', 'version.json']]);
    // The API server writes its own time into each answer.
    const undated = (text = ''): string => text.replace(/"date":"[^"]*"/g, '');
    const read = await runInProcess(['explain', 'ingester', '--from-report', 'one.tar.gz'], { cwd });
    expect(one.get('explain.txt')).toBe(`${read.stdout}${read.stderr}`);
    expect(undated(one.get('snapshot.json'))).toBe(undated(two.get('snapshot.json')));
    expect(one.get('decision.json')).toBe(two.get('decision.json'));
  });

  it('contains the readable objects, and names the unreadable ones', async () => {
    const { path, live, read } = await report(adoptedObjects(), { forbidden: ['pods', 'secrets', 'controllerrevisions', 'leases'] });
    for (const line of ['explain ingester', 'plan', 'get ingester', 'doctor'])
      expect([line, timeless(await read(line))]).toEqual([line, timeless(await live(line))]);
    expect(contentOf(path).get('explain.txt')).toContain('no permission to list pods');
  });

  it('is simulated as a change of the objects in it', async () => {
    const { read } = await report(adoptedObjects());
    expect((await read('simulate')).stdout).toBe('nothing to simulate: no group has changes\n');
    const simulated = await read('simulate --set image=mimir:2 --runs 1 --faults none -o json');
    expect(JSON.parse(simulated.stdout)).toMatchObject({ groups: [{ namespace: 'mimir', group: 'ingester', unfinished: 0, violated: 0 }] });
  });

  it('is not written without the group or without a folder', async () => {
    const { url } = await fakeApiServer(adoptedObjects());
    const cwd = folderWith({});
    const ask = (...words: readonly string[]) => runInProcess(['report', ...words, '--server', url, '-n', 'mimir'], { cwd });
    expect(await ask('other')).toMatchObject({
      status: 10,
      stderr: expect.stringContaining('group other does not exist in namespace mimir'),
    });
    expect(await ask('ingester', '-o', 'none/r.tar.gz')).toMatchObject({
      status: 11,
      stderr: expect.stringContaining('none/r.tar.gz is not writable'),
    });
    expect(existsSync(join(cwd, 'rollout-group-report-mimir-ingester.tar.gz'))).toBe(false);
  });

  it('names the error in a file, a group or a flag', async () => {
    const { folder, path, read } = await report(adoptedObjects());
    const bytes = readFileSync(path);
    const files = untar(gunzipSync(bytes));
    const rewritten = (change: (file: { readonly path: string; readonly data: Buffer }) => readonly TarFile[]): Buffer =>
      gzipSync(tar(files.flatMap(change)));
    const newer = (data: Buffer): string => data.toString().replace('"format": "1.0"', '"format": "2.0"').replace('0.0.0-source', '9.0.0');
    const broken: Readonly<Record<string, readonly [Buffer, string]>> = {
      cut: [bytes.subarray(0, bytes.length - 20), 'cut.tar.gz is damaged or not a report'],
      flipped: [
        Buffer.concat([bytes.subarray(0, 200), Buffer.from('x'), bytes.subarray(201)]),
        'flipped.tar.gz is damaged or not a report',
      ],
      text: [Buffer.from('kind: Pod'), 'text.tar.gz is damaged or not a report'],
      packed: [gzipSync('kind: Pod'), 'packed.tar.gz is damaged or not a report\n  why: the archive ends in the middle of a file'],
      foreign: [gzipSync(Buffer.alloc(4_096, 'x')), 'why: it is not a tar archive'],
      empty: [gzipSync(tar([])), 'why: it has no report.json with a format'],
      partial: [rewritten((file) => (file.path.endsWith('snapshot.json') ? [] : [file])), 'why: it has no snapshot.json with answers'],
      newer: [
        rewritten(({ path: name, data }) => [{ path: name, data: name.endsWith('report.json') ? newer(data) : data }]),
        'newer.tar.gz has the format 2.0\n  why: this version (0.0.0-source) reads the format 1.0\n  do:  use the version that wrote the report: 9.0.0',
      ],
    };
    for (const [name, [content, message]] of Object.entries(broken)) {
      writeFileSync(join(folder, `${name}.tar.gz`), content);
      const { status, stderr } = await runInProcess(['explain', 'ingester', '--from-report', `${name}.tar.gz`], { cwd: folder });
      expect([name, status, stderr]).toEqual([name, 4, expect.stringContaining(message)]);
    }
    const missing = await runInProcess(['explain', 'ingester', '--from-report', 'other.tar.gz'], { cwd: folder });
    expect(missing).toMatchObject({ status: 10, stderr: expect.stringContaining('other.tar.gz does not exist') });
    expect(await read('explain other')).toMatchObject({ status: 10, stderr: expect.stringContaining('mimir/other is not a group') });
    expect(await read('get -n other')).toMatchObject({
      status: 10,
      stderr: expect.stringContaining('the report does not contain the answer to GET'),
    });
    for (const flag of ['--context', '--server', '--kubeconfig'])
      expect(await read(`get ${flag} x`)).toMatchObject({
        status: 3,
        stderr: expect.stringContaining(`--from-report and ${flag} exclude each other`),
      });
    expect((await read('plan --out x')).stderr).toContain('--from-report and --out exclude each other');
  });

  it('contains no text that may be secret, and shows the same decision without these texts', async () => {
    const { path, live, read } = await report([...secretObjects(), publishedObject(waiting)]);
    expect([...contentOf(path).values()].join('\n')).not.toMatch(/canary|Y2FuYXJ5/i);
    for (const line of ['explain ingester', 'plan', 'get ingester', 'doctor'])
      expect([line, timeless(await read(line))]).toEqual([line, timeless(await live(line))]);
  });

  it('does not contain the command line that kubectl recorded as the cause of a change, and keeps a cause that a user wrote', () => {
    const command = 'kubectl set env sts/ingester TOKEN=canary --record=true';
    const answer = (kind: string, apiVersion: string, object: object) => ({
      request: `GET /${kind}`,
      status: 200,
      answer: { kind: `${kind}List`, apiVersion, metadata: {}, items: [object] },
    });
    const answers = (cause: string) =>
      redactAnswers([
        answer('StatefulSet', 'apps/v1', { metadata: { annotations: { 'kubernetes.io/change-cause': cause } } }),
        answer('RolloutRun', 'rollout-group.dev/v1alpha1', { spec: { cause } }),
        answer('Event', 'events.k8s.io/v1', { reportingController: 'rollout-group', note: `rollout started: ${cause}` }),
        answer('ConfigMap', 'v1', { data: { ledger: JSON.stringify({ run: { origin: { cause } } }) } }),
        { request: 'GET /list', status: 200, answer: [cause === command ? command : ''] },
      ]);
    expect(JSON.stringify(answers(command)).match(/canary|\(redacted 1\)/g)).toEqual(Array.from({ length: 5 }, () => '(redacted 1)'));
    expect(JSON.stringify(answers('new limits')).match(/new limits/g)).toHaveLength(4);
  });

  it('keeps differences between hidden texts, the texts that policies read, and the plan that a template has', () => {
    const item = (name: string, value: string, annotations: object = {}) => ({
      metadata: { name, annotations },
      spec: { template: { spec: { containers: [{ name, image: 'mimir:1', env: [{ name: 'KEY', value }] }] } } },
    });
    const list = (items: readonly object[]) => ({ kind: 'StatefulSetList', apiVersion: 'apps/v1', metadata: {}, items });
    const policy = { spec: { rules: [{ when: { in: ['gold', { var: 'target.annotations.example.com/tier' }] } }] } };
    const policies = { kind: 'RolloutPolicyList', apiVersion: 'rollout-group.dev/v1alpha1', metadata: {}, items: [policy] };
    const ledger = JSON.stringify({
      pins: [{ zone: 'a', template: { spec: { containers: [{ env: [{ name: 'KEY', value: 'one' }] }] } } }],
    });
    const maps = {
      kind: 'ConfigMapList',
      apiVersion: 'v1',
      metadata: {},
      items: [{ metadata: { name: 'rollout-group-x' }, data: { ledger } }],
    };
    const tier = { 'example.com/tier': 'gold', 'example.com/note': 'one' };
    const answers = [list([item('a', 'one', tier), item('b', 'two'), item('c', 'one')]), policies, maps].map((answer, index) => ({
      request: `GET /${['statefulsets', 'rolloutpolicies', 'configmaps'][index]}`,
      status: 200,
      answer,
    }));
    const [sets, , documents] = redactAnswers(answers).map(({ answer }) => JSON.stringify(answer));
    expect([...(sets ?? '').matchAll(/"value":"([^"]*)"/g)].map(([, value]) => value)).toEqual([
      '(redacted 1)',
      '(redacted 2)',
      '(redacted 1)',
    ]);
    expect(sets).toContain('"example.com/tier":"gold","example.com/note":"(redacted 1)"');
    expect(documents).toContain('(redacted 1)');
    const template = { spec: { containers: [{ name: 'a', env: [{ name: 'KEY', value: 'one' }] }] } };
    const digest = templateDigest({ spec: { template } });
    const planned = { kind: 'StatefulSet', metadata: { annotations: { [approvedPlanAnnotation]: JSON.stringify({ template: digest }) } } };
    const [redacted] = redactAnswers([{ request: 'GET /one', status: 200, answer: { ...planned, spec: { template } } }]);
    const approved = fieldAt(redacted?.answer, ['metadata', 'annotations', approvedPlanAnnotation]);
    expect(approved).toBe(JSON.stringify({ template: templateDigest(redacted?.answer) }));
    expect(approved).not.toContain(digest);
  });
});

/** The files of a report without their folder. */
function contentOf(path: string): ReadonlyMap<string, string> {
  const files = untar(gunzipSync(readFileSync(path)));
  return new Map(files.map((file) => [file.path.split('/').at(-1) ?? '', file.data.toString()]));
}

/** The group, with a text that may be secret in every place that this test knows. */
function secretObjects(): readonly FakeObject[] {
  const container = {
    name: 'ingester',
    image: 'mimir:1',
    args: ['-auth=canary-argument'],
    command: ['sh', '-c', 'echo canary-command'],
    env: [{ name: 'TOKEN', value: 'canary-variable' }],
    livenessProbe: { httpGet: { port: 80, httpHeaders: [{ name: 'Authorization', value: 'canary-header' }] } },
  };
  const annotations = { 'example.com/token': 'canary-annotation', 'kubectl.kubernetes.io/last-applied-configuration': 'canary-applied' };
  const withSecrets = adoptedObjects({ annotations }).map((object): FakeObject => {
    if (object.kind === 'StatefulSet') {
      const { template, ...spec } = Object(object['spec']);
      return {
        ...object,
        spec: { ...spec, template: { metadata: { ...template.metadata, annotations }, spec: { containers: [container] } } },
      };
    }
    const status = { ...Object(object['status']), message: 'canary-message' };
    return { ...object, metadata: { ...object.metadata, annotations }, spec: { nodeName: 'node-1', containers: [container] }, status };
  });
  const agentNamespace = 'rollout-group';
  const ours = (kind: string, name: string, spec: object): FakeObject => {
    return { apiVersion: 'rollout-group.dev/v1alpha1', kind, metadata: { name, namespace: agentNamespace, annotations }, spec };
  };
  const usableFrom = { namespaces: ['mimir'] };
  return [
    ...withSecrets,
    ours('NotificationChannel', 'hook', {
      callback: { url: 'https://hooks.example.com/canary-address', signingKey: { name: 'keys', key: 'k' } },
      usableFrom,
    }),
    ours('MetricSource', 'prometheus', {
      prometheus: { url: 'https://canary-host.example.com', bearerToken: { name: 'keys', key: 'k' } },
      usableFrom,
    }),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'keys', namespace: agentNamespace, annotations },
      data: { k: Buffer.from('canary-secret').toString('base64') },
    },
  ];
}
