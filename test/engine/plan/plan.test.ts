import { describe, expect, it } from 'vitest';
import { type Assumptions, defaultAssumptions, type GroupPlan, type PlannedStep } from '../../../engine/plan/document.ts';
import { type PlanInput, planGroups } from '../../../engine/plan/plan.ts';
import { readPlanSnapshots } from '../../../engine/plan/world.ts';
import { waitCommands } from '../../../plugin/output/explain.ts';
import { afterWaitText } from '../../../plugin/output/plan/plan-text.ts';
import { gate, group, wave } from '../../kit/groups.ts';
import { manifests, planInput } from '../../kit/manifests.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { exception, freeze, hourMs, intent, minuteMs, policy, policyRule } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const next = manifests({ image: 'grafana/mimir:2.17.1' });
const rollout = (overrides: Partial<PlanInput> = {}) => planInput({ desired: next, ...overrides });
const stepsOf = (plan: GroupPlan): readonly PlannedStep[] => plan.waves.flatMap(({ steps }) => steps);

function planOf(input: PlanInput): GroupPlan {
  const [plan] = planGroups(input).groups;
  if (plan === undefined) throw new Error('the test expected a plan of a group');
  return plan;
}

/** The plan in lines: kind, zone, pods or numbers, begin and duration. */
const lines = (plan: GroupPlan) =>
  plan.waves.flatMap(({ name, steps }) =>
    steps.map(({ kind, zone, pods, from, to, waitsFor, startSeconds, p50Seconds, p90Seconds }) => {
      const what = pods.map((pod) => pod.replace('ingester-zone-', '')).join(' ') || (from === undefined ? waitsFor : `${from}-${to}`);
      return `${name}: ${kind} ${zone ?? '*'} ${what} at ${startSeconds} for ${p50Seconds ?? '?'} to ${p90Seconds ?? '?'}`;
    }),
  );

describe('a policy in the namespace of the agent', () => {
  const everywhere = { all: true, namespaces: ['mimir'] } as const;
  const paced = policy({
    namespace: 'ops',
    name: 'pace',
    targets: everywhere,
    limits: { minIntervalMs: hourMs },
    metrics: { load: { source: 'prod', query: 'up', noData: 'unknown', maxAgeMs: hourMs } },
  });
  const withAgent = (agentNamespace: string | undefined) =>
    planGroups(rollout({ policies: [paced], ...(agentNamespace === undefined ? {} : { agentNamespace }) }));

  it('applies to the groups of its namespaces', () => {
    const plan = withAgent('ops');
    expect(plan.groups[0]?.totals.p50Seconds).toBeGreaterThan((8 * hourMs) / 1000);
    expect(Object.keys(plan.assumptions.metrics)).toEqual(['pace/load']);
  });

  it.each([undefined, 'elsewhere'])('applies to no group if the agent runs in %s', (agentNamespace) => {
    const plan = withAgent(agentNamespace);
    expect([plan.groups[0]?.totals.p50Seconds, plan.assumptions.metrics]).toEqual([810, {}]);
  });

  it('requires the approvals of its rules, and has its metrics assumed', () => {
    const asks = policyRule({ name: 'two', actions: ['rollout'], effect: 'requireApproval' });
    const policies = [policy({ namespace: 'ops', name: 'guard', targets: everywhere, rules: [asks] })];
    const stepsWith = (agentNamespace: string) => stepsOf(planOf(rollout({ policies, agentNamespace }))).map(({ kind }) => kind);
    expect([stepsWith('ops')[0], stepsWith('elsewhere')[0]]).toEqual(['approval', 'roll']);
  });
});

