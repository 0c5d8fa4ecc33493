import { describe, expect, it } from 'vitest';
import { group, wave } from '../kit/groups.ts';
import { newRevision } from '../kit/objects.ts';
import { runOf } from '../kit/questions.ts';
import { podsIn, replacedPods, roll } from '../kit/rolls.ts';

/** Zone a of three pods, whose first wave takes one of them, with room for more in the budget. */
function firstOf(pods: number) {
  return group({
    zones: [{ name: 'a', maxUnavailable: 3 }, { name: 'b' }, { name: 'c' }],
    rollout: { waves: [wave('first', ['a'], { amount: { pods } }), wave('rest', ['a', 'b', 'c'])] },
  });
}

const open = runOf({ openZone: 'a' });

describe('a wave whose pods are on their way', () => {
  it('replaces no pod beyond its number while a deleted pod is not recreated', () => {
    expect(replacedPods(roll(firstOf(1), open))).toBe('a-2');
    expect(replacedPods(roll(firstOf(1), open, podsIn({ a: { 2: 'missing' } })))).toBe('');
    expect(replacedPods(roll(firstOf(2), open, podsIn({ a: { 2: 'missing' } })))).toBe('a-1');
    expect(replacedPods(roll(firstOf(2), open, podsIn({ a: { 2: 'missing', 1: 'missing' } })))).toBe('');
  });

  it('takes none while it terminates, and none while its successor starts', () => {
    expect(replacedPods(roll(firstOf(1), open, podsIn({ a: { 2: { isTerminating: true } } })))).toBe('');
    expect(replacedPods(roll(firstOf(1), open, podsIn({ a: { 2: { revision: newRevision, isReady: false } } })))).toBe('');
  });

  it('takes none while the node of the pod that goes is down', () => {
    expect(replacedPods(roll(firstOf(1), open, podsIn({ a: { 2: { isTerminating: true, nodeReady: false } } })))).toBe('');
  });
});
