import { describe, expect, it } from 'vitest';
import { boundedReplicas, desiredReplicas } from '../../../engine/decide/replicas.ts';
import type { ReplicaSourceView } from '../../../engine/snapshot.ts';
import type { BoundsDefinition, LimitsDefinition, ReplicasDefinition } from '../../../policies/definition.ts';
import { group, type ZoneOverrides } from '../../kit/groups.ts';
import { statefulSet } from '../../kit/objects.ts';
import { contextWith, line, policy, zoneIn } from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';
import { oscillationViolations } from '../oscillation.ts';

const greatest = 2 ** 31 - 1;
const free: BoundsDefinition = { multipleOf: 1, parity: 'any' };

describe('a count rounded to the bounds', () => {
  it.each<[string, number, Partial<BoundsDefinition>, LimitsDefinition, number]>([
    ['stays where nothing binds it', 5, {}, {}, 5],
    ['may be nothing', 0, {}, {}, 0],
    ['is raised to the minimum', 1, { min: 3 }, {}, 3],
    ['is lowered to the maximum', 90, { max: 60 }, {}, 60],
    ['is raised to the highest of both minima', 1, { min: 3 }, { minReplicas: 4 }, 4],
    ['is raised to the highest of both minima, the other way round', 1, { min: 5 }, { minReplicas: 4 }, 5],
    ['is lowered to the lowest of both maxima', 90, { max: 60 }, { maxReplicas: 50 }, 50],
    ['is lowered to the lowest of both maxima, the other way round', 90, { max: 40 }, { maxReplicas: 50 }, 40],
    ['obeys the maximum when the minimum is higher', 5, { min: 8, max: 6 }, {}, 6],
    ['goes up to the multiple', 7, { multipleOf: 3 }, {}, 9],
    ['stays at a multiple', 9, { multipleOf: 3 }, {}, 9],
    ['goes down to the multiple when the maximum is in the way', 7, { multipleOf: 3, max: 8 }, {}, 6],
    ['goes up to an odd count', 4, { parity: 'odd' }, {}, 5],
    ['goes up to an even count', 5, { parity: 'even' }, {}, 6],
    ['stays at an odd count', 5, { parity: 'odd' }, {}, 5],
    ['of nothing is odd enough', 0, { parity: 'odd' }, {}, 0],
    ['goes down to an odd count when the maximum is even', 9, { parity: 'odd', max: 8 }, {}, 7],
    ['goes up to an odd multiple', 10, { multipleOf: 3, parity: 'odd' }, {}, 15],
    ['goes up to an odd multiple from just above one', 4, { multipleOf: 5, parity: 'odd' }, {}, 5],
    ['goes down to nothing where no other count fits, which the floor then refuses', 3, { multipleOf: 4, parity: 'odd', max: 3 }, {}, 0],
    ['stays within the bounds where no count in them fits', 3, { min: 1, multipleOf: 4, parity: 'odd', max: 3 }, {}, 3],
    ['fits the minimum too', 1, { min: 4, parity: 'odd' }, {}, 5],
    ['stays where no multiple has the parity, and does not go down to nothing', 4, { multipleOf: 2, parity: 'odd' }, {}, 4],
    ['goes down to the multiple without trying each count', 7, { multipleOf: greatest, max: greatest - 1 }, {}, 0],
    ['never goes below the minimum, also when nothing between it and the maximum fits', 4, { min: 4, max: 5, multipleOf: 3 }, {}, 4],
  ])('%s', (_name, asked, bounds, limits, expected) => {
    expect(boundedReplicas(asked, { ...free, ...bounds }, limits)).toBe(expected);
  });
});

const mirror: ReplicasDefinition = {
  kind: 'mirror',
  apiVersion: 'rollout-operator.grafana.com/v1',
  resourceKind: 'ReplicaTemplate',
  name: 'ingester',
  read: 'scale',
  writeBack: 'none',
  onMissing: 'hold',
};

const template: ReplicaSourceView = {
  namespace: 'mimir',
  apiVersion: 'rollout-operator.grafana.com/v1',
  kind: 'ReplicaTemplate',
  name: 'ingester',
  replicas: 8,
};

const sources = {
  replicas: line(1),
  'zones.a.replicas': line(2),
  'zones.a.forceReplicas': line(3),
  'zones.b.follows': line(4),
};

/** What zone `name` should have, of a group whose zone a is as given and whose zone b follows it. */
function desired(a: Omit<ZoneOverrides, 'name'>, overrides: SnapshotOverrides = {}, name = 'a') {
  const context = contextWith(
    group({
      zones: [
        { name: 'a', ...a },
        { name: 'b', follows: 'a' },
      ],
      sources,
    }),
    overrides,
  );
  return desiredReplicas(context, zoneIn(context, name));
}

