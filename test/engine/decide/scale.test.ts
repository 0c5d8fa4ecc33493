import { describe, expect, it } from 'vitest';
import { decideScale } from '../../../engine/decide/scale.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import type { ReplicaSourceView } from '../../../engine/snapshot.ts';
import type { GroupDefinition, ReplicasDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, statefulSet } from '../../kit/objects.ts';
import {
  ago,
  contextWith,
  exception,
  freeze,
  hourMs,
  intent,
  ledgerOf,
  minuteMs,
  policy,
  policyRule,
  preparation,
  runOf,
} from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const endpoint = { scheme: 'http', port: 8080, path: '/prepare', timeout: '5s' } as const;
const delayed = { afterMs: 2 * hourMs, endpoint, onUnreachable: 'hold' } as const;
const prepare = { endpoint, onFailure: 'deny' } as const;
const mirror: ReplicasDefinition = {
  kind: 'mirror',
  apiVersion: 'rollout-operator.grafana.com/v1',
  resourceKind: 'ReplicaTemplate',
  name: 'ingester',
  read: 'scale',
  writeBack: 'status',
  onMissing: 'hold',
};
const asking = (replicas: number, statusReplicas?: number): ReplicaSourceView => ({
  namespace: 'mimir',
  apiVersion: 'rollout-operator.grafana.com/v1',
  kind: 'ReplicaTemplate',
  name: 'ingester',
  replicas,
  ...(statusReplicas === undefined ? {} : { statusReplicas }),
});
const count = (number: number) => ({ replicas: { kind: 'count', count: number } }) as const;

/** What is scaled now, of zones with these replicas. */
function scale(definition: GroupDefinition, replicas: Readonly<Record<string, number>>, overrides: SnapshotOverrides = {}, run?: RunState) {
  const statefulSets = Object.entries(replicas).map(([name, number]) => statefulSet({ name: `ingester-zone-${name}`, replicas: number }));
  return decideScale(contextWith(definition, { statefulSets, ...overrides }), run);
}

type Decided = ReturnType<typeof scale>;
const doing = ({ actions }: Decided) =>
  actions.map((action) => {
    if (action.kind === 'scaleStatefulSet') return `${action.zone} ${action.from}-${action.to}`;
    if (action.kind === 'callPods') return `${action.method} ${action.call} ${action.zone} ${action.ordinals.join(',')}`;
    return action.kind === 'writeBackReplicas' ? `tell ${action.name} ${action.replicas}` : action.kind;
  });
const steps = ({ steps: list }: Decided) =>
  list.map((step) => {
    const rules = step.results.filter(({ outcome }) => outcome !== 'ok' && outcome !== 'skip').map(({ rule }) => rule);
    return `${step.id} ${step.kind} ${step.from ?? ''}-${step.to ?? ''} ${step.outcome}: ${rules.join(' ')}`;
  });

describe('a write of replicas', () => {
  it('has UID, resourceVersion and the observed number', () => {
    expect(scale(group({ zones: [{ name: 'a', ...count(5) }] }), { a: 3 }).actions).toEqual([
      {
        kind: 'scaleStatefulSet',
        namespace: 'mimir',
        zone: 'a',
        statefulSet: 'ingester-zone-a',
        uid: 'uid-ingester-zone-a',
        resourceVersion: '100',
        from: 3,
        to: 5,
      },
    ]);
  });

  it('is absent if the number is correct, or another client sets it', () => {
    const nothing = { steps: [], actions: [], warnings: [], isScaling: false };
    expect(scale(group({ zones: [{ name: 'a', ...count(3) }] }), { a: 3 })).toEqual(nothing);
    expect(scale(group(), { a: 3 })).toEqual(nothing);
  });

  it('is at most one per turn, of the first follower, then of the first zone', () => {
    const zones = [
      { name: 'a', ...count(5) },
      { name: 'b', follows: 'a' },
      { name: 'c', ...count(5) },
    ];
    const decided = scale(group({ zones }), { a: 4, b: 3, c: 3 });
    expect(doing(decided)).toEqual(['b 3-4']);
    expect(decided.isScaling).toBe(true);
    expect(doing(scale(group({ zones }), { a: 4, b: 4, c: 3 }))).toEqual(['a 4-5']);
    expect(doing(scale(group({ zones }), { a: 5, b: 5, c: 3 }))).toEqual(['c 3-5']);
  });

  it('continues with the next zone if one must not be written', () => {
    const zones = [
      { name: 'a', ...count(5), scalingHold: 'its settings are wrong' },
      { name: 'b', ...count(5) },
    ];
    const decided = scale(group({ zones }), { a: 3, b: 3 });
    expect(doing(decided)).toEqual(['b 3-5']);
    expect(steps(decided)).toEqual(['scale/a scaleUp 3-5 blocked: scaling-hold', 'scale/b scaleUp 3-5 act: ']);
  });
});

