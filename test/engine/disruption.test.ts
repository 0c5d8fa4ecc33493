import { describe, expect, it } from 'vitest';
import { type DisruptionQuestion, type DisruptionVerdict, disruptionVerdict } from '../../engine/disruption.ts';
import type { Claim, Known, PodView, StatefulSetView, ZoneBudgetView } from '../../engine/snapshot.ts';
import type { DisruptionDefinition } from '../../policies/definition.ts';
import { adopted, group } from '../kit/groups.ts';
import { kitNowMs, knownPods, longAgoMs, type PodChanges, type StatefulSetOverrides, statefulSet } from '../kit/objects.ts';
import { snapshotOf } from '../kit/snapshots.ts';

const zones = ['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c'];
const partition = { pattern: 'ingester-zone-[a-z]-([0-9]+)', group: 1 };

const zpdb: ZoneBudgetView = {
  namespace: 'mimir',
  name: 'zpdb',
  matchLabels: { 'rollout-group': 'ingester' },
  maxUnavailable: 1,
  crossZoneDelayMs: 0,
};

interface Case {
  readonly budgets?: Known<readonly ZoneBudgetView[]>;
  readonly sets?: readonly StatefulSetView[];
  readonly set?: StatefulSetOverrides;
  readonly pods?: Readonly<Record<string, PodChanges>>;
  readonly claims?: readonly Claim[];
  readonly ordinal?: number;
  readonly group?: DisruptionQuestion['group'];
  readonly override?: number;
  readonly unreadable?: string;
}

/** The verdict on a pod of zone a, of three zones of three pods unless the case says otherwise. */
function ask(given: Case): DisruptionVerdict {
  const sets = given.sets ?? zones.map((name) => statefulSet({ name, ...given.set }));
  const { unreadable } = given;
  const unread = unreadable === undefined ? [] : [{ namespace: 'mimir', statefulSet: unreadable, pods: { unknown: 'forbidden' } }];
  const snapshot = snapshotOf({
    statefulSets: sets,
    zoneBudgets: given.budgets ?? [zpdb],
    podChanges: given.pods ?? {},
    pods: unread,
  });
  const set = sets[0];
  const pod = knownPods(snapshot.pods.find((view) => view.statefulSet === set?.name)).find(
    ({ ordinal }) => ordinal === (given.ordinal ?? 0),
  );
  if (pod === undefined) throw new Error('the test expected a pod to ask about');
  const optional = { ...(given.group && { group: given.group }), ...(given.override !== undefined && { override: given.override }) };
  const requester = given.override === undefined ? 'eviction' : 'rollout';
  return disruptionVerdict({ snapshot, set, pod, claims: given.claims ?? [], requester, ...optional });
}

const unready: Partial<PodView> = { isReady: false, containersReady: false };
const summary = ({ allowed, code, reason, message }: DisruptionVerdict) => [allowed, code, reason, message];