describe('a plan of a new image', () => {
  it('replaces pod after pod and zone after zone, with the assumed times', () => {
    const plan = planOf(rollout());
    expect(lines(plan)).toEqual([
      'all: roll a a-2 a-1 a-0 at 0 for 270 to 900',
      'all: roll b b-2 b-1 b-0 at 270 for 270 to 900',
      'all: roll c c-2 c-1 c-0 at 540 for 270 to 900',
    ]);
    expect(plan).toMatchObject({
      namespace: 'mimir',
      group: 'ingester',
      outcome: 'complete',
      refused: [],
      waits: [],
      totals: { restarts: 9, scaleChanges: 0, waves: 1, gates: 0, approvals: 0, p50Seconds: 810, p90Seconds: 2700 },
    });
    expect(plan.zones[1]).toEqual({ zone: 'b', statefulSet: 'ingester-zone-b', replicasBefore: 3, replicasAfter: 3, restarts: 3 });
    expect(plan.timeline).toEqual([
      { zone: 'a', kind: 'roll', label: '3 pods', startSeconds: 0, endSeconds: 270 },
      { zone: 'b', kind: 'roll', label: '3 pods', startSeconds: 270, endSeconds: 540 },
      { zone: 'c', kind: 'roll', label: '3 pods', startSeconds: 540, endSeconds: 810 },
    ]);
  });

  it('names the number of pods that are unavailable at once', () => {
    const two = group({ zones: ['a', 'b', 'c'].map((name) => ({ name, maxUnavailable: 2 })) });
    const [step] = stepsOf(planOf(rollout({ groups: [two] })));
    expect([step?.atOnce, step?.pods.length, step?.p50Seconds]).toEqual([2, 3, 180]);
    expect(stepsOf(planOf(rollout()))[0]?.atOnce).toBe(1);
  });

  it.each([2, 0])('counts only the pods of the canary as unavailable at once while pod %i crashes', (ordinal) => {
    const down = { isReady: false, containersReady: false, waitingReasons: ['CrashLoopBackOff'] };
    const canary = group({ rollout: { waves: [wave('canary', ['a'], { amount: { pods: 1 } }), wave('rest', ['a', 'b', 'c'])] } });
    const running = snapshotOf({ groups: [canary], podChanges: { 'ingester-zone-a': { [ordinal]: down } } });
    const [step] = stepsOf(planOf(rollout({ groups: [canary], running }))).filter(({ kind }) => kind === 'roll');
    expect([step?.atOnce, step?.pods.length]).toEqual([1, 1]);
  });

  it('names the pods that the plan waits for, and the command that shows the reason', () => {
    const lost = { isReady: false, containersReady: false, node: 'node-7', nodeReady: false };
    const groups = [group()];
    const plan = planOf(rollout({ groups, running: snapshotOf({ groups, podChanges: { 'ingester-zone-c': { 1: lost } } }) }));
    expect([plan.outcome, plan.troubled]).toMatchObject([
      'waits',
      [{ zone: 'c', pod: 'ingester-zone-c-1', state: 'nodeDown', node: 'node-7' }],
    ]);
    expect(waitCommands(plan)).toContain('c-1 is on node node-7, which is not ready: kubectl describe node node-7');
    expect(planOf(rollout()).troubled).toBeUndefined();
  });

  it('contains the rules that were evaluated before the first pod', () => {
    expect(stepsOf(planOf(rollout()))[0]?.rules.map(({ rule }) => rule)).toContain('zone-budget');
  });
});

describe('the assumed times', () => {
  const times = (drain: number, start: number): Assumptions => ({
    ...defaultAssumptions,
    pods: { drain: { p50Seconds: drain, p90Seconds: 2 * drain }, start: { p50Seconds: start, p90Seconds: 3 * start } },
  });
  const rolling = (assumptions: Assumptions) => planOf(rollout({ assumptions })).totals;

  it('double the duration of the rollout if the start time doubles and no pod drains', () => {
    expect([rolling(times(0, 60)).p50Seconds, rolling(times(0, 120)).p50Seconds]).toEqual([540, 1080]);
    expect([rolling(times(0, 60)).p90Seconds, rolling(times(0, 120)).p90Seconds]).toEqual([1620, 3240]);
  });

  it('double the duration of the rollout if both double', () => {
    expect([rolling(times(30, 60)).p50Seconds, rolling(times(60, 120)).p50Seconds]).toEqual([810, 1620]);
    expect([rolling(times(30, 60)).p90Seconds, rolling(times(60, 120)).p90Seconds]).toEqual([2160, 4320]);
  });

  it('can be set in the group', () => {
    const groups = { ingester: { start: { p50Seconds: 10, p90Seconds: 20 } } };
    expect(rolling({ ...defaultAssumptions, groups })).toMatchObject({ p50Seconds: 360, p90Seconds: 9 * 140 });
    expect(rolling({ ...defaultAssumptions, groups: { other: groups.ingester } }).p50Seconds).toBe(810);
  });

  it('are in the document', () => {
    expect(planGroups(rollout({ assumptions: times(1, 2) })).assumptions).toEqual(times(1, 2));
  });
});

