import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../../engine/decide/decide.ts';
import type { RollDecision } from '../../../../engine/decide/roll.ts';
import type { Action } from '../../../../engine/decision.ts';
import { violationsOf } from '../../../../engine/invariants/invariants.ts';
import { claimsOf, observeLedger } from '../../../../engine/ledger/ledger.ts';
import type { RunState } from '../../../../engine/run/run-state.ts';
import type { Claim } from '../../../../engine/snapshot.ts';
import { holdingPartition } from '../../../../policies/strategies.ts';
import { type GroupOverrides, group, wave } from '../../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, type PodChanges, type StatefulSetOverrides, statefulSet } from '../../../kit/objects.ts';
import { ago, exception, hourMs, intent, ledgerOf, minuteMs, outdatedSets, runOf } from '../../../kit/questions.ts';
import { blockedSteps, podsIn, replacedPods, roll } from '../../../kit/rolls.ts';
import { type SnapshotOverrides, snapshotOf } from '../../../kit/snapshots.ts';

const target = { a: newRevision };
const run = runOf({ target, previous: { a: oldRevision } });
const isNew = { revision: newRevision };
const isOld = { revision: oldRevision };

function partitioned(overrides: GroupOverrides = {}) {
  return group({ zones: ['a'], ...overrides, rollout: { strategy: 'partition', ...overrides.rollout } });
}

interface State {
  readonly group?: GroupOverrides;
  readonly set?: StatefulSetOverrides;
  readonly pods?: PodChanges;
  readonly run?: RunState;
  readonly more?: SnapshotOverrides;
}

/** Zone a with five pods, outdated unless `pods` says otherwise. */
function decided({ group: overrides, set, pods = {}, run: stored = run, more }: State): RollDecision {
  const statefulSets = outdatedSets(['a'], { replicas: 5, updateStrategy: 'RollingUpdate', partition: holdingPartition, ...set });
  return roll(partitioned(overrides), stored, { statefulSets, ...podsIn({ a: pods }), ...more });
}

/** What is written, such as `4 outdated a-4`. */
function written({ actions }: Pick<RollDecision, 'actions'>): readonly string[] {
  return actions.map((action) =>
    action.kind === 'setPartition'
      ? [action.to, action.because, ...action.pods.map(({ pod }) => pod.replace('ingester-zone-', ''))].join(' ')
      : replacedPods({ steps: [], actions: [action], warnings: [], wantedReadings: [] }),
  );
}

const broken = { isReady: false, readyChangedMs: ago(hourMs) };
const down = { isReady: false, readyChangedMs: ago(minuteMs) };

