import { describe, expect, it } from 'vitest';
import { changesAtMs, conditionData, type PolicyQuestion, policyAnswer } from '../../../engine/rules/policy.ts';
import { digestOfRule } from '../../../engine/run/requests.ts';
import type { MetricView } from '../../../engine/snapshot.ts';
import type { PolicyDefinition, PolicyRuleDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, statefulSet } from '../../kit/objects.ts';
import { ago, contextWith, hourMs, intent, ledgerOf, line, minuteMs, policy, policyRule, runOf, zoneIn } from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const busy = { '>': [{ var: 'inputs.metrics.queue' }, 100] };
const queue = { source: 'prod', query: 'max(queue)', noData: 'unknown', maxAgeMs: 5 * minuteMs } as const;
const metric: MetricView = { namespace: 'mimir', policy: 'safety', input: 'queue', value: 200, atMs: ago(minuteMs) };

function ask(
  rules: readonly Partial<PolicyRuleDefinition>[],
  overrides: SnapshotOverrides = {},
  question: Partial<PolicyQuestion> = {},
  policies: readonly PolicyDefinition[] = [],
) {
  const own = policy({ metrics: { queue }, rules: rules.map((rule) => policyRule(rule)) });
  const context = contextWith(group(), { policies: [...policies, own], ...overrides });
  return policyAnswer({ context, action: 'rollout', zone: zoneIn(context), ...question });
}

const measured = { metrics: [metric] };
const source = line(10);

describe('a rule of a policy', () => {
  it('is evaluated only for its actions', () => {
    expect(ask([{ actions: ['scaleUp', 'evict'] }])).toEqual({ results: [], warnings: [], effects: [] });
  });

  it('is ok if the condition is false', () => {
    expect(ask([{ when: busy }], { metrics: [{ ...metric, value: 100 }] })).toEqual({
      results: [{ rule: 'safety/rule', outcome: 'ok', fact: 'the condition is false', source }],
      warnings: [],
      effects: [],
    });
  });

  it.each<[PolicyRuleDefinition['effect'], string]>([
    ['deny', 'no'],
    ['hold', 'wait'],
  ])('with the effect %s returns %s if the condition is true or missing', (effect, outcome) => {
    const found = { rule: 'safety/rule', outcome, fact: 'the condition is true', source };
    expect(ask([{ effect, when: busy }], measured)).toEqual({ results: [found], warnings: [], effects: [effect] });
    // Without a condition, only a person ends a hold.
    const endless = { ...found, fact: 'the rule always applies', ...(effect === 'hold' ? { endsBy: 'person' } : {}) };
    expect(ask([{ effect }])).toEqual({ results: [endless], warnings: [], effects: [effect] });
  });

  it('with effect warn is in the warnings and does not block', () => {
    expect(ask([{ effect: 'warn' }])).toEqual({
      results: [],
      warnings: [{ rule: 'safety/rule', outcome: 'ok', fact: 'the rule always applies', source }],
      effects: ['warn'],
    });
  });

  it('has its message with the numbers in it', () => {
    const message = 'queue is ${inputs.metrics.queue}; wait until 100 or less';
    expect(ask([{ when: busy, message }], measured).results[0]?.fact).toBe('queue is 200; wait until 100 or less');
  });

  it('with effect requireApproval has the result of the approval, under its own name', () => {
    const asked: Partial<PolicyRuleDefinition> = { effect: 'requireApproval', approval: { count: 1, from: ['oncall'] } };
    const digest = digestOfRule({ metrics: { queue } }, policyRule(asked));
    expect(ask([asked])).toEqual({
      results: [
        {
          rule: 'safety/rule',
          outcome: 'wait',
          fact: 'the rule always applies; 0 of 1 approvals from oncall',
          limit: '1 from oncall',
          source,
          digest,
        },
      ],
      warnings: [],
      effects: ['requireApproval'],
    });
    const given = { intents: [intent({ rule: 'safety/rule', digest })] };
    expect(ask([asked], given).results).toEqual([
      { rule: 'safety/rule', outcome: 'ok', fact: 'approved by kim', limit: '1 from oncall', source },
    ]);
    expect(ask([asked], given, { run: runOf({ startedMs: kitNowMs }) }).results).toMatchObject([{ outcome: 'wait' }]);
  });
});

describe('a rule with an unknown condition', () => {
  const unread = 'inputs.metrics.queue is unknown (no reading)';
  it.each<[PolicyRuleDefinition['onUnknown'], string, string]>([
    ['deny', 'unknown', unread],
    ['hold', 'unknown', unread],
    ['allow', 'skip', unread],
    ['requireApproval', 'wait', `${unread}; 0 of 1 approvals`],
  ])('and onUnknown %s returns %s', (onUnknown, outcome, fact) => {
    const effects = onUnknown === 'allow' ? [] : [onUnknown];
    const answer = ask([{ when: busy, onUnknown }]);
    expect(answer.results.map((result) => [result.outcome, result.fact])).toEqual([[outcome, fact]]);
    expect(answer.effects).toEqual(effects);
  });

  it('and effect warn warns', () => {
    expect(ask([{ when: busy, onUnknown: 'warn' }])).toEqual({
      results: [],
      warnings: [{ rule: 'safety/rule', outcome: 'ok', fact: unread, source }],
      effects: ['warn'],
    });
  });
});

