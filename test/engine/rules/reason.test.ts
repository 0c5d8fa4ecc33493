import { describe, expect, it } from 'vitest';
import { ruleCatalog } from '../../../engine/rules/catalog.ts';
import { reasonOf } from '../../../engine/rules/reason.ts';

describe('reasonOf', () => {
  it.each([
    ['gate', 'Gate'],
    ['other-zones-ready', 'OtherZonesReady'],
    ['stateful-safety/queue-must-be-drained', 'QueueMustBeDrained'],
    ['p/9-lives', '9Lives'],
    ['p/---', 'Policy'],
    ['x'.repeat(200), `X${'x'.repeat(127)}`],
  ])('names %s as %s', (rule, reason) => {
    expect(reasonOf(rule)).toBe(reason);
  });

  it('gives every rule of the engine a reason of its own', () => {
    const reasons = ruleCatalog.map(({ id }) => reasonOf(id));
    expect(new Set(reasons).size).toBe(ruleCatalog.length);
  });
});
