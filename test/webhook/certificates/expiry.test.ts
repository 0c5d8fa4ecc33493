import { describe, expect, it } from 'vitest';
import { expiryOf } from '../../../webhook/certificates/certificates.ts';
import { pairOf } from './given.ts';
import { dayMs, newWorld, pass } from './world.ts';

const nowMs = Date.UTC(2026, 0, 15, 12);

describe('the end of the certificate', () => {
  it.each([
    [365, 15, undefined],
    [365, 13.9, 'expires in 13 days and has not been renewed'],
    [365, 1.5, 'expires in 36 hours and has not been renewed'],
    [365, -1, 'has expired: API servers refuse to call it'],
    // A certificate that lives for two weeks is renewed when five days are left.
    [14, 5, undefined],
    [14, 3, 'expires in 3 days and has not been renewed'],
  ])('of %d days, %d of them left: %s', (lifeDays, leftDays, said) => {
    const pair = pairOf({ nowMs: nowMs - (lifeDays - leftDays) * dayMs, lifetimeMs: lifeDays * dayMs });
    const expiry = expiryOf({ current: () => pair }, nowMs);
    expect(expiry).toMatchObject({ notAfterMs: nowMs + leftDays * dayMs });
    expect(expiry?.degradation ?? 'well').toContain(said ?? 'well');
  });

  it('is not known while nothing is served', () => {
    expect(expiryOf({ current: () => undefined }, nowMs)).toBeUndefined();
  });

  it('is a degradation when renewal is not possible', async () => {
    const world = newWorld();
    const certificates = world.certificates({ lifetimeMs: 90 * dayMs });
    await world.env.until(() => certificates.current() !== undefined);
    world.server.forbid('update secrets');
    await pass(world, 70 * dayMs);
    expect(certificates.degradations()).toEqual([expect.stringContaining('grant create on secrets, and get and update on this one')]);
    await pass(world, 10 * dayMs);
    expect(certificates.degradations()[1]).toContain('expires in 10 days');
    certificates.stop();
  });
});
