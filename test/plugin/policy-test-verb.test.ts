// The verb test, on the built bundle: what runs, how results are told, and the exit codes.
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { runInProcess } from './in-process.ts';
import { folderWith } from './process.ts';
import { elementsOf } from './xml.ts';

const group = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester, namespace: mimir }
spec:
  members:
    zones:
      - { name: a, statefulSet: ingester-zone-a }
      - { name: b, statefulSet: ingester-zone-b }
  replicas: { leader: true }
  scaling: { down: { betweenZones: 13h } }
  rollout: { strategy: onDelete }
`;
const statefulSet = (zone: string) => `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: ingester-zone-${zone}, namespace: mimir, labels: { name: ingester-zone-${zone} } }
spec:
  replicas: 3
  serviceName: ingester
  updateStrategy: { type: OnDelete }
  selector: { matchLabels: { name: ingester-zone-${zone} } }
  template:
    metadata: { labels: { name: ingester-zone-${zone} } }
    spec: { containers: [{ name: ingester, image: "ingester:1" }] }
`;
const policyTest = (expected: string) => `apiVersion: rollout-group.dev/v1alpha1
kind: PolicyTest
metadata: { name: downscale }
spec:
  files: [../group.yaml, ../manifests]
  cases:
    - name: zone a may shrink first
      request: { action: scaleDown, zone: a, from: 3, to: 2 }
      expect: { decision: allow }
    - name: "zone b waits #1 <after> zone a"
      given: { zones: { a: { lastDownscale: 1h } } }
      request: { action: scaleDown, zone: b, from: 3, to: 2 }
      expect: { decision: ${expected}, rules: [zone-gap] }
`;
const files = (expected = 'hold') => ({
  'group.yaml': group,
  'manifests/all.yaml': [statefulSet('a'), statefulSet('b')].join('---\n'),
  'tests/downscale.yaml': policyTest(expected),
  'broken/unrelated.yaml': 'a: [\n',
});

describe('test', () => {
  it('runs the cases of every PolicyTest below the current directory, with files relative to the test', async () => {
    const { status, stdout, stderr } = await runInProcess(['test'], { cwd: folderWith(files()) });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toBe(
      [
        'downscale  tests/downscale.yaml',
        '  ✓ ok    zone a may shrink first',
        '  ✓ ok    zone b waits #1 <after> zone a',
        '',
        '2 cases in 1 test: 2 passed, 0 failed',
        '',
      ].join('\n'),
    );
  });

  it('fails with 4 and names the expected and the actual result', async () => {
    const { status, stdout } = await runInProcess(['test', 'tests', '--ascii'], { cwd: folderWith(files('allow')) });
    expect(status).toBe(4);
    expect(stdout).toContain(
      '  x FAIL  zone b waits #1 <after> zone a\n          the decision is hold, expected is allow\n          answered hold by zone-gap: ',
    );
    expect(stdout.split('\n').at(-2)).toBe('2 cases in 1 test: 1 passed, 1 failed');
  });

  it('runs only the cases that --run names', async () => {
    const cwd = folderWith(files('allow'));
    expect((await runInProcess(['test', '--run', 'shrink first'], { cwd })).stdout).toContain('1 case in 1 test: 1 passed, 0 failed');
    expect((await runInProcess(['test', '--run', 'nothing of the kind'], { cwd })).status).toBe(10);
  });

  it('without a case the status is not found, unless an empty run is allowed', async () => {
    const cwd = folderWith({ 'group.yaml': group });
    expect([(await runInProcess(['test'], { cwd })).status, await runInProcess(['test', '--allow-empty'], { cwd })]).toEqual([
      10,
      { status: 0, stdout: '0 cases in 0 tests: 0 passed, 0 failed\n', stderr: '' },
    ]);
  });

  it('an unreadable test, or one with unreadable files, fails', async () => {
    const wrongField = await runInProcess(['test'], {
      cwd: folderWith({ ...files(), 'tests/downscale.yaml': policyTest('hold').replace('files:', 'file:') }),
    });
    expect(wrongField.status).toBe(4);
    expect(wrongField.stdout).toContain('FAIL  the file has no errors');
    const missing = await runInProcess(['test'], {
      cwd: folderWith({ ...files(), 'tests/downscale.yaml': policyTest('hold').replace('../group', '../grup') }),
    });
    expect([missing.status, missing.stdout.includes('grup.yaml does not exist')]).toEqual([4, true]);
    const wrongGroup = await runInProcess(['test'], {
      cwd: folderWith({ ...files(), 'group.yaml': group.replace('strategy: onDelete', 'strategy: x') }),
    });
    expect([wrongGroup.status, wrongGroup.stdout.includes('group.yaml:11:')]).toEqual([4, true]);
  });

  it('names the rules that both blocked and passed', async () => {
    const { stdout } = await runInProcess(['test', '--coverage', '-o', 'json'], { cwd: folderWith(files()) });
    const { coverage, summary, kind } = JSON.parse(stdout);
    expect([kind, summary]).toEqual(['TestResult', { tests: 1, cases: 2, passed: 2, failed: 0 }]);
    const gap = coverage.find(({ rule }: { rule: string }) => rule === 'ingester scaling.down.betweenZones');
    expect([gap.held, gap.passed]).toEqual([['zone b waits #1 <after> zone a'], ['zone a may shrink first']]);
  });

  it('distinguishes results that no zone of this size can reach from untested results', async () => {
    const waves = `
    waves:
      - { name: first, zones: [a, b], percent: 1, after: { soak: 1h } }
      - { name: half, zones: [a, b], percent: 50, after: { soak: 1h } }
      - { name: all, zones: [a, b], percent: 100 }
