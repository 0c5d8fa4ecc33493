import { describe, expect, it } from 'vitest';
import { modelReadings, type World } from '../../../engine/world/model.ts';
import { evaluateCondition } from '../../../policies/condition/condition.ts';
import { gate } from '../../kit/groups.ts';
import { kitNowMs, statefulSet } from '../../kit/objects.ts';
import { afterwards, line, removal, seconds, worldOf } from '../../kit/worlds.ts';

describe('an evicted pod', () => {
  const budget = { namespace: 'mimir', name: 'pdb', selector: { matchLabels: { 'rollout-group': 'ingester' } }, maxUnavailable: 1 };
  const sets = [statefulSet(), statefulSet({ name: 'ingester-zone-b' })];
  const world = worldOf({ statefulSets: sets, podBudgets: [budget] });
  const evict = (from: World, pod: string): World => afterwards(from, removal(from, pod, 'evictPod'));

  it('goes while its PodDisruptionBudget lasts, over all StatefulSets that it selects', () => {
    const one = evict(world, 'ingester-zone-a-0');
    expect([line(one), line(evict(one, 'ingester-zone-b-0'), 'ingester-zone-b')]).toEqual([
      '0:rev-1 leaving, 1:rev-1 ready, 2:rev-1 ready',
      '0:rev-1 ready, 1:rev-1 ready, 2:rev-1 ready',
    ]);
  });

  it('goes again once the first is back', () => {
    const back = afterwards(evict(world, 'ingester-zone-a-0'), seconds(world, 90));
    expect(line(evict(back, 'ingester-zone-b-0'), 'ingester-zone-b')).toBe('0:rev-1 leaving, 1:rev-1 ready, 2:rev-1 ready');
  });

  it('costs nothing when it is not ready and enough others are', () => {
    const broken = afterwards(world, { kind: 'podFails', namespace: 'mimir', pod: 'ingester-zone-a-0' });
    expect(line(evict(broken, 'ingester-zone-a-0'))).toBe('0:rev-1 leaving, 1:rev-1 ready, 2:rev-1 ready');
    const twice = afterwards(broken, { kind: 'podFails', namespace: 'mimir', pod: 'ingester-zone-a-1' });
    expect(line(evict(twice, 'ingester-zone-a-0'))).toBe('0:rev-1 starting, 1:rev-1 starting, 2:rev-1 ready');
  });

  it('stays when the request names another object', () => {
    const request = removal(world, 'ingester-zone-a-0', 'evictPod');
    if (request.kind !== 'action' || request.action.kind !== 'evictPod') throw new Error('not an eviction');
    expect(line(afterwards(world, { kind: 'action', action: { ...request.action, uid: 'other' } }))).toBe(line(world));
  });

  it('stays when two budgets select it', () => {
    const both = worldOf({ statefulSets: sets, podBudgets: [budget, { ...budget, name: 'other' }] });
    expect(line(evict(both, 'ingester-zone-a-0'))).toBe(line(both));
  });

  it.each([
    ['maxUnavailable 50%', { maxUnavailable: '50%' }, 3],
    ['minAvailable 4', { minAvailable: 4 }, 2],
    ['minAvailable 100%', { minAvailable: '100%' }, 0],
    ['neither number', {}, 0],
    ['maxUnavailable 0', { maxUnavailable: 0 }, 0],
  ])('%s allows as many as the eviction API would', (_case, limit, count) => {
    const { maxUnavailable: _maxUnavailable, ...rest } = budget;
    let current = worldOf({ statefulSets: sets, podBudgets: [{ ...rest, ...limit }] });
    for (const zone of ['a', 'b']) for (const ordinal of [0, 1, 2]) current = evict(current, `ingester-zone-${zone}-${ordinal}`);
    const leaving = current.snapshot.pods.map((view) => line(current, view.statefulSet).split('leaving').length - 1);
    expect(leaving[0]).toBe(Math.min(3, count));
    expect((leaving[0] ?? 0) + (leaving[1] ?? 0)).toBe(count);
  });
});

it.each([
  [{ '<=': [{ var: 'value' }, 0.5] }],
  [{ '>': [{ var: 'value' }, 42_000] }],
  [{ '==': [{ var: 'value' }, 17] }],
  [{ '<': [{ var: 'value' }, -5] }],
  [{ and: [{ '>=': [{ var: 'value' }, 3] }, { '<': [{ var: 'value' }, 4] }] }],
])('an assumed reading passes or fails the condition as assumed: %j', (pass) => {
  const answers = (['pass', 'fail'] as const).map((assumption) => {
    const [reading] = modelReadings(gate({ pass }), kitNowMs, kitNowMs, assumption);
    if (reading?.result !== 'value') return reading;
    const answer = evaluateCondition(pass, { value: reading.value }, kitNowMs);
    return answer.kind === 'value' ? answer.isTrue : answer;
  });
  expect(answers).toEqual([true, false]);
});

it('a condition that no value meets is an error that says so', () => {
  expect(modelReadings(gate({ pass: { '<': [1, 0] } }), kitNowMs, kitNowMs, 'pass')).toEqual([
    { atMs: kitNowMs, result: 'error', message: 'no value was found for which gate errors would pass' },
  ]);
});

it('readings come every period, the first when they begin to count, and only those that can count are made', () => {
  const instants = (periods: number): readonly number[] =>
    modelReadings(gate({ consecutive: 3 }), kitNowMs, kitNowMs + periods * 60_000, 'pass').map(({ atMs }) => (atMs - kitNowMs) / 60_000);
  expect([instants(-0.5), instants(0), instants(1.9), instants(1000)]).toEqual([[], [0], [0, 1], [997, 998, 999, 1000]]);
});