describe('an unreadable replica count', () => {
  it('blocks its zone, and cancels no preparation in it', () => {
    const decided = scale(
      group({ zones: [{ name: 'a', replicas: mirror }] }),
      { a: 3 },
      { ledgers: [ledgerOf({ preparations: [preparation(1)] })] },
    );
    expect(steps(decided)).toEqual(['scale/a scaleUp - wait: replica-source']);
    expect(decided.actions).toEqual([]);
    const failing = scale(group({ zones: [{ name: 'a', replicas: { ...mirror, onMissing: 'fail' } }] }), { a: 3 });
    expect(steps(failing)).toEqual(['scale/a scaleUp - blocked: replica-source']);
  });
});

describe('a zone that grows', () => {
  const grown = group({ zones: [{ name: 'a', ...count(5) }] });

  it('evaluates the scale-up rules, windows and policies', () => {
    const [step] = scale(grown, { a: 3 }).steps;
    expect(step?.results.map(({ rule, outcome }) => `${rule} ${outcome}`)).toEqual([
      'replica-source ok',
      'view-complete ok',
      'scaling-hold ok',
      'scale-ceiling skip',
      'leader-ready skip',
      'rollout-in-progress ok',
      'window skip',
    ]);
  });

  it('is blocked by windows and policies of the action scaleUp', () => {
    const closed = { policies: [policy({ windows: [freeze({ actions: ['scaleUp'] })], rules: [policyRule({ actions: ['scaleUp'] })] })] };
    expect(steps(scale(grown, { a: 3 }, closed))).toEqual(['scale/a scaleUp 3-5 blocked: window safety/rule']);
    const other = {
      policies: [policy({ windows: [freeze({ actions: ['scaleDown'] })], rules: [policyRule({ actions: ['scaleDown'] })] })],
    };
    expect(doing(scale(grown, { a: 3 }, other))).toEqual(['a 3-5']);
  });

  it('is permitted by an exception', () => {
    const denied = { policies: [policy({ rules: [policyRule({ actions: ['scaleUp'] })] })], exceptions: [exception('safety/rule')] };
    expect(doing(scale(grown, { a: 3 }, denied))).toEqual(['a 3-5']);
  });

  it('grows at once with forceReplicas, but not against a policy', () => {
    const forced = group({
      zones: [{ name: 'a', ...count(3), forceReplicas: 9, scalingHold: 'x', bounds: { max: 5, multipleOf: 1, parity: 'any' } }],
    });
    expect(doing(scale(forced, { a: 3 }))).toEqual(['a 3-9']);
    const denied = { policies: [policy({ rules: [policyRule({ actions: ['scaleUp'] })] })] };
    expect(doing(scale(forced, { a: 3 }, denied))).toEqual([]);
  });

  it('keeps its pods that were called to prepare', () => {
    const preparations = [preparation(2), preparation(1, { call: 'prepare' })];
    expect(doing(scale(grown, { a: 3 }, { ledgers: [ledgerOf({ preparations })] }))).toEqual([
      'DELETE delayed a 2',
      'DELETE prepare a 1',
      'a 3-5',
    ]);
  });

  it('contains the warnings of policies', () => {
    const warned = { policies: [policy({ rules: [policyRule({ actions: ['scaleUp'], effect: 'warn' })] })] };
    expect(scale(grown, { a: 3 }, warned).warnings.map(({ rule }) => rule)).toEqual(['safety/rule']);
  });
});

describe('a zone with directly scaled replicas', () => {
  const owned = group({ zones: [{ name: 'a', replicas: { kind: 'leader' }, delayed, prepare }] });

  it('cancels the preparation of pods from the time when another client set them', () => {
    const preparations = [preparation(2), preparation(1, { call: 'prepare' })];
    expect(doing(scale(owned, { a: 3 }, { ledgers: [ledgerOf({ preparations })] }))).toEqual(['DELETE delayed a 2', 'DELETE prepare a 1']);
    expect(doing(scale(owned, { a: 2 }, { ledgers: [ledgerOf({ preparations: [preparation(2)] })] }))).toEqual([]);
  });
});