describe('a plan of waves', () => {
  const waves = [
    wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: 30 * minuteMs, gates: ['errors'] } }),
    wave('rest', ['a', 'b', 'c'], { before: { approval: { count: 1, from: ['oncall'] }, gates: [] } }),
  ];
  const staged = group({ gates: [gate({ consecutive: 3 })], rollout: { waves }, sources: {} });

  it('soaks, waits for approval and continues', () => {
    const plan = planOf(rollout({ groups: [staged] }));
    expect(lines(plan)).toEqual([
      'canary: roll a a-2 at 0 for 90 to 300',
      'canary: soak * canary at 90 for 1800 to 1800',
      'rest: approval * rest at 1890 for ? to ?',
      'rest: roll a a-1 a-0 at 1890 for 180 to 600',
      'rest: roll b b-2 b-1 b-0 at 2070 for 270 to 900',
      'rest: roll c c-2 c-1 c-0 at 2340 for 270 to 900',
    ]);
    expect(plan.totals).toMatchObject({ waves: 2, gates: 1, approvals: 1, restarts: 9, p50Seconds: 2610 });
    expect(plan.timeline.map(({ kind, label }) => `${kind} ${label}`)).toEqual([
      'roll 1 pod',
      'soak canary',
      'roll 2 pods',
      'roll 3 pods',
      'roll 3 pods',
    ]);
  });

  it('waits for a gate that lasts longer than the soak', () => {
    const slow = group({
      gates: [gate({ consecutive: 3 })],
      rollout: { waves: [wave('all', ['a'], { after: { soakMs: 0, gates: ['errors'] } })] },
    });
    const plan = planOf(rollout({ groups: [slow], desired: [...next.slice(0, 1), ...manifests().slice(1)] }));
    expect(lines(plan)[1]).toBe('all: check * errors at 270 for 120 to 120');
    expect(plan.timeline[1]).toEqual({ zone: '', kind: 'wait', label: 'errors', startSeconds: 270, endSeconds: 390 });
  });

  it('is blocked if no webhook records approvals, also if approvals are assumed', () => {
    const running = { ...readPlanSnapshots(rollout()).before, webhookProblems: { requesters: 'it does not exist' } };
    const plan = planOf(rollout({ groups: [staged], running }));
    expect([plan.outcome, plan.waits[0]?.fact]).toEqual([
      'blocked',
      '0 of 1 approvals from oncall; no webhook records requesters, so no approval counts: it does not exist',
    ]);
  });

  it('gives the wait of a paused group no zone and no duration', () => {
    const { before } = readPlanSnapshots(rollout());
    const paused = (intents: Parameters<typeof intent>[0]) => ({ ...before, intents: [intent({ action: 'pause', ...intents })] });
    const held = (intents: object) => {
      const [step] = stepsOf(planOf(rollout({ running: paused(intents) })));
      return [step?.kind, step?.zone, step?.p50Seconds, step?.p90Seconds];
    };
    expect(held({})).toEqual(['wait', undefined, undefined, undefined]);
    expect(held({ zone: 'a' })).toEqual(['wait', 'a', undefined, undefined]);
  });

  it('names the restarts that follow the wait, and counts them', () => {
    const plan = planOf(rollout({ groups: [staged], assumptions: { ...defaultAssumptions, approvals: 'missing' } }));
    expect(plan.zones.map(({ restarts, afterWait }) => [restarts, afterWait?.join(' ')])).toEqual([
      [3, 'ingester-zone-a-1 ingester-zone-a-0'],
      [3, 'ingester-zone-b-2 ingester-zone-b-1 ingester-zone-b-0'],
      [3, 'ingester-zone-c-2 ingester-zone-c-1 ingester-zone-c-0'],
    ]);
    expect(plan.totals.restarts).toBe(9);
  });

  it('names the replicas that change after the wait', () => {
    const zones = [{ name: 'a', replicas: { kind: 'count', count: 2 } }, 'b'] as const;
    const definition = group({ zones });
    const { before } = readPlanSnapshots(planInput({ groups: [definition] }));
    const running = { ...before, intents: [intent({ action: 'pause' })] };
    const plan = planOf(planInput({ groups: [definition], running }));
    expect([plan.outcome, plan.zones.map(({ replicasAfter, replicasAfterWait }) => [replicasAfter, replicasAfterWait])]).toEqual([
      'waits',
      [
        [3, 2],
        [3, undefined],
      ],
    ]);
    expect(afterWaitText(plan)).toBe('scale down a 3 -> 2');
  });

  it('has no p90 below its p50, also for a wait that a later start shortens', () => {
    const closed = freeze({ ranges: [{ fromMs: kitNowMs + 2 * minuteMs, toMs: kitNowMs + 20 * minuteMs }] });
    const plan = planOf(rollout({ groups: [group({ zones: [{ name: 'a' }] })], policies: [policy({ windows: [closed] })] }));
    const timed = stepsOf(plan).filter(({ p90Seconds }) => p90Seconds !== undefined);
    expect(timed.some(({ kind }) => kind === 'wait')).toBe(true);
    for (const { p50Seconds = 0, p90Seconds = 0 } of [...timed, plan.totals]) expect(p90Seconds).toBeGreaterThanOrEqual(p50Seconds);
  });

  it('ends at a missing approval', () => {
    const plan = planOf(rollout({ groups: [staged], assumptions: { ...defaultAssumptions, approvals: 'missing' } }));
    expect(plan.outcome).toBe('waits');
    expect(plan.waits).toMatchObject([{ rule: 'approval', outcome: 'wait', fact: '0 of 1 approvals from oncall' }]);
    expect(plan.totals.p50Seconds).toBeUndefined();
    expect(lines(plan).at(-1)).toBe('rest: approval * rest at 1890 for ? to ?');
  });

  it('is blocked by a failing gate', () => {
    const plan = planOf(rollout({ groups: [staged], assumptions: { ...defaultAssumptions, gates: 'fail' } }));
    expect(plan.outcome).toBe('blocked');
    expect(plan.waits[0]).toMatchObject({ rule: 'run-failed', outcome: 'no' });
    expect(plan.totals.p90Seconds).toBeUndefined();
  });
});