`;
    const rollout = group.replace('{ strategy: onDelete }\n', `\n    strategy: onDelete${waves}`);
    const one = {
      ...files(),
      'group.yaml': rollout,
      'manifests/all.yaml': files()['manifests/all.yaml'].replaceAll('replicas: 3', 'replicas: 1'),
    };
    const small = { ...one, 'tests/downscale.yaml': policyTest('hold').replaceAll('from: 3, to: 2', 'from: 1, to: 0') };
    const { stdout } = await runInProcess(['test', '--coverage'], { cwd: folderWith(small) });
    const lines = stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3).join(' '));
    expect(lines).toContain('ingester waves.half.after.soak - -');
    expect(lines).toContain('ingester waves.first.after.soak 0 0');
    expect(stdout).toMatch(/\d of \d rules both blocked and passed; 1 more unreachable\nunreachable \(marked -\): /);
    const markdown = (await runInProcess(['test', '--coverage', '-o', 'markdown'], { cwd: folderWith(small) })).stdout;
    expect([markdown.includes('waves.first.after.soak'), markdown.includes('waves.half.after.soak')]).toEqual([true, false]);
  });

  it('runs from a revision, with the files of that revision', async () => {
    const cwd = folderWith(files());
    const git = (...args: readonly string[]) =>
      spawnSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@example.com', '-c', 'commit.gpgsign=false', ...args], { cwd });
    for (const args of [
      ['init', '-q'],
      ['add', '-A'],
      ['commit', '-qm', 'x'],
      ['rm', '-q', '-r', 'group.yaml'],
    ])
      git(...args);
    expect((await runInProcess(['test', 'git:HEAD:tests'], { cwd })).stdout).toContain('2 passed, 0 failed');
    expect((await runInProcess(['test', 'tests'], { cwd })).status).toBe(4);
  });

  it('writes TAP, JUnit and Markdown', async () => {
    const cwd = folderWith(files('allow'));
    const output = async (format: string) => (await runInProcess(['test', '-o', format, '--coverage'], { cwd })).stdout;
    const tap = (await output('tap')).split('\n');
    expect(tap.slice(0, 5)).toEqual([
      'TAP version 14',
      '1..2',
      'ok 1 - downscale: zone a may shrink first',
      'not ok 2 - downscale: zone b waits \\#1 <after> zone a',
      '  ---',
    ]);
    expect(elementsOf(await output('junit'))).toEqual(['testsuites', 'testsuite', 'testcase', 'testcase', 'failure']);
    expect((await output('markdown')).split('\n').slice(0, 4)).toEqual([
      '### Policy tests: 2 cases in 1 test: 1 passed, 1 failed',
      '',
      '| Test | Case | Facts |',
      '| --- | --- | --- |',
    ]);
  });
});
