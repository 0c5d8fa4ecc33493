// PolicyTests: what a case gives becomes a state, and the answer is the engine's own.
import { describe, expect, it } from 'vitest';
import { type CaseResult, coverageOf, runPolicyTest } from '../../../engine/policy-test/policy-test.ts';
import type { GroupDefinition, PolicyBundle, PolicyDefinition } from '../../../policies/definition.ts';
import { schemas } from '../../../policies/schema/kinds.ts';
import { gate, group, wave } from '../../kit/groups.ts';
import { policy, policyRule } from '../../kit/questions.ts';

const manifests = ['a', 'b', 'c'].map((zone) => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: `ingester-zone-${zone}`, namespace: 'mimir' },
  spec: {
    replicas: 3,
    updateStrategy: { type: 'OnDelete' },
    template: { metadata: { labels: { app: 'ingester' } }, spec: { containers: [{ name: 'ingester', image: 'ingester:1' }] } },
  },
}));

const zonedGroup = group({
  zones: [
    { name: 'a', betweenZonesMs: 3_600_000, noDelete: true },
    { name: 'b', betweenZonesMs: 3_600_000 },
    { name: 'c', betweenZonesMs: 3_600_000 },
  ],
});

interface Setup {
  readonly groups?: readonly GroupDefinition[];
  readonly policies?: readonly PolicyDefinition[];
  readonly given?: unknown;
}

function run(cases: readonly unknown[], { groups = [zonedGroup], policies = [], given }: Setup = {}): readonly CaseResult[] {
  const test = schemas.PolicyTest.parse({
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'PolicyTest',
    metadata: { name: 'cases' },
    spec: { files: ['policies/'], clock: '2026-03-02T12:00:00Z', ...(given === undefined ? {} : { given }), cases },
  });
  const bundle: PolicyBundle = { groups, policies, exceptions: [] };
  return runPolicyTest(test, { bundle, manifests });
}

function one(given: unknown, request: unknown, expected: unknown, setup: Setup = {}): CaseResult | undefined {
  return run([{ name: 'case', given, request, expect: expected }], setup)[0];
}

const shrinkA = { action: 'scaleDown', zone: 'a', to: 2 };

describe('a PolicyTest', () => {
  it('passes if the engine gives the expected answer, on every write path', () => {
    const [held, allowed] = run([
      {
        name: 'too soon',
        given: { zones: { b: { lastDownscale: '10m' } } },
        request: shrinkA,
        expect: { decision: 'hold', rules: ['zone-gap'] },
      },
      { name: 'long after', given: { zones: { b: { lastDownscale: '2h' } } }, request: shrinkA, expect: { decision: 'allow' } },
    ]);
    expect(held).toMatchObject({ passed: true, decision: 'hold', rules: ['zone-gap'], expected: 'hold by zone-gap', problems: [] });
    expect(allowed).toMatchObject({ passed: true, decision: 'allow', rules: [] });
  });

  it('names every difference between the answer and the expectation', () => {
    const expected = { decision: 'allow', rules: ['no-downscale'], message: 'tomorrow' };
    expect(one({ zones: { b: { lastDownscale: '10m' } } }, shrinkA, expected)?.problems).toEqual([
      'the decision is hold, expected is allow',
      'the rule no-downscale does not block (blocked by zone-gap)',
      'the message does not contain "tomorrow"',
    ]);
  });

  it('advances the clock for a case and the following cases, also over skipped cases', () => {
    const cases = [
      { name: 'now', request: { action: 'none' }, expect: { decision: 'done' } },
      { name: 'later', advance: '1h', request: { action: 'evict', zone: 'a', ordinal: 0 }, expect: { decision: 'hold' } },
      { name: 'later still', advance: '1h', request: { action: 'evict', zone: 'a', ordinal: 0 }, expect: { decision: 'allow' } },
    ];
    const opens = Date.parse('2026-03-02T14:00:00Z');
    const window = {
      name: 'afternoon',
      kind: 'allow' as const,
      actions: ['evict' as const],
      ranges: [{ fromMs: opens, toMs: opens + 1 }],
      inFlight: 'finishPod' as const,
      source: {},
    };
    const policies = [
      {
        namespace: 'mimir',
        name: 'calm',
        targets: { all: true as const },
        metrics: {},
        rules: [],
        windows: [window],
        limits: {},
        limitSources: {},
      },
    ];
    expect(run(cases, { policies }).map(({ passed }) => passed)).toEqual([true, true, true]);
  });

  it('lets a case override the shared state, zone by zone and field by field', () => {
    const given = { zones: { b: { lastDownscale: '10m' } } };
    const [shared, changed] = run(
      [
        { name: 'shared', given: { zones: { b: { ready: 3 } } }, request: shrinkA, expect: { decision: 'hold' } },
        { name: 'changed', given: { zones: { b: { lastDownscale: '2h' } } }, request: shrinkA, expect: { decision: 'allow' } },
      ],
      { given },
    );
    expect([shared?.passed, changed?.passed]).toEqual([true, true]);
  });
});