describe('a plan of replicas', () => {
  it('scales up, also during a rollout', () => {
    const desired = manifests({ replicas: 5, image: 'grafana/mimir:2.17.1' }, ['a']);
    const plan = planOf(planInput({ groups: [group({ zones: ['a'] })], current: manifests({}, ['a']), desired }));
    expect(plan.zones).toEqual([{ zone: 'a', statefulSet: 'ingester-zone-a', replicasBefore: 3, replicasAfter: 5, restarts: 3 }]);
    expect(plan.totals.scaleChanges).toBe(1);
    expect(lines(plan)[0]).toMatch(/^replicas: scaleUp a 3-5 at 0 for 60 to 180$/);
  });

  it('scales a follower to its leader', () => {
    const following = group({ zones: ['a', { name: 'b', follows: 'a' }] });
    const current = [...manifests({}, ['a']), ...manifests({ replicas: undefined }, ['b'])];
    const desired = [...manifests({ replicas: 4 }, ['a']), ...manifests({ replicas: undefined }, ['b'])];
    const plan = planOf(planInput({ groups: [following], current, desired }));
    expect(plan.zones.map(({ replicasBefore, replicasAfter }) => [replicasBefore, replicasAfter])).toEqual([
      [3, 4],
      [3, 4],
    ]);
    expect(plan.outcome).toBe('complete');
  });

  it('prepares pods before their removal', () => {
    const endpoint = { scheme: 'http', port: 80, path: '/prepare', timeout: '5s' } as const;
    const delayed = { afterMs: hourMs, endpoint, onUnreachable: 'hold' } as const;
    const zones = [{ name: 'a', replicas: { kind: 'count', count: 2 }, delayed }] as const;
    const current = manifests({ replicas: undefined }, ['a']);
    const shrinking = planOf(planInput({ groups: [group({ zones })], current: manifests({ replicas: 3 }, ['a']), desired: current }));
    expect(lines(shrinking)).toEqual([
      'replicas: prepare a a-2 at 0 for 0 to 0',
      'replicas: wait a delayed-downscale at 0 for 3600 to 3600',
      'replicas: prepare a a-2 at 3600 for 0 to 0',
      'replicas: scaleDown a 3-2 at 3600 for 30 to 120',
    ]);
    expect(shrinking.timeline.map(({ kind, label, endSeconds }) => [kind, label, endSeconds])).toEqual([
      ['prepare', 'delayed-downscale', 0],
      ['wait', 'delayed-downscale', 3600],
      ['prepare', 'delayed-downscale', 3600],
      ['scaleDown', '3 to 2', 3630],
    ]);
  });
});