describe('the steps, in their order', () => {
  it.each<[string, Case, boolean, number, string, string]>([
    [
      'a pod that has succeeded',
      { pods: { [zones[0] ?? '']: { 0: { phase: 'Succeeded' } } } },
      true,
      200,
      'pod-not-ready',
      'pod is not ready',
    ],
    ['a pod that has failed', { pods: { [zones[0] ?? '']: { 0: { phase: 'Failed' } } } }, true, 200, 'pod-not-ready', 'pod is not ready'],
    ['a pod that is pending', { pods: { [zones[0] ?? '']: { 0: { phase: 'Pending' } } } }, true, 200, 'pod-not-ready', 'pod is not ready'],
    [
      'a pod that terminates',
      { pods: { [zones[0] ?? '']: { 0: { isTerminating: true } } } },
      true,
      200,
      'pod-not-ready',
      'pod is not ready',
    ],
    [
      'a pod of unknown phase',
      { pods: { [zones[0] ?? '']: { 0: { phase: 'Unknown' } } } },
      true,
      200,
      'allowed',
      '0 of 1 unavailable in ingester-zone-a',
    ],
    [
      'budgets that could not be read',
      { budgets: { unknown: 'forbidden' } },
      false,
      400,
      'cfg-not-found',
      'disruption budgets could not be read: forbidden',
    ],
    [
      'two budgets',
      { budgets: [{ ...zpdb, name: 'z2' }, zpdb] },
      false,
      400,
      'cfg-not-found',
      'multiple disruption budgets match the pod: z2, zpdb',
    ],
    [
      'no budget',
      { budgets: [{ ...zpdb, matchLabels: { app: 'x' } }] },
      true,
      200,
      'pod-not-in-scope',
      'no disruption budget selects the pod',
    ],
    [
      'a budget of another namespace',
      { budgets: [{ ...zpdb, namespace: 'loki' }] },
      true,
      200,
      'pod-not-in-scope',
      'no disruption budget selects the pod',
    ],
    ['a limit of 0', { budgets: [{ ...zpdb, maxUnavailable: 0 }] }, false, 403, 'max-unavailable-0', 'max unavailable = 0'],
    ['a single StatefulSet', { sets: [statefulSet()] }, false, 400, 'min-sts-not-found', 'minimum number of StatefulSets not found'],
    [
      'a name without partition',
      { budgets: [{ ...zpdb, partition: { pattern: 'x-([0-9]+)', group: 1 } }] },
      false,
      400,
      'partition-not-identified',
      'pod name ingester-zone-a-0 does not match the pattern of partitions',
    ],
    [
      'pods of another zone that could not be read',
      { unreadable: zones[1] ?? '' },
      false,
      500,
      'err: sts-pod-status-not-determined',
      'the pods of ingester-zone-b could not be read',
    ],
    [
      'an unready pod elsewhere',
      { pods: { [zones[1] ?? '']: { 1: unready } } },
      false,
      429,
      'denied',
      '1 pod not ready in ingester-zone-b',
    ],
    ['everything ready', {}, true, 200, 'allowed', '0 of 1 unavailable in ingester-zone-a'],
  ])('%s', (_case, given, ...expected) => {
    expect(summary(ask(given))).toEqual(expected);
  });

  it('a pod whose StatefulSet is not known is refused, when a budget selects it', () => {
    const snapshot = snapshotOf({ statefulSets: [statefulSet()], zoneBudgets: [zpdb] });
    const pod = knownPods(snapshot.pods[0])[0];
    if (pod === undefined) throw new Error('no pod');
    expect(summary(disruptionVerdict({ snapshot, set: undefined, pod, claims: [], requester: 'eviction' }))).toEqual([
      false,
      500,
      'sts-no-found',
      'pod ingester-zone-a-0 is not controlled by a StatefulSet that could be read',
    ]);
  });

  it('each step comes before the next', () => {
    const worst = { maxUnavailable: 0, partition: { pattern: 'x-([0-9]+)', group: 1 } };
    const alone = { sets: [statefulSet()] };
    expect([
      ask({ ...alone, budgets: [{ ...zpdb, ...worst }, zpdb] }).reason,
      ask({ ...alone, budgets: [{ ...zpdb, ...worst }] }).reason,
      ask({ ...alone, budgets: [{ ...zpdb, ...worst, maxUnavailable: 1 }] }).reason,
      ask({ budgets: [{ ...zpdb, ...worst, maxUnavailable: 1 }], unreadable: zones[1] ?? '' }).reason,
      ask({ budgets: [{ ...zpdb, partition }], unreadable: zones[1] ?? '', pods: { [zones[2] ?? '']: { 0: unready } } }).reason,
    ]).toEqual([
      'cfg-not-found',
      'max-unavailable-0',
      'min-sts-not-found',
      'partition-not-identified',
      'err: sts-pod-status-not-determined',
    ]);
  });

  it('a denial names the budget, the limit and what was counted', () => {
    expect(ask({ pods: { [zones[1] ?? '']: { 1: unready } } })).toEqual({
      allowed: false,
      code: 429,
      reason: 'denied',
      message: '1 pod not ready in ingester-zone-b',
      unavailable: 1,
      limit: 1,
      budget: 'ZoneAwarePodDisruptionBudget mimir/zpdb',
    });
  });
});

