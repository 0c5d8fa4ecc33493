import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runInProcess } from './in-process.ts';
import { folderWith } from './process.ts';

const annotations = `annotations:
    grafana.com/rollout-mirror-replicas-from-resource-name: store
    grafana.com/rollout-mirror-replicas-from-resource-kind: ReplicaTemplate
    grafana.com/rollout-mirror-replicas-from-resource-api-version: rollout-operator.grafana.com/v1`;

const member = (zone: string, { metadata = '', spec = 'replicas: 4' } = {}) => `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: store-${zone}
  namespace: prod
  labels: { rollout-group: store }
  ${metadata}
spec:
  ${spec}
  updateStrategy: { type: OnDelete }
  podManagementPolicy: Parallel
  selector: { matchLabels: { name: store-${zone} } }
  template:
    metadata: { labels: { name: store-${zone}, rollout-group: store } }
    spec: { containers: [{ name: store, image: 'store:1', readinessProbe: { tcpSocket: { port: 1 } } }] }
`;

const source = (replicas: number) => `apiVersion: rollout-operator.grafana.com/v1
kind: ReplicaTemplate
metadata: { name: store, namespace: prod }
spec: { replicas: ${replicas} }
`;

const mirrored = member('a', { metadata: annotations, spec: '' });

const files = {
  'two/a.yaml': member('a'),
  'two/b.yaml': member('b'),
  'one/a.yaml': member('a'),
  'six/a.yaml': mirrored,
  'six/source.yaml': source(6),
  'five/a.yaml': mirrored,
  'five/source.yaml': source(5),
};

async function plan(...words: readonly string[]): Promise<string> {
  return (await runInProcess(['plan', ...words], { cwd: folderWith(files) })).stdout;
}

/** The lines of the plan up to its totals. */
async function head(...words: readonly string[]): Promise<string> {
  return (await plan(...words)).split(/\n\d+ restarts?, /)[0] ?? '';
}

describe('a plan of a request', () => {
  it('shows replicas that are written at once as steps, with their time', async () => {
    expect(await head('--current', 'two', '--set', 'a.replicas=2')).toMatchInlineSnapshot(`
      "Plan  prod/store   completes   policy d407bff

      CHANGE   replicas  4 -> 2  (a)  2 pods removed
      SAFETY   this plan disrupts at most one zone at a time

       WAVE      STEP                  PODS  AT ONCE  GATE   p50  p90
       replicas  scale down  a 4 -> 2     2        -  -      30s   2m
                                                      total  30s   2m

      1 scale change.
      "
    `);
  });

  it('is not safe if the request disrupts two zones together', async () => {
    expect(await head('--current', 'two', '--set', 'replicas=3', '--set', 'image=store:2')).toMatchInlineSnapshot(`
      "Plan  prod/store   completes   policy d407bff

      CHANGE   replicas  4 -> 3              2 pods removed
               image     store:1 -> store:2  6 pods restart

       WAVE      STEP                  PODS  AT ONCE  GATE     p50  p90
       replicas  scale down  a 4 -> 3     1        -  -        30s   2m
                 scale down  b 4 -> 3     1        -  -        30s   2m
       1 all     roll        a 0..2       3        1  ready  4m30s  15m
                 roll        b 0..2       3        1  ready  4m30s  15m
                                                      total  9m30s  32m
      "
    `);
  });

  it('shows a removed StatefulSet, also if its group is adopted', async () => {
    expect(await head('--current', 'two', '--desired', 'one')).toMatchInlineSnapshot(`
      "Plan  prod/store   completes   policy 74eec8c

      CHANGE   StatefulSet  deleted  (b)  4 pods removed, all at once
      "
    `);
  });

  it('shows a new StatefulSet', async () => {
    expect(await head('--current', 'one', '--desired', 'two')).toMatchInlineSnapshot(`
      "Plan  prod/store   completes   policy d407bff

      CHANGE   StatefulSet  new  (b)  4 pods added

       WAVE      STEP                PODS  AT ONCE  GATE   p50  p90
       replicas  scale up  b 0 -> 4     4        -  ready   1m   3m
                                                    total   1m   3m

      1 scale change.
      "
    `);
  });

  it('names the object that requests other replicas', async () => {
    expect(await head('--current', 'six', '--desired', 'five')).toMatchInlineSnapshot(`
      "Plan  prod/store   completes   policy 76577ce

      CHANGE   ReplicaTemplate store  6 -> 5  1 pod removed

       WAVE      STEP                        PODS  AT ONCE  GATE   p50  p90
       replicas  scale down  store-a 6 -> 5     1        -  -      30s   2m
                                                            total  30s   2m

      1 scale change.
      "
    `);
  });

  it('counts from the current replicas if no manifest names them', async () => {
    expect((await head('--current', 'six', '--set', 'replicas=5')).split('\n')[2]).toMatchInlineSnapshot(
      `"CHANGE   replicas  6 -> 5  1 pod removed"`,
    );
  });

  it('evaluates the assumed metrics, and names them; explain has no readings', async () => {
    const example = resolve('examples/kafka');
    const words = ['--current', `${example}/manifests`, '-f', `${example}/policies`];
    const { status, stdout } = await runInProcess(['plan', ...words, '--set', 'a.replicas=5'], { cwd: example });
    expect(status).toBe(0);
    expect(stdout).toContain('scale down  a 6 -> 5');
    expect(stdout).toContain('ASSUMES  broker-safety/underReplicated 0, broker-safety/busiestDisk 0');
    const explained = await runInProcess(['explain', 'kafka', ...words, '--set', 'image=apache/kafka:4.1.1'], { cwd: example });
    expect(explained.stdout).toContain('inputs.metrics.underReplicated is unknown (no reading)');
  });

  it('is not simulated if a policy denies it, and simulate reports this', async () => {
    const cwd = folderWith({ 'a.yaml': member('a').replace('store }', 'store, grafana.com/no-downscale: "true" }') });
    expect(await runInProcess(['simulate', '--current', 'a.yaml', '--set', 'replicas=3'], { cwd })).toMatchObject({
      status: 5,
      stdout: 'nothing to simulate: no group has changes\n',
      stderr: 'denied and left out: scale StatefulSet store-a from 4 to 3; run plan to see why\n',
    });
  });

  it('has no duration for a permanent denial by a policy', async () => {
    const cwd = folderWith({
      'now/a.yaml': mirrored.replace('store }', 'store, grafana.com/no-downscale: "true" }'),
      'now/source.yaml': source(6),
      'next/a.yaml': mirrored.replace('store }', 'store, grafana.com/no-downscale: "true" }'),
      'next/source.yaml': source(5),
    });
    const { status, stdout } = await runInProcess(['plan', '--current', 'now', '--desired', 'next'], { cwd });
    expect(status).toBe(5);
    expect(stdout).toMatch(/wait {2}no-downscale store-a {2}blocked +- +-/);
  });
});

