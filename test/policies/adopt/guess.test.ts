// Groups of StatefulSets without labels: what is taken for zones of one group, what stands alone, and what is left out.
import { describe, expect, it } from 'vitest';
import { type GuessInput, guessGroups } from '../../../policies/adopt/guess.ts';
import { schemas } from '../../../policies/schema/kinds.ts';
import { writeDocument } from '../../../policies/write.ts';

interface SetOptions {
  readonly namespace?: string;
  readonly app?: string;
  readonly zone?: string;
  readonly strategy?: object;
  readonly owner?: string;
}

function set(name: string, { namespace = 'data', app, zone, strategy, owner }: SetOptions = {}): object {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name, namespace, ...(owner === undefined ? {} : { ownerReferences: [{ kind: owner, name: 'main', controller: true }] }) },
    spec: {
      ...(strategy === undefined ? {} : { updateStrategy: strategy }),
      template: {
        metadata: { labels: app === undefined ? {} : { 'app.kubernetes.io/name': app } },
        spec: zone === undefined ? {} : { nodeSelector: { 'topology.kubernetes.io/zone': zone } },
      },
    },
  };
}

function guessed(objects: readonly object[], groups: GuessInput['groups'] = []) {
  const guesses = guessGroups({ objects, groups });
  return {
    groups: guesses.groups.map(({ group }) => {
      const zones = group.spec.members.zones?.map(({ name, statefulSet }) => `${name}=${statefulSet}`);
      return `${group.metadata.namespace}/${group.metadata.name}: ${zones?.join(' ')}`;
    }),
    leftOut: guesses.leftOut.map(({ name, why }) => `${name}: ${why}`),
    first: guesses.groups[0],
  };
}

describe('StatefulSets of one group', () => {
  it.each([
    ['zones', ['kafka-zone-c', 'kafka-zone-a', 'kafka-zone-b'], 'data/kafka: a=kafka-zone-a b=kafka-zone-b c=kafka-zone-c'],
    ['racks', ['db-rack1', 'db-rack2'], 'data/db: rack1=db-rack1 rack2=db-rack2'],
    ['zones of a cloud', ['es-us-east-1a', 'es-us-east-1b'], 'data/es: 1a=es-us-east-1a 1b=es-us-east-1b'],
    ['zones of another cloud', ['es-europe-west1-b', 'es-europe-west1-c'], 'data/es: b=es-europe-west1-b c=es-europe-west1-c'],
    ['letters', ['redis-a', 'redis-b'], 'data/redis: a=redis-a b=redis-b'],
  ])('are identified by %s at the end of their names', (_what, names, line) => {
    expect(guessed(names.map((name) => set(name)))).toMatchObject({ groups: [line], leftOut: [] });
  });

  it('have one namespace and one application', () => {
    const objects = [set('db-a', { app: 'mysql' }), set('db-b', { app: 'proxy' }), set('kv-a'), set('kv-b', { namespace: 'other' })];
    expect(guessed(objects).groups).toEqual([
      'data/db-a: db-a=db-a',
      'data/db-b: db-b=db-b',
      'data/kv-a: kv-a=kv-a',
      'other/kv-b: kv-b=kv-b',
    ]);
  });

  it('may have a label with their own name, which is no evidence', () => {
    expect(guessed(['kv-a', 'kv-b'].map((name) => set(name, { app: name }))).groups).toEqual(['data/kv: a=kv-a b=kv-b']);
  });

  it('may be numbered only if each runs in another zone, because numbers also count shards', () => {
    const shards = [set('shard-0'), set('shard-1')];
    expect(guessed(shards).groups).toHaveLength(2);
    const same = ['shard-0', 'shard-1'].map((name) => set(name, { zone: 'eu-1' }));
    expect(guessed(same).groups).toHaveLength(2);
    const apart = [set('shard-0', { zone: 'eu-1' }), set('shard-1', { zone: 'eu-2' })];
    expect(guessed(apart).groups).toEqual(['data/shard: 0=shard-0 1=shard-1']);
  });

  it('are identified by their place, if they are the same application', () => {
    const objects = [
      set('north', { app: 'store', zone: 'eu-1' }),
      set('south', { app: 'store', zone: 'eu-2' }),
      set('west', { zone: 'eu-3' }),
    ];
    const { groups, first } = guessed(objects);
    expect(groups).toEqual(['data/store: north=north south=south', 'data/west: west=west']);
    expect(first?.because).toBe('the StatefulSets are all store and in different zones: north in eu-1, south in eu-2');
  });

  it('are identified by a required affinity that names one zone, not by one that names two', () => {
    const bound = (name: string, values: readonly string[]) => ({
      metadata: { name, namespace: 'data' },
      spec: {
        template: {
          metadata: { labels: { app: 'store' } },
          spec: {
            affinity: {
              nodeAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: {
                  nodeSelectorTerms: [{ matchExpressions: [{ key: 'topology.kubernetes.io/zone', operator: 'In', values }] }],
                },
              },
            },
          },
        },
      },
    });
    expect(guessed([bound('x', ['eu-1']), bound('y', ['eu-2'])]).groups).toEqual(['data/store: x=x y=y']);
    expect(guessed([bound('x', ['eu-1', 'eu-3']), bound('y', ['eu-2'])]).groups).toHaveLength(2);
  });

  it('are the same in any order, and one that is listed twice counts once', () => {
    const objects = ['kafka-zone-a', 'kafka-zone-b', 'alone', 'kafka-zone-a'].map((name) => set(name));
    expect(guessed([...objects].reverse()).groups).toEqual(guessed(objects).groups);
    expect(guessed(objects).groups).toEqual(['data/alone: alone=alone', 'data/kafka: a=kafka-zone-a b=kafka-zone-b']);
  });
});