describe('the partition is lowered', () => {
  const cases: readonly (readonly [string, State, readonly string[]])[] = [
    ['by one pod from the top', {}, ['4 outdated a-4']],
    ['by the next one when the last is back', { set: { partition: 4 }, pods: { 4: isNew } }, ['3 outdated a-3']],
    ['not while the last one is on its way', { set: { partition: 4 }, pods: { 4: { ...isNew, ...down } } }, []],
    ['not while the last one has not been replaced yet', { set: { partition: 4 } }, []],
    ['not while the last one terminates', { set: { partition: 4 }, pods: { 4: { isTerminating: true, isReady: false } } }, []],
    ['not while the last one is missing', { set: { partition: 4 }, pods: { 4: 'missing' } }, []],
    ['not while another pod is down', { pods: { 0: down } }, []],
    ['by as many as the budget has room for', { group: { zones: [{ name: 'a', maxUnavailable: 3 }] } }, ['2 outdated a-4 a-3 a-2']],
    ['by what is left of the budget', { group: { zones: [{ name: 'a', maxUnavailable: 3 }] }, pods: { 0: down } }, ['3 outdated a-4 a-3']],
    ['below a pod that is down itself at no cost', { pods: { 4: down } }, ['4 outdated a-4']],
    [
      'one pod at a time under OrderedReady, with every budget',
      { group: { zones: [{ name: 'a', maxUnavailable: 3 }] }, set: { podManagementPolicy: 'OrderedReady' } },
      ['4 outdated a-4'],
    ],
    [
      'one pod at a time with an interval',
      { group: { zones: [{ name: 'a', maxUnavailable: 3 }], rollout: { minIntervalMs: minuteMs } } },
      ['4 outdated a-4'],
    ],
    ['counting from the first ordinal', { set: { firstOrdinal: 5 } }, ['4 outdated a-9']],
    [
      'not further than the wave',
      {
        group: {
          rollout: { waves: [wave('one', ['a'], { amount: { pods: 1 }, after: { soakMs: hourMs, gates: [] } }), wave('all', ['a'])] },
        },
        set: { partition: 4 },
        pods: { 4: isNew },
      },
      [],
    ],
    ['to nothing at the end', { set: { partition: 1 }, pods: { 1: isNew, 2: isNew, 3: isNew, 4: isNew } }, ['0 outdated a-0']],
    ['past pods that have got ahead', { pods: { 2: isNew, 3: isNew } }, ['4 outdated a-4']],
    ['not while somebody paused the group', { more: { intents: [intent({ action: 'pause' })] } }, []],
    ['not under OnDelete', { set: { updateStrategy: 'OnDelete' } }, []],
    ['not while the status is old', { set: { generation: 7, status: { observedGeneration: 6 } } }, []],
    ['not while the ledger says that it is about to be', { more: { ledgers: [ledgerOf({ run, claims: [claim(4)] })] } }, []],
  ];
  it.each(cases)('%s', (_, state, expected) => {
    expect(written(decided(state))).toEqual(expected);
  });

  it('with UID, resourceVersion and the pods that go, in the order of the controller', () => {
    expect(decided({ group: { zones: [{ name: 'a', maxUnavailable: 2 }] } }).actions).toEqual([
      {
        kind: 'setPartition',
        namespace: 'mimir',
        zone: 'a',
        statefulSet: 'ingester-zone-a',
        uid: 'uid-ingester-zone-a',
        resourceVersion: '100',
        from: holdingPartition,
        to: 3,
        because: 'outdated',
        pods: [4, 3].map((ordinal) => ({ pod: `ingester-zone-a-${ordinal}`, ordinal, uid: `uid-ingester-zone-a-${ordinal}` })),
      },
    ]);
  });

  it('by no more than PodDisruptionBudgets allow, the strictest of several, although the controller does not read them', () => {
    const budget = (name: string, maxUnavailable: number) => ({ namespace: 'mimir', name, selector: { matchLabels: {} }, maxUnavailable });
    const zones = [{ name: 'a', maxUnavailable: 4 }];
    expect(written(decided({ group: { zones }, more: { podBudgets: [budget('loose', 3), budget('tight', 2)] } }))).toEqual([
      '3 outdated a-4 a-3',
    ]);
    expect(written(decided({ group: { zones }, more: { podBudgets: [budget('shut', 0)] } }))).toEqual([]);
    expect(written(decided({ group: { zones }, more: { podBudgets: { unknown: 'forbidden' } } }))).toEqual([]);
  });

  it('by no more than the disruption budget of the group allows, including the pods that the controller may replace', () => {
    const zones = [{ name: 'a', maxUnavailable: 4 }];
    const disruption = { maxUnavailable: 2, crossZoneDelayMs: 0 };
    expect(written(decided({ group: { zones, disruption } }))).toEqual(['3 outdated a-4 a-3']);
    expect(written(decided({ group: { zones, disruption }, set: { partition: 4 } }))).toEqual(['3 outdated a-3']);
    expect(written(decided({ group: { zones, disruption }, set: { partition: 3 } }))).toEqual([]);
  });

  it('past a spent budget with an exception', () => {
    const exceptions = [exception('zone-budget', { allow: { podsAtMost: 2 } })];
    expect(written(decided({ pods: { 0: down }, more: { exceptions } }))).toEqual(['4 outdated a-4']);
  });
});

