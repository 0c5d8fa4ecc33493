import { describe, expect, it } from 'vitest';
import { runInProcess } from './in-process.ts';
import { folderWith } from './process.ts';

const statefulSet = (name: string, namespace = 'prod', app = 'store', image = 'store:1.0') => `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: ${name}, namespace: ${namespace} }
spec:
  replicas: 3
  updateStrategy: { type: OnDelete }
  selector: { matchLabels: { app: ${app} } }
  template:
    metadata: { labels: { app: ${app} } }
    spec: { containers: [{ name: store, image: "${image}", readinessProbe: { httpGet: { path: /, port: 80 } } }] }
`;
const sets = (namespace?: string) => ['a', 'b'].map((zone) => statefulSet(`store-${zone}`, namespace)).join('---\n');
const group = (rollout: string) => `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: store, namespace: prod }
spec:
  members: { zones: [{ name: a, statefulSet: store-a }, { name: b, statefulSet: store-b }] }
  rollout: { strategy: onDelete, ${rollout} }
`;
const budget = `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: store, namespace: prod }
spec:
  selector: { matchLabels: { app: store } }
  maxUnavailable: 0
`;

/** The plan of a new image, over these files. */
function plan(files: Readonly<Record<string, string>>, ...more: readonly string[]) {
  return runInProcess(['plan', '--current', 'm', '-f', 'p', '--set', 'image=store:2.0', ...more], { cwd: folderWith(files) });
}