describe('the state of a case', () => {
  const roll = (zones: unknown, more: object = {}) => one({ zones, ...more }, { action: 'none' }, { decision: 'act' });

  it('has the new revision on the highest ordinals', () => {
    expect(roll({ a: { updated: 1 } })?.message).toContain('replace ingester-zone-a-1');
  });

  it('has a new revision everywhere if a rollout is requested', () => {
    const expected = { decision: 'act', pods: ['ingester-zone-a-2'] };
    expect(one({}, { action: 'rollout' }, expected)?.problems).toEqual([]);
    expect(one({}, { action: 'rollout', zone: 'c' }, { decision: 'act', pods: ['ingester-zone-c-2'] })?.problems).toEqual([]);
  });

  it.each([
    ['unready pods', { b: { unready: [1] } }, 'zone b has 2 of 3 pods available'],
    ['a number of ready pods', { b: { ready: 1 } }, 'zone b has 1 of 3 pods available'],
    ['missing pods', { b: { missing: [0, 2] } }, 'zone b has 1 of 3 pods available'],
    ['other replicas', { b: { replicas: 5, ready: 1 } }, 'zone b has 1 of 5 pods available'],
    ['pods that could not be read', { b: { unknown: true } }, 'the pods of ingester-zone-b could not be read: set by the case'],
    ['a pause of a person', { a: { paused: true } }, 'zone a is paused by unnamed'],
  ])('supports %s', (_what, zones, fact) => {
    expect(one({ zones }, { action: 'rollout', zone: 'a' }, { decision: 'wait', message: fact })?.problems).toEqual([]);
  });

  it('has the time in the wave that the case sets', () => {
    const waves = [
      wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: 1_800_000, gates: ['errors'] } }),
      wave('rest', ['a', 'b', 'c'], { before: { gates: [], approval: { count: 1, from: ['oncall'] } } }),
    ];
    const groups = [group({ rollout: { waves }, gates: [gate({ consecutive: 2 })] })];
    const zones = { a: { updated: 1 }, b: { updated: 0 }, c: { updated: 0 } };
    const answer = (more: object) => one({ zones, ...more }, { action: 'rollout' }, { decision: 'act' }, { groups })?.rules;
    const approvals = [{ wave: 'rest', user: 'kim', groups: ['oncall'] }];
    expect(answer({})).toEqual(['gate', 'soak']);
    // One reading per period, the newest now: of two, both fall into the last minute.
    expect(answer({ waveAvailableFor: '1m', gates: { errors: [0, 0] } })).toEqual(['soak']);
    expect(answer({ waveAvailableFor: '59s', gates: { errors: [0, 0] } })).toEqual(['gate', 'soak']);
    expect(answer({ waveAvailableFor: '29m', gates: { errors: [0, 0] } })).toEqual(['soak']);
    expect(answer({ waveAvailableFor: '30m', gates: { errors: [0] } })).toEqual(['gate']);
    expect(answer({ waveAvailableFor: '30m', gates: { errors: [0, 0] } })).toEqual(['approval']);
    expect(answer({ waveAvailableFor: '30m', gates: { errors: [0, 0] }, approvals: [{ ...approvals[0], groups: ['guests'] }] })).toEqual([
      'approval',
    ]);
    expect(answer({ waveAvailableFor: '30m', gates: { errors: [0, 0] }, approvals })).toEqual([]);
    expect(answer({ waveAvailableFor: '30m', gates: { errors: 'error' }, approvals })).toEqual(['gate']);
  });

  it('needs the approval before the next wave also if the wave before it has no soak and was available at once', () => {
    const rest = wave('rest', ['a', 'b', 'c'], { before: { gates: [], approval: { count: 1, from: ['oncall'] } } });
    const groups = [group({ rollout: { waves: [wave('canary', ['a'], { amount: { pods: 1 } }), rest] } })];
    const zones = { a: { updated: 1, readyFor: '1h' }, b: { updated: 0 }, c: { updated: 0 } };
    const given = { zones, waveAvailableFor: '1h' };
    expect(one(given, { action: 'rollout' }, { decision: 'wait' }, { groups })?.rules).toEqual(['approval']);
  });

  it('has an approved plan that covers the rollout, or approvals of its differences', () => {
    const reviewed = policy({ name: 'reviewed', rules: [policyRule({ name: 'as-approved', effect: 'requireApprovedPlan' })] });
    const answer = (given: object) => {
      const found = one(given, { action: 'rollout' }, { decision: 'act' }, { policies: [reviewed] });
      return [found?.decision, found?.rules];
    };
    expect(answer({})).toEqual(['wait', ['reviewed/as-approved']]);
    expect(answer({ approvedPlan: true })).toEqual(['act', []]);
    expect(answer({ approvedPlan: true, zones: { a: { updated: 1, readyFor: '1h' }, b: { updated: 0 }, c: { updated: 0 } } })).toEqual([
      'act',
      [],
    ]);
    expect(answer({ approvals: [{ rule: 'reviewed/as-approved', user: 'kim' }] })).toEqual(['act', []]);
  });

  it('has pods that prepare at once, unless they refuse', () => {
    const endpoint = { scheme: 'http' as const, port: 80, path: '/prepare', timeout: '5s' };
    const native = group({ zones: [{ name: 'a', prepare: { endpoint, onFailure: 'deny' } }, 'b'] });
    const groups = [{ ...native, profile: 'rolloutOperator' } as const];
    const byAgent = { decision: 'deny', rules: ['prepare-downscale'], message: 'only the agent prepares pods' };
    expect(one({}, shrinkA, byAgent, { groups: [native] })?.problems).toEqual([]);
    expect(one({}, shrinkA, { decision: 'allow', rules: ['prepare-downscale'] }, { groups })?.problems).toEqual([]);
    const refused = { decision: 'deny', rules: ['prepare-downscale'], message: 'failed to prepare' };
    expect(one({ zones: { a: { prepareFails: true } } }, shrinkA, refused, { groups })?.problems).toEqual([]);
  });

  it('has pods with the waiting time that the case sets', () => {
    const endpoint = { scheme: 'http' as const, port: 80, path: '/prepare', timeout: '5s' };
    const mirror = {
      kind: 'mirror',
      apiVersion: 'v1',
      resourceKind: 'Size',
      name: 'ingester',
      read: 'scale',
      writeBack: 'status',
      onMissing: 'hold',
    } as const;
    const groups = [
      group({ zones: [{ name: 'a', replicas: mirror, delayed: { afterMs: 3_600_000, endpoint, onUnreachable: 'hold' } }, 'b'] }),
    ];
    const none = { action: 'none' };
    const state = (zone: object) => ({ source: 2, zones: { a: zone } });
    expect(one(state({}), none, { decision: 'wait', rules: ['delayed-downscale'] }, { groups })?.problems).toEqual([]);
    expect(one(state({ preparedFor: '59m' }), none, { decision: 'wait', rules: ['delayed-downscale'] }, { groups })?.problems).toEqual([]);
    expect(one(state({ preparedFor: '1h' }), none, { decision: 'act', replicas: { a: 2 } }, { groups })?.problems).toEqual([]);
    expect(one({ source: 3 }, none, { decision: 'done' }, { groups })?.problems).toEqual([]);
    expect(one({ source: 'unknown' }, none, { decision: 'wait', rules: ['replica-source'] }, { groups })?.problems).toEqual([]);
  });
});

