import { describe, expect, it } from 'vitest';
import type { PolicyDirectory } from '../../agent/env.ts';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, nativeGroup, newCluster, rolled } from '../kit/cluster.ts';
import { status } from '../kit/virtual-env.ts';

const policyKey = 'rolloutpolicies.rollout-group.dev';
const freeze = {
  metadata: { name: 'freeze', namespace: 'mimir' },
  spec: { targets: { all: true }, rules: [{ name: 'no', actions: ['rollout'], effect: 'deny' }] },
};

/** A directory that a test rewrites. */
function directory(text: string) {
  let files: readonly { readonly name: string; readonly text: string }[] | Error = [{ name: 'policy.yaml', text }];
  let changed: () => void = () => undefined;
  const port: PolicyDirectory = {
    read: async () => {
      if (files instanceof Error) throw files;
      return files;
    },
    watch: (onChange) => {
      changed = onChange;
      return () => undefined;
    },
  };
  return {
    port,
    write: (next: string | Error): void => {
      files = next instanceof Error ? next : [{ name: 'policy.yaml', text: next }];
      changed();
    },
  };
}

const freezeFile = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: freeze, namespace: mimir }
spec:
  targets: { all: true }
  rules:
    - { name: "no", actions: [rollout], effect: deny }
`;

describe('policies', () => {
  it('in objects apply at once, and stop to apply at once', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    cluster.api.put(policyKey, freeze);
    startProcess({ env: cluster.env });
    cluster.rollTo('app:2');
    await cluster.env.advance(60_000);
    expect(cluster.deletedPods()).toEqual([]);
    cluster.api.remove(policyKey, 'mimir', 'freeze');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
  });

  it('from a silent watch still apply, and the agent changes no object until the watch reports them', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const process = startProcess({ env: cluster.env });
    await cluster.env.until(() => process.reports.some(({ decision }) => decision?.outcome === 'done'));
    await cluster.env.advance(30_000);
    cluster.api.hold('rolloutpolicies.rollout-group.dev');
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) =>
      request.site === 'watch.rolloutpolicies.list' ? { lost: 'reply', forever: true } : serve(request),
    );
    cluster.api.put(policyKey, freeze);
    cluster.rollTo('app:2');
    await cluster.env.advance(60_000);
    expect(cluster.deletedPods()).toEqual([]);
    expect(process.reports.at(-1)?.error).toMatch(/the watch cache is behind the API server/);
    cluster.env.replaceServer(serve);
    // The watch stays silent: they are listed once somebody has read what it does not tell.
    await cluster.env.advance(60_000);
    expect(process.reports.at(-1)?.decision?.waits.map(({ rule }) => rule)).toContain('freeze/no');
    cluster.api.remove(policyKey, 'mimir', 'freeze');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
  });

  it('keep their previous meaning if they become invalid', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    cluster.api.put(policyKey, freeze);
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    cluster.api.put(policyKey, { ...freeze, spec: { targets: { all: true }, rules: 'nonsense' } });
    cluster.rollTo('app:2');
    await cluster.env.advance(60_000);
    expect(cluster.deletedPods()).toEqual([]);
    expect(process.findings().map(({ severity }) => severity)).toContain('error');
    expect(process.reports.at(-1)?.decision?.waits.map(({ rule }) => rule)).toContain('freeze/no');
  });

  it.each([
    ['an operator that does not exist', { when: { greater: [1, 2] }, onUnknown: 'allow' }],
    ['a variable that does not exist', { when: { '>': [{ var: 'target.replica' }, 1] }, onUnknown: 'allow' }],
  ])('keep their previous meaning if their condition becomes invalid: %s', async (_, change) => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    cluster.api.put(policyKey, freeze);
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    const [rule] = freeze.spec.rules;
    cluster.api.put(policyKey, { ...freeze, spec: { ...freeze.spec, rules: [{ ...rule, ...change }] } });
    cluster.rollTo('app:2');
    await cluster.env.advance(60_000);
    expect(cluster.deletedPods()).toEqual([]);
    expect(process.reports.at(-1)?.decision?.waits.map(({ rule: id }) => id)).toContain('freeze/no');
    process.crash();
    const next = startProcess({ env: cluster.env, name: 'agent-2' });
    await cluster.env.advance(60_000);
    expect(cluster.deletedPods()).toEqual([]);
    expect(next.reports.at(-1)?.decision?.waits.map(({ rule: id }) => id)).toContain('unreadable-freeze/hold');
    cluster.api.remove(policyKey, 'mimir', 'freeze');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
  });

  it('in a file keep their previous meaning if their condition becomes invalid, and block after a restart', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const files = directory(freezeFile);
    const process = startProcess({ env: cluster.env, policyDirectory: files.port });
    await cluster.env.advance(5000);
    files.write(freezeFile.replace('effect: deny', 'effect: deny, onUnknown: allow, when: { greater: [1, 2] }'));
    cluster.rollTo('app:2');
    await cluster.env.advance(60_000);
    expect(process.reports.at(-1)?.decision?.waits.map(({ rule: id }) => id)).toContain('freeze/no');
    process.crash();
    const next = startProcess({ env: cluster.env, name: 'agent-2', policyDirectory: files.port });
    await cluster.env.advance(60_000);
    expect(next.reports.at(-1)?.decision?.waits.map(({ rule: id }) => id)).toContain('unreadable-files/hold');
    expect(cluster.deletedPods()).toEqual([]);
  });

  it('keep an invalid group as it was, and after a restart the agent ignores it', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    const groupKey = 'rolloutgroups.rollout-group.dev';
    const observed = () => process.reports.at(-1)?.group.generation;
    // A field with its default value has no effect on decisions.
    const spec = cluster.api.get(groupKey, 'mimir', 'ingester')?.['spec'];
    cluster.api.put(groupKey, { metadata: { name: 'ingester', namespace: 'mimir' }, spec: { ...Object(spec), profile: 'native' } });
    await cluster.env.advance(10_000);
    expect(observed()).toBe(2);
    const broken = { members: { zones: [{ name: 'a', statefulSet: 'ingester-zone-a' }] }, rollout: { maxUnavailable: 'lots' } };
    cluster.api.put(groupKey, { metadata: { name: 'ingester', namespace: 'mimir' }, spec: broken });
    cluster.rollTo('app:2');
    await cluster.env.until(() => cluster.deletedPods().length === 2);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
    expect(observed()).toBe(2);
    process.crash();
    const deleted = cluster.deletedPods().length;
    const next = startProcess({ env: cluster.env, name: 'agent-2' });
    await cluster.env.advance(120_000);
    expect([cluster.deletedPods().length, next.reports]).toEqual([deleted, []]);
  });

  it('block the groups of their namespace if they were never valid', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    cluster.api.put(policyKey, { ...freeze, spec: { targets: { all: true }, rules: 'nonsense' } });
    const process = startProcess({ env: cluster.env });
    cluster.rollTo('app:2');
    await cluster.env.advance(60_000);
    expect(cluster.deletedPods()).toEqual([]);
    expect(process.reports.at(-1)?.decision?.waits.map(({ rule }) => rule)).toContain('unreadable-freeze/hold');
  });

  it('of a directory apply, stay while the directory is broken or missing, and stop applying when they are removed', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const files = directory(freezeFile);
    const process = startProcess({ env: cluster.env, policyDirectory: files.port });
    cluster.rollTo('app:2');
    await cluster.env.advance(30_000);
    files.write('kind: RolloutPolicy\nspec: [');
    await cluster.env.advance(30_000);
    expect(process.findings().map(({ severity }) => severity)).toContain('error');
    files.write(new Error('EIO'));
    await cluster.env.advance(30_000);
    expect(process.degradations().map(({ id }) => id)).toContain('policies/directory');
    expect(cluster.deletedPods()).toEqual([]);
    files.write('');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(process.degradations().map(({ id }) => id)).not.toContain('policies/directory');
  });

  it('are read once from the directory before the first turn', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const files = directory('');
    files.write(new Error('EIO'));
    const process = startProcess({ env: cluster.env, policyDirectory: files.port });
    cluster.rollTo('app:2');
    await cluster.env.advance(60_000);
    expect(process.agent.isReady()).toBe(false);
    expect(cluster.deletedPods()).toEqual([]);
    files.write('');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(process.agent.isReady()).toBe(true);
  });

  it('a pause stops the group until it is deleted', async () => {
    const cluster = newCluster();
    nativeGroup(cluster);
    startProcess({ env: cluster.env });
    cluster.rollTo('app:2');
    await cluster.env.until(() => cluster.deletedPods().length === 2);
    const intentKey = 'rolloutintents.rollout-group.dev';
    cluster.api.put(intentKey, { metadata: { name: 'wait', namespace: 'mimir' }, spec: { group: 'ingester', action: 'pause' } });
    await cluster.env.advance(300_000);
    expect(cluster.deletedPods()).toHaveLength(2);
    cluster.api.remove(intentKey, 'mimir', 'wait');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
  });
});

describe('a namespace with unreadable StatefulSets', () => {
  it.each(['from the first moment on', 'later'])('%s does not prevent a pause in another namespace', async (when) => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    let isForbidden = when !== 'later';
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) =>
      isForbidden && request.pathname.endsWith('/namespaces/other/statefulsets') ? status(403, 'Forbidden', 'not for you') : serve(request),
    );
    const process = startProcess({ env: cluster.env, config: { namespaces: ['mimir', 'other'] } });
    await cluster.env.advance(5000);
    isForbidden = true;
    cluster.api.cutWatches();
    await cluster.env.advance(1_900_000);
    expect(process.groups()).toEqual(['mimir/ingester']);
    const intentKey = 'rolloutintents.rollout-group.dev';
    cluster.api.put(intentKey, { metadata: { name: 'stop', namespace: 'mimir' }, spec: { group: 'ingester', action: 'pause' } });
    await cluster.env.advance(2000);
    cluster.rollTo('app:2');
    await cluster.env.advance(120_000);
    expect(cluster.deletedPods()).toEqual([]);
    cluster.api.remove(intentKey, 'mimir', 'stop');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
  });
});