describe('the strategy', () => {
  const rolling = (partition: number) => ({ type: 'RollingUpdate', rollingUpdate: { partition } });
  it.each([
    ['pinned', 'where nobody has written a strategy', [undefined, undefined], 'The strategy is pinned, which is recommended'],
    ['pinned', 'where every partition holds', [rolling(1_000_000), rolling(1_000_000)], 'The strategy is pinned, which is recommended'],
    [
      'onDelete',
      'where every strategy is OnDelete',
      [{ type: 'OnDelete' }, { type: 'OnDelete' }],
      'because every StatefulSet has the strategy OnDelete',
    ],
    ['onDelete', 'where a partition lets Kubernetes roll', [rolling(0), rolling(0)], 'The agent replaces pods only if their StatefulSet'],
    ['onDelete', 'where one differs', [undefined, { type: 'OnDelete' }], 'because the update strategies differ'],
  ])('is %s %s, and the file has the reason', (strategy, _where, strategies, words) => {
    const objects = strategies.map((strategy, index) => set(`kv-${'ab'[index]}`, strategy === undefined ? {} : { strategy }));
    const { first } = guessed(objects);
    if (first === undefined) throw new Error('nothing was guessed');
    expect(first.group.spec.rollout.strategy).toBe(strategy);
    const text = writeDocument(first.group, first.comment);
    expect(
      text
        .split('\n')
        .filter((line) => line.startsWith('# '))
        .join(' '),
    ).toContain(words);
    expect(text).toContain('# Guessed by init: the names kv-a, kv-b differ in a letter at their end.');
  });
});

it('is not derived from a partition of 0 in a cluster, which is the default', () => {
  const stored = ['kv-a', 'kv-b'].map((name) => ({
    metadata: { name, namespace: 'data', uid: name },
    spec: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } } },
  }));
  expect(guessed(stored).first?.group.spec.rollout.strategy).toBe('pinned');
});

describe('the omitted objects', () => {
  it('include objects of an operator and objects that the cluster needs, with the reason', () => {
    const objects = [set('prometheus-main', { owner: 'Prometheus' }), set('etcd', { namespace: 'kube-system' })];
    expect(guessed(objects)).toMatchObject({
      groups: [],
      leftOut: [
        'prometheus-main: Prometheus main owns it, and its operator would revert other writes',
        'etcd: kube-system contains components of Kubernetes',
      ],
    });
  });

  it('include members of an existing group without a finding, and a used name with one', () => {
    const group = schemas.RolloutGroup.parse({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'kv', namespace: 'data' },
      spec: { members: { zones: [{ name: 'x', statefulSet: 'other' }] }, rollout: { strategy: 'onDelete' } },
    });
    const objects = ['kv-a', 'kv-b', 'other'].map((name) => set(name));
    expect(guessed(objects, [group])).toMatchObject({
      groups: [],
      leftOut: ['kv-a: the group data/kv already exists', 'kv-b: the group data/kv already exists'],
    });
  });

  it('include members that a group selects by labels', () => {
    const labelled = (name: string, namespace: string, labels: object) => ({ metadata: { name, namespace, labels } });
    const group = schemas.RolloutGroup.parse({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'store', namespace: 'data' },
      spec: { members: { selector: { matchLabels: { app: 'kv' } }, expect: { count: 2 } }, rollout: { strategy: 'onDelete' } },
    });
    const objects = [
      labelled('kv-a', 'data', { app: 'kv', more: '1' }),
      labelled('kv-b', 'data', { app: 'kv' }),
      labelled('kv-c', 'data', { app: 'other' }),
      labelled('kv-d', 'other', { app: 'kv' }),
    ];
    expect(guessed(objects, [group])).toMatchObject({ groups: ['data/kv-c: kv-c=kv-c', 'other/kv-d: kv-d=kv-d'], leftOut: [] });
  });

  it('include members of a group without a namespace in its file, in the default namespace', () => {
    const group = schemas.RolloutGroup.parse({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'kv' },
      spec: { members: { zones: [{ name: 'a', statefulSet: 'kv-a' }] }, rollout: { strategy: 'onDelete' } },
    });
    const guesses = guessGroups({ objects: [{ metadata: { name: 'kv-a' } }, set('kv-a')], groups: [group] });
    expect(guesses.members).toEqual(['default/kv-a']);
    expect(guesses.groups.map(({ group: { metadata } }) => `${metadata.namespace}/${metadata.name}`)).toEqual(['data/kv-a']);
  });

  it('include objects of another operator, convertible or not, and objects with the label of a group', () => {
    const marked = { metadata: { name: 'ledger', namespace: 'data', annotations: { 'sts.plus/phasedRollout': 'ledger' } } };
    const labelled = { metadata: { name: 'kv-c', namespace: 'data', labels: { 'rollout-group': '' } } };
    const guesses = guessGroups({
      objects: [marked, labelled, set('queue')],
      groups: [],
      claimed: new Map([['data/queue', 'StatefulsetRollout data/queue']]),
    });
    expect(guesses).toEqual({
      groups: [],
      members: ['data/kv-c'],
      leftOut: [
        { namespace: 'data', name: 'ledger', why: 'it belongs to PhasedRollout data/ledger, whose settings a proposal would lack' },
        { namespace: 'data', name: 'queue', why: 'it belongs to StatefulsetRollout data/queue, whose settings a proposal would lack' },
      ],
    });
  });

  it('include everything except StatefulSets', () => {
    expect(
      guessGroups({ objects: [undefined, 7, {}, { kind: 'Service', metadata: { name: 'kv-a' } }, { metadata: {} }], groups: [] }),
    ).toEqual({
      groups: [],
      leftOut: [],
      members: [],
    });
  });
});