describe('several policies', () => {
  it('are evaluated by name, each under its own name', () => {
    const before = policy({ name: 'capacity', rules: [policyRule({ effect: 'warn' }), policyRule({ name: 'second', effect: 'hold' })] });
    const answer = ask([{}], {}, {}, [before]);
    expect(answer.results.map(({ rule }) => rule)).toEqual(['capacity/second', 'safety/rule']);
    expect(answer.warnings.map(({ rule }) => rule)).toEqual(['capacity/rule']);
    expect(answer.effects).toEqual(['warn', 'hold', 'deny']);
  });

  it('apply only to the groups that they name', () => {
    const other = policy({ name: 'other', targets: { groups: ['store-gateway'] }, rules: [policyRule()] });
    const foreign = policy({ name: 'foreign', namespace: 'loki', rules: [policyRule()] });
    expect(ask([], {}, {}, [other, foreign]).results).toEqual([]);
  });
});

describe('the variables of a condition', () => {
  const data = (overrides: SnapshotOverrides, question: Partial<PolicyQuestion> = {}, metrics: PolicyDefinition['metrics'] = {}) => {
    const definition = group({ zones: ['a', { name: 'b', follows: 'a' }], labels: { team: 'metrics' } });
    const context = contextWith(definition, overrides);
    return conditionData({ context, action: 'scaleDown', zone: zoneIn(context), ...question }, policy({ metrics }));
  };
  const absent = { unknown: 'not part of this request' };
  const a = { name: 'a', statefulSet: 'ingester-zone-a', follows: '', replicas: 3, ready: 3, available: 3, updated: 3, isReady: true };
  const b = { ...a, name: 'b', statefulSet: 'ingester-zone-b', follows: 'a' };

  it('describe the action, the zone and the group', () => {
    const down = { 'ingester-zone-b': { 1: { isReady: false } } };
    expect(data({ podChanges: down }, { change: { from: 3, to: 1 }, user: 'kim' })).toEqual({
      action: 'scaleDown',
      change: { from: 3, to: 1, delta: -2 },
      target: {
        name: 'ingester-zone-a',
        namespace: 'mimir',
        zone: 'a',
        labels: { 'rollout-group': 'ingester' },
        annotations: {},
        replicas: 3,
        ready: 3,
        available: 3,
        updated: 3,
      },
      group: {
        name: 'ingester',
        namespace: 'mimir',
        labels: { team: 'metrics' },
        phase: 'Done',
        zones: [a, { ...b, ready: 2, available: 2, isReady: false }],
        notReadyZones: ['b'],
      },
      inputs: { metrics: {} },
      user: { name: 'kim', groups: { unknown: 'not part of this request' } },
      now: kitNowMs,
    });
  });

  it('count the pods of the zone that are available', () => {
    const down = { 'ingester-zone-a': { 0: 'missing', 1: { isReady: false } } } as const;
    expect(data({ podChanges: down })).toMatchObject({ target: { replicas: 3, ready: 1, available: 1, updated: 2 } });
  });

  it('are unknown if the request does not have them', () => {
    expect(data({})).toMatchObject({ change: absent, user: absent });
  });

  it('are unknown if a zone could not be read', () => {
    const reason = 'the pods of ingester-zone-a could not be read: forbidden';
    const unknown = { unknown: reason };
    const unread = { pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }] };
    expect(data(unread)).toMatchObject({
      target: { replicas: unknown, ready: unknown, available: unknown, updated: unknown },
      group: {
        zones: [{ name: 'a', replicas: unknown, ready: unknown, updated: unknown, available: unknown, isReady: unknown }, b],
        notReadyZones: { unknown: 'a zone could not be read' },
      },
    });
  });

  it('have no labels of a StatefulSet that does not exist', () => {
    const context = contextWith(group(), { statefulSets: [statefulSet({ name: 'ingester-zone-b' })] });
    const { set: _set, ...zone } = zoneIn(context);
    expect(conditionData({ context, action: 'delete', zone }, policy())).toMatchObject({ target: { labels: absent, annotations: absent } });
  });

  it.each<[string, SnapshotOverrides, object]>([
    ['Rolling, with its wave', { ledgers: [ledgerOf({ run: runOf() })] }, { phase: 'Rolling', wave: 'all' }],
    ['Failed', { ledgers: [ledgerOf({ run: runOf({ outcome: 'failed' }) })] }, { phase: 'Failed' }],
    ['Done', { ledgers: [ledgerOf({ run: runOf({ outcome: 'completed' }) })] }, { phase: 'Done' }],
  ])('call the group %s', (_name, overrides, expected) => {
    expect(data(overrides)).toMatchObject({ group: expected });
  });

  it('have no wave while some zones return before the waves', () => {
    const returning = data({ ledgers: [ledgerOf({ run: runOf({ kind: 'rollback', returning: ['a'] }) })] });
    expect(returning).toMatchObject({ group: { phase: 'Rolling' } });
    expect(returning['group']).not.toHaveProperty('wave');
  });

  it('contain the time of the last downscale of the zone', () => {
    const downscales = [
      { zone: 'a', atMs: ago(2 * hourMs), from: 4, to: 3 },
      { zone: 'a', atMs: ago(hourMs), from: 3, to: 2 },
      { zone: 'b', atMs: ago(minuteMs), from: 3, to: 2 },
    ];
    expect(data({ ledgers: [ledgerOf({ downscales })] })).toMatchObject({ target: { lastDownscaleAt: ago(hourMs) } });
  });

  it.each<[string, readonly MetricView[], 'unknown' | 'zero', unknown]>([
    ['the value', [metric], 'unknown', 200],
    ['the value, as old as may be', [{ ...metric, atMs: ago(5 * minuteMs) }], 'unknown', 200],
    ['unknown when it is older', [{ ...metric, atMs: ago(5 * minuteMs) - 1 }], 'unknown', { unknown: 'the reading is older than 5m' }],
    [
      'why there is nothing newer',
      [{ ...metric, atMs: ago(5 * minuteMs) - 1, problem: 'the provider refuses connections' }],
      'unknown',
      { unknown: 'the reading is older than 5m: the provider refuses connections' },
    ],
    ['the value before a failure, while it may count', [{ ...metric, problem: 'the provider refuses connections' }], 'unknown', 200],
    [
      'no zero by a reading without data that is too old',
      [{ ...metric, value: { unknown: 'no data' }, atMs: ago(5 * minuteMs) - 1 }],
      'zero',
      { unknown: 'the reading is older than 5m' },
    ],
    ['unknown without a reading', [], 'zero', { unknown: 'no reading' }],
    ['unknown with the reason', [{ ...metric, value: { unknown: 'timeout' } }], 'zero', { unknown: 'timeout' }],
    ['unknown without data', [{ ...metric, value: { unknown: 'no data' } }], 'unknown', { unknown: 'no data' }],
    ['zero without data when the policy says so', [{ ...metric, value: { unknown: 'no data' } }], 'zero', 0],
    ['not that of another policy', [{ ...metric, policy: 'other' }], 'unknown', { unknown: 'no reading' }],
    ['not that of another namespace', [{ ...metric, namespace: 'loki' }], 'unknown', { unknown: 'no reading' }],
    ['not that of another input', [{ ...metric, input: 'lag' }], 'unknown', { unknown: 'no reading' }],
  ])('have of a metric %s', (_name, metrics, noData, expected) => {
    expect(data({ metrics }, {}, { queue: { ...queue, noData } })).toMatchObject({ inputs: { metrics: { queue: expected } } });
  });
});