describe('a zone that shrinks', () => {
  const shrinking = (zone: object = {}) => group({ zones: [{ name: 'a', ...count(3), ...zone }] });
  const ledger = (...preparations: ReturnType<typeof preparation>[]) => ({ ledgers: [ledgerOf({ preparations })] });

  it('names the prepared pods while a rule other than their preparation blocks it', () => {
    const paused = { intents: [intent({ action: 'pause' })] };
    const warnings = (overrides: SnapshotOverrides) => scale(shrinking({ delayed }), { a: 5 }, overrides).warnings.map(({ fact }) => fact);
    const prepared = ledger(preparation(3), preparation(4));
    const end =
      'while paused blocks the decrease to 3 replicas. To cancel the decrease, run: kubectl rollout-group cancel mimir/ingester --zone a';
    expect(warnings({ ...prepared, ...paused })).toEqual([`pods 3-4 of zone a stay prepared ${end}`]);
    expect(warnings({ ...ledger(preparation(4)), ...paused })).toEqual([`a-4 stays prepared ${end}`]);
    expect(warnings(prepared)).toEqual([]);
    expect(warnings({ ...ledger(preparation(4, { state: 'failed' }), preparation(2)), ...paused })).toEqual([]);
  });

  it('evaluates the scale-down rules, then the delay, then the preparation', () => {
    const [step] = scale(shrinking(), { a: 5 }).steps;
    expect(step).toMatchObject({ kind: 'scaleDown', from: 5, to: 3, outcome: 'act' });
    expect(step?.results.map(({ rule, outcome }) => `${rule} ${outcome}`)).toEqual([
      'replica-source ok',
      'view-complete ok',
      'scaling-hold ok',
      'paused ok',
      'replicas-owned skip',
      'no-downscale ok',
      'scale-floor ok',
      'leader-floor skip',
      'rollout-in-progress ok',
      'other-zones-ready ok',
      'zone-gap ok',
      'window skip',
      'delayed-downscale skip',
      'prepare-downscale skip',
    ]);
  });

  it('prepares no pod while another rule blocks', () => {
    const decided = scale(shrinking({ delayed, prepare }), { a: 5 }, { intents: [intent({ action: 'pause' })] });
    expect(doing(decided)).toEqual([]);
    expect(steps(decided)).toEqual(['scale/a scaleDown 5-3 wait: paused']);
    expect(steps(scale(shrinking(), { a: 5 }, {}, runOf()))).toEqual(['scale/a scaleDown 5-3 wait: rollout-in-progress']);
  });

  it('prepares the successor of a prepared pod, also while another rule blocks, but not during a pause', () => {
    const prepared = ledger(preparation(4, { podUid: 'uid-old' }));
    expect(doing(scale(shrinking({ delayed }), { a: 5 }, prepared, runOf()))).toEqual(['POST delayed a 4']);
    const paused = { intents: [intent({ action: 'pause' as const })], ...prepared };
    expect(doing(scale(shrinking({ delayed }), { a: 5 }, paused))).toEqual([]);
  });

  it('starts with the delay, without the preparation', () => {
    expect(doing(scale(shrinking({ delayed, prepare }), { a: 5 }))).toEqual(['POST delayed a 3,4']);
  });

  it('removes the pods whose delay has passed, after their preparation', () => {
    const young = preparation(3, { seenMs: ago(minuteMs), reportedMs: ago(minuteMs) });
    expect(doing(scale(shrinking({ delayed }), { a: 5 }, ledger(young, preparation(4))))).toEqual(['a 5-4']);
    const both = shrinking({ delayed, prepare });
    const asked = scale(both, { a: 5 }, ledger(young, preparation(4)));
    expect(doing(asked)).toEqual(['POST prepare a 4']);
    expect(steps(asked)).toEqual(['scale/a scaleDown 5-3 wait: prepare-downscale']);
    const ready = scale(both, { a: 5 }, ledger(young, preparation(4), preparation(4, { call: 'prepare' })));
    expect(doing(ready)).toEqual(['a 5-4']);
    expect(steps(ready)).toEqual(['scale/a scaleDown 5-4 act: ']);
  });

  it('cancels a failed preparation', () => {
    const failed = preparation(4, { call: 'prepare', state: 'failed', seenMs: ago(1000), message: 'HTTP 500' });
    const decided = scale(shrinking({ prepare }), { a: 5 }, ledger(failed));
    expect(doing(decided)).toEqual(['DELETE prepare a 4,3']);
    expect(steps(decided)).toEqual(['scale/a scaleDown 5-3 blocked: prepare-downscale']);
  });

  it('keeps the pods that no longer leave', () => {
    expect(doing(scale(shrinking({ delayed }), { a: 5 }, ledger(preparation(2), preparation(3), preparation(4))))).toEqual([
      'DELETE delayed a 2',
      'a 5-3',
    ]);
    expect(doing(scale(shrinking({ delayed }), { a: 3 }, ledger(preparation(2))))).toEqual(['DELETE delayed a 2']);
  });

  it('shrinks without delay when an exception of the delay allows it', () => {
    const allowed = { exceptions: [exception('delayed-downscale', { allow: { replicasAtLeast: 3 } })] };
    expect(doing(scale(shrinking({ delayed }), { a: 5 }, allowed)).at(-1)).toBe('a 5-3');
  });

  it('shrinks without preparation when an exception of it allows that', () => {
    const allowed = { exceptions: [exception('prepare-downscale', { allow: { replicasAtLeast: 3 } })] };
    expect(doing(scale(shrinking({ prepare }), { a: 5 }, allowed))).toEqual(['a 5-3']);
  });

  it('shrinks at once with forceReplicas', () => {
    const forced = shrinking({ delayed, prepare, forceReplicas: 1, bounds: { min: 3, multipleOf: 1, parity: 'any' } });
    expect(doing(scale(forced, { a: 5 }))).toEqual(['a 5-1']);
  });
});