const answer = (fact: string, details: object = {}) => ({ rule: 'replica-source', outcome: 'ok', fact, ...details });

describe('the required replicas of a zone', () => {
  it('are its current replicas without another source', () => {
    expect(desired({})).toBeUndefined();
  });

  it('are undefined without a StatefulSet', () => {
    const gone = contextWith(group({ zones: [{ name: 'a', replicas: { kind: 'count', count: 5 } }] }));
    const { set: _set, ...view } = zoneIn(gone);
    expect(desiredReplicas(gone, view)).toBeUndefined();
  });

  it('are the replicas of the group', () => {
    expect(desired({ replicas: { kind: 'count', count: 5 } })).toEqual({
      replicas: 5,
      isForced: false,
      answer: answer('the group asks for 5 replicas'),
    });
  });

  it('are forced by forceReplicas, also outside the bounds', () => {
    expect(desired({ replicas: { kind: 'count', count: 5 }, bounds: { ...free, min: 3 }, forceReplicas: 1 })).toEqual({
      replicas: 1,
      isForced: true,
      answer: answer('replicas are forced to 1', { source: line(3) }),
    });
  });

  it('are not forced if the zone is scaled directly', () => {
    expect(desired({ forceReplicas: 7 })).toBeUndefined();
  });
});

describe('the replicas that bounds change', () => {
  const count = { kind: 'count', count: 1 } as const;
  it('name the bounds and their place', () => {
    expect(desired({ replicas: count, bounds: { min: 3, max: 60, multipleOf: 3, parity: 'odd' } })?.answer).toEqual(
      answer('the group asks for 1 replica; the bounds change that to 3', {
        limit: 'at least 3, at most 60, a multiple of 3, odd',
        source: line(2),
      }),
    );
  });

  const limited = policy({
    limits: { minReplicas: 4, maxReplicas: 10 },
    limitSources: { minReplicas: line(21), maxReplicas: line(22) },
  });

  it('name the policy that has a higher minimum', () => {
    expect(desired({ replicas: count, bounds: { ...free, min: 3 } }, { policies: [limited] })).toEqual({
      replicas: 4,
      isForced: false,
      answer: answer('the group asks for 1 replica; the bounds change that to 4', { limit: 'at least 3', source: line(21) }),
    });
  });

  it('name the policy that has a lower maximum', () => {
    expect(desired({ replicas: { kind: 'count', count: 20 } }, { policies: [limited] })).toEqual({
      replicas: 10,
      isForced: false,
      answer: answer('the group asks for 20 replicas; the bounds change that to 10', { limit: 'the limits of policies', source: line(22) }),
    });
  });
});

describe('the replicas of a follower', () => {
  const sets = { statefulSets: [statefulSet({ replicas: 7 }), statefulSet({ name: 'ingester-zone-b', replicas: 3 })] };

  it('are the replicas of its leader', () => {
    expect(desired({}, sets, 'b')).toEqual({
      replicas: 7,
      isForced: false,
      answer: answer('leader zone a has 7 replicas', { source: line(4) }),
    });
  });

  it('stay as they are, and block, when the leader could not be read', () => {
    const orphan = group({ zones: [{ name: 'b', follows: 'a' }], sources });
    const context = contextWith(orphan, sets);
    expect(desiredReplicas(context, zoneIn(context, 'b'))).toEqual({
      replicas: 3,
      isForced: false,
      answer: {
        rule: 'replica-source',
        outcome: 'unknown',
        fact: 'leader zone a could not be read',
        source: line(4),
      },
    });
  });

  it('are forced before the leader is read', () => {
    const context = contextWith(group({ zones: ['a', { name: 'b', follows: 'a', forceReplicas: 2 }] }), sets);
    expect(desiredReplicas(context, zoneIn(context, 'b'))).toEqual({
      replicas: 2,
      isForced: true,
      answer: answer('replicas are forced to 2'),
    });
  });
});

