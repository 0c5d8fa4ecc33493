// The verbs init, fmt and schema, and on the built bundle docs and version.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ruleCatalog } from '../../engine/rules/catalog.ts';
import { expectGolden, outputsOf } from './golden.ts';
import { runInProcess } from './in-process.ts';
import { rightGroup, wrongGroup } from './policies.ts';
import { folderWith, runPlugin } from './process.ts';

const member = (zone: string, extra = '') => `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: ingester-zone-${zone}
  namespace: mimir
  labels: { rollout-group: ingester, name: ingester-zone-${zone} }
  annotations:
    rollout-max-unavailable: "2"
${extra}spec:
  replicas: 3
  updateStrategy: { type: OnDelete }
  selector: { matchLabels: { name: ingester-zone-${zone} } }
  template: { metadata: { labels: { name: ingester-zone-${zone}, rollout-group: ingester } } }
`;
const manifests = [member('a'), member('b', '    grafana.com/rollout-downscale-leader: ingester-zone-a\n')].join('---\n');

describe('init', () => {
  it('writes one file per group, which lint and fmt accept next to the manifests', async () => {
    const cwd = folderWith({ 'manifests/all.yaml': manifests });
    expect(await runInProcess(['init', '--from-dir', 'manifests', '--out', 'policies'], { cwd })).toEqual({
      status: 0,
      stdout: 'policies/ingester.yaml  RolloutGroup mimir/ingester, 2 zones\n',
      stderr: '',
    });
    expect(parse(readFileSync(join(cwd, 'policies/ingester.yaml'), 'utf8')).spec.members.zones).toEqual([
      { name: 'a', statefulSet: 'ingester-zone-a' },
      { name: 'b', statefulSet: 'ingester-zone-b', follows: 'a' },
    ]);
    expect((await runInProcess(['lint', 'policies', 'manifests'], { cwd })).status).toBe(0);
    expect(await runInProcess(['fmt', '--check', 'policies'], { cwd })).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  it('separates groups of several namespaces', async () => {
    const cwd = folderWith({ 'all.yaml': `${manifests}---\n${manifests.replaceAll('namespace: mimir', 'namespace: loki')}` });
    expect(
      (await runInProcess(['init', '--from-dir', 'all.yaml', '--out', 'p'], { cwd })).stdout.split('\n').map((line) => line.split(' ')[0]),
    ).toEqual(['p/loki/ingester.yaml', 'p/mimir/ingester.yaml', '']);
  });

  it('overwrites a file only if forced, and writes nothing if one file exists', async () => {
    const cwd = folderWith({ 'all.yaml': manifests, 'p/ingester.yaml': '# mine\n' });
    const refused = await runInProcess(['init', '--from-dir', 'all.yaml', '--out', 'p'], { cwd });
    expect([refused.status, refused.stdout, readFileSync(join(cwd, 'p/ingester.yaml'), 'utf8')]).toEqual([3, '', '# mine\n']);
    expect((await runInProcess(['init', '--from-dir', 'all.yaml', '--out', 'p', '--force'], { cwd })).status).toBe(0);
    expect((await runInProcess(['init', '--from-dir', 'all.yaml', '--out', 'p'], { cwd })).status).toBe(0);
  });

  it('writes the valid part and fails if an annotation is invalid', async () => {
    const cwd = folderWith({ 'all.yaml': manifests.replace('ingester-zone-a\nspec', 'ingester-zone-x\nspec') });
    const { status, stdout, stderr } = await runInProcess(['init', '--from-dir', 'all.yaml', '--out', 'p'], { cwd });
    expect([status, stdout]).toEqual([4, 'p/ingester.yaml  RolloutGroup mimir/ingester, 2 zones\n']);
    expect(stderr).toMatch(/^all\.yaml:\d+:\d+ error RG4002 /);
  });
});

describe('init without labels', () => {
  const unlabelled = (zone: string) =>
    member(zone).replace('rollout-group: ingester, name', 'name').replace(', rollout-group: ingester', '');
  const zones = [unlabelled('a'), unlabelled('b')].join('---\n');
  const other = (name: string, more = '') =>
    `apiVersion: apps/v1\nkind: StatefulSet\nmetadata: { name: ${name}, namespace: mimir${more} }\nspec: { replicas: 1, serviceName: ${name} }\n`;

  it('proposes a group for similar StatefulSets, and one for each single one, and names the omitted ones', async () => {
    const owner = ', ownerReferences: [{ kind: Prometheus, name: main, controller: true }]';
    const cwd = folderWith({ 'all.yaml': [zones, other('compactor'), other('prometheus-main', owner)].join('---\n') });
    expect(await runInProcess(['init', '--from-dir', 'all.yaml', '--out', 'p'], { cwd })).toEqual({
      status: 0,
      stdout:
        'p/compactor.yaml  RolloutGroup mimir/compactor, 1 zone, guessed: the StatefulSet compactor alone\n' +
        'p/ingester.yaml  RolloutGroup mimir/ingester, 2 zones, guessed: the names ingester-zone-a, ingester-zone-b differ in a zone at their end\n',
      stderr: 'note: StatefulSet mimir/prometheus-main is left out: Prometheus main owns it, and its operator would revert other writes\n',
    });
    expect(readFileSync(join(cwd, 'p/ingester.yaml'), 'utf8')).toMatch(
      /^# Guessed by init: .*\n# Zones roll in this order, one at a time\.\n/,
    );
    expect((await runInProcess(['fmt', '--check', 'p'], { cwd })).status).toBe(0);
    expect((await runInProcess(['lint', 'p', 'all.yaml'], { cwd })).status).toBe(0);
  });

  it('guesses groups without labels only on request, and names its reasons', async () => {
    const cwd = folderWith({ 'all.yaml': [manifests, other('compactor')].join('---\n') });
    const plain = await runInProcess(['init', '--from-dir', 'all.yaml', '--out', 'p'], { cwd });
    expect(plain).toEqual({
      status: 0,
      stdout: 'p/ingester.yaml  RolloutGroup mimir/ingester, 2 zones\n',
      stderr: 'note: 1 StatefulSet is in no group: mimir/compactor. Run init with --guess to propose groups\n',
    });
    const asked = await runInProcess(['init', '--from-dir', 'all.yaml', '--out', 'p', '--guess'], { cwd });
    expect([asked.status, asked.stdout.split('\n').map((line) => line.split(' ')[0])]).toEqual([
      0,
      ['p/ingester.yaml', 'p/compactor.yaml', ''],
    ]);
  });

  it('overwrites no file, and proposes no group for members of an existing group', async () => {
    const cwd = folderWith({ 'all.yaml': zones, 'p/ingester.yaml': '# mine\n' });
    const refused = await runInProcess(['init', '--from-dir', 'all.yaml', '--out', 'p'], { cwd });
    expect([refused.status, refused.stdout, readFileSync(join(cwd, 'p/ingester.yaml'), 'utf8')]).toEqual([3, '', '# mine\n']);
    expect((await runInProcess(['init', '--from-dir', 'all.yaml', '--out', 'q'], { cwd })).status).toBe(0);
    const again = folderWith({ 'all.yaml': zones, 'group.yaml': readFileSync(join(cwd, 'q/ingester.yaml'), 'utf8') });
    expect(await runInProcess(['init', '--from-dir', '.', '--out', 'r'], { cwd: again })).toMatchObject({ status: 10, stdout: '' });
  });
});

describe('fmt', () => {
  const unordered =
    '# the group\napiVersion: rollout-group.dev/v1alpha1\nkind: RolloutGroup   # kind\nmetadata: {name: a}\nspec:\n    rollout: {strategy: onDelete}\n    members: {zones: [{statefulSet: a, name: a}]}\n    replicas: {leader: true}\n';

  it('prints the canonical form, keeps comments, and changes no file', async () => {
    const cwd = folderWith({ 'a.yaml': unordered });
    const { status, stdout } = await runInProcess(['fmt', 'a.yaml'], { cwd });
    expect(status).toBe(0);
    expect(stdout.startsWith('# the group\napiVersion: rollout-group.dev/v1alpha1\nkind: RolloutGroup # kind\n')).toBe(true);
    expect(parse(stdout)).toEqual(parse(unordered));
    expect((await runInProcess(['fmt', '-'], { stdin: stdout })).stdout).toBe(stdout);
    expect(readFileSync(join(cwd, 'a.yaml'), 'utf8')).toBe(unordered);
  });

  it('--check names the files to change, --write changes them, and then no file needs a change', async () => {
    const cwd = folderWith({ 'p/a.yaml': unordered, 'p/right.yaml': (await runInProcess(['fmt', '-'], { stdin: rightGroup })).stdout });
    const first = await runInProcess(['fmt', '--check', 'p'], { cwd });
    expect(first).toEqual({
      status: 4,
      stdout: 'p/a.yaml\n',
      stderr: '1 file not formatted. Run: kubectl rollout-group fmt --write FILES\n',
    });
    expect((await runInProcess(['fmt', '--check', 'p', '-q'], { cwd })).stderr).toBe('');
    expect(await runInProcess(['fmt', '--write', 'p'], { cwd })).toEqual({ status: 0, stdout: 'p/a.yaml\n', stderr: '' });
    expect(await runInProcess(['fmt', '--check', 'p'], { cwd })).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  it('keeps an unreadable file, and fails', async () => {
    const broken = 'kind: [RolloutGroup\n';
    const cwd = folderWith({ 'p/broken.yaml': broken, 'p/a.yaml': unordered, 'p/values.json': '{"a":1}' });
    const { status, stdout, stderr } = await runInProcess(['fmt', '--write', 'p'], { cwd });
    expect([status, stdout]).toEqual([4, 'p/a.yaml\n']);
    expect(stderr).toContain('p/broken.yaml:');
    expect(readFileSync(join(cwd, 'p/broken.yaml'), 'utf8')).toBe(broken);
    expect(readFileSync(join(cwd, 'p/values.json'), 'utf8')).toBe('{"a":1}');
  });
});

describe('schema', () => {
  it('shows kinds and fields at each width, with and without colour', async () => {
    await expectGolden('schema', await outputsOf([['schema'], ['schema', 'rg.spec.rollout']], runInProcess));
  });

  it('has the published schema for editors, and the CRD for API servers', async () => {
    expect(JSON.parse((await runInProcess(['schema', 'rolloutgroups', '-o', 'jsonschema'])).stdout)).toEqual(
      JSON.parse(readFileSync('deploy/schemas/rolloutgroup.json', 'utf8')),
    );
    expect(parse((await runInProcess(['schema', 'rg', '-o', 'crd'])).stdout)).toEqual(
      parse(readFileSync('deploy/crds/rolloutgroups.yaml', 'utf8')),
    );
    expect((await runInProcess(['schema', 'PolicyTest', '-o', 'crd'])).status).toBe(10);
    expect((await runInProcess(['schema', 'rg.spec', '-o', 'crd'])).status).toBe(3);
  });

  it('suggests the intended field', async () => {
    expect(await runInProcess(['schema', 'rg.spec.rolout'])).toEqual({
      status: 10,
      stdout: '',
      stderr: 'error: the kind or field rolout does not exist\n  do:  did you mean rollout? kubectl rollout-group schema lists the kinds\n',
    });
  });
});

describe('docs', () => {
  it('explains a finding code in any case, as text and as JSON', () => {
    const { stdout } = runPlugin(['docs', 'rg2003']);
    expect(stdout.split('\n').slice(0, 2)).toEqual(['RG2003 The field does not exist', 'severity: error']);
    expect(JSON.parse(runPlugin(['docs', 'RG2003', '-o', 'json']).stdout)).toMatchObject({
      kind: 'FindingCode',
      code: 'RG2003',
      severity: 'error',
    });
  });

  it('explains a rule of the engine', () => {
    expect(runPlugin(['docs', 'zone-gap']).stdout.split('\n')[0]).toBe('zone-gap');
    expect(runPlugin(['docs', 'pin-applied']).stdout).toContain('kubectl rollout-group retry GROUP');
    expect(JSON.parse(runPlugin(['docs', 'zone-budget', '-o', 'json']).stdout).whenBlocked).toContain('kubectl rollout-group pause GROUP');
    expect(JSON.parse(runPlugin(['docs', '-o', 'json']).stdout).rules).toEqual(ruleCatalog.map(({ id }) => id));
  });

  it('prints the page of a topic unchanged from docs/', () => {
    expect(runPlugin(['docs', 'exit-codes']).stdout).toBe(readFileSync('docs/exit-codes.md', 'utf8'));
    expect(runPlugin(['docs', 'install']).stdout).not.toContain('<!--');
    expect(runPlugin(['docs', 'exit-code']).stderr).toContain('did you mean exit-codes?');
  });

  it('needs only the bundle', () => {
    const cwd = folderWith({});
    expect(existsSync(join(cwd, 'docs'))).toBe(false);
    expect(runPlugin(['docs', 'sources'], { cwd, env: { PATH: '/nonexistent' } }).status).toBe(0);
  });
});

describe('version', () => {
  it('is the version of package.json in every form', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
    const text = `kubectl rollout-group ${version}\n`;
    expect([['version'], ['--version'], ['version', '-q']].map((args) => runPlugin(args).stdout)).toEqual([text, text, text]);
    const document = JSON.parse(runPlugin(['version', '-o', 'json']).stdout);
    expect(document).toEqual({ apiVersion: 'rollout-group.dev/cli/v1', kind: 'Version', client: { version, node: process.versions.node } });
    expect(parse(runPlugin(['version', '-o', 'yaml']).stdout)).toEqual(document);
  });
});

it('the tests of the verbs use files with the expected findings', async () => {
  const lint = async (stdin: string): Promise<number> => (await runInProcess(['lint', '-'], { stdin })).status;
  expect([await lint(rightGroup), await lint(wrongGroup)]).toEqual([0, 4]);
});