describe('the calendar', () => {
  const startsAt = (overrides: Partial<PlanInput>) => planGroups(rollout(overrides)).metadata.startsAt;
  const withRule = (when: unknown) => ({ policies: [policy({ rules: [policyRule({ effect: 'warn', when })] })] });

  it('has no effect on a plan without a date: its bytes are the same at any time', () => {
    expect(planGroups(rollout()).metadata).toEqual({ policyDigest: 'digest' });
    expect(JSON.stringify(planGroups(rollout()))).toBe(JSON.stringify(planGroups(rollout({ nowMs: kitNowMs + hourMs }))));
    expect(startsAt(withRule({ '>': [{ var: 'target.replicas' }, 3] }))).toBeUndefined();
  });

  it.each<[string, Partial<PlanInput>]>([
    ['a window', { policies: [policy({ windows: [freeze()] })] }],
    ['an exception', { exceptions: [exception('zone-gap')] }],
    ['a condition on the time', withRule({ '>': [{ var: 'now' }, 5] })],
    ['a condition on an age', withRule({ '>': [{ age: [{ var: 'target.lastDownscaleAt' }] }, 5] })],
    [
      'a recorded downscale',
      { current: manifests({ metadata: { annotations: { 'grafana.com/last-downscale': '2026-01-01T00:00:00Z' } } }) },
    ],
    [
      'a status with conditions',
      { current: [...manifests(), { kind: 'Pod', metadata: { name: 'x' }, status: { conditions: [{ lastTransitionTime: 'x' }] } }] },
    ],
  ])('has an effect if an object names a date: %s', (_name, overrides) => {
    expect(startsAt(overrides)).toBe('2026-03-02T12:00:00.000Z');
  });

  it('makes a plan wait for a window to open', () => {
    const plan = planOf(rollout({ policies: [policy({ windows: [freeze()] })] }));
    expect(lines(plan)[0]).toBe('all: wait * window at 0 for 3600 to 3600');
    expect(stepsOf(plan)[0]?.source).toEqual({ file: 'policy.yaml', line: 20, column: 1 });
    expect(plan.totals.p50Seconds).toBe(3600 + 810);
  });

  it('gives no duration to a wait that no window ends, such as the wait for a mirrored object without a manifest', () => {
    const { ranges: _ranges, ...daily } = freeze({ schedule: { cron: '0 3 * * *', durationMs: hourMs, timeZone: 'UTC' } });
    const mirror = {
      kind: 'mirror',
      apiVersion: 'example.com/v1',
      resourceKind: 'ReplicaTemplate',
      name: 'ingester',
      read: 'scale',
      writeBack: 'none',
      onMissing: 'hold',
    } as const;
    const groups = [group({ zones: [{ name: 'a', replicas: mirror }] })];
    const plan = planOf(rollout({ groups, policies: [policy({ windows: [daily] })] }));
    expect(lines(plan)).toEqual(['all: roll a a-2 a-1 a-0 at 0 for 270 to 900', 'replicas: wait a replica-source at 270 for ? to ?']);
    expect([plan.outcome, plan.totals.p50Seconds, plan.timeline.map(({ kind }) => kind)]).toEqual(['waits', undefined, ['roll']]);
  });
});

