import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { demoManifests, demoPolicy } from '../../plugin/commands/demo.ts';
import { runInProcess } from './in-process.ts';
import { folderWith, runPlugin } from './process.ts';

const adopted = `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: store-zone-a, namespace: mimir, labels: { rollout-group: store, grafana.com/no-downscale: 'true' } }
spec:
  replicas: 3
  updateStrategy: { type: OnDelete }
  selector: { matchLabels: { name: store-zone-a } }
  template:
    metadata: { labels: { name: store-zone-a, rollout-group: store } }
    spec: { containers: [{ name: store, image: 'grafana/mimir:2.16.0' }] }
`;

function folder(): string {
  return folderWith({
    'now/a.yaml': demoManifests,
    'next/a.yaml': demoManifests.replaceAll('mimir:2.16.0', 'mimir:2.17.1'),
    'policies/group.yaml': demoPolicy,
    'broken/group.yaml': demoPolicy.replace('strategy: onDelete', 'strategy: onDelet'),
    'store/store.yaml': adopted,
    'slow.yaml': 'pods: { start: 2m }\n',
    'wrong.yaml': 'gates: maybe\n',
  });
}

function run(...words: readonly string[]) {
  return runInProcess(words, { cwd: folder() });
}

const rollout = ['--current', 'now', '--desired', 'next', '-f', 'policies'];

describe('the exit code of plan', () => {
  it.each([
    ['a plan with changes', ['plan', ...rollout], 0],
    ['a plan with changes, in detail', ['plan', ...rollout, '--detailed-exitcode'], 2],
    ['a plan without changes, in detail', ['plan', '--current', 'now', '-f', 'policies', '--detailed-exitcode'], 0],
    ['a downscale that is refused', ['plan', '--current', 'store', '--set', 'replicas=1'], 5],
    ['a downscale that is refused, in detail', ['plan', '--current', 'store', '--set', 'replicas=1', '--detailed-exitcode'], 5],
    ['a plan that cannot be written where it should', ['plan', ...rollout, '--out', 'now'], 11],
    ['no input and no cluster', ['plan'], 12],
    ['no input and no cluster, in detail', ['plan', '--detailed-exitcode'], 1],
    ['a --set that is not understood', ['plan', '--current', 'now', '-f', 'policies', '--set', 'colour=red'], 3],
    ['an instant without offset', ['plan', ...rollout, '--at', '2026-01-01'], 3],
    ['one object twice', ['plan', '--current', '.'], 3],
    ['policies with an error', ['plan', '--current', 'now', '-f', 'broken'], 4],
    ['assumptions that are not understood', ['plan', ...rollout, '--assumptions', 'wrong.yaml'], 4],
    ['a folder that does not exist', ['plan', '--current', 'nowhere'], 10],
    ['a group that does not exist', ['plan', ...rollout, '--group', 'nobody'], 10],
    ['manifests without a group', ['plan', '--current', 'now'], 10],
    ['a zone that does not exist', ['plan', ...rollout, '--set', 'zone-x.replicas=1'], 10],
    ['diff of equal manifests', ['diff', '--current', 'now', '-f', 'policies'], 0],
    ['diff of different manifests', ['diff', ...rollout], 1],
    ['diff of manifests without a group', ['diff', '--current', 'now', '--desired', 'next'], 1],
    ['diff by another program', ['diff', ...rollout, '-o', 'external'], 1],
    ['diff of zones that are alike', ['diff', '--current', 'now', '-f', 'policies', '--zones'], 0],
    ['explain', ['explain', 'ingester', ...rollout], 0],
    ['explain with a namespace', ['explain', 'mimir/ingester', ...rollout, '-n', 'mimir'], 0],
    ['explain of nobody', ['explain', 'nobody', ...rollout], 10],
    ['simulate that is broken off', ['simulate', ...rollout, '--runs', '1', '--faults', 'none', '--until', '10m'], 7],
    ['simulate with a pod that nobody has', ['simulate', ...rollout, '--fail', 'pod=nobody@1m'], 10],
    ['simulate with a failure that is not understood', ['simulate', ...rollout, '--fail', 'x'], 3],
    ['demo', ['demo', '--fast'], 0],
  ] satisfies [string, readonly string[], number][])('of %s', async (_, words, status) => {
    const ended = await run(...words);
    expect([ended.status, ended.stderr]).toEqual([status, expect.not.stringContaining('crash')]);
  });
});

