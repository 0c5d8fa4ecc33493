import { describe, expect, it } from 'vitest';
import { stepChecks } from '../../../engine/decide/roll.ts';
import { scaleDownChecks, scaleUpChecks } from '../../../engine/rules/scale.ts';

describe('the checks of a step', () => {
  it('of a rollout stand in reading order', () => {
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

  it('of a change of replicas begin with the wanted number and end with the policies', () => {
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