describe('a pod that never becomes ready', () => {
  const template = { status: { updateRevision: 'rev-3' } };
  const forward = runOf({ target: { a: 'rev-3' }, previous: { a: oldRevision }, openZone: 'a' });

  it('is deleted when a new template is there, since the controller waits for it under OrderedReady', () => {
    const state: State = {
      set: { ...template, partition: 3, podManagementPolicy: 'OrderedReady' },
      pods: { 3: isNew, 4: { ...isNew, ...broken } },
      run: forward,
    };
    expect(decided(state).actions).toMatchObject([
      { kind: 'deletePod', pod: 'ingester-zone-a-4', because: 'stuck', resourceVersion: '100' },
    ]);
  });

  it.each(['Parallel', 'OrderedReady'] as const)(
    'is deleted above the partition only after the pods in flight are back, %s',
    (podManagementPolicy) => {
      const set = { partition: 3, podManagementPolicy };
      const deletes = (pods: PodChanges, maxUnavailable = 1) =>
        decided({ group: { zones: [{ name: 'a', maxUnavailable }] }, set, pods: { ...pods, 3: broken } }).actions.map(({ kind }) => kind);
      expect(deletes({ 4: isNew })).toEqual(['deletePod']);
      for (const inFlight of [{ ...isNew, isTerminating: true }, { isTerminating: true }, { ...isNew, ...down }]) {
        expect(deletes({ 4: inFlight })).toEqual([]);
        // OrderedReady has at most one pod in flight.
        expect(deletes({ 4: inFlight }, 2)).toEqual(podManagementPolicy === 'Parallel' ? ['deletePod'] : []);
        expect(deletes({ 2: { isTerminating: true }, 4: inFlight }, 2)).toEqual([]);
      }
    },
  );

  it('is left alone below the partition, where it would come back as it is', () => {
    expect(written(decided({ pods: { 0: broken } }))).toEqual([]);
    expect(blockedSteps(decided({ pods: { 0: broken } }))).toEqual(['roll/a wait: zone-budget']);
  });
});

describe('a pod that a run in between has left below the partition', () => {
  const left = { ...broken, revision: 'rev-between' };
  const previous = { a: oldRevision, b: oldRevision };

  it('is deleted, because it comes back at the current revision, and no other pod is exposed for it', () => {
    expect(decided({ pods: { 2: left } }).actions).toMatchObject([{ kind: 'deletePod', pod: 'ingester-zone-a-2', because: 'stuck' }]);
  });

  it('in any zone, before the open zone continues', () => {
    const sets = outdatedSets(['a', 'b'], { replicas: 3, updateStrategy: 'RollingUpdate', partition: holdingPartition });
    const both = partitioned({ zones: ['a', 'b'], rollout: { waves: [wave('first', ['a']), wave('second', ['b'])] } });
    const stored = runOf({ target: { a: newRevision, b: newRevision }, previous, openZone: 'a' });
    const decision = roll(both, stored, { statefulSets: sets, ...podsIn({ b: { 1: left } }) });
    expect(decision.actions).toMatchObject([{ kind: 'deletePod', pod: 'ingester-zone-b-1', because: 'stuck' }]);
  });

  it('is deleted also after the agent exposed it outside its wave, since the controller waits for it under OrderedReady', () => {
    const settings = { replicas: 3, updateStrategy: 'RollingUpdate', partition: 2, podManagementPolicy: 'OrderedReady' } as const;
    const both = partitioned({ zones: ['a', 'b'], rollout: { waves: [wave('first', ['a']), wave('second', ['b'])] } });
    const stored = runOf({ target: { a: newRevision, b: newRevision }, previous, openZone: 'b' });
    const statefulSets = [...outdatedSets(['a'], { ...settings, partition: holdingPartition }), ...outdatedSets(['b'], settings)];
    const decision = roll(both, stored, { statefulSets, ...podsIn({ b: { 2: left } }) });
    expect(decision.actions).toMatchObject([{ kind: 'deletePod', pod: 'ingester-zone-b-2', because: 'stuck' }]);
  });
});