describe('the output of plan', () => {
  it('goes to standard output, without an escape byte in a pipe, and no other output does', () => {
    const { stdout, stderr } = runPlugin(['plan', ...rollout], { cwd: folder() });
    expect(stdout).toContain('Plan  mimir/ingester   completes');
    expect(stdout).not.toContain('\u001b');
    expect(stderr).toBe('');
  });

  it('fits the requested width, in a pipe too', async () => {
    const { stdout } = await run('plan', ...rollout, '--width', '80');
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  it('is the same document as JSON, as YAML and in the file of --out, and keeps the published schema', async () => {
    const cwd = folder();
    const { stdout } = await runInProcess(['plan', ...rollout, '-o', 'json', '--out', 'saved.json'], { cwd });
    const plan: unknown = JSON.parse(stdout);
    expect(JSON.parse(readFileSync(`${cwd}/saved.json`, 'utf8'))).toEqual(plan);
    const schema: object = JSON.parse(readFileSync('deploy/schemas/plan.json', 'utf8'));
    const validate = new Ajv2020({ formats: { 'date-time': true } }).compile(schema);
    expect([validate(plan), validate.errors]).toEqual([true, null]);
  });

  it('has the zones one after the other, and takes longer if pods start more slowly', async () => {
    const total = async (...more: readonly string[]): Promise<number> =>
      JSON.parse((await run('plan', ...rollout, '-o', 'json', ...more)).stdout).groups[0].totals.p50Seconds;
    expect(await total('--assumptions', 'slow.yaml')).toBeGreaterThan(await total());
    const { groups } = JSON.parse((await run('plan', ...rollout, '-o', 'json')).stdout);
    const zones = groups[0].timeline.filter((span: { kind: string }) => span.kind === 'roll').map((span: { zone: string }) => span.zone);
    expect(zones).toEqual(['zone-a', 'zone-a', 'zone-b', 'zone-c']);
  });

  it('is a comment in Markdown and a page in HTML', async () => {
    expect((await run('plan', ...rollout, '-o', 'markdown')).stdout).toMatch(/^<!-- rollout-group:plan outcome=complete digest=sha256:/);
    expect((await run('plan', ...rollout, '-o', 'html')).stdout).toMatch(/^<!DOCTYPE html>\n<html lang="en">/);
  });

  it('shows findings with their place on standard error, without a plan', async () => {
    const { stdout, stderr } = await run('plan', '--current', 'now', '-f', 'broken');
    expect(stdout).toBe('');
    expect(stderr).toContain('broken/group.yaml:');
    expect(stderr).toContain('1 error in the files; nothing was planned');
  });

  it('names the rule and the place of a denied change', async () => {
    const { stdout } = await run('plan', '--current', 'store', '--set', 'replicas=1');
    expect(stdout).toContain('DENIED');
    expect(stdout).toContain('no-downscale');
    expect(stdout).toContain('defined at store/store.yaml:3:109');
  });
});

describe('an exception in force', () => {
  const manifests = (replicas: number) => demoManifests.replaceAll(/replicas: \d+/g, `replicas: ${replicas}`);
  const exception = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutException
metadata: { name: two-at-once, namespace: mimir }
spec:
  rule: zone-budget
  target: { group: ingester }
  allow: { podsAtMost: 9 }
  reason: see INC-2114
  expires: "2026-02-04T18:00:00Z"
`;
  const cwd = () =>
    folderWith({
      'now/a.yaml': manifests(12),
      'next/a.yaml': manifests(12).replaceAll('mimir:2.16.0', 'mimir:2.17.1'),
      'policies/group.yaml': demoPolicy,
      'policies/exception.yaml': exception,
    });
  const at = ['--at', '2026-02-04T10:00:00Z'];

  it.each([
    ['table', '2026-02-04 18:00 UTC (in 8h)'],
    ['markdown', '2026-02-04 18:00 UTC'],
    ['html', '2026-02-04 18:00 UTC'],
    ['json', '2026-02-04T18:00:00.000Z'],
  ])('is named in a plan as %s', async (format, end) => {
    const { stdout } = await runInProcess(['plan', ...rollout, ...at, '-o', format, '--width', '200'], { cwd: cwd() });
    expect(stdout.replace(/\s+/g, ' ').replaceAll('&#58;', ':')).toContain(
      `permitted by exception two-at-once for at most 9 pods in all zones until ${end} (see INC-2114)`,
    );
  });

  it('shows the start of the plan only if the plan has steps', async () => {
    const { stdout } = await runInProcess(['plan', ...rollout, ...at], { cwd: cwd() });
    expect(stdout).toContain('STARTS');
    const same = await runInProcess(['plan', ...rollout.map((word) => (word === 'next' ? 'now' : word)), ...at], { cwd: cwd() });
    expect(same.stdout).toContain('no changes');
    expect(same.stdout).not.toContain('STARTS');
  });

  it('is not named when it has expired', async () => {
    const { stdout } = await runInProcess(['plan', ...rollout, '--at', '2026-02-05T10:00:00Z'], { cwd: cwd() });
    expect(stdout).not.toContain('two-at-once');
  });
});

describe('a change of policies alone', () => {
  const cwd = () =>
    folderWith({
      'now/a.yaml': `${demoManifests}---\n${demoPolicy}`,
      'next/a.yaml': `${demoManifests}---\n${demoPolicy.replace('maxUnavailable: 25%', 'maxUnavailable: 50%')}`,
    });
  const words = ['--current', 'now', '--desired', 'next'];

  it.each([['table'], ['markdown'], ['html']])('is no plan without changes as %s', async (format) => {
    const { stdout, status } = await runInProcess(['plan', ...words, '-o', format, '--detailed-exitcode'], { cwd: cwd() });
    expect(stdout).not.toContain('no changes');
    expect(stdout).toMatch(/RolloutGroup mimir\/ingester changed|policy change/);
    expect(status).toBe(2);
  });

  it('is a change of its group alone, also among other groups', async () => {
    const second = (text: string) => text.replaceAll('ingester', 'store');
    const both = (text: string) => `${text}---\n${second(demoManifests)}---\n${second(demoPolicy)}`;
    const now = `${demoManifests}---\n${demoPolicy}`;
    const next = now.replace('maxUnavailable: 25%', 'maxUnavailable: 50%');
    const files = folderWith({ 'now/a.yaml': both(now), 'next/a.yaml': both(next) });
    const table = (await runInProcess(['plan', ...words], { cwd: files })).stdout;
    expect(table).toContain('2 groups: 1 with changes, 1 without changes');
    expect(table).toContain('mimir/ingester   no restarts, policy changes');
    expect(table).toContain('SAME     mimir/store has no changes');
    const markdown = (await runInProcess(['plan', ...words, '-o', 'markdown'], { cwd: files })).stdout;
    expect(markdown).toMatch(/Without changes:\s+`mimir\/store`/);
  });

  it('names the changed fields', async () => {
    expect((await runInProcess(['plan', ...words], { cwd: cwd() })).stdout).toContain(
      'POLICY   RolloutGroup mimir/ingester changed: spec.rollout.maxUnavailable',
    );
    expect((await runInProcess(['diff', ...words], { cwd: cwd() })).status).toBe(1);
  });
});

describe('the published schema of a plan', () => {
  const schema: object = JSON.parse(readFileSync('deploy/schemas/plan.json', 'utf8'));
  const validate = new Ajv2020({ strict: true, allErrors: true, formats: { 'date-time': true } }).compile(schema);
  const examples = readdirSync('examples').filter((name) => existsSync(`examples/${name}/policies`));

  it.each(examples)('accepts the plan of the example %s', async (name) => {
    const of = (folder: string) => resolve('examples', name, folder);
    const change = existsSync(of('manifests-next')) ? ['--desired', of('manifests-next')] : ['--set', 'image=example.com/next:2'];
    const words = ['plan', '--current', of('manifests'), ...change, '-f', of('policies'), '--at', '2026-02-03T10:00:00Z', '-o', 'json'];
    const { stdout, stderr } = await runInProcess(words);
    if (stdout === '') throw new Error(stderr);
    expect(validate(JSON.parse(stdout)) ? [] : validate.errors).toEqual([]);
    // Every duration of the plan has p50 before p90.
    JSON.parse(stdout, (_, value: Readonly<Record<string, unknown>> | null) => {
      if (typeof value?.['p90Seconds'] === 'number') expect(value['p90Seconds']).toBeGreaterThanOrEqual(Number(value['p50Seconds']));
      return value;
    });
  });
});

describe('the output of the other previews', () => {
  it('diff shows the change once for all zones', async () => {
    expect((await run('diff', ...rollout)).stdout).toContain(
      '  zone-a, zone-b, zone-c  (same change)\n    spec.template.spec.containers[ingester].image',
    );
  });

  it('diff -o external runs the program that the environment names', () => {
    const { stdout } = runPlugin(['diff', ...rollout, '-o', 'external'], { cwd: folder(), env: { KUBECTL_EXTERNAL_DIFF: 'diff -r -q' } });
    expect(stdout).toMatch(/^Files CURRENT\/\S+ and DESIRED\/\S+ differ/);
  });

  it('demo prints one line per transition without a terminal, ending with all pods updated', async () => {
    const lines = (await run('demo')).stdout.split('\n').filter((line) => line.startsWith('+'));
    expect(lines).toHaveLength(8);
    expect(lines.at(-1)).toBe('+00:45:30 mimir/ingester done updated=36/36');
  });
});