describe('a plan with a limit of zero', () => {
  it('is blocked, and names the number, its place, and the next step', async () => {
    const { status, stdout } = await plan({ 'm/sets.yaml': sets(), 'p/group.yaml': group('maxUnavailable: 0') });
    expect(status).toBe(5);
    expect(stdout).toContain('Plan  prod/store   blocked');
    expect(stdout).toContain('no pod of zone a may be replaced (limit: 0), defined at p/group.yaml:6:50');
    expect(stdout).toContain('passes when the limit is raised; to stop the group on purpose, pause it');
    expect(stdout).toMatch(/RG5008 warning {2}no pod of zone a may be replaced, so the rollout never ends; .* \(p\/group\.yaml:6:50\)/);
  });

  it('has the file and line of a PodDisruptionBudget, as explain and the comment on a pull request have', async () => {
    const files = { 'm/sets.yaml': sets(), 'm/pdb.yaml': budget, 'p/group.yaml': group('rotateBy: evict') };
    const fact = 'PodDisruptionBudget store allows no eviction: maxUnavailable is 0';
    const { status, stdout } = await plan(files, '-o', 'json');
    const { waits, risks } = JSON.parse(stdout).groups[0];
    const source = { object: 'PodDisruptionBudget prod/store', field: 'spec.maxUnavailable', file: 'm/pdb.yaml', line: 6, column: 19 };
    expect([status, waits]).toEqual([5, [{ rule: 'eviction-budget', outcome: 'no', fact, limit: '0', source }]]);
    expect(risks).toEqual([expect.objectContaining({ code: 'RG5008', source })]);
    expect((await plan(files, '-o', 'markdown')).stdout).toContain('(`m/pdb.yaml:6:19`)');
    const explained = await runInProcess(['explain', 'store', '--current', 'm', '-f', 'p', '--set', 'image=store:2.0'], {
      cwd: folderWith(files),
    });
    expect(explained.stdout).toContain('to continue: raise the limit at m/pdb.yaml:6:19');
    expect(explained.stdout).toContain(
      'to stop the group on purpose: set paused: true on its zones, or kubectl rollout-group pause prod/store',
    );
  });

  it('shows the number of the budget that it depends on as a change, with the zones that it covers', async () => {
    const files = {
      'm/sets.yaml': sets(),
      'm/pdb.yaml': budget,
      'n/sets.yaml': sets().replaceAll('store:1.0', 'store:2.0'),
      'n/pdb.yaml': budget.replace('maxUnavailable: 0', 'maxUnavailable: 1'),
      'p/group.yaml': group('rotateBy: evict'),
    };
    const words = ['--current', 'm', '--desired', 'n', '-f', 'p'];
    const { status, stdout } = await runInProcess(['plan', ...words], { cwd: folderWith(files) });
    expect(status).toBe(0);
    expect(stdout).toMatch(/\n {9}PodDisruptionBudget store spec\.maxUnavailable {2}0 -> 1 +no restart\n/);
    const differing = (await runInProcess(['diff', ...words], { cwd: folderWith(files) })).stdout;
    expect(differing.match(/PodDisruptionBudget/g)).toHaveLength(1);
    const { 'n/pdb.yaml': _, ...without } = files;
    expect((await runInProcess(['plan', ...words], { cwd: folderWith(without) })).stdout).toMatch(
      /PodDisruptionBudget store +removed maxUnavailable: 0/,
    );
  });

  it('counts the waves that its rows number: a wave that only waits for a limit has no number', async () => {
    const held = (await plan({ 'm/sets.yaml': sets(), 'p/group.yaml': group('maxUnavailable: 0') })).stdout;
    expect(held).not.toMatch(/^ 1 |\d wave/m);
    const waves = 'waves: [{ name: canary, zones: [a], percent: 100, after: { soak: 10s } }, { name: rest, zones: [b], percent: 100 }]';
    const empty = (
      await plan({
        'm/sets.yaml': sets().replace('replicas: 3', 'replicas: 0'),
        'p/group.yaml': group(`maxUnavailable: 1, ${waves}`),
      })
    ).stdout;
    expect(empty).toContain('2 waves.');
    expect(empty).toMatch(/^ 1 canary +soak/m);
    expect(empty).toMatch(/^ 2 rest +roll/m);
    expect(empty).not.toMatch(/^ [03-9] /m);
  });

  it('waits instead of blocked if the zones are paused in their settings', async () => {
    const paused = group('maxUnavailable: 0').replaceAll(' }, {', ', paused: true }, {').replace('store-b }', 'store-b, paused: true }');
    const { status, stdout } = await plan({ 'm/sets.yaml': sets(), 'p/group.yaml': paused }, '-o', 'json');
    const [planned] = JSON.parse(stdout).groups;
    expect([status, planned.outcome, planned.risks]).toEqual([0, 'waits', []]);
    const waits = planned.waits.map(({ rule, outcome, fact }: Readonly<Record<string, string>>) => `${rule} ${outcome}: ${fact}`);
    expect(waits).toContain('paused wait: zone a is paused by its settings');
    expect(waits).toContain('paused wait: zone b is paused by its settings');
    expect(waits.filter((wait: string) => !/^[a-z-]+ wait: /.test(wait))).toEqual([]);
  });
});

