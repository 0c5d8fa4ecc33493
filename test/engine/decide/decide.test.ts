import { describe, expect, it } from 'vitest';
import { decide, decideGroup } from '../../../engine/decide/decide.ts';
import { stepChecks } from '../../../engine/decide/roll.ts';
import { scaleDownChecks, scaleUpChecks } from '../../../engine/rules/scale.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, outdatedStatefulSet, type PodChanges, statefulSet } from '../../kit/objects.ts';
import {
  ago,
  exception,
  freeze,
  hourMs,
  intent,
  ledgerOf,
  minuteMs,
  outdatedSets,
  policy,
  policyRule,
  runOf,
  updatedPods,
} from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const native = group();

function decided(overrides: SnapshotOverrides = {}, definition: GroupDefinition = native) {
  return decideGroup(snapshotOf({ groups: [definition], ...overrides }), definition);
}

const outdated = { statefulSets: outdatedSets() };
const withRun = (run: Partial<RunState>) => ({ ledgers: [ledgerOf({ run: runOf(run) })] });
const zone = (name: string, more: object = {}) => ({
  zone: name,
  statefulSet: `ingester-zone-${name}`,
  replicas: 3,
  updated: 3,
  available: 3,
  isReady: true,
  revisions: [{ revision: 'rev-1', ordinals: '0-2' }],
  desiredRevision: 'rev-1',
  ...more,
});

describe('a decision', () => {
  it('lists the groups by namespace and name, with the time and the digest of its input', () => {
    const groups = [group({ name: 'store-gateway' }), group({ namespace: 'loki', name: 'write' }), native];
    const decision = decide(snapshotOf({ groups, policyDigest: 'digest' }));
    expect([decision.nowMs, decision.policyDigest]).toEqual([kitNowMs, 'digest']);
    expect(decision.groups.map((one) => `${one.namespace}/${one.group}`)).toEqual(['loki/write', 'mimir/ingester', 'mimir/store-gateway']);
  });

  it('of a group without work is done', () => {
    expect(decided()).toEqual({
      namespace: 'mimir',
      group: 'ingester',
      goal: 'nothing to do',
      phase: 'Done',
      outcome: 'done',
      zones: [zone('a'), zone('b'), zone('c')],
      steps: [],
      actions: [],
      waits: [],
      stops: [],
      warnings: [],
      wantedReadings: [],
    });
  });

  it('of a group during a rollout names its position', () => {
    const podChanges = { 'ingester-zone-a': { 1: { revision: newRevision }, 2: { revision: newRevision, isReady: false } } };
    const decision = decided({ ...outdated, podChanges, ...withRun({ openZone: 'a' }) });
    expect(decision).toMatchObject({
      goal: '2 of 9 pods updated',
      phase: 'Rolling',
      outcome: 'wait',
      wave: { name: 'all', index: 0, count: 1 },
    });
    expect(decision.zones[0]).toEqual(
      zone('a', {
        updated: 2,
        available: 2,
        isReady: false,
        revisions: [
          { revision: 'rev-1', ordinals: '0' },
          { revision: 'rev-2', ordinals: '1-2' },
        ],
        desiredRevision: newRevision,
      }),
    );
  });

  it('of a group whose last pod starts counts the updated pods', () => {
    const last = { revision: newRevision };
    const podChanges = Object.fromEntries(
      ['a', 'b', 'c'].map((name) => [`ingester-zone-${name}`, { 0: last, 1: last, 2: { ...last, isReady: name !== 'c' } }]),
    );
    const decision = decided({ ...outdated, podChanges, ...withRun({ openZone: 'c' }) });
    expect([decision.phase, decision.goal]).toEqual(['Rolling', '9 of 9 pods updated']);
  });

  it('lists revisions by name, the update revision last', () => {
    const set = outdatedStatefulSet({ status: { updateRevision: 'rev-0' } });
    const decision = decided({ statefulSets: [set], podChanges: { [set.name]: { 1: { revision: 'rev-0' }, 2: { revision: 'rev-3' } } } });
    expect(decision.zones[0]?.revisions).toEqual([
      { revision: 'rev-1', ordinals: '0' },
      { revision: 'rev-3', ordinals: '2' },
      { revision: 'rev-0', ordinals: '1' },
    ]);
  });
});

