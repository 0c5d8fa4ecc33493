// What users see on the cluster of `npm run cluster`. There the plugin, the agent and its webhooks are the built executables.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { rulesWithoutException } from '../../policies/rollout/rules-without-exception.ts';
import { describeWithBinaries } from '../control-plane/suite.ts';
import { kubeconfigOf, type LocalCluster, startCluster } from '../documents/local-cluster.ts';
import { filesOf } from './live-people.ts';
import { runExecutable, runPlugin } from './process.ts';

const apiVersion = 'rollout-group.dev/v1alpha1';
const next = resolve('examples/quick-start/manifests-next');
const configurations = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'] as const;

interface Listed {
  readonly items: readonly { readonly metadata: Readonly<Record<string, unknown>> }[];
}

describeWithBinaries('the surface of a cluster', () => {
  let cluster: LocalCluster;
  let env: Readonly<Record<string, string>>;
  beforeAll(async () => {
    cluster = await startCluster('');
    env = { KUBECONFIG: resolve(kubeconfigOf(cluster)) };
    // No test needs the soak of 15 s.
    const soak = [{ op: 'replace', path: '/spec/rollout/waves/0/after/soak', value: '1s' }];
    expect(kubectl(`patch rolloutgroup cache --type=json -p ${JSON.stringify(soak)}`)).toMatchObject({ status: 0 });
  });
  afterAll(() => cluster?.stop());

  const bundle = (line: string, cwd = tmpdir()) => runPlugin(line.split(' '), { cwd, env });
  /** Returns the output of a command that succeeds, with single blanks. */
  const shown = (line: string, cwd?: string): string => {
    const { status, stdout, stderr } = bundle(line, cwd);
    expect(status, `${line}: ${stdout}${stderr}`).toBe(0);
    return stdout.replaceAll(/\s+/g, ' ');
  };
  const kubectl = (line: string, input: object = {}) =>
    spawnSync('kubectl', line.split(' '), { encoding: 'utf8', input: JSON.stringify(input), env: { ...process.env, ...env } });
  const read = <Value>(line: string): Value => JSON.parse(kubectl(`get ${line} -o json`).stdout);
  const planOf = (line: string, cwd?: string) => JSON.parse(bundle(`${line} -o json`, cwd).stdout).groups[0];
  /** A folder with the group of the example, after this change of its text. */
  const changedGroup = (change: (text: string) => string): string =>
    filesOf({ 'group.yaml': change(readFileSync('examples/quick-start/policies/cache.yaml', 'utf8')) });
  /** Returns each pod with its UID. */
  const pods = (): readonly string[] =>
    read<Listed>('pods')
      .items.map(({ metadata }) => `${metadata['name']} ${metadata['uid']}`)
      .sort();
  const intent = (name: string, spec: object): object => ({
    apiVersion,
    kind: 'RolloutIntent',
    metadata: { name, namespace: 'shop' },
    spec: { group: 'cache', ...spec },
  });
  const exceptionTo = (rule: string): object => ({
    apiVersion,
    kind: 'RolloutException',
    metadata: { name: `from-${rule}`, namespace: 'shop' },
    spec: { rule, target: { group: 'cache' }, allow: { anything: true }, reason: 'x', expires: '2099-01-01T00:00:00Z' },
  });
  const listOf = (items: readonly object[]): object => ({ apiVersion: 'v1', kind: 'List', items });

  it.each([
    'get cache',
    'explain rolloutgroup/cache',
    'status --watch=false rg/cache',
    'get shop/cache',
    'explain sts/cache-b',
    'status --watch=false pod/cache-c-0',
  ])('%s finds the group', (line) => {
    expect(shown(line)).toMatch(/^shop\/cache /);
  });

  it('get accepts and prints the same as kubectl', () => {
    const [name = ''] = bundle('get -o name').stdout.split('\n');
    expect(kubectl(`get ${name} -o name`).stdout).toBe(`${name}\n`);
    expect(kubectl(`label ${name} team=storage`).status).toBe(0);
    for (const flags of ['-A -l team=storage', '-n shop --selector team']) expect(shown(`get ${flags}`), flags).toMatch(/ cache Done /);
    expect(bundle('get -l team=none')).toMatchObject({ status: 0, stdout: '', stderr: expect.stringContaining('no groups found') });
    expect(bundle('get -o jsonpath={.groups[*].phase}').stdout).toBe('Done');
    expect(bundle('get -o custom-columns=NAME:.group.name,PHASE:.phase').stdout).toBe('NAME   PHASE\ncache  Done\n');
    expect(bundle('get nope cache')).toMatchObject({
      status: 10,
      stdout: expect.stringContaining('cache'),
      stderr: expect.stringContaining('nope'),
    });
    expect(bundle('get -v=6').stderr).toMatch(/^GET \S+ 200 \d+ms$/m);
    for (const line of ['get cache -w --timeout 60s', 'status cache -w']) expect(bundle(line).status, line).toBe(0);
    expect(shown('get cache --pods=all')).toMatch(/ a-2 /);
    expect(shown('explain cache/a-2')).toContain('pod a-2');
    for (const verb of ['wait', 'describe'])
      expect(bundle(`${verb} cache`).stderr).toMatch(/use: kubectl rollout-group (?:status|explain) cache/);
  });

  it('completion offers the names of the cluster', async () => {
    const offered = (line: string) =>
      runExecutable('kubectl_complete-rollout_group', line.split(' '), { env }).stdout.split('\n').slice(0, -2);
    // A late answer on a loaded machine is none.
    const within = (line: string) => expect.poll(() => offered(line), { timeout: 60_000 });
    await within('status ').toEqual(['cache']);
    await within('get -n s').toEqual(['shop']);
    await within('pause cache --zone ').toEqual(['a', 'b', 'c']);
    await within('promote cache --wave ').toEqual(['canary', 'rest']);
    await within('override cache --rule zone-g').toEqual(['zone-gap']);
    await within('get --context ').toEqual(expect.arrayContaining(['alice', 'bob']));
  });

  // Other tests print the documents of get, plan, history and doctor.
  it.each([
    'status cache --watch=false',
    'explain cache',
    'events cache',
    'diff --set image=registry.example.com/cache:1.1.0',
    'diff --zones --live',
    'version',
  ])('%s -o json follows the published schema', (line) => {
    // runPlugin checks the document.
    expect(JSON.parse(bundle(`${line} -o json`).stdout)).toHaveProperty('kind');
  });

  it('diff compares zones by structure, accepts --set, and has both sides without fields of the API server', () => {
    // The zones a and c are parts of the word cache.
    expect(bundle('diff --zones --live')).toMatchObject({ status: 0, stdout: expect.stringContaining('no differences between zones') });
    const set = bundle('diff --set image=registry.example.com/cache:1.1.0');
    expect(set).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(/\+ registry\.example\.com\/cache:1\.1\.0[\s\S]*restarts 9 pods/),
    });
    const both = runPlugin(['diff', '-f', next, '-o', 'external'], { env: { ...env, KUBECTL_EXTERNAL_DIFF: 'grep -rh ^' } }).stdout;
    expect(both.match(/image: registry\.example\.com\/cache:1\.[01]\.0/g)).toHaveLength(6);
    expect(both).not.toMatch(/managedFields|resourceVersion|uid:|^status:/m);
  });

  it('a change of the group alone is a change in plan and diff', () => {
    const folder = changedGroup((text) => text.replace('maxUnavailable: 2', 'maxUnavailable: 1').replace(/^ *after: .*\n/m, ''));
    const plan = bundle('plan -f group.yaml --detailed-exitcode', folder);
    expect(plan).toMatchObject({ status: 2, stdout: expect.stringMatching(/maxUnavailable/) });
    expect(plan.stdout).not.toContain('no changes');
    expect(bundle('diff -f group.yaml', folder)).toMatchObject({ status: 1, stdout: expect.stringMatching(/soak/) });
  });

  it.each([
    ['argocd-controller', 'Argo CD'],
    ['kustomize-controller', 'Flux'],
    ['helm', 'Helm'],
    ['keda-operator', '.metadata.annotations.team (keda-operator)'],
  ])('apply --force-conflicts takes no field of %s', (manager, named) => {
    const metadata = { name: 'cache-a', namespace: 'shop' };
    const set = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata };
    const applyAs = (object: object) =>
      expect(kubectl(`apply --server-side --field-manager=${manager} -f -`, object)).toMatchObject({ status: 0 });
    applyAs({ ...set, metadata: { ...metadata, annotations: { team: 'theirs' } } });
    const manifest = readFileSync('examples/quick-start/manifests/cache-a.yaml', 'utf8');
    const folder = filesOf({ 'a.yaml': manifest.replaceAll('  labels:\n    app', '  annotations: { team: ours }\n  labels:\n    app') });
    expect(bundle('plan -f a.yaml --force-conflicts', folder).stderr).toContain(named);
    expect(bundle('apply -f a.yaml --force-conflicts --yes', folder)).toMatchObject({ status: 5, stderr: expect.stringContaining(named) });
    expect(kubectl('get statefulset cache-a -o jsonpath={.metadata.annotations.team}').stdout).toBe('theirs');
    // An apply without the field gives it back.
    applyAs(set);
  });

  it.each(['restart', 'scale'])('a request with the action %s is rejected by the API server and by lint', (action) => {
    const request = intent('ask', { action });
    expect(kubectl('create -f -', request)).toMatchObject({ status: 1, stderr: expect.stringMatching(/spec\.action: Unsupported value/) });
    expect(bundle('lint ask.json', filesOf({ 'ask.json': request }))).toMatchObject({
      status: 4,
      stdout: expect.stringContaining(`spec.action is "${action}"`),
    });
  });

  it('a rule without exceptions cannot be overridden, by the verb or by an object', () => {
    const { stderr } = kubectl('create --dry-run=server -f -', listOf(rulesWithoutException.map(exceptionTo)));
    expect(rulesWithoutException.filter((rule) => !stderr.includes(`no exception can override the rule ${rule} (`))).toEqual([]);
    for (const rule of ['approval', 'soak', 'paused'])
      expect(bundle(`override cache --rule ${rule} --duration 30m --reason x --yes`)).toMatchObject({
        status: 5,
        stderr: expect.stringContaining(rule),
      });
    expect(read<Listed>('rolloutexceptions').items).toEqual([]);
  });

  it('without its webhooks no pod is replaced, no request approved or aborted, and plan, get and doctor name the reason', async () => {
    const stored = configurations.map((kind) => read<Listed>(kind));
    const before = pods();
    for (const kind of configurations) expect(kubectl(`delete ${kind} --all`).status).toBe(0);
    try {
      const plan = bundle(`plan -f ${next}`);
      expect(plan).toMatchObject({ status: 5, stdout: expect.stringMatching(/blocked/) });
      expect(plan.stdout).not.toContain('completes');
      expect(planOf(`plan -f ${next}`)).toMatchObject({
        outcome: 'blocked',
        totals: { restarts: 9 },
        waits: expect.arrayContaining([expect.objectContaining({ rule: 'pin-webhook' })]),
      });
      expect(bundle(`apply -f ${next} --yes`)).toMatchObject({ status: 5, stderr: expect.stringContaining('pin-webhook') });
      expect(kubectl(`apply --server-side --force-conflicts -f ${next}`).status).toBe(0);
      await expect.poll(() => shown('get cache'), { timeout: 60_000 }).toMatch(/pin-webhook/);
      for (const line of ['abort cache', 'approve cache --wave rest'])
        expect(bundle(line), line).toMatchObject({ status: 5, stderr: expect.stringContaining('no webhook records the requester') });
      expect(read<Listed>('rolloutintents').items).toEqual([]);
      const failures = bundle('doctor')
        .stdout.match(/^FAIL .*/gm)
        ?.join('\n');
      expect(failures).toMatch(/cache needs approvals: no webhook/);
      expect(failures).toMatch(/noDownscale and noDelete: no webhook/);
      expect(pods()).toEqual(before);
    } finally {
      for (const { items } of stored) {
        const own = items.map(({ metadata: { resourceVersion: _, uid: __, managedFields: ___, ...metadata }, ...one }) => ({
          ...one,
          metadata,
        }));
        kubectl('create -f -', listOf(own));
      }
    }
  });

  it('an exception in force is named by plan, get, status, explain, events and history', async () => {
    shown('status cache --for wave=canary --timeout 120s');
    expect(planOf('plan').totals.restarts).toBe(8);
    const range = { from: '2020-01-01T00:00:00Z', to: '2099-01-01T00:00:00Z' };
    const windows = [{ name: 'freeze', kind: 'deny', actions: ['rollout'], ranges: [range] }];
    const spec = { targets: { all: true }, windows };
    const calendar = { apiVersion, kind: 'RolloutPolicy', metadata: { name: 'calendar', namespace: 'shop' }, spec };
    expect(kubectl('create -f -', calendar).status).toBe(0);
    await expect.poll(() => shown('get cache'), { timeout: 60_000 }).toMatch(/deny window blocks rollout/);
    shown('override cache --rule window --duration 30m --reason hotfix --yes');
    for (const line of [
      'explain cache',
      'get cache',
      'status cache --watch=false',
      'plan',
      'diff --set image=registry.example.com/cache:1.2.0',
    ])
      await expect
        .poll(() => bundle(line).stdout.replaceAll(/\s+/g, ' '), { timeout: 30_000 })
        .toMatch(/override\.cache\.window[^.]* until /);
    shown('approve cache --context alice');
    shown('status cache --timeout 120s');
    await expect.poll(() => kubectl('get events').stdout, { timeout: 30_000 }).toContain('override.cache.window');
    shown('cancel cache override.cache.window');
    expect(kubectl('delete rolloutpolicies calendar').status).toBe(0);
  });

  it('history and Events count each pod once', async () => {
    const runs = () => JSON.parse(bundle('history cache -o json').stdout).runs;
    await expect.poll(() => runs()[0]?.outcome, { timeout: 30_000 }).toBe('completed');
    const [{ steps }] = runs();
    expect(steps.reduce((sum: number, { count }: { readonly count: number }) => sum + count, 0)).toBe(9);
    expect(shown('history cache')).toMatch(/ cache:1\.1\.0 9\/9 /);
    const notes = () => {
      const { items } = JSON.parse(kubectl('get events.events.k8s.io -o json').stdout) as {
        readonly items: readonly Readonly<Record<string, string>>[];
      };
      const replaced = items.filter(({ reason }) => reason === 'PodReplaced');
      return replaced.flatMap(({ note = '' }) => note.match(/cache-[abc]-\d/g) ?? []).sort();
    };
    const everyPod = ['a', 'b', 'c'].flatMap((zone) => [0, 1, 2].map((ordinal) => `cache-${zone}-${ordinal}`));
    await expect.poll(notes, { timeout: 30_000 }).toEqual(everyPod);
  });

  it('restart names the runs that it ends, and neither it nor kubectl rolls out a rolled-back template; undo, then restart, keeps the revision', async () => {
    const now = /cache:\S+/.exec(kubectl('get statefulset cache-a -o jsonpath={.spec.template.spec.containers[0].image}').stdout)?.[0];
    const phase = () => shown('get cache');
    const sets = ['a', 'b', 'c'].map((zone) => `statefulset/cache-${zone}`).join(' ');
    expect(kubectl(`set image ${sets} cache=registry.example.com/cache:1.2.0`)).toMatchObject({ status: 0 });
    shown('status cache --for wave=canary --timeout 120s');
    const superseded = /supersedes run \w+ \(to registry\.example\.com\/cache:1\.2\.0\): 1 of 9 pods updated; this pod is replaced again/;
    for (const dryRun of ['client', 'server']) {
      const { status, stderr } = bundle(`restart cache --dry-run=${dryRun}`);
      expect([status, stderr]).toEqual([0, expect.stringMatching(superseded)]);
      expect(stderr).toContain(`a: ${now} (2 pods) and cache:1.2.0 (1 pod) -> cache:1.2.0; b: ${now} (3 pods) -> cache:1.2.0; `);
      expect(stderr).toContain('waits for the approval of wave rest');
    }
    expect(bundle('undo cache --dry-run=client').stderr).toMatch(superseded);
    shown('abort cache --rollback --reason crashes');
    await expect.poll(phase, { timeout: 60_000 }).toMatch(/^shop\/cache ROLLED BACK /);
    const before = pods();
    for (const line of ['restart cache', 'restart cache --zone b --yes', 'restart cache --dry-run=client'])
      expect(bundle(line), line).toMatchObject({
        status: 5,
        stdout: '',
        stderr: expect.stringMatching(
          /a restart would roll out a blocked template: .* rolled back.*retry shop\/cache.*undo shop\/cache, then repeat/s,
        ),
      });
    const restarted = kubectl('rollout restart statefulset/cache-b');
    expect(restarted.stderr).toContain('denied by rolled-back: a restart would roll out a blocked template');
    const annotations = { 'checksum/config': '1' };
    const patch = JSON.stringify({ spec: { template: { metadata: { annotations } } } });
    const other = kubectl(`patch statefulset cache-b --dry-run=server -p ${patch}`);
    expect([other.status, other.stderr]).toEqual([0, expect.stringContaining('Warning: rolled-back: the new template ends a block')]);
    const folder = filesOf({ 'b.yaml': read<object>('statefulset cache-b') });
    expect(bundle('plan -f b.yaml --set spec.template.metadata.annotations.x=1', folder).stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /ends a block( of zone b)?: the update revision is blocked/,
    );
    expect(shown('undo cache')).toContain('no pod is replaced');
    await expect.poll(phase, { timeout: 60_000 }).toMatch(/^shop\/cache DONE /);
    expect(pods()).toEqual(before);
    expect(bundle('restart cache --dry-run=server').stderr).toContain(`a: ${now} (3 pods); b: ${now} (3 pods); c: ${now} (3 pods)`);
    expect(shown('restart cache --zone a')).toContain(
      `3 pods of shop/cache zone a will be replaced in the order of the group a: ${now} (3 pods)`,
    );
    shown('status cache --for wave=canary --timeout 120s');
  }, 240_000);

  it('undo of a restart returns to the restart before it, and no block denies the return to the second, or the undo of an aborted one', async () => {
    const revision = () => kubectl('get statefulset cache-b -o jsonpath={.status.updateRevision}').stdout;
    /** Approves and waits until the group is done and the pods of zone b have this revision, or another one than `before`. */
    const rolled = async (wanted: { readonly to?: string; readonly before?: string }): Promise<string> => {
      const state = () => {
        bundle('approve cache --context alice');
        const now = revision();
        const isMeant = wanted.to === undefined ? now !== wanted.before : now === wanted.to;
        const count = read<Listed>(`pods -l controller-revision-hash=${now}`).items.length;
        return [isMeant, count, /^shop\/cache \w+/.exec(shown('get cache'))?.[0]];
      };
      await expect.poll(state, { timeout: 120_000, interval: 1000 }).toEqual([true, 3, 'shop/cache DONE']);
      return revision();
    };
    const start = await rolled({ before: '' });
    shown('restart cache --zone b');
    const first = await rolled({ before: start });
    shown('restart cache --zone b');
    const second = await rolled({ before: first });
    const number = kubectl(`get controllerrevision ${second} -o jsonpath={.revision}`).stdout;
    for (const [line, to] of [
      ['undo cache', first],
      [`undo cache --zone b --to-revision ${number} --yes`, second],
    ] as const) {
      const undo = shown(line);
      expect(undo).toContain('3 pods are replaced');
      expect(undo).not.toContain('ends a block');
      await rolled({ to });
    }
    shown('restart cache --zone b');
    await expect.poll(revision, { timeout: 30_000 }).not.toBe(second);
    await expect.poll(() => shown('get cache'), { timeout: 60_000 }).toMatch(/approv/);
    shown('abort cache --rollback --reason crashes');
    await expect.poll(() => shown('get cache'), { timeout: 60_000 }).toMatch(/^shop\/cache ROLLED BACK /);
    expect(shown('undo cache')).toContain('no pod is replaced');
    await rolled({ to: second });
  }, 400_000);
});