describe('an invalid case', () => {
  const none = { action: 'none' };
  it.each([
    ['a zone', { zones: { d: { ready: 1 } } }, none, 'done', 'the group ingester has no zone d; its zones are a, b, c'],
    ['a metric', { metrics: { queue: 1 } }, none, 'done', 'no policy declares the metric queue'],
    ['a gate', { gates: { errors: [1] } }, none, 'done', 'the group ingester has no gate errors'],
    ['a wave', { approvals: [{ wave: 'canary', user: 'kim' }] }, none, 'done', 'the group ingester has no wave canary'],
    ['a rule', { approvals: [{ rule: 'a/b', user: 'kim' }] }, none, 'done', 'no policy has the rule a/b; rules are named as policy/rule'],
    ['nothing that is approved', { approvals: [{ user: 'kim' }] }, none, 'done', 'the approval of kim names neither a wave nor a rule'],
    ['a source', { source: 3 }, none, 'done', 'the group ingester mirrors no replica count'],
    ['an ordinal', { zones: { a: { unready: [3] } } }, none, 'done', 'zone a has no pod 3; its ordinals are 0 to 2'],
    ['pods', { zones: { a: { updated: 4 } } }, none, 'done', 'zone a has 3 replicas, so 4 cannot be updated'],
    ['readiness', { zones: { a: { ready: 2, unready: [0] } } }, none, 'done', 'zone a: set either ready or unready, not both'],
    ['a group', {}, { action: 'none', group: 'other' }, 'done', 'there is no group other; groups are mimir/ingester'],
    ['no zone', {}, { action: 'scaleDown', to: 1 }, 'allow', 'the request names no zone; zones are a, b, c'],
    ['no number', {}, { action: 'scaleDown', zone: 'a' }, 'allow', 'the request scaleDown has no field "to"'],
    ['a number of before', {}, { ...shrinkA, from: 5 }, 'allow', 'zone a has 3 replicas, so it is not scaled from 5'],
    ['a direction', {}, { ...shrinkA, to: 4 }, 'allow', 'from 3 to 4 is not a scaleDown'],
    ['a pod', {}, { action: 'evict', zone: 'a', ordinal: 7 }, 'allow', 'zone a has no pod ingester-zone-a-7'],
    ['no pod', {}, { action: 'evict', zone: 'a' }, 'allow', 'an eviction needs the ordinal of its pod'],
    ['a write path', {}, { action: 'restart', zone: 'a', via: ['apply'] }, 'allow', 'via is for scaleUp and scaleDown, not for restart'],
    ['what the agent is not asked', {}, { action: 'none', to: 3 }, 'done', 'the field to has no meaning if the action is none'],
    ['an answer', {}, none, 'allow', 'a request with the action none returns act, wait, blocked or done, never allow'],
    ['a decision', {}, shrinkA, 'act', 'a request with the action scaleDown returns allow, warn, requireApproval, hold or deny, never act'],
  ])('names %s and is not evaluated', (_what, given, request, decision, problem) => {
    expect(one(given, request, { decision })).toMatchObject({ passed: false, decision: '', problems: [problem] });
  });

  it.each([
    [0, 'hold'],
    [1, 'hold'],
    [3, 'allow'],
    [undefined, 'allow'],
  ] as const)('denies a scale-down while a rollout is in progress, as the webhook does: %s of 3 pods updated', (updated, decision) => {
    const given = updated === undefined ? {} : { zones: { a: { updated } } };
    const rules = decision === 'hold' ? ['rollout-in-progress'] : [];
    expect(one(given, shrinkA, { decision, rules })).toMatchObject({ passed: true, decision });
  });

  it('expects only pods and replicas that the agent changes', () => {
    expect(one({}, shrinkA, { decision: 'allow', replicas: { a: 2 } })?.problems).toEqual([
      'replicas can be expected only if the action is rollout or none',
    ]);
  });
});

