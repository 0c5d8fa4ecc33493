import { describe, expect, it } from 'vitest';
import type { Known } from '../../../engine/snapshot.ts';
import { examine } from '../../../plugin/doctor/all.ts';
import type { Facts } from '../../../plugin/doctor/check.ts';
import type { PolicyAction } from '../../../policies/schema/rollout-policy.ts';
import { policy, policyRule } from '../../kit/questions.ts';
import { facts, ingester } from './kit.ts';

function said(
  registration: Facts['registration'],
  groups: Facts['groups'] = [ingester],
  policies: NonNullable<Facts['policies']> = [],
): readonly string[] {
  const results = examine({ ...facts(), groups, policies, ...(registration === undefined ? {} : { registration }) });
  return results.filter(({ check }) => check === 'webhooks').map(({ verdict, message }) => `${verdict} ${message}`);
}

const isWell =
  'ok registered as installed, and enforced in every namespace of a group; without spec.disruption, only a ZoneAwarePodDisruptionBudget limits evictions of mimir/ingester';

describe('the registration of the webhooks', () => {
  const well = { isRegistered: true, configurations: [], services: [], problems: [], namespaces: [{ name: 'mimir', isOptedIn: true }] };

  it('is valid if it is as installed and active, and if it is missing and not needed', () => {
    expect(said(well)).toEqual([isWell]);
    expect(said({ ...well, isRegistered: false, namespaces: [{ name: 'mimir', isOptedIn: false }] })[0]).toMatch(
      /^ok no webhook is registered/,
    );
  });

  it('names at most five changes, and where no request is enforced', () => {
    const problems = Array.from({ length: 7 }, (_, index) => `rules of webhook ${index} were changed`);
    const lines = said({ ...well, problems });
    expect(lines).toHaveLength(6);
    expect(lines[0]).toBe('FAIL rules of webhook 0 were changed. Requests may pass unchecked; install again');
    expect(lines[5]).toBe('FAIL 2 more differences from the configuration of this version');
    expect(said({ ...well, namespaces: [...well.namespaces, { name: 'loki', isOptedIn: false }] })).toEqual([
      'warn the webhooks do not protect namespace loki. Run: kubectl label namespace loki rollout-group.dev/enforce=true',
    ]);
  });

  it('enforces no request for a group in a namespace that the agent does not watch', () => {
    const failures = (namespace: string) =>
      examine({ ...facts(), accounts: [{ name: 'a/b', rights: [], unwatched: { namespaces: [namespace], flag: '-namespaces=shop' } }] })
        .filter(({ check }) => check === 'webhooks')
        .map(({ verdict, message }) => `${verdict} ${message}`);
    expect(failures('mimir')).toEqual([
      'FAIL namespace mimir has groups but the webhook does not know it (the agent runs with -namespaces=shop): nothing is enforced there',
    ]);
    expect(failures('empty')).toEqual([isWell]);
  });

  it('that a group needs is a failure while it is missing or not enforced', () => {
    const open = { ...well, namespaces: [{ name: 'mimir', isOptedIn: false }] };
    const guarded = { ...ingester, zones: ingester.zones.map((zone) => ({ ...zone, noDownscale: true, noDelete: true })) };
    const native = { ...guarded, profile: 'native' as const };
    const can = 'so other clients can scale it down and delete its StatefulSets';
    const label = 'kubectl label namespace mimir rollout-group.dev/enforce=true';
    expect(said({ ...open, isRegistered: false }, [native])).toEqual([
      `FAIL mimir/ingester has noDownscale and noDelete: no webhook is registered, ${can}`,
    ]);
    expect(said({ ...well, isRegistered: false }, [native])).toEqual([
      `FAIL mimir/ingester has noDownscale and noDelete: no webhook is registered, ${can}`,
    ]);
    expect(said(open, [native])[0]).toBe(
      `FAIL mimir/ingester has noDownscale and noDelete: the webhooks do not protect namespace mimir, ${can}. Run: ${label}`,
    );
    expect(said(well, [native])).toEqual([isWell]);
    expect(said(well, [{ ...native, disruption: { maxUnavailable: 1, crossZoneDelayMs: 0 } }])).toEqual([
      'ok registered as installed, and enforced in every namespace of a group',
    ]);
    const compat = (deniesDownscale: Known<boolean>) =>
      said({ ...open, isRegistered: false, namespaces: [{ name: 'mimir', isOptedIn: false, deniesDownscale }] }, [guarded]);
    expect([compat(true)[0]?.slice(0, 5), compat(false)[0]?.slice(0, 5), compat({ unknown: 'no permission' })]).toEqual([
      'ok no',
      'FAIL ',
      ['SKIP mimir/ingester: no permission'],
    ]);
    const waves = [
      {
        name: 'first',
        zones: ['a'],
        amount: { percent: 100 },
        before: { approval: { count: 1, from: [] }, gates: [] },
        after: { soakMs: 0, gates: [] },
      },
    ];
    const approved = { ...ingester, rollout: { ...ingester.rollout, waves } };
    expect(said({ ...open, isRegistered: false }, [approved])).toEqual([
      'FAIL mimir/ingester needs approvals: no webhook that records requesters is registered, so no approval counts',
    ]);
  });

  it('has a warning if a policy limits requests of other clients', () => {
    const none = { ...well, isRegistered: false, namespaces: [{ name: 'mimir', isOptedIn: false }] };
    const of = (...actions: readonly PolicyAction[]) =>
      said(none, [ingester], [policy({ rules: [policyRule({ effect: 'deny', actions })] })]);
    expect(of('rollout', 'scaleDown')).toEqual([
      'warn mimir/ingester: no webhook is registered, so other clients can make requests that RolloutPolicy safety denies',
    ]);
    expect(of('rollout')[0]).toMatch(/^ok no webhook is registered/);
  });

  it('without a server is a failure if a group needs it, and a warning elsewhere', () => {
    const unanswered = [true, false].map((isNeeded) => ({ message: `needed: ${isNeeded}`, isNeeded }));
    expect(said({ ...well, unanswered })).toEqual(['FAIL needed: true', 'warn needed: false']);
  });

  it('that is missing in an opted-in namespace is a failure; an unreadable one is skipped', () => {
    const lines = said({ ...well, isRegistered: false, problems: ['ValidatingWebhookConfiguration rollout-group does not exist'] });
    expect(lines[0]).toMatch(/^FAIL ValidatingWebhookConfiguration rollout-group does not exist/);
    expect(said({ unknown: 'no permission' })).toEqual(['SKIP no permission']);
  });
});