describe('the outcome of a plan', () => {
  const other = group({ name: 'store-gateway', zones: ['a'] });
  const otherSets = (image: string) => [
    { ...(manifests({ image })[0] as object), metadata: { name: 'store-gateway-zone-a', namespace: 'mimir' } },
  ];
  const denied = { policies: [policy({ targets: { groups: ['ingester'] }, rules: [policyRule()] })] };
  const held = { policies: [policy({ targets: { groups: ['ingester'] }, rules: [policyRule({ effect: 'hold' })] })] };

  it('is unchanged without a request', () => {
    const plan = planGroups(planInput());
    expect(plan.outcome).toBe('unchanged');
    expect(plan.groups[0]).toMatchObject({
      outcome: 'unchanged',
      changes: [],
      waves: [],
      totals: { restarts: 0, p50Seconds: 0, p90Seconds: 0 },
    });
  });

  it('is complete if only settings change', () => {
    expect(planGroups(planInput({ desired: manifests({ metadata: { namespace: 'mimir', labels: { team: 'x' } } }) })).outcome).toBe(
      'complete',
    );
  });

  it.each<[string, Partial<PlanInput>, string]>([
    ['complete', {}, 'complete'],
    ['waiting', held, 'waits'],
    ['blocked', denied, 'blocked'],
  ])('is the worst of all groups, here %s; groups are sorted by name', (_name, overrides, outcome) => {
    const plan = planGroups(
      rollout({
        groups: [other, group()],
        current: [...manifests(), ...otherSets('x:1')],
        desired: [...next, ...otherSets('x:1')],
        ...overrides,
      }),
    );
    expect(plan.groups.map((one) => [one.group, one.outcome])).toEqual([
      ['ingester', outcome],
      ['store-gateway', 'unchanged'],
    ]);
    expect(plan.outcome).toBe(outcome);
  });

  it('has the kind and version of the document', () => {
    expect(planGroups(planInput())).toMatchObject({ apiVersion: 'rollout-group.dev/cli/v1', kind: 'Plan' });
  });
});

describe('the timeline of a plan', () => {
  it('has no overlap from sums of fractions', () => {
    for (let tenths = 1; tenths < 10; tenths += 1) {
      const start = { p50Seconds: 60 + tenths / 10, p90Seconds: 180 };
      const { timeline } = planOf(rollout({ assumptions: { ...defaultAssumptions, pods: { ...defaultAssumptions.pods, start } } }));
      for (const [index, { startSeconds }] of timeline.entries())
        expect(timeline[index - 1]?.endSeconds ?? 0).toBeLessThanOrEqual(startSeconds);
    }
  });
});

describe('replacements that overlap', () => {
  const shown = (overrides: Partial<PlanInput>) => {
    const plan = planOf(rollout({ groups: [group({ zones: ['a', 'b'] })], ...overrides }));
    return { lines: lines(plan), permitted: plan.permitted?.map(({ rule }) => rule) };
  };

  it('begin in the next zone when the last pod of a zone is created, if an exception permits it', () => {
    const permitted = exception('other-zones-ready', { expiresMs: kitNowMs + hourMs });
    const [alone, both] = [shown({}), shown({ exceptions: [permitted] })];
    expect({ alone: alone.permitted, both: both.permitted }).toEqual({ alone: undefined, both: ['other-zones-ready'] });
    expect(both.lines).not.toEqual(alone.lines);
    expect(both.lines).toMatchInlineSnapshot(`
      [
        "all: roll a a-2 a-1 a-0 at 0 for 210 to 720",
        "all: roll b b-2 b-1 b-0 at 210 for 270 to 900",
      ]
    `);
  });

  it('follow each other after the minimum interval, although the first pod is not ready', () => {
    const zones = [{ name: 'a', maxUnavailable: 2 }, 'b'];
    const ofGroup = shown({ groups: [group({ zones, rollout: { minIntervalMs: 10_000 } })] });
    expect(ofGroup.lines).toMatchInlineSnapshot(`
      [
        "all: roll a a-2 a-1 a-0 at 0 for 180 to 600",
        "all: roll b b-2 b-1 b-0 at 180 for 270 to 900",
      ]
    `);
    expect(shown({ groups: [group({ zones })], policies: [policy({ limits: { minIntervalMs: 10_000 } })] })).toEqual(ofGroup);
  });
});

it('a denial of the API server by a policy that the change relaxes names the order of the writes', () => {
  const strict = { policies: [policy({ rules: [policyRule({ name: 'keep', actions: ['scaleDown'], effect: 'deny' })] })], exceptions: [] };
  const change = planInput({ desired: manifests({ replicas: 2 }, ['a']), groups: [group({ zones: ['a'] })] });
  const { message = '' } = planOf({ ...change, ...strict }).refused[0] ?? {};
  const deniedBy = (text: string) => {
    const denied = [{ objects: ['StatefulSet mimir/ingester-zone-a'], message: `admission webhook "x" denied the request: ${text}` }];
    return planGroups({ ...change, before: strict, denied }).denied?.map(({ hint }) => hint);
  };
  expect([message, deniedBy('another reason')]).toEqual([expect.stringContaining('safety/keep'), [undefined]]);
  expect(deniedBy(message)).toEqual([expect.stringContaining('apply the policies first, then the StatefulSet')]);
});