describe('the effective limit', () => {
  it.each([
    [100, 3, 3, 3],
    [1, 3, 3, 1],
    [75, 3, 3, 2],
    [50, 10, 6, 3],
    [50, 10, 20, 5],
    [50, 10, 0, 0],
    [0, 10, 10, 0],
  ])('%i%% of %i wanted and %i present replicas is %i', (maxUnavailablePercent, replicas, present, limit) => {
    const { maxUnavailable: _maxUnavailable, ...rest } = zpdb;
    expect(ask({ budgets: [{ ...rest, maxUnavailablePercent }], set: { replicas, status: { replicas: present } } }).limit).toBe(limit);
  });

  it.each([
    ['a limit of 0 is replaced by it', { ...zpdb, maxUnavailable: 0 }, 5, 5],
    ['in partitions by 1', { ...zpdb, maxUnavailable: 0, partition }, 5, 1],
    ['a limit that is not 0 is kept', zpdb, 10, 1],
    ['an override of 0 allows nothing', { ...zpdb, maxUnavailable: 0 }, 0, 0],
  ])('with the override of a rollout: %s', (_case, budget, override, limit) => {
    expect(ask({ budgets: [budget], override }).limit).toBe(limit);
  });
});

describe('zone by zone', () => {
  const two: Case = { budgets: [{ ...zpdb, maxUnavailable: 2 }] };

  it.each<[string, Case, string]>([
    [
      'one unready pod elsewhere denies, whatever the limit',
      { pods: { 'ingester-zone-b': { 0: unready } } },
      '1 pod not ready in ingester-zone-b',
    ],
    ['so does a missing one', { pods: { 'ingester-zone-c': { 0: 'missing' } } }, '1 pod unknown in ingester-zone-c'],
    [
      'the first zone by name is named',
      { pods: { 'ingester-zone-c': { 0: unready }, 'ingester-zone-b': { 0: 'missing' } } },
      '1 pod unknown in ingester-zone-b',
    ],
    [
      'a terminating pod is not ready',
      { pods: { 'ingester-zone-b': { 0: { isTerminating: true } } } },
      '1 pod not ready in ingester-zone-b',
    ],
    [
      'a pod of unknown phase is not ready',
      { pods: { 'ingester-zone-b': { 0: { phase: 'Unknown' } } } },
      '1 pod not ready in ingester-zone-b',
    ],
    [
      'the own zone may lack fewer than the limit',
      { pods: { 'ingester-zone-a': { 1: unready } } },
      '1 of 2 unavailable in ingester-zone-a',
    ],
    ['and no more', { pods: { 'ingester-zone-a': { 1: unready, 2: unready } } }, '2 pods not ready in ingester-zone-a'],
    [
      'missing pods and unready ones are added',
      { pods: { 'ingester-zone-a': { 1: unready, 2: 'missing' } } },
      '1 pod not ready, 1 pod unknown in ingester-zone-a',
    ],
    ['the pod itself costs nothing', { pods: { 'ingester-zone-a': { 0: unready, 1: unready } } }, '1 of 2 unavailable in ingester-zone-a'],
  ])('%s', (_case, given, message) => {
    expect(ask({ ...two, ...given }).message).toBe(message);
  });

  it('counts missing pods from the larger of wanted and present replicas', () => {
    const sets = zones.map((name) => statefulSet({ name, replicas: 2, status: { replicas: name === 'ingester-zone-b' ? 3 : 2 } }));
    expect(ask({ ...two, sets }).message).toBe('1 pod unknown in ingester-zone-b');
  });

  it('counts a StatefulSet that its own budget does not select', () => {
    const sets = zones.map((name, index) => statefulSet({ name, labels: index === 0 ? {} : { 'rollout-group': 'ingester' } }));
    expect(ask({ sets }).message).toBe('0 of 1 unavailable in ingester-zone-a');
    expect(ask({ sets, pods: { 'ingester-zone-a': { 1: unready } } }).message).toBe('1 pod not ready in ingester-zone-a');
  });

  it('a claim of the last two minutes makes another pod unready, but not the same one', () => {
    const claim = (uid: string, ageMs: number, verb: Claim['verb'] = 'evictPod'): Claim => ({
      verb,
      zone: 'b',
      uid,
      atMs: kitNowMs - ageMs,
    });
    expect(
      [
        claim('uid-ingester-zone-b-1', 119_999),
        claim('uid-ingester-zone-b-1', 120_000),
        claim('uid-ingester-zone-b-1', 0, 'deletePod'),
        claim('uid-ingester-zone-b', 0, 'scaleDown'),
        claim('uid-ingester-zone-a-0', 0),
      ].map((one) => ask({ claims: [one] }).allowed),
    ).toEqual([false, true, false, true, true]);
    expect(ask({ claims: [claim('uid-ingester-zone-b-1', 20_000)] }).earliestMs).toBe(kitNowMs + 100_000);
  });
});