describe('the coverage of cases', () => {
  it('lists every rule with the cases that it blocked and the cases that it passed', () => {
    const cases = run([
      { name: 'too soon', given: { zones: { b: { lastDownscale: '10m' } } }, request: shrinkA, expect: { decision: 'hold' } },
      { name: 'long after', given: { zones: { b: { lastDownscale: '2h' } } }, request: shrinkA, expect: { decision: 'allow' } },
      { name: 'no such zone', given: { zones: { d: {} } }, request: shrinkA, expect: { decision: 'allow' } },
      { name: 'deleted', request: { action: 'delete', zone: 'a' }, expect: { decision: 'deny' } },
    ]);
    expect(coverageOf({ groups: [zonedGroup], policies: [], exceptions: [] }, cases)).toEqual([
      { rule: 'ingester scaling.down.betweenZones', held: ['too soon'], passed: ['long after'] },
      { rule: 'ingester rollout.maxUnavailable', held: [], passed: [] },
      { rule: 'ingester protect.noDelete', held: ['deleted'], passed: [] },
    ]);
  });

  const shares = (...percents: readonly number[]) =>
    percents.map((percent) =>
      wave(`p${percent}`, ['a', 'b', 'c'], {
        amount: { percent },
        before: { gates: [], approval: { count: 1, from: [] } },
        after: { soakMs: 60_000, gates: [] },
      }),
    );
  const sized = (replicas: number) => ({ zones: Object.fromEntries(['a', 'b', 'c'].map((name) => [name, { replicas }])) });
  const openRules = (given: unknown, waves = shares(1, 50, 100)) => {
    const groups = [group({ rollout: { waves } })];
    const cases = run([{ name: 'at rest', given, request: { action: 'none' }, expect: { decision: 'done' } }], { groups });
    const coverage = coverageOf({ groups, policies: [], exceptions: [] }, cases).filter(({ rule }) => rule.includes('waves.'));
    return {
      open: coverage.filter(({ unreachable }) => unreachable === undefined).map(({ rule }) => rule.split('waves.')[1]),
      unreachable: coverage.filter(({ unreachable }) => unreachable !== undefined).map(({ rule }) => rule.split('waves.')[1]),
    };
  };

  it('distinguishes results that no case of this size can reach from untested results', () => {
    // Of one pod every share is that pod; of two, 1 % and 50 % are the same.
    expect(openRules(sized(1))).toEqual({
      open: ['p1.before.approval', 'p1.after.soak'],
      unreachable: ['p50.before.approval', 'p50.after.soak', 'p100.before.approval', 'p100.after.soak'],
    });
    expect(openRules(sized(2)).unreachable).toEqual(['p50.before.approval', 'p50.after.soak']);
    expect(openRules(sized(3)).unreachable).toEqual([]);
  });

  it('suggests a soak that is longer than the soak of the same pods before it', () => {
    const [first, second] = shares(1, 50);
    if (first === undefined || second === undefined) throw new Error('there are two');
    const longer = { ...second, after: { ...second.after, soakMs: 120_000 } };
    expect(openRules(sized(1), [first, longer])).toEqual({
      open: ['p1.before.approval', 'p1.after.soak', 'p50.after.soak'],
      unreachable: ['p50.before.approval'],
    });
  });

  it('counts a wave as reachable if one case has zones that are large enough', () => {
    const groups = [group({ rollout: { waves: shares(1, 50, 100) } })];
    const at = (replicas: number) => ({
      name: `${replicas}`,
      given: sized(replicas),
      request: { action: 'none' },
      expect: { decision: 'done' },
    });
    const coverage = coverageOf({ groups, policies: [], exceptions: [] }, run([at(1), at(3)], { groups }));
    expect(coverage.filter(({ unreachable }) => unreachable !== undefined)).toEqual([]);
    // Without any case nothing is known of the size.
    expect(coverageOf({ groups, policies: [], exceptions: [] }, []).filter(({ unreachable }) => unreachable !== undefined)).toEqual([]);
  });
});