describe('an object with mirrored replicas', () => {
  const mirrored = group({ zones: [{ name: 'a', replicas: mirror }] });

  it('gets the replicas after this turn, if it has another number', () => {
    const told = scale(mirrored, { a: 3 }, { replicaSources: [asking(5, 3)] });
    expect(doing(told)).toEqual(['a 3-5', 'tell ingester 5']);
    expect(told.actions.at(-1)).toEqual({
      kind: 'writeBackReplicas',
      namespace: 'mimir',
      apiVersion: 'rollout-operator.grafana.com/v1',
      resourceKind: 'ReplicaTemplate',
      name: 'ingester',
      replicas: 5,
    });
    expect(doing(scale(mirrored, { a: 5 }, { replicaSources: [asking(5)] }))).toEqual(['tell ingester 5']);
    expect(doing(scale(mirrored, { a: 5 }, { replicaSources: [asking(5, 5)] }))).toEqual([]);
  });

  it('gets the current replicas while the zone must not change', () => {
    const paused = { intents: [intent({ action: 'pause' as const })] };
    expect(doing(scale(mirrored, { a: 5 }, { ...paused, replicaSources: [asking(3)] }))).toEqual(['tell ingester 5']);
    const frozen = { policies: [policy({ windows: [freeze({ actions: ['scaleUp'] })] })] };
    expect(doing(scale(mirrored, { a: 5 }, { ...frozen, replicaSources: [asking(9)] }))).toEqual(['tell ingester 5']);
  });

  it('gets no number if write-back is off', () => {
    const silent = group({ zones: [{ name: 'a', replicas: { ...mirror, writeBack: 'none' } }] });
    expect(doing(scale(silent, { a: 5 }, { replicaSources: [asking(5)] }))).toEqual([]);
  });

  it('gets one write, from the last zone that mirrors it', () => {
    const both = group({
      zones: [
        { name: 'a', replicas: mirror },
        { name: 'b', replicas: mirror },
      ],
    });
    expect(doing(scale(both, { a: 5, b: 5 }, { replicaSources: [asking(5, 4)] }))).toEqual(['tell ingester 5']);
    const held = { intents: [intent({ action: 'pause' as const, zone: 'b' })] };
    expect(doing(scale(both, { a: 3, b: 5 }, { ...held, replicaSources: [asking(3, 3)] }))).toEqual(['tell ingester 5']);
    expect(doing(scale(both, { a: 3, b: 5 }, { ...held, replicaSources: [asking(3, 5)] }))).toEqual([]);
  });

  it('gets no write from a zone that waits for the write of another zone', () => {
    const both = group({
      zones: [
        { name: 'a', replicas: mirror },
        { name: 'b', replicas: mirror },
      ],
    });
    expect(doing(scale(both, { a: 3, b: 3 }, { replicaSources: [asking(5, 3)], nowMs: kitNowMs }))).toEqual(['a 3-5', 'tell ingester 5']);
  });
});

describe('a requested downscale that may still arrive', () => {
  const claim = { verb: 'scaleDown', zone: 'b', uid: 'uid-ingester-zone-b', atMs: ago(minuteMs), from: 4, to: 3 } as const;
  const announced = (
    replicas: Readonly<Record<string, number>>,
    zones = group({ zones: ['a', 'b', 'c'].map((name) => ({ name, ...count(3) })) }),
  ) => scale(zones, replicas, { ledgers: [ledgerOf({ claims: [claim] })] });

  it('blocks the downscale of every other zone, although the StatefulSet still has all of its pods', () => {
    const decided = announced({ a: 4, b: 4, c: 3 });
    expect(doing(decided)).toEqual(['b 4-3']);
    const held = decided.steps.find(({ zone }) => zone === 'a')?.results.find(({ rule }) => rule === 'other-zones-ready');
    expect(held).toMatchObject({ outcome: 'wait', fact: 'zone b shrinks from 4 to 3 replicas' });
  });

  it('does not block its zone, which requests it again', () => {
    expect(doing(announced({ a: 3, b: 4, c: 3 }))).toEqual(['b 4-3']);
  });
});