describe('a write by which no pod goes', () => {
  const all = { 0: isNew, 1: isNew, 2: isNew, 3: isNew, 4: isNew };
  const complete = { status: { currentRevision: newRevision } };

  it('blocks every pod when all run the update revision and Kubernetes says so', () => {
    expect(written(decided({ set: { partition: 0, ...complete }, pods: all }))).toEqual(['1000000 complete']);
    expect(written(decided({ set: { partition: holdingPartition, ...complete }, pods: all }))).toEqual([]);
    // A pod that is missing for a moment must not open the group to the next template.
    expect(written(decided({ set: { partition: holdingPartition, ...complete }, pods: { ...all, 1: 'missing' } }))).toEqual([]);
  });

  it('does not block before the current revision has caught up: below a partition pods come back at it', () => {
    expect(written(decided({ set: { partition: 0 }, pods: all }))).toEqual([]);
  });

  it('does not block before the status is as new as the spec', () => {
    expect(
      written(decided({ set: { partition: 0, generation: 9, status: { ...complete.status, observedGeneration: 8 } }, pods: all })),
    ).toEqual([]);
  });

  it('blocks a StatefulSet that was never rolled', () => {
    const statefulSets = [statefulSet({ updateStrategy: 'RollingUpdate', partition: 0 })];
    const definition = partitioned();
    const decision = decideGroup(snapshotOf({ groups: [definition], statefulSets }), definition);
    expect([written(decision), decision.outcome]).toEqual([['1000000 complete'], 'act']);
  });

  it('never raises the partition while pods are not at the update revision', () => {
    expect(written(decided({ set: { partition: 0 }, pods: { 3: isNew, 4: isNew } }))).toEqual([]);
  });

  it('takes in pods at the top that run the update revision, so that they keep it, also while the group is paused', () => {
    const state: State = { set: { partition: 5 }, pods: { 3: isNew, 4: isNew }, more: { intents: [intent({ action: 'pause' })] } };
    expect(written(decided(state))).toEqual(['3 updated']);
  });

  it('takes in none above which an outdated pod stands', () => {
    const state: State = { set: { partition: 5 }, pods: { 3: isNew }, more: { intents: [intent({ action: 'pause' })] } };
    expect(written(decided(state))).toEqual([]);
  });

  it('waits while replicas are written', () => {
    const statefulSets = outdatedSets(['a'], { updateStrategy: 'RollingUpdate', partition: 0, ...complete, replicas: 5 });
    expect(written(roll(partitioned(), run, { statefulSets, ...podsIn({ a: all }) }, true))).toEqual([]);
  });
});

