import { describe, expect, it } from 'vitest';
import { liveAbsence } from '../../../plugin/source/cluster/members-elsewhere.ts';
import { group } from '../../kit/groups.ts';
import type { FakeObject } from '../api-server.ts';
import { type ClusterAnswers, clusterOf } from '../cluster-of.ts';

const store = group({ name: 'store', namespace: 'prdo', zones: ['a', 'b'], sources: { members: { file: 'g.yaml', line: 5, column: 3 } } });
const names = store.zones.map(({ statefulSet }) => statefulSet);
const sets = (namespace: string, of: readonly string[] = names): readonly FakeObject[] =>
  of.map((name) => ({ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name, namespace } }));
const owner = (namespace: string, members: object): FakeObject => ({
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutGroup',
  metadata: { name: 'store', namespace },
  spec: { members },
});

function absence(answers: ClusterAnswers, { asked = ['prdo/store'], desired = [] as readonly FakeObject[] } = {}) {
  return liveAbsence(clusterOf(answers), [store], new Set(asked), desired);
}

describe('a group without any StatefulSet in its namespace', () => {
  it('is blocked where another namespace has them all, in no group, with the namespace and where the group names them', async () => {
    const { absent, notes } = await absence({ objects: { statefulsets: [...sets('prod'), ...sets('part', names.slice(1))] } });
    expect([absent.length, notes]).toEqual([1, []]);
    expect(absent[0]?.results).toEqual([
      {
        rule: 'view-complete',
        outcome: 'no',
        fact: `namespace prdo has no StatefulSet of the group store, but prod has StatefulSets of these names without a group (${names.join(' and ')}); set that namespace in the group, or apply its StatefulSets with it`,
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

  it('is not mentioned where it is not requested, or its StatefulSets come with it', async () => {
    const answers = { objects: { statefulsets: sets('prod') } };
    const nothing = { absent: [], notes: [] };
    expect(await absence(answers, { asked: [] })).toEqual(nothing);
    expect(await absence(answers, { desired: sets('prdo', names.slice(1)) })).toEqual(nothing);
  });
});