const at = (condition: unknown, data = {}) => changesAtMs(condition, { now: kitNowMs, ...data }, kitNowMs);
const instant = (ms: number) => ({ instant: new Date(ms).toISOString() });

describe('the time at which a condition changes without an event', () => {
  it.each<[string, unknown, number | undefined]>([
    ['is exact for an instant ahead', { '<': [{ var: 'now' }, instant(kitNowMs + 90 * minuteMs)] }, kitNowMs + 90 * minuteMs],
    ['is exact for an age', { '<': [{ age: { var: 'since' } }, { duration: '6h' }] }, kitNowMs + 5 * hourMs],
    ['may be the very next one', { '<=': [{ var: 'now' }, instant(kitNowMs)] }, kitNowMs + 1],
    ['is none for an instant that has passed', { '<': [{ var: 'now' }, instant(ago(hourMs))] }, undefined],
    ['is none where no time is read', { '>': [{ var: 'since' }, 0] }, undefined],
    ['is none without a condition', undefined, undefined],
  ])('%s', (_, condition, expected) => {
    expect(at(condition, { since: ago(hourMs) })).toBe(expected);
  });

  it('is the time of the next evaluation of a blocked action', () => {
    const context = contextWith(group(), {
      policies: [policy({ rules: [policyRule({ effect: 'hold', when: { '<': [{ var: 'now' }, instant(kitNowMs + hourMs)] } })] })],
    });
    const [answer] = policyAnswer({ context, action: 'rollout', zone: zoneIn(context) }).results;
    expect(answer).toMatchObject({ outcome: 'wait', earliestMs: kitNowMs + hourMs });
  });
});