describe('a partition without a decision', () => {
  it('is explained while the controller replaces what the wave does not ask for', () => {
    const waves = [wave('one', ['a'], { amount: { pods: 1 } }), wave('all', ['a'])];
    const [step] = decided({ group: { rollout: { waves } }, set: { partition: 2 } }).steps;
    expect(step).toMatchObject({ outcome: 'wait', pods: ['ingester-zone-a-4', 'ingester-zone-a-3', 'ingester-zone-a-2'] });
    expect(step?.results.find(({ rule }) => rule === 'partition-kept')).toEqual({
      rule: 'partition-kept',
      outcome: 'wait',
      fact: 'partition 2 lets the StatefulSet controller replace ingester-zone-a-2, ingester-zone-a-3, which the wave does not include',
      limit: '4 or more',
      source: { object: 'StatefulSet mimir/ingester-zone-a', field: 'spec.updateStrategy.rollingUpdate.partition' },
    });
  });

  it('keeps other zones waiting until its pods are back', () => {
    const statefulSets = [
      ...outdatedSets(['a'], { replicas: 5, updateStrategy: 'RollingUpdate', partition: holdingPartition }),
      ...outdatedSets(['b'], { replicas: 5, updateStrategy: 'RollingUpdate', partition: 0 }),
    ];
    const waves = [wave('first', ['a']), wave('rest', ['b'])];
    const both = roll(partitioned({ zones: ['a', 'b'], rollout: { waves } }), runOf({ target: { a: newRevision, b: newRevision } }), {
      statefulSets,
    });
    expect(written(both)).toEqual([]);
    expect(both.steps[0]?.results.find(({ rule }) => rule === 'other-zones-ready')?.fact).toBe(
      'zone b has 0 of 5 pods available, 5 exposed by the partition',
    );
    expect(both.steps[0]?.results.filter(({ rule }) => rule === 'partition-kept').map(({ outcome, fact }) => [outcome, fact])).toEqual([
      ['ok', 'the partition is 1000000'],
      [
        'wait',
        expect.stringMatching(
          /^partition 0 lets the StatefulSet controller replace ingester-zone-b-0, .*, which the wave does not include$/,
        ),
      ],
    ]);
  });

  describe('that exposes pods outside the wave, above a pod that never becomes ready', () => {
    const between = { revision: 'rev-between', ...broken };
    const waves = [wave('first', ['a'], { amount: { pods: 1 } }), wave('rest', ['a', 'b'])];
    const target = { a: newRevision, b: newRevision };
    const stuckIn = (podManagementPolicy: 'OrderedReady' | 'Parallel', pods: Parameters<typeof podsIn>[0]): RollDecision => {
      const rolling = { replicas: 5, updateStrategy: 'RollingUpdate', podManagementPolicy } as const;
      const statefulSets = [
        ...outdatedSets(['a'], { ...rolling, partition: holdingPartition }),
        ...outdatedSets(['b'], { ...rolling, partition: 1 }),
      ];
      return roll(partitioned({ zones: ['a', 'b'], rollout: { waves } }), runOf({ target }), { statefulSets, ...podsIn(pods) });
    };
    const keptIn = ({ steps }: RollDecision) => steps.flatMap(({ results }) => results.filter(({ rule }) => rule === 'partition-kept'));

    it('stops no repair under OrderedReady: the controller replaces none of them before it', () => {
      expect(written(stuckIn('OrderedReady', { a: { 1: between }, b: { 1: between } }))).toEqual(['a-1']);
      const repaired = stuckIn('OrderedReady', { b: { 1: between } });
      expect(written(repaired)).toEqual(['b-1']);
      expect(keptIn(repaired)).toMatchObject([
        {
          outcome: 'ok',
          fact: 'partition 1 lets the StatefulSet controller replace ingester-zone-b-2, ingester-zone-b-3, ingester-zone-b-4, which the wave does not include, when its stuck pods are replaced',
        },
      ]);
    });

    it('stops each repair while the controller replaces them', () => {
      const terminating = { isTerminating: true, isReady: false };
      for (const stopped of [
        stuckIn('Parallel', { a: { 1: between }, b: { 1: between } }),
        stuckIn('OrderedReady', { a: { 1: between }, b: { 1: between, 4: terminating } }),
        stuckIn('OrderedReady', { a: { 1: between }, b: { 1: { ...between, ...down } } }),
      ]) {
        expect(written(stopped)).toEqual([]);
        expect(keptIn(stopped)).toContainEqual(expect.objectContaining({ outcome: 'wait' }));
      }
    });

    it('stops all other replacements', () => {
      expect(written(stuckIn('OrderedReady', { a: { 1: down }, b: { 1: between } }))).toEqual(['b-1']);
      const allUpdated = { 0: isNew, 1: isNew, 2: isNew, 3: isNew };
      expect(written(stuckIn('OrderedReady', { a: allUpdated, b: { 1: between } }))).toEqual(['b-1']);
    });
  });

  it('is told when pods would come back at another revision', () => {
    const facts = ({ warnings }: RollDecision) => warnings.map(({ rule, fact }) => `${rule}: ${fact}`);
    expect(facts(decided({ pods: { 2: isNew } }))).toEqual([
      'restart-version: ingester-zone-a-2 would come back at rev-1 when restarted, below partition 1000000',
    ]);
    expect(
      facts(decided({ set: { status: { currentRevision: 'rev-0' } }, pods: { 0: isOld, 1: isOld, 2: isOld, 3: isOld, 4: isOld } })),
    ).toEqual(['restart-version: 5 pods of zone a would come back at rev-0 when restarted, below partition 1000000']);
    expect(facts(decided({}))).toEqual([]);
  });

  it('is told when a zone without pods completes by itself', () => {
    const statefulSets = outdatedSets(['a', 'b'], { replicas: 2, updateStrategy: 'RollingUpdate', partition: 1 }).map((set) =>
      set.name === 'ingester-zone-b' ? { ...set, replicas: 0, partition: holdingPartition } : set,
    );
    const definition = partitioned({ zones: ['a', 'b'] });
    const both = roll(definition, runOf({ target: { a: newRevision, b: newRevision } }), { statefulSets });
    expect(both.warnings.map(({ fact }) => fact)).toEqual([
      'zone b has no pods, so Kubernetes counts its rollout as complete: new pods start at the update revision',
    ]);
  });
});