describe('partition by partition', () => {
  const budget: ZoneBudgetView = { ...zpdb, partition };
  const inPartition = (given: Case): string => ask({ budgets: [budget], ordinal: 1, ...given }).message;

  it.each<[string, Case, string]>([
    [
      'pods of other partitions do not matter',
      { pods: { 'ingester-zone-b': { 0: unready, 2: unready } } },
      '0 of 1 unavailable in partition 1',
    ],
    ['the own zone does not matter', { pods: { 'ingester-zone-a': { 0: 'missing', 2: unready } } }, '0 of 1 unavailable in partition 1'],
    ['one of the partition elsewhere denies', { pods: { 'ingester-zone-b': { 1: unready } } }, '1 pod not ready in partition 1'],
    [
      'all zones are added up',
      { pods: { 'ingester-zone-b': { 1: unready }, 'ingester-zone-c': { 1: unready } } },
      '2 pods not ready in partition 1',
    ],
    [
      'a missing pod elsewhere may be of this partition',
      { pods: { 'ingester-zone-b': { 0: 'missing' }, 'ingester-zone-c': { 1: unready } } },
      '1 pod not ready, 1 pod unknown in partition 1',
    ],
  ])('%s', (_case, given, message) => {
    expect(inPartition(given)).toBe(message);
  });

  it('a zone that shows nothing of the partition counts one unknown pod', () => {
    const sets = zones.map((name) => statefulSet({ name, replicas: name === 'ingester-zone-b' ? 1 : 3 }));
    expect(inPartition({ sets })).toBe('1 pod unknown in partition 1');
  });

  it('a pod of another zone that matches no partition belongs to none', () => {
    const sets = [statefulSet(), statefulSet({ name: 'other', replicas: 1 })];
    expect(inPartition({ sets })).toBe('1 pod unknown in partition 1');
  });

  it('allows as many as the limit', () => {
    const pods = { 'ingester-zone-b': { 1: unready } };
    expect(inPartition({ pods, budgets: [{ ...budget, maxUnavailable: 2 }] })).toBe('1 of 2 unavailable in partition 1');
  });

  it('anchors are plainly put around the pattern, so a top-level alternation binds loosely', () => {
    const loose = { ...budget, partition: { pattern: 'ingester-zone-a-([0-9]+)|zone-b-([0-9]+)', group: 1 } };
    expect(ask({ budgets: [loose], ordinal: 1 }).message).toBe('2 pods unknown in partition 1');
  });

  it.each(['(', '(?=x)(y)', '(a)\\1'])('a pattern that is no RE2 pattern matches nothing: %s', (pattern) => {
    expect(ask({ budgets: [{ ...budget, partition: { pattern, group: 1 } }] }).reason).toBe('partition-not-identified');
  });

  it('an empty partition is none', () => {
    expect(ask({ budgets: [{ ...budget, partition: { pattern: 'ingester-zone-a-0(x*)', group: 1 } }] }).reason).toBe(
      'partition-not-identified',
    );
  });
});

