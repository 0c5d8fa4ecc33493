import { describe, expect, it } from 'vitest';
import { examine } from '../../../plugin/doctor/all.ts';
import type { Facts } from '../../../plugin/doctor/check.ts';
import { facts } from './kit.ts';

function said(registration: Facts['registration']): readonly string[] {
  const results = examine({ ...facts(), ...(registration === undefined ? {} : { registration }) });
  return results.filter(({ check }) => check === 'webhooks').map(({ verdict, message }) => `${verdict} ${message}`);
}

describe('the registration of the webhooks', () => {
  const well = { areThere: true, services: [], problems: [], namespaces: [{ name: 'mimir', isOptedIn: true }] };

  it('is fine when it is as installed and in force, and when it is missing and not needed', () => {
    expect(said(well)).toEqual(['ok registered as installed, and enforced in every namespace of a group']);
    expect(said({ ...well, areThere: false, namespaces: [{ name: 'mimir', isOptedIn: false }] })[0]).toMatch(
      /^ok no webhook is registered/,
    );
  });

  it('says what was changed, at most five of it by name, and where nothing is enforced', () => {
    const problems = Array.from({ length: 7 }, (_, index) => `rules of webhook ${index} were changed`);
    const lines = said({ ...well, problems });
    expect(lines).toHaveLength(6);
    expect(lines[0]).toBe('FAIL rules of webhook 0 were changed. Requests may pass unchecked; install again');
    expect(lines[5]).toBe('FAIL 2 more differences from the installed configuration');
    expect(said({ ...well, namespaces: [...well.namespaces, { name: 'loki', isOptedIn: false }] })).toEqual([
      'warn namespace loki is not enforced. Run: kubectl label namespace loki rollout-group.dev/enforce=true',
    ]);
  });

  it('without a server is a failure where a group needs it, and a warning elsewhere', () => {
    const unanswered = [true, false].map((isNeeded) => ({ message: `needed: ${isNeeded}`, isNeeded }));
    expect(said({ ...well, unanswered })).toEqual(['FAIL needed: true', 'warn needed: false']);
  });

  it('that is opted in to and not there is a failure; what may not be read is skipped', () => {
    const lines = said({ ...well, areThere: false, problems: ['ValidatingWebhookConfiguration rollout-group does not exist'] });
    expect(lines[0]).toMatch(/^FAIL ValidatingWebhookConfiguration rollout-group does not exist/);
    expect(said({ unknown: 'no permission' })).toEqual(['SKIP no permission']);
  });
});