describe('the phase', () => {
  const count = group({ zones: [{ name: 'a', replicas: { kind: 'count', count: 5 } }, 'b'] });
  const denied = { policies: [policy({ rules: [policyRule({ actions: ['rollout', 'scaleUp'] })] })] };
  const waiting = { 'ingester-zone-a': { 2: { isReady: false, readyChangedMs: ago(minuteMs) } } };

  it.each<[string, GroupDefinition, SnapshotOverrides, string, string]>([
    ['Done without anything to do', native, {}, 'Done', 'done'],
    ['Rolling while pods are replaced', native, outdated, 'Rolling', 'act'],
    [
      'Rolling while the pods of the open zone come back',
      native,
      { ...outdated, podChanges: { 'ingester-zone-a': { 2: 'missing' } }, ...withRun({ openZone: 'a' }) },
      'Rolling',
      'wait',
    ],
    [
      'Waiting while a pod of the open zone is unavailable without a replacement',
      native,
      { ...outdated, podChanges: waiting, ...withRun({ openZone: 'a' }) },
      'Waiting',
      'wait',
    ],
    [
      'Waiting while another zone is not whole',
      native,
      { ...outdated, podChanges: { 'ingester-zone-b': waiting['ingester-zone-a'] } },
      'Waiting',
      'wait',
    ],
    ['Waiting outside windows', native, { ...outdated, policies: [policy({ windows: [freeze()] })] }, 'Waiting', 'wait'],
    ['Paused by a person', native, { ...outdated, intents: [intent({ action: 'pause' })] }, 'Paused', 'wait'],
    ['Blocked by a policy', native, { ...outdated, ...denied }, 'Blocked', 'blocked'],
    ['Paused before it is blocked', native, { ...outdated, ...denied, intents: [intent({ action: 'pause' })] }, 'Paused', 'blocked'],
    ['Failed when the run has', native, { ...outdated, ...withRun({ outcome: 'failed' }) }, 'Failed', 'blocked'],
    ['Scaling while replicas are written', count, {}, 'Scaling', 'act'],
    ['Blocked when a number may not be written', count, denied, 'Blocked', 'blocked'],
  ])('is %s', (_name, definition, overrides, phase, outcome) => {
    expect([decided(overrides, definition).phase, decided(overrides, definition).outcome]).toEqual([phase, outcome]);
  });

  it('is Rolling although a change of replicas waits', () => {
    const held = { policies: [policy({ rules: [policyRule({ actions: ['scaleUp'], effect: 'hold' })] })] };
    expect(decided({ ...outdated, ...held }, count)).toMatchObject({ phase: 'Rolling', outcome: 'act' });
  });

  it('is Rolling in one zone although another zone is paused by its settings', () => {
    const paused = group({ zones: [{ name: 'a', paused: true }, 'b'] });
    expect(decided(outdated, paused)).toMatchObject({ phase: 'Rolling', outcome: 'act' });
  });

  it.each([
    ['by its settings', {}, { name: 'a', paused: true }, 'Rolling', 'Waiting'],
    // A pause by a person stops the zones after it.
    ['by a person', { intents: [intent({ action: 'pause', zone: 'a' })] }, 'a', 'Paused', 'Paused'],
  ])('is Paused only if no zone continues: one zone is paused %s', (_name, overrides, zone, inTurn, inFreeze) => {
    const zones = group({ zones: [zone, 'b'] });
    const state = { ...outdated, ...overrides };
    expect(decided(state, zones).phase).toBe(inTurn);
    expect(decided({ ...state, ...withRun({ openZone: 'b' }) }, zones).phase).toBe('Rolling');
    expect(decided({ ...state, podChanges: { 'ingester-zone-b': { 1: 'missing' } }, ...withRun({ openZone: 'b' }) }, zones).phase).toBe(
      'Rolling',
    );
    expect(decided({ ...state, policies: [policy({ windows: [freeze()] })] }, zones).phase).toBe(inFreeze);
    const updated = Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision: newRevision }]));
    expect(decided({ ...state, podChanges: { 'ingester-zone-b': updated } }, zones).phase).toBe('Paused');
  });

  it('is Scaling while a follower waits for the new pods of its leader, unless such a pod is broken', () => {
    const growing = group({
      zones: [
        { name: 'a', replicas: { kind: 'count', count: 5 } },
        { name: 'b', follows: 'a', followersWaitFor: 'leaderReady' },
      ],
    });
    const leader = statefulSet({ name: 'ingester-zone-a', replicas: 5 });
    const states = [leader, statefulSet({ name: 'ingester-zone-b' })];
    const phaseWith = (change: PodChanges) => decided({ statefulSets: states, podChanges: { 'ingester-zone-a': change } }, growing).phase;
    expect(phaseWith({ 3: { isReady: false }, 4: 'missing' })).toBe('Scaling');
    expect(phaseWith({ 3: { isReady: false, waitingReasons: ['CrashLoopBackOff'] } })).toBe('Waiting');
  });

  it('is blocked only when every step is', () => {
    const both = group({ zones: [{ name: 'a', paused: true }, 'b'] });
    const deny = { policies: [policy({ rules: [policyRule({ when: { '==': [{ var: 'target.zone' }, 'b'] } })] })] };
    expect(decided({ ...outdated, ...deny }, both).outcome).toBe('wait');
  });
});

