import { describe, expect, it } from 'vitest';
import { type DisruptionVerdict, disruptionVerdict, zoneBudgetsFor } from '../../../engine/disruption/disruption.ts';
import type { ZoneBudgetView } from '../../../engine/snapshot.ts';
import { askDisruption, type DisruptionCase, partition, unready, zoneSets, zpdb } from '../../kit/disruptions.ts';
import { adopted, group } from '../../kit/groups.ts';
import { kitNowMs, knownPods, type PodChanges, statefulSet } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const summary = ({ allowed, code, reason, message }: DisruptionVerdict) => [allowed, code, reason, message];

describe('the steps, in their order', () => {
  it.each<[string, DisruptionCase, boolean, number, string, string]>([
    [
      'a pod that has succeeded',
      { pods: { 'ingester-zone-a': { 0: { phase: 'Succeeded' } } } },
      true,
      200,
      'pod-not-ready',
      'pod is not ready',
    ],
    ['a pod that has failed', { pods: { 'ingester-zone-a': { 0: { phase: 'Failed' } } } }, true, 200, 'pod-not-ready', 'pod is not ready'],
    ['a pod that is pending', { pods: { 'ingester-zone-a': { 0: { phase: 'Pending' } } } }, true, 200, 'pod-not-ready', 'pod is not ready'],
    [
      'a pod that terminates',
      { pods: { 'ingester-zone-a': { 0: { isTerminating: true } } } },
      true,
      200,
      'pod-not-ready',
      'pod is not ready',
    ],
    [
      'a pod of unknown phase',
      { pods: { 'ingester-zone-a': { 0: { phase: 'Unknown' } } } },
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
      { unreadable: 'ingester-zone-b' },
      false,
      500,
      'err: sts-pod-status-not-determined',
      'the pods of ingester-zone-b could not be read',
    ],
    [
      'an unready pod elsewhere',
      { pods: { 'ingester-zone-b': { 1: unready } } },
      false,
      429,
      'denied',
      '1 pod not ready in ingester-zone-b',
    ],
    ['everything ready', {}, true, 200, 'allowed', '0 of 1 unavailable in ingester-zone-a'],
  ])('%s', (_case, given, ...expected) => {
    expect(summary(askDisruption(given))).toEqual(expected);
  });

  it('a pod of an unknown StatefulSet is denied if a budget selects it', () => {
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

  it('each step precedes the next', () => {
    const worst = { maxUnavailable: 0, partition: { pattern: 'x-([0-9]+)', group: 1 } };
    const alone = { sets: [statefulSet()] };
    expect([
      askDisruption({ ...alone, budgets: [{ ...zpdb, ...worst }, zpdb] }).reason,
      askDisruption({ ...alone, budgets: [{ ...zpdb, ...worst }] }).reason,
      askDisruption({ ...alone, budgets: [{ ...zpdb, ...worst, maxUnavailable: 1 }] }).reason,
      askDisruption({ budgets: [{ ...zpdb, ...worst, maxUnavailable: 1 }], unreadable: 'ingester-zone-b' }).reason,
      askDisruption({ budgets: [{ ...zpdb, partition }], unreadable: 'ingester-zone-b', pods: { 'ingester-zone-c': { 0: unready } } })
        .reason,
    ]).toEqual([
      'cfg-not-found',
      'max-unavailable-0',
      'min-sts-not-found',
      'partition-not-identified',
      'err: sts-pod-status-not-determined',
    ]);
  });

  it('a denial names the budget, the limit and the counted pods', () => {
    expect(askDisruption({ pods: { 'ingester-zone-b': { 1: unready } } })).toEqual({
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

describe('the budgets that select a pod', () => {
  const names = (namespace: string | undefined, labels: Readonly<Record<string, string>>): readonly string[] =>
    zoneBudgetsFor(
      [{ ...zpdb, name: 'z2' }, zpdb, { ...zpdb, namespace: 'loki' }, { ...zpdb, name: 'all', matchLabels: {} }],
      namespace,
      labels,
    ).map((budget) => `${budget.namespace}/${budget.name}`);

  it('are the budgets of its namespace that match its labels, by name', () => {
    expect(names('mimir', { 'rollout-group': 'ingester', app: 'x' })).toEqual(['mimir/all', 'mimir/z2', 'mimir/zpdb']);
    expect(names('mimir', { app: 'x' })).toEqual(['mimir/all']);
  });

  it('are the budgets of every namespace if no namespace is named', () => {
    expect(names(undefined, { 'rollout-group': 'ingester' })).toContain('loki/zpdb');
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
  ])('%i%% of %i requested and %i present replicas is %i', (maxUnavailablePercent, replicas, present, limit) => {
    const { maxUnavailable: _maxUnavailable, ...rest } = zpdb;
    expect(askDisruption({ budgets: [{ ...rest, maxUnavailablePercent }], set: { replicas, status: { replicas: present } } }).limit).toBe(
      limit,
    );
  });

  it.each([
    ['a limit of 0 is replaced by it', { ...zpdb, maxUnavailable: 0 }, 5, 5],
    ['in partitions by 1', { ...zpdb, maxUnavailable: 0, partition }, 5, 1],
    ['a limit that is not 0 is kept', zpdb, 10, 1],
    ['an override of 0 allows nothing', { ...zpdb, maxUnavailable: 0 }, 0, 0],
  ])('with the override of a rollout: %s', (_case, budget, override, limit) => {
    expect(askDisruption({ budgets: [budget], override }).limit).toBe(limit);
  });

  it('an eviction has no override', () => {
    expect(askDisruption({ budgets: [{ ...zpdb, maxUnavailable: 0 }], override: 5, requester: 'eviction' }).limit).toBe(0);
  });
});

describe('the delay between zones', () => {
  const budget: ZoneBudgetView = { ...zpdb, partition, crossZoneDelayMs: 60_000 };
  const readyAll = (readyTimeMs: number): Readonly<Record<string, PodChanges>> =>
    Object.fromEntries(zoneSets.map((name) => [name, { 0: { readyTimeMs }, 1: { readyTimeMs }, 2: { readyTimeMs } }]));

  it('counts a pod as ready only when more than the delay has passed', () => {
    expect([60_001, 60_000].map((ageMs) => askDisruption({ budgets: [budget], pods: readyAll(kitNowMs - ageMs) }).message)).toEqual([
      '0 of 1 unavailable in partition 0',
      '2 pods not ready in partition 0',
    ]);
    expect(askDisruption({ budgets: [budget], pods: readyAll(kitNowMs - 20_000) }).earliestMs).toBe(kitNowMs + 40_001);
  });

  it('never ends for an adopted pod without a time, and starts for a native pod with its Ready condition', () => {
    const locked = askDisruption({ budgets: [budget], group: adopted() });
    expect([locked.message, locked.earliestMs]).toEqual(['2 pods not ready in partition 0', undefined]);
    expect(askDisruption({ budgets: [budget], group: group() }).message).toBe('0 of 1 unavailable in partition 0');
  });

  it('has no effect in zone mode', () => {
    const { partition: _partition, ...zonal } = budget;
    expect(askDisruption({ budgets: [zonal], pods: readyAll(kitNowMs) }).allowed).toBe(true);
  });
});
