import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ExceptionDefinition, LimitsDefinition, PolicyDefinition } from '../../policies/definition.ts';
import { exceptionFor, joinLimits, policiesFor } from '../../policies/join.ts';

const oneLimits: fc.Arbitrary<LimitsDefinition> = fc.record(
  {
    minReplicas: fc.nat(9),
    maxReplicas: fc.nat(9),
    betweenZonesMs: fc.nat(9),
    minIntervalMs: fc.nat(9),
  },
  { requiredKeys: [] },
);

describe('joined limits', () => {
  it('have the highest minimum, the lowest maximum and the longest times', () => {
    expect(
      joinLimits([
        { minReplicas: 3, maxReplicas: 60, betweenZonesMs: 5, maxUnavailable: 4 },
        { minReplicas: 5, maxReplicas: 40, betweenZonesMs: 9, minIntervalMs: 2 },
        { minIntervalMs: 1, maxUnavailable: 2 },
      ]),
    ).toEqual({ minReplicas: 5, maxReplicas: 40, betweenZonesMs: 9, minIntervalMs: 2 });
    expect(joinLimits([])).toEqual({});
  });

  it('are associative, commutative and idempotent', () => {
    fc.assert(
      fc.property(oneLimits, oneLimits, oneLimits, (a, b, c) => {
        const join = (...limits: readonly LimitsDefinition[]) => joinLimits(limits);
        expect(join(join(a, b), c)).toEqual(join(a, join(b, c)));
        expect(join(a, b)).toEqual(join(b, a));
        expect(join(a, a)).toEqual(a);
        expect(join(a)).toEqual(a);
      }),
    );
  });
});

function policy(overrides: Partial<PolicyDefinition>): PolicyDefinition {
  return {
    namespace: 'mimir',
    name: 'p',
    targets: { all: true },
    metrics: {},
    rules: [],
    windows: [],
    limits: {},
    limitSources: {},
    ...overrides,
  };
}

describe('the policies of a group', () => {
  const ingester = { namespace: 'mimir', name: 'ingester', labels: { tier: 'write' } };

  function bind(targets: PolicyDefinition['targets'], namespace: string, agentNamespace?: string): boolean {
    return policiesFor([policy({ targets, namespace })], ingester, agentNamespace).length === 1;
  }

  it.each<
    readonly [why: string, targets: PolicyDefinition['targets'], namespace: string, agentNamespace: string | undefined, expected: boolean]
  >([
    ['all of its namespace', { all: true }, 'mimir', undefined, true],
    ['a name', { groups: ['store', 'ingester'] }, 'mimir', undefined, true],
    ['another name', { groups: ['store'] }, 'mimir', undefined, false],
    ['a label', { selector: { matchLabels: { tier: 'write' } } }, 'mimir', undefined, true],
    ['another label', { selector: { matchLabels: { tier: 'read' } } }, 'mimir', undefined, false],
    ['nothing', {}, 'mimir', undefined, false],
    ['all of another namespace', { all: true }, 'loki', undefined, false],
    ['all, in the namespace of the agent', { all: true }, 'ops', 'ops', false],
    ['namespaces, in that of the agent', { all: true, namespaces: ['loki', 'mimir'] }, 'ops', 'ops', true],
    ['other namespaces, in that of the agent', { all: true, namespaces: ['loki'] }, 'ops', 'ops', false],
    ['namespaces, in a namespace of no standing', { all: true, namespaces: ['mimir'] }, 'loki', 'ops', false],
    ['namespaces, with no agent known', { all: true, namespaces: ['mimir'] }, 'ops', undefined, false],
    ['its own namespace by name', { all: true, namespaces: ['mimir'] }, 'mimir', 'ops', true],
  ])('by %s', (_, targets, namespace, agentNamespace, expected) => {
    expect(bind(targets, namespace, agentNamespace)).toBe(expected);
  });

  it('are in the order of their namespaces and names, for any order of files', () => {
    const shared = policy({ namespace: 'ops', name: 'a', targets: { all: true, namespaces: ['mimir'] } });
    const given = [shared, policy({ name: 'c' }), policy({ name: 'b' })];
    const names = (policies: readonly PolicyDefinition[]) => policiesFor(policies, ingester, 'ops').map(({ name }) => name);
    expect([names(given), names([...given].reverse())]).toEqual([
      ['b', 'c', 'a'],
      ['b', 'c', 'a'],
    ]);
  });
});

describe('the applied exception', () => {
  function exception(overrides: Partial<ExceptionDefinition>): ExceptionDefinition {
    return {
      namespace: 'mimir',
      name: 'e',
      rule: 'zone-gap',
      group: 'ingester',
      allow: { anything: true },
      reason: 'move',
      expiresMs: 100,
      source: {},
      ...overrides,
    };
  }

  it.each<readonly [why: string, overrides: Partial<ExceptionDefinition>, nowMs: number, expected: 'one' | 'none']>([
    ['for all zones', {}, 50, 'one'],
    ['for this zone', { zone: 'a' }, 50, 'one'],
    ['not for another zone', { zone: 'b' }, 50, 'none'],
    ['not for another rule', { rule: 'other-zones-ready' }, 50, 'none'],
    ['not for another group', { group: 'store' }, 50, 'none'],
    ['until just before its end', {}, 99, 'one'],
    ['not at its end', {}, 100, 'none'],
    ['from its beginning', { notBeforeMs: 50 }, 50, 'one'],
    ['not before its beginning', { notBeforeMs: 51 }, 50, 'none'],
  ])('applies %s', (_, overrides, nowMs, expected) => {
    expect(exceptionFor([exception(overrides)], 'zone-gap', { group: 'ingester', zone: 'a' }, nowMs).kind).toBe(expected);
  });

  it('is absent if two match: neither applies', () => {
    const both = [exception({ name: 'z', zone: 'a' }), exception({ name: 'b' })];
    expect(exceptionFor(both, 'zone-gap', { group: 'ingester', zone: 'a' }, 50)).toEqual({ kind: 'several', names: ['b', 'z'] });
    expect(exceptionFor(both, 'zone-gap', { group: 'ingester', zone: 'c' }, 50)).toEqual({ kind: 'one', exception: both[1] });
    expect(exceptionFor(both, 'zone-gap', { group: 'ingester', zone: undefined }, 50)).toEqual({ kind: 'one', exception: both[1] });
  });

  it('never permits more if a second one matches', () => {
    const any = fc.record(
      { zone: fc.constantFrom('a', 'b'), rule: fc.constantFrom('zone-gap', 'other'), notBeforeMs: fc.nat(100), expiresMs: fc.nat(100) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(any, { maxLength: 4 }), any, fc.nat(100), (given, added, nowMs) => {
        const exceptions = given.map((overrides) => exception(overrides as Partial<ExceptionDefinition>));
        const ask = (list: readonly ExceptionDefinition[]) => exceptionFor(list, 'zone-gap', { group: 'ingester', zone: 'a' }, nowMs);
        const before = ask(exceptions);
        const after = ask([...exceptions, exception(added as Partial<ExceptionDefinition>)]);
        const rank = { none: 0, one: 1, several: 2 } as const;
        expect(rank[after.kind]).toBeGreaterThanOrEqual(rank[before.kind]);
        if (before.kind === 'one' && after.kind === 'one') expect(after).toEqual(before);
      }),
    );
  });
});
