import { describe, expect, it } from 'vitest';
import type { CommandContext } from '../../../plugin/context.ts';
import { readGroups, scopeOf } from '../../../plugin/live/groups.ts';
import { liveAbsence, readAndPlan } from '../../../plugin/source/cluster/live-plan.ts';
import { group } from '../../kit/groups.ts';
import { manifest } from '../../kit/manifests.ts';
import type { FakeObject } from '../served-objects.ts';
import { type ClusterAnswers, clusterOf } from '../served-objects.ts';

const store = group({ name: 'store', namespace: 'prdo', zones: ['a', 'b'], sources: { '': { file: 'g.yaml', line: 5, column: 3 } } });
const names = store.zones.map(({ statefulSet }) => statefulSet);
const sets = (namespace: string, of: readonly string[] = names): readonly FakeObject[] =>
  of.map((name) => ({ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name, namespace }, spec: Object(manifest('a')).spec }));
const owner = (namespace: string, members: object): FakeObject => ({
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutGroup',
  metadata: { name: 'store', namespace },
  spec: { members },
});

function absence(answers: ClusterAnswers, { desiredObjects = ['prdo/store'], desired = [] as readonly FakeObject[] } = {}) {
  return liveAbsence(clusterOf(answers), [store], new Set(desiredObjects), desired);
}

describe('a group without any StatefulSet in its namespace', () => {
  it('is blocked where another namespace has them all, in no group, with the namespace and where the group names them', async () => {
    const { absent, notes } = await absence({ objects: { statefulsets: [...sets('prod'), ...sets('part', names.slice(1))] } });
    expect([absent.length, notes]).toEqual([1, []]);
    expect(absent[0]?.results).toEqual([
      {
        rule: 'view-complete',
        outcome: 'no',
        fact: `namespace prdo has no StatefulSet of the group store, but prod has StatefulSets of these names without a group (${names.join(' and ')}); set that namespace in the group, or apply the StatefulSets together with the group`,
        source: { file: 'g.yaml', line: 5, column: 3 },
      },
    ]);
  });

  it.each([
    ['nobody has them', { objects: {} }],
    ['another namespace has some of them', { objects: { statefulsets: sets('prod', names.slice(1)) } }],
    [
      'a group of that namespace names them',
      { objects: { statefulsets: sets('prod'), rolloutgroups: [owner('prod', { zones: [{ name: 'a', statefulSet: names[0] }] })] } },
    ],
    [
      'a group of that namespace may find them by labels',
      { objects: { statefulsets: sets('prod'), rolloutgroups: [owner('prod', { selector: {} })] } },
    ],
    ['they may not be listed', { objects: { statefulsets: sets('prod') }, forbidden: ['statefulsets'] }],
    ['the groups that may name them may not be listed', { objects: { statefulsets: sets('prod') }, forbidden: ['rolloutgroups'] }],
  ] satisfies [string, ClusterAnswers][])('is noted where %s', async (_, answers) => {
    expect(await absence(answers)).toEqual({ absent: [], notes: ['the namespace prdo has no StatefulSet of the group store yet'] });
  });

  it('has no note if it is not requested, or its StatefulSets are in the manifests', async () => {
    const answers = { objects: { statefulsets: sets('prod') } };
    const nothing = { absent: [], notes: [] };
    expect(await absence(answers, { desiredObjects: [] })).toEqual(nothing);
    expect(await absence(answers, { desired: sets('prdo', names.slice(1)) })).toEqual(nothing);
  });
});

describe('a plan on a cluster', () => {
  const sets = ['a', 'b'].map((zone) => ({ ...manifest(zone), status: { replicas: 3, updateRevision: 'r1', currentRevision: 'r1' } }));
  const policy = (rules: unknown): FakeObject => ({
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutPolicy',
    metadata: { name: 'freeze', namespace: 'mimir' },
    spec: { targets: { all: true }, rules },
  });

  async function planOf(rolloutpolicies: readonly FakeObject[], allNamespaces = true) {
    const cluster = clusterOf({ objects: { statefulsets: sets as unknown as FakeObject[], rolloutpolicies } });
    const context = { nowMs: () => 0 } as CommandContext;
    const planned = await readAndPlan(context, { set: ['image=mimir:2'], allNamespaces }, cluster, { manifests: [], policies: [] });
    if ('errors' in planned) throw new Error('the files have errors');
    return { planned, read: await readGroups(cluster, scopeOf([{ namespace: 'mimir', group: 'ingester' }])) };
  }

  it('is blocked by an invalid live policy, like the agent blocks the group and explain shows it', async () => {
    const { planned, read } = await planOf([policy('none')]);
    expect(planned.plan.groups[0]?.waits).toMatchObject([
      { rule: 'unreadable-freeze/hold', outcome: 'wait', fact: 'RolloutPolicy mimir/freeze has errors' },
    ]);
    expect(planned.input.policies).toEqual(read.world.policies.policies);
    expect(planned.plan.metadata.policyDigest).toBe(read.world.policies.digest);
    expect((await planOf([])).planned.plan.groups[0]).toMatchObject({ outcome: 'complete', waits: [] });
  });

  it('has the policy digest of the agent, or no digest if it does not read every namespace', async () => {
    const digests = await Promise.all([true, false].map(async (all) => (await planOf([], all)).planned.plan.metadata.policyDigest));
    expect(digests).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/), '']);
  });
});