describe('the replicas of a mirrored object', () => {
  it('are the replicas of the object, with a reference to it', () => {
    expect(desired({ replicas: mirror }, { replicaSources: [template] })).toEqual({
      replicas: 8,
      isForced: false,
      answer: answer('ReplicaTemplate ingester asks for 8 replicas'),
      mirrored: template,
    });
  });

  it('are read from another version of the same API', () => {
    const newer = { ...template, apiVersion: 'rollout-operator.grafana.com/v2' };
    expect(desired({ replicas: mirror }, { replicaSources: [newer] })?.replicas).toBe(8);
  });

  it('are bounded', () => {
    expect(desired({ replicas: mirror, bounds: { ...free, max: 6 } }, { replicaSources: [template] })).toEqual({
      replicas: 6,
      isForced: false,
      answer: answer('ReplicaTemplate ingester asks for 8 replicas; the bounds change that to 6', { limit: 'at most 6', source: line(2) }),
      mirrored: template,
    });
  });

  it('are forced by forceReplicas, and the object is still updated', () => {
    expect(desired({ replicas: mirror, forceReplicas: 2 }, { replicaSources: [template] })).toEqual({
      replicas: 2,
      isForced: true,
      answer: answer('replicas are forced to 2', { source: line(3) }),
      mirrored: template,
    });
  });

  const unread = (outcome: string, fact: string) => ({
    replicas: 3,
    isForced: false,
    answer: { rule: 'replica-source', outcome, fact, source: line(2) },
  });

  it.each([
    ['does not exist', undefined],
    ['is of another name', { ...template, name: 'other' }],
    ['is of another kind', { ...template, kind: 'Deployment' }],
    ['is of another API', { ...template, apiVersion: 'apps/v1' }],
    ['is of the core API', { ...template, apiVersion: 'v1' }],
    ['is in another namespace', { ...template, namespace: 'loki' }],
  ])('block the zone when the object %s', (_name, found) => {
    expect(desired({ replicas: mirror }, { replicaSources: found === undefined ? [] : [found] })).toEqual(
      unread('unknown', 'ReplicaTemplate ingester could not be read'),
    );
  });

  it('block the zone, with the reason, when the number could not be read', () => {
    const unknown = { ...template, replicas: { unknown: 'no scale subresource' } };
    expect(desired({ replicas: mirror }, { replicaSources: [unknown] })).toEqual(
      unread('unknown', 'ReplicaTemplate ingester could not be read: no scale subresource'),
    );
  });

  it('block the zone when the agent may not read the object, although another reader may', () => {
    const account = 'system:serviceaccount:rollouts:agent';
    const resource = 'resource "replicatemplates/scale" in API group "rollout-operator.grafana.com"';
    const denial = `replicatemplates "ingester" is forbidden: User "${account}" cannot get ${resource} in the namespace "mimir"`;
    const fact =
      'rollouts/agent may not get replicatemplates/scale (rollout-operator.grafana.com) in mimir: the replicas of ReplicaTemplate ingester are unknown, and no zone follows it';
    const access = { namespaces: ['mimir'], action: 'readSource', fact } as const;
    const blocked = { replicas: 3, isForced: false, answer: { rule: 'agent-access', outcome: 'no', fact } };
    const replicaSources = [{ ...template, replicas: { unknown: denial } }];
    expect(desired({ replicas: mirror }, { replicaSources })).toEqual(blocked);
    const missingAccess = (object: string) => [{ ...access, object }];
    const known = (object: string) => ({ replicaSources: [template], missingAccess: missingAccess(object) });
    expect(desired({ replicas: mirror }, known('ReplicaTemplate ingester'))).toEqual(blocked);
    expect(desired({ replicas: mirror }, known('ReplicaTemplate querier'))?.replicas).toBe(8);
  });

  it('block the zone if the group treats a missing object as an error', () => {
    expect(desired({ replicas: { ...mirror, onMissing: 'fail' } })).toEqual(unread('no', 'ReplicaTemplate ingester could not be read'));
  });
});

describe('S16, replicas that alternate', () => {
  const write = (zone: string, from: number, to: number, inputs = 'count 3') => ({ zone, from, to, inputs });

  it('are found if their source has not changed', () => {
    expect(oscillationViolations([write('a', 3, 5), write('a', 5, 3)])).toEqual(['S16: the replicas of zone a oscillate']);
    expect(oscillationViolations([write('a', 3, 5), write('b', 5, 3), write('a', 5, 4), write('a', 4, 5)])).toEqual([
      'S16: the replicas of zone a oscillate',
      'S16: the replicas of zone a oscillate',
    ]);
  });

  it('are no violation in one direction, in different zones, or when their source has changed', () => {
    expect(oscillationViolations([write('a', 3, 5), write('a', 5, 7)])).toEqual([]);
    expect(oscillationViolations([write('a', 3, 5), write('b', 5, 3)])).toEqual([]);
    expect(oscillationViolations([write('a', 3, 5), write('a', 5, 3, 'count 4')])).toEqual([]);
  });
});