describe('the delay between zones', () => {
  const budget: ZoneBudgetView = { ...zpdb, partition, crossZoneDelayMs: 60_000 };
  const readyAll = (readyTimeMs: number): Readonly<Record<string, PodChanges>> =>
    Object.fromEntries(zones.map((name) => [name, { 0: { readyTimeMs }, 1: { readyTimeMs }, 2: { readyTimeMs } }]));

  it('counts a pod as ready only when more than the delay has passed', () => {
    expect([60_001, 60_000].map((ageMs) => ask({ budgets: [budget], pods: readyAll(kitNowMs - ageMs) }).message)).toEqual([
      '0 of 1 unavailable in partition 0',
      '2 pods not ready in partition 0',
    ]);
    expect(ask({ budgets: [budget], pods: readyAll(kitNowMs - 20_000) }).earliestMs).toBe(kitNowMs + 40_001);
  });

  it('is never over for an adopted pod without an instant, and for a native one begins with its Ready condition', () => {
    const locked = ask({ budgets: [budget], group: adopted() });
    expect([locked.message, locked.earliestMs]).toEqual(['2 pods not ready in partition 0', undefined]);
    expect(ask({ budgets: [budget], group: group() }).message).toBe('0 of 1 unavailable in partition 0');
  });

  it('does not matter zone by zone', () => {
    const { partition: _partition, ...zonal } = budget;
    expect(ask({ budgets: [zonal], pods: readyAll(kitNowMs) }).allowed).toBe(true);
  });
});

describe("a group's own budget", () => {
  const disruption: DisruptionDefinition = { maxUnavailable: 1, crossZoneDelayMs: 0 };
  const native = (overrides: Partial<DisruptionDefinition> = {}) => group({ disruption: { ...disruption, ...overrides } });
  const own = (given: Case): DisruptionVerdict => ask({ budgets: [], ...given });

  it('counts the zones of the group, whatever their labels', () => {
    const sets = zones.map((name) => statefulSet({ name, labels: {} }));
    const pods = { 'ingester-zone-b': { 1: unready } };
    expect(own({ sets, pods, group: native() })).toMatchObject({ allowed: false, message: '1 pod not ready in ingester-zone-b', limit: 1 });
    expect(Object.keys(own({ sets, group: native() }))).not.toContain('budget');
  });

  it('allows one pod when it names no number, and none when it names 0', () => {
    expect(own({ group: group({ disruption: { crossZoneDelayMs: 0 } }) }).limit).toBe(1);
    expect(own({ group: native({ maxUnavailable: 0 }) }).reason).toBe('max-unavailable-0');
  });

  it('is there for a group of one zone too', () => {
    const alone = { ...native(), zones: native().zones.slice(0, 1) };
    expect(own({ sets: [statefulSet()], group: alone }).allowed).toBe(true);
    expect(own({ sets: [statefulSet()], group: alone, pods: { 'ingester-zone-a': { 1: unready } } }).allowed).toBe(false);
  });

  it('is asked beside a ZoneAwarePodDisruptionBudget, and the one that denies is named', () => {
    const wide: ZoneBudgetView = { ...zpdb, maxUnavailable: 3 };
    const pods = { 'ingester-zone-a': { 1: unready } };
    expect(ask({ budgets: [wide], group: native(), pods })).toMatchObject({ allowed: false, limit: 1 });
    expect(ask({ budgets: [wide], group: native({ maxUnavailable: 3 }), pods })).toMatchObject({
      allowed: true,
      limit: 3,
      budget: 'ZoneAwarePodDisruptionBudget mimir/zpdb',
    });
  });

  it('reads readiness as the group does', () => {
    const recent = { isReady: true, containersReady: true, readyChangedMs: kitNowMs - 5_000 };
    const pods = { 'ingester-zone-b': { 0: recent } };
    const set = { minReadySeconds: 10 };
    expect([own({ set, pods, group: native() }), own({ set, pods, group: adopted({ disruption }) })].map(({ allowed }) => allowed)).toEqual(
      [false, true],
    );
    expect(own({ set, pods, group: native() }).earliestMs).toBe(kitNowMs + 5_000);
    const conditionOnly = { 'ingester-zone-b': { 0: { isReady: false, containersReady: true, readyChangedMs: longAgoMs } } };
    expect([native(), adopted({ disruption })].map((one) => own({ pods: conditionOnly, group: one }).allowed)).toEqual([false, true]);
    const lostNode = { 'ingester-zone-b': { 0: { nodeReady: false } } };
    expect([native(), adopted({ disruption })].map((one) => own({ pods: lostNode, group: one }).allowed)).toEqual([false, true]);
  });
});