function claim(to: number): Claim {
  return {
    verb: 'setPartition',
    zone: 'a',
    uid: 'uid-ingester-zone-a',
    from: holdingPartition,
    to,
    resourceVersion: '100',
    atMs: ago(1000),
    epoch: 1,
  };
}

describe('the claim of a partition', () => {
  it('is made only when pods go', () => {
    const lowering = decided({}).actions;
    expect(claimsOf(lowering, kitNowMs, 3)).toEqual([{ ...claim(4), atMs: kitNowMs, epoch: 3 }]);
    const settling = lowering.map((action): Action => (action.kind === 'setPartition' ? { ...action, pods: [] } : action));
    expect(claimsOf(settling, kitNowMs)).toEqual([]);
  });

  const observed = (set: StatefulSetOverrides, openForMs = 0) => {
    const statefulSets = outdatedSets(['a'], { replicas: 5, updateStrategy: 'RollingUpdate', partition: holdingPartition, ...set });
    const seen = snapshotOf({ groups: [partitioned()], statefulSets });
    return observeLedger(ledgerOf({ claims: [claim(4)] }), seen, { keepDownscalesMs: 0, openForMs: () => openForMs }).claims.length;
  };
  it.each([
    ['stays open while nothing is seen of it', {}, 0, 1],
    ['ends when the partition is there: then the StatefulSet says which pods go', { partition: 4, resourceVersion: '101' }, 0, 0],
    ['ends when the StatefulSet was written otherwise, for then the write fails', { resourceVersion: '101' }, 0, 0],
    ['ends when it is older than any request', {}, 120_001, 0],
    ['ends with the StatefulSet', { uid: 'another' }, 0, 0],
  ] as const)('%s', (_, set, openForMs, open) => {
    expect(observed(set, openForMs)).toBe(open);
  });
});

describe('the invariants', () => {
  const violations = (set: StatefulSetOverrides, actions: readonly Action[], pods: PodChanges = {}) => {
    const definition = partitioned();
    const statefulSets = outdatedSets(['a'], { replicas: 5, updateStrategy: 'RollingUpdate', partition: holdingPartition, ...set });
    const snapshot = snapshotOf({ groups: [definition], statefulSets, ...podsIn({ a: pods }) });
    return violationsOf({ snapshot, group: definition, decision: { ...decideGroup(snapshot, definition), actions } });
  };
  const [lowering] = decided({}).actions;
  const lower = (to: number, ...ordinals: number[]): readonly Action[] => {
    if (lowering?.kind !== 'setPartition') throw new Error('the test expected a partition');
    return [
      {
        ...lowering,
        to,
        pods: ordinals.map((ordinal) => ({ pod: `ingester-zone-a-${ordinal}`, ordinal, uid: `uid-ingester-zone-a-${ordinal}` })),
      },
    ];
  };

  it('hold for every decision', () => {
    expect(violations({}, lower(4, 4))).toEqual([]);
  });

  it.each([
    ['S2', {}, lower(3, 4, 3), {}],
    ['S2', { partition: 4 }, lower(3, 3), {}],
    ['S6', {}, lower(4, 4), { 4: isNew }],
    ['S6p', {}, lower(3, 4), {}],
    ['S6p', { partition: 0 }, lower(holdingPartition), { 4: isNew }],
  ] as const)('name %s', (id, set, actions, pods) => {
    expect(violations(set, actions, pods).filter((violation) => violation.startsWith(`${id}:`))).not.toEqual([]);
  });
});
