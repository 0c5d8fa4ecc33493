import { describe, expect, it } from 'vitest';
import { readIntent } from '../../../policies/live/intents.ts';

describe('an intent', () => {
  const spec = { group: 'ingester', action: 'approve', wave: 'rest', expires: '2026-03-03T00:00:00Z' };
  const requestedBy = { user: 'ada', groups: ['oncall'], at: '2026-03-02T00:00:00Z' };
  const objectWith = (fields: object) => ({
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutIntent',
    metadata: { namespace: 'mimir', name: 'i', uid: 'u-1', managedFields: [] },
    spec: fields,
  });

  it('is read with its requester', () => {
    expect(readIntent(objectWith({ ...spec, requestedBy }))).toEqual({
      namespace: 'mimir',
      name: 'i',
      group: 'ingester',
      action: 'approve',
      wave: 'rest',
      expiresMs: Date.parse('2026-03-03T00:00:00Z'),
      requestedBy: { user: 'ada', groups: ['oncall'], atMs: Date.parse('2026-03-02T00:00:00Z') },
    });
  });

  it.each([
    [{ ...spec, action: 'explode' }, /action/],
    [{ ...spec, action: undefined }, /action/],
    [{ ...spec, expires: 'soon' }, /expires/],
    [{ ...spec, group: undefined }, /group/],
    [{ ...spec, requestedBy: { user: 'ada' } }, /requestedBy/],
    [{ ...spec, more: 1 }, /more/],
  ])('that the agent ignores is unknown, with the first problem: %j', (broken, problem) => {
    expect(readIntent(objectWith(broken))).toEqual({ unknown: expect.stringMatching(/^RolloutIntent: /) });
    expect(readIntent(objectWith(broken))).toEqual({ unknown: expect.stringMatching(problem) });
  });

  it('is not an object of another kind', () => {
    for (const other of [7, {}, { ...objectWith({}), kind: 'ConfigMap', apiVersion: 'v1' }])
      expect(readIntent(other)).toHaveProperty('unknown');
  });
});