describe('replicas before pods', () => {
  const count = group({ zones: [{ name: 'a', replicas: { kind: 'count', count: 5 } }, 'b'] });

  it('are written in a turn without replacements', () => {
    const decision = decided(outdated, count);
    expect(decision.actions.map(({ kind }) => kind)).toEqual(['scaleStatefulSet']);
    expect(decision.steps.map(({ id, outcome }) => [id, outcome])).toEqual([
      ['scale/a', 'act'],
      ['roll/a', 'wait'],
    ]);
    expect(decision.goal).toBe('0 of 6 pods updated; zone a to 5 replicas');
  });
});

describe('a zone that could not be read', () => {
  const unread = { pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-b', pods: { unknown: 'forbidden' } }] };

  it('prevents the phase Done of an idle group', () => {
    expect(decided(unread)).toMatchObject({
      phase: 'Waiting',
      outcome: 'wait',
      steps: [
        {
          id: 'view/b',
          kind: 'roll',
          zone: 'b',
          pods: [],
          outcome: 'wait',
          results: [{ rule: 'view-complete', outcome: 'unknown', fact: 'the pods of ingester-zone-b could not be read: forbidden' }],
        },
      ],
      waits: [{ rule: 'view-complete', outcome: 'unknown' }],
    });
  });
});

describe('a zone whose controller has not observed its spec', () => {
  it('waits, because the update revision may change', () => {
    const stale = [
      statefulSet({ name: 'ingester-zone-a', status: { observedGeneration: 0 } }),
      ...['b', 'c'].map((zone) => statefulSet({ name: `ingester-zone-${zone}` })),
    ];
    expect(decided({ statefulSets: stale })).toMatchObject({
      outcome: 'wait',
      phase: 'Waiting',
      waits: [{ rule: 'view-complete', outcome: 'wait' }],
    });
  });
});

describe('a replica count that could not be read', () => {
  const mirror = {
    kind: 'mirror',
    apiVersion: 'x/v1',
    resourceKind: 'ReplicaTemplate',
    name: 'ingester',
    read: 'scale',
    writeBack: 'none',
    onMissing: 'hold',
  } as const;

  it('is in no goal', () => {
    const decision = decided({}, group({ zones: [{ name: 'a', replicas: mirror }] }));
    expect([decision.goal, decision.outcome]).toEqual(['nothing to do', 'wait']);
  });
});

describe('the waits of a group', () => {
  it('are reported once, first the ones that time does not end', () => {
    const definition = group({
      zones: [
        { name: 'a', replicas: { kind: 'count', count: 5 } },
        { name: 'b', replicas: { kind: 'count', count: 5 } },
      ],
    });
    const policies = [
      policy({
        rules: [
          policyRule({ actions: ['scaleUp'], effect: 'hold', message: 'the queue is long' }),
          policyRule({ name: 'unread', actions: ['scaleUp'], when: { var: 'user.name' } }),
          policyRule({ name: 'never', actions: ['scaleUp'] }),
        ],
      }),
    ];
    expect(decided({ policies }, definition).waits.map(({ rule, outcome }) => [rule, outcome])).toEqual([
      ['safety/never', 'no'],
      ['safety/unread', 'unknown'],
      ['safety/rule', 'wait'],
    ]);
  });
});

describe('the time of the next turn', () => {
  it('is when an outdated pod that is not ready becomes stuck, although no wait names this instant', () => {
    const starting = { 'ingester-zone-b': { 1: { isReady: false, readyChangedMs: ago(minuteMs) } } };
    const decision = decided({ ...outdated, podChanges: starting });
    expect(decision.waits.every(({ earliestMs }) => earliestMs === undefined)).toBe(true);
    expect(decision.wakeAtMs).toBe(kitNowMs + 4 * minuteMs);
  });

  it('is the earliest later time at which an answer can change', () => {
    expect(decided({ ...outdated, policies: [policy({ windows: [freeze()] })] }).wakeAtMs).toBe(kitNowMs + hourMs);
    const permitted = {
      policies: [policy({ windows: [freeze()] })],
      exceptions: [exception('window', { expiresMs: kitNowMs + minuteMs })],
    };
    expect(decided({ ...outdated, ...permitted }).wakeAtMs).toBe(kitNowMs + minuteMs);
  });

  it('is absent when only events can change the result', () => {
    expect(decided(outdated).wakeAtMs).toBeUndefined();
    const stale = { ...outdated, podChanges: { 'ingester-zone-b': { 1: { isReady: false } } } };
    expect(decided(stale).wakeAtMs).toBeUndefined();
  });

  it('is when a claim expires, although no step waits for it', () => {
    const claims = [{ verb: 'deletePod' as const, zone: 'b', uid: 'gone', ordinal: 1, atMs: ago(minuteMs) }];
    const sets = ['a', 'b', 'c'].map((name) => statefulSet({ name: `ingester-zone-${name}`, minReadySeconds: 60 }));
    const seen = { statefulSets: sets, podChanges: { 'ingester-zone-b': { 1: { readyChangedMs: ago(20_000) } } } };
    expect(decided({ ...seen, ledgers: [ledgerOf({ claims })] })).toMatchObject({ outcome: 'done', wakeAtMs: kitNowMs + 40_000 });
    expect(decided(seen)).not.toHaveProperty('wakeAtMs');
  });
});

describe('the wave of a decision', () => {
  const waves = group({ rollout: { waves: [wave('canary', ['a']), wave('rest', ['b', 'c'])] } });

  it('is the current one, and absent after the run', () => {
    const aDone = { ...outdated, podChanges: { 'ingester-zone-a': updatedPods() } };
    expect(decided({ ...aDone, ...withRun({}) }, waves).wave).toEqual({ name: 'rest', index: 1, count: 2 });
    const allDone = { podChanges: Object.fromEntries(['a', 'b', 'c'].map((name) => [`ingester-zone-${name}`, updatedPods()])) };
    const over = decided({ ...outdated, ...allDone, ...withRun({ wave: 1 }) }, waves);
    expect(over.wave).toBeUndefined();
    expect(over).toMatchObject({ outcome: 'done', run: { outcome: 'completed', wave: 2 } });
  });
});

describe('the checks of a step', () => {
  it('of a rollout are in reading order', () => {
    expect(stepChecks.map(({ id }) => id)).toEqual([
      'update-strategy',
      'view-complete',
      'run-failed',
      'paused',
      'replica-write-in-flight',
      'other-zones-ready',
      'min-interval',
      'ledger-full',
      'agent-access',
      'strategy',
      'undone',
      'protected',
      'wave',
      'window',
      'policies',
      'progress-deadline',
      'run-deadline',
    ]);
  });

  it('of a change of replicas start with the requested number and end with the policies', () => {
    expect(scaleUpChecks.map(({ id }) => id)).toEqual(['replica-source', 'agent-access', 'scale-up', 'window', 'policies']);
    expect(scaleDownChecks.map(({ id }) => id)).toEqual([
      'replica-source',
      'agent-access',
      'view-complete',
      'scaling-hold',
      'paused',
      'replicas-owned',
      'no-downscale',
      'scale-floor',
      'leader-floor',
      'rollout-in-progress',
      'other-zones-ready',
      'zone-gap',
      'protected',
      'delayed-downscale',
      'window',
      'policies',
    ]);
  });
});