describe('StatefulSets outside the plan', () => {
  const policies = { 'p/group.yaml': group('maxUnavailable: 1') };

  it('in another namespace are named if a change has no effect on any object', async () => {
    const { status, stderr } = await plan({ 'm/sets.yaml': sets('shop'), ...policies });
    expect(status).toBe(10);
    expect(stderr).toContain('--set applies to nothing');
    expect(stderr).toContain(
      'the group store has no StatefulSet in its namespace prod: store-a and store-b are in shop (p/group.yaml:3:37)',
    );
    expect(stderr).toContain('write the same metadata.namespace');
  });

  const next = { 'm/sets.yaml': sets('shop'), 'n/sets.yaml': sets('shop').replaceAll('store:1.0', 'store:2.0'), ...policies };
  const compare = (verb: string, files: Readonly<Record<string, string>>, ...more: readonly string[]) =>
    runInProcess([verb, '--current', 'm', '--desired', 'n', '-f', 'p', ...more], { cwd: folderWith(files) });
  const apart = 'the group store has no StatefulSet in its namespace prod: store-a and store-b are in shop';

  it('in another namespace block the group that names them, and diff and simulate report it too', async () => {
    const { status, stdout, stderr } = await compare('plan', next);
    expect([status, stderr]).toEqual([5, '']);
    expect(stdout).toContain('Plan  prod/store   blocked');
    expect(stdout).toContain(`${apart}; write the same metadata.namespace into the group and the StatefulSets (RG2119)`);
    expect(stdout).toContain('defined at p/group.yaml:3:37');
    expect(stdout).not.toContain('when it can be read');
    const said = `prod/store cannot be rolled out: ${apart}; write the same metadata.namespace into the group and the StatefulSets (RG2119) (p/group.yaml:3:37)\n`;
    expect((await compare('diff', next)).stderr).toBe(`note: ${said}`);
    const simulated = await compare('simulate', next);
    expect([simulated.status, simulated.stderr]).toEqual([5, `left out: ${said}`]);
    expect(simulated.stdout).toBe('nothing to simulate: no group has changes\n');
  });

  it('block no group of another environment, and no group without its manifests', async () => {
    const staging = group('maxUnavailable: 1').replace('namespace: prod', 'namespace: staging');
    const other = group('maxUnavailable: 1').replaceAll('store', 'queue');
    const files = {
      'm/sets.yaml': sets(),
      'n/sets.yaml': sets().replaceAll('store:1.0', 'store:2.0'),
      ...policies,
      'p/staging.yaml': staging,
      'p/queue.yaml': other,
    };
    const { status, stdout } = await compare('plan', files, '-o', 'json');
    const outcomes = JSON.parse(stdout).groups.map(({ namespace, group: name, outcome }: Readonly<Record<string, string>>) => [
      `${namespace}/${name}`,
      outcome,
    ]);
    expect(status).toBe(0);
    expect(outcomes).toEqual([
      ['prod/queue', 'waits'],
      ['prod/store', 'complete'],
      ['staging/store', 'waits'],
    ]);
    const simulated = await compare('simulate', files, '--runs', '1', '--faults', 'none', '-o', 'json');
    expect([simulated.status, JSON.parse(simulated.stdout).groups.map((one: Readonly<Record<string, string>>) => one['group'])]).toEqual([
      0,
      ['store'],
    ]);
    expect(simulated.stderr).toBe('left out: the manifests contain no StatefulSet of prod/queue, staging/store\n');
  });

  it('in a run with policies only are named with their file', async () => {
    const [a, b] = ['a', 'b'].map((zone) => statefulSet(`store-${zone}`));
    const files = { 'm/a.yaml': a ?? '', 'n/a.yaml': (a ?? '').replace('store:1.0', 'store:2.0'), 'p/b.yaml': b ?? '', ...policies };
    const { status, stdout } = await compare('plan', files, '-o', 'json');
    expect(status).toBe(5);
    expect(JSON.parse(stdout).groups[0].waits).toContainEqual({
      rule: 'view-complete',
      outcome: 'no',
      fact: 'the StatefulSet store-b of zone b is in no manifest of --current or --desired, and only --filename names its manifest (p/b.yaml:3:19); give its manifest together with the manifests of the other zones',
      source: { file: 'p/group.yaml', line: 5, column: 81 },
    });
  });

  it('without a group are named if they change, and not otherwise', async () => {
    const now = { 'm/sets.yaml': sets(), 'm/cache.yaml': statefulSet('cache', 'prod', 'cache'), ...policies };
    const next = { 'n/sets.yaml': sets(), 'n/cache.yaml': statefulSet('cache', 'prod', 'cache', 'cache:2.0') };
    const compare = (...words: readonly string[]) =>
      runInProcess(['plan', '--current', 'm', '-f', 'p', ...words], { cwd: folderWith({ ...now, ...next }) });
    const changed = await compare('--desired', 'n', '--detailed-exitcode');
    expect([changed.status, changed.stdout]).toEqual([
      2,
      expect.stringMatching(/^OBJECT +StatefulSet prod\/cache changed: .*image, in no group$/m),
    ]);
    expect((await compare('--desired', 'n', '-o', 'markdown')).stdout).toContain('**Objects in no group**');
    expect((await compare('--set', 'image=store:2.0')).stdout).not.toContain('OBJECT');
    expect((await compare('--desired', 'n', '--group', 'store')).stdout).not.toContain('OBJECT');
  });
});
