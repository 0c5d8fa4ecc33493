import { describe, expect, it } from 'vitest';
import { revisionBefore } from '../../../engine/run/revisions.ts';
import { runOf } from '../../kit/questions.ts';

const counts = (pods: Readonly<Record<string, number>>) => new Map(Object.entries(pods));

describe('the revision before a run', () => {
  const rollback = runOf({ kind: 'rollback', previous: { a: 'bad', b: 'bad' }, target: { a: 'good', b: 'good' } });

  it('of a rollback is the failed revision only in zones whose pods run it', () => {
    expect(revisionBefore(rollback, 'a', counts({ good: 1, bad: 2 }))).toBe('bad');
    expect(revisionBefore(rollback, 'b', counts({ good: 3 }))).toBe('good');
  });

  it('is the previous revision if no pod of the zone can say', () => {
    expect(revisionBefore(rollback, 'b', counts({}))).toBe('bad');
    expect(revisionBefore({ ...rollback, kind: 'rollout' }, 'b', counts({ good: 3 }))).toBe('bad');
  });
});