describe('a policy with a condition that lint rejects', () => {
  it('stops the plan with the finding, because the rule could only be unknown', async () => {
    const rule = '{ name: ready, actions: [rollout], effect: deny, when: { "<": [{ var: target.redy }, 3] } }';
    const text = `apiVersion: rollout-group.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: { name: safety, namespace: mimir }\nspec: { targets: { all: true }, rules: [${rule}] }\n`;
    const file = resolve(folderWith({ 'policy.yaml': text }), 'policy.yaml');
    const ended = await runInProcess(['plan', '--current', 'examples/mimir-ingester/manifests-adopted', '-f', file]);
    expect(ended.status).toBe(4);
    expect(ended.stdout).toBe('');
    expect(ended.stderr).toMatch(/policy\.yaml:4:\d+ error RG3006 .*target\.redy/);
  });
});

it('an exception from a policy rule that denies rollouts permits the new template in the plan', async () => {
  const policies = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: safety, namespace: prod }
spec: { targets: { all: true }, rules: [{ name: frozen, actions: [rollout], effect: deny, message: the year ends }] }
`;
  const exception = `---
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutException
metadata: { name: inc-1, namespace: prod }
spec: { rule: safety/frozen, target: { group: store }, allow: { anything: true }, reason: INC-1, expires: 2026-01-02T00:00:00Z }
`;
  const cwd = folderWith({ ...files, 'denied.yaml': policies, 'permitted.yaml': `${policies}${exception}` });
  const words = ['plan', '--current', 'two', '--set', 'image=store:2', '--at', '2026-01-01T00:00:00Z', '-f'];
  const denied = await runInProcess([...words, 'denied.yaml'], { cwd });
  expect([denied.status, denied.stdout]).toEqual([5, expect.stringMatching(/DENIED(?:.*\n)*.*the year ends/)]);
  const permitted = await runInProcess([...words, 'permitted.yaml'], { cwd });
  expect([permitted.status, permitted.stdout]).toEqual([
    0,
    expect.stringMatching(/EXCEPTION +safety\/frozen: the year ends; permitted by/),
  ]);
  expect(permitted.stdout).not.toContain('DENIED');
});
