import { describe, expect, it } from 'vitest';
import type { DisruptionVerdict } from '../../../engine/disruption/disruption.ts';
import type { Claim, ZoneBudgetView } from '../../../engine/snapshot.ts';
import type { DisruptionDefinition } from '../../../policies/definition.ts';
import { askDisruption, type DisruptionCase, partition, unready, zoneSets, zpdb } from '../../kit/disruptions.ts';
import { adopted, group } from '../../kit/groups.ts';
import { kitNowMs, longAgoMs, statefulSet } from '../../kit/objects.ts';

describe('zone mode', () => {
  const two: DisruptionCase = { budgets: [{ ...zpdb, maxUnavailable: 2 }] };

  it.each<[string, DisruptionCase, string]>([
    [
      'one unready pod in another zone denies with every limit',
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
    expect(askDisruption({ ...two, ...given }).message).toBe(message);
  });

  it('counts missing pods from the larger of requested and present replicas', () => {
    const sets = zoneSets.map((name) => statefulSet({ name, replicas: 2, status: { replicas: name === 'ingester-zone-b' ? 3 : 2 } }));
    expect(askDisruption({ ...two, sets }).message).toBe('1 pod unknown in ingester-zone-b');
  });

  it('counts a StatefulSet that its own budget does not select', () => {
    const sets = zoneSets.map((name, index) => statefulSet({ name, labels: index === 0 ? {} : { 'rollout-group': 'ingester' } }));
    expect(askDisruption({ sets }).message).toBe('0 of 1 unavailable in ingester-zone-a');
    expect(askDisruption({ sets, pods: { 'ingester-zone-a': { 1: unready } } }).message).toBe('1 pod not ready in ingester-zone-a');
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
      ].map((one) => askDisruption({ claims: [one] }).allowed),
    ).toEqual([false, true, false, true, true]);
    expect(askDisruption({ claims: [claim('uid-ingester-zone-b-1', 20_000)] }).earliestMs).toBe(kitNowMs + 100_000);
  });
});

describe('partition mode', () => {
  const budget: ZoneBudgetView = { ...zpdb, partition };
  const inPartition = (given: DisruptionCase): string => askDisruption({ budgets: [budget], ordinal: 1, ...given }).message;

  it.each<[string, DisruptionCase, string]>([
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

  it('a zone without pods of the partition counts one unknown pod', () => {
    const sets = zoneSets.map((name) => statefulSet({ name, replicas: name === 'ingester-zone-b' ? 1 : 3 }));
    expect(inPartition({ sets })).toBe('1 pod unknown in partition 1');
  });

  it('a pod of another zone that matches no partition is ignored', () => {
    const sets = [statefulSet(), statefulSet({ name: 'other', replicas: 1 })];
    expect(inPartition({ sets })).toBe('1 pod unknown in partition 1');
  });

  it('allows as many as the limit', () => {
    const pods = { 'ingester-zone-b': { 1: unready } };
    expect(inPartition({ pods, budgets: [{ ...budget, maxUnavailable: 2 }] })).toBe('1 of 2 unavailable in partition 1');
  });

  it('the pattern is anchored without parentheses, so a top-level alternation matches more', () => {
    const loose = { ...budget, partition: { pattern: 'ingester-zone-a-([0-9]+)|zone-b-([0-9]+)', group: 1 } };
    expect(askDisruption({ budgets: [loose], ordinal: 1 }).message).toBe('2 pods unknown in partition 1');
  });

  it.each(['(', '(?=x)(y)', '(a)\\1'])('an invalid RE2 pattern matches no pod: %s', (pattern) => {
    expect(askDisruption({ budgets: [{ ...budget, partition: { pattern, group: 1 } }] }).reason).toBe('partition-not-identified');
  });

  it('an empty partition is ignored', () => {
    expect(askDisruption({ budgets: [{ ...budget, partition: { pattern: 'ingester-zone-a-0(x*)', group: 1 } }] }).reason).toBe(
      'partition-not-identified',
    );
  });
});

describe("a group's own budget", () => {
  const disruption: DisruptionDefinition = { maxUnavailable: 1, crossZoneDelayMs: 0 };
  const native = (overrides: Partial<DisruptionDefinition> = {}) => group({ disruption: { ...disruption, ...overrides } });
  const own = (given: DisruptionCase): DisruptionVerdict => askDisruption({ budgets: [], ...given });

  it('counts the zones of the group, with any labels', () => {
    const sets = zoneSets.map((name) => statefulSet({ name, labels: {} }));
    const pods = { 'ingester-zone-b': { 1: unready } };
    expect(own({ sets, pods, group: native() })).toMatchObject({ allowed: false, message: '1 pod not ready in ingester-zone-b', limit: 1 });
    expect(Object.keys(own({ sets, group: native() }))).not.toContain('budget');
  });

  it('allows one pod without a number, and none with 0', () => {
    expect(own({ group: group({ disruption: { crossZoneDelayMs: 0 } }) }).limit).toBe(1);
    expect(own({ group: native({ maxUnavailable: 0 }) }).reason).toBe('max-unavailable-0');
  });

  it('exists for a group of one zone too', () => {
    const alone = { ...native(), zones: native().zones.slice(0, 1) };
    expect(own({ sets: [statefulSet()], group: alone }).allowed).toBe(true);
    expect(own({ sets: [statefulSet()], group: alone, pods: { 'ingester-zone-a': { 1: unready } } }).allowed).toBe(false);
  });

  it('counts a zone with a missing StatefulSet', () => {
    const sets = zoneSets.slice(0, 2).map((name) => statefulSet({ name }));
    expect(own({ sets, group: native() })).toMatchObject({ code: 429, message: 'StatefulSet ingester-zone-c was not found' });
    expect(own({ sets, group: native({ partition }) })).toMatchObject({ code: 429, message: '1 pod unknown in partition 0' });
    expect(own({ sets, group: native({ partition, maxUnavailable: 2 }) })).toMatchObject({ code: 200, unavailable: 1 });
  });

  it('applies in addition to a ZoneAwarePodDisruptionBudget, and the denial names the budget that denies', () => {
    const wide: ZoneBudgetView = { ...zpdb, maxUnavailable: 3 };
    const pods = { 'ingester-zone-a': { 1: unready } };
    expect(askDisruption({ budgets: [wide], group: native(), pods })).toMatchObject({ allowed: false, limit: 1 });
    expect(askDisruption({ budgets: [wide], group: native({ maxUnavailable: 3 }), pods })).toMatchObject({
      allowed: true,
      limit: 3,
      budget: 'ZoneAwarePodDisruptionBudget mimir/zpdb',
    });
  });

  it('uses the readiness of the group', () => {
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
