import { describe, expect, it } from 'vitest';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import { groupsToPlan } from '../../../engine/plan/groups.ts';
import { type PlanInput, planGroups } from '../../../engine/plan/plan.ts';
import { readPlanSnapshots } from '../../../engine/plan/world.ts';
import { isUnknown, type Snapshot } from '../../../engine/snapshot.ts';
import type { ExceptionDefinition, RolloutDefinition, WaveDefinition } from '../../../policies/definition.ts';
import { defined } from '../../../policies/values/defined.ts';
import { group, wave, type ZoneOverrides } from '../../kit/groups.ts';
import { manifest, manifests, planInput } from '../../kit/manifests.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { exception, freeze, hourMs, ledgerOf, minuteMs, policy, policyRule, runOf } from '../../kit/questions.ts';

const fixed = 'grafana/mimir:2.17.1';
const risksOf = (overrides: Partial<PlanInput> = {}) => planGroups(planInput(overrides)).groups[0]?.risks;
const asking = (...desired: readonly unknown[]) => risksOf({ desired });

/** Three zones of four pods, two of which may be unavailable, that get a new image. */
function rolling(rollout: Partial<RolloutDefinition>, budgets: readonly unknown[] = [], spec: object = {}) {
  const zones = ['a', 'b', 'c'].map((name) => ({ name, maxUnavailable: 2 }));
  const now = manifests({ replicas: 4, spec: { ...manifestSpec(spec) } });
  const then = manifests({ replicas: 4, image: fixed, spec: { ...manifestSpec(spec) } });
  return risksOf({ groups: [group({ zones, rollout })], current: [...now, ...budgets], desired: [...then, ...budgets] });
}

function manifestSpec(spec: object): object {
  return { podManagementPolicy: 'Parallel', ...spec };
}

describe('RG5001, a budget that makes evictions serial', () => {
  const budget = (maxUnavailable: number | string, name = 'pdb') => ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'mimir' },
    spec: { selector: { matchLabels: { 'rollout-group': 'ingester' } }, maxUnavailable },
  });

  it('is named with its object and with a possible value', () => {
    expect(rolling({ rotateBy: 'evict' }, [budget(1)])).toEqual([
      {
        code: 'RG5001',
        severity: 'warning',
        message: 'PodDisruptionBudget mimir/pdb allows one eviction at a time, although 2 pods may be unavailable',
        source: { object: 'PodDisruptionBudget mimir/pdb' },
      },
    ]);
  });

  it.each<[string, Partial<RolloutDefinition>, readonly unknown[]]>([
    ['pods are deleted', { rotateBy: 'delete' }, [budget(1)]],
    ['the budget lets two go', { rotateBy: 'evict' }, [budget(2)]],
    ['there is none', { rotateBy: 'evict' }, []],
    ['an interval makes them serial', { rotateBy: 'evict', minIntervalMs: minuteMs }, [budget(2)]],
  ])('is absent when %s', (_name, rollout, budgets) => {
    expect(rolling(rollout, budgets)).toEqual([]);
  });

  it('is absent if the zone allows one pod anyway', () => {
    const budgets = [budget(1)];
    const one = group({ rollout: { rotateBy: 'evict' } });
    expect(
      risksOf({ groups: [one], current: [...manifests(), ...budgets], desired: [...manifests({ image: fixed }), ...budgets] }),
    ).toEqual([]);
  });
});

describe('RG5002, pods that start one after the other', () => {
  const notice = (names: string) => ({
    code: 'RG5002',
    severity: 'notice',
    message: `pods of ${names} start one after the other (podManagementPolicy OrderedReady), so a maxUnavailable above 1 does not make the rollout faster`,
  });

  it('is named for every zone that allows several unavailable pods', () => {
    expect(rolling({}, [], { podManagementPolicy: 'OrderedReady' })).toEqual([notice('ingester-zone-a, ingester-zone-b, ingester-zone-c')]);
    expect(rolling({}, [])).toEqual([]);
    expect(rolling({ minIntervalMs: 10 * minuteMs }, [], { podManagementPolicy: 'OrderedReady' })).toEqual([]);
  });
});

describe('RG5003, no readiness probe', () => {
  const blind = { container: { readinessProbe: undefined } };

  it('is named for StatefulSets in which no container has a probe', () => {
    expect(asking(manifest('b', blind), manifest('a', { container: { readinessProbe: null } }), manifest('c'))).toEqual([
      {
        code: 'RG5003',
        severity: 'warning',
        message: 'no container of ingester-zone-a, ingester-zone-b has a readiness probe, so pods count as ready before they serve',
      },
    ]);
  });

  it('is absent if one container has a probe', () => {
    const containers = [
      { name: 'a', image: 'x:1' },
      { name: 'b', image: 'x:1', readinessProbe: {} },
    ];
    expect(asking(manifest('a', { spec: { template: { spec: { containers } } } }))).toEqual([]);
  });
});

describe('RG5005, replicas that the agent and Git both write', () => {
  const owned = group({ zones: ['a', { name: 'b', follows: 'a' }, { name: 'c', replicas: { kind: 'count', count: 3 } }] });

  it('is named for followers and for zones with another source of replicas', () => {
    expect(risksOf({ groups: [owned] })).toEqual([
      {
        code: 'RG5005',
        severity: 'warning',
        message:
          'the manifests of ingester-zone-b, ingester-zone-c set replicas that the agent also writes, so Git and the agent overwrite each other',
      },
    ]);
  });

  it('reads the manifests as written, without the defaults of the API server', () => {
    const written = manifests({ replicas: undefined }, ['a', 'b', 'c']);
    expect(risksOf({ groups: [owned], written })).toEqual([]);
  });

  it('is absent if the manifests omit the replicas, and for zones that are scaled directly', () => {
    const left = [...manifests({}, ['a']), ...manifests({ replicas: undefined }, ['b', 'c'])];
    expect(risksOf({ groups: [owned], desired: left })).toEqual([]);
    expect(risksOf()).toEqual([]);
  });
});

describe('RG5006, an image without a fixed version', () => {
  it.each(['grafana/mimir', 'grafana/mimir:latest', 'registry:5000/mimir', 'mimir'])('is named: %s', (image) => {
    expect(asking(...manifests({ image }))).toEqual([
      {
        code: 'RG5006',
        severity: 'warning',
        message: `image ${image} has no fixed version, so a restarted pod may run another version`,
      },
    ]);
  });

  it.each([
    'grafana/mimir:2.16.0',
    'registry:5000/mimir:r1',
    'mimir@sha256:0123456789abcdef',
    'mimir:latest@sha256:0123',
    'mimir:latest-2',
  ])('is absent: %s', (image) => {
    expect(asking(...manifests({ image }))).toEqual([]);
  });

  it('is named once for each image, by name', () => {
    const risks = asking(manifest('a', { image: 'z' }), manifest('b', { image: 'y' }), manifest('c', { image: 'z' })) ?? [];
    expect(risks.filter(({ code }) => code === 'RG5006').map(({ message }) => message.split(' ')[1])).toEqual(['y', 'z']);
  });
});

describe('RG5007, zones with different images', () => {
  it('is a notice with every member', () => {
    expect(asking(manifest('c'), manifest('b', { image: fixed }), manifest('a'))).toEqual([
      {
        code: 'RG5007',
        severity: 'notice',
        message: 'the StatefulSets of the zones have different images: ingester-zone-a, ingester-zone-b, ingester-zone-c',
      },
    ]);
    expect(asking(manifest('a'), manifest('b', { container: { args: ['-x'] } }))).toEqual([]);
  });
});

describe('RG5008, a rollout that never ends', () => {
  const budget = (amounts: object) => ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'pdb', namespace: 'mimir' },
    spec: { selector: { matchLabels: { 'rollout-group': 'ingester' } }, ...amounts },
  });
  const risk = (message: string, source: object) => ({
    code: 'RG5008',
    severity: 'warning',
    message: `${message}, so the rollout never ends; change the limit of 0, or pause the zones with paused: true`,
    source,
  });
  const planOf = (zones: readonly ZoneOverrides[], rollout: Partial<RolloutDefinition> = {}, budgets: readonly unknown[] = []) => {
    const sources = { 'zones.b.maxUnavailable': { file: 'group.yaml', line: 8, column: 3 } };
    return planGroups(
      planInput({
        groups: [group({ zones, rollout, sources })],
        current: [...manifests(), ...budgets],
        desired: [...manifests({ image: fixed }), ...budgets],
      }),
    ).groups[0];
  };

  it('is named with the number that blocks it, and the plan is blocked', () => {
    const plan = planOf([{ name: 'a' }, { name: 'b', maxUnavailable: 0 }, { name: 'c' }]);
    expect(plan?.risks).toEqual([risk('no pod of zone b may be replaced', { file: 'group.yaml', line: 8, column: 3 })]);
    expect([plan?.outcome, plan?.totals.restarts]).toEqual(['blocked', 9]);
    expect(plan?.waves.flatMap(({ steps }) => steps).at(-1)).toMatchObject({ kind: 'wait', zone: 'b', waitsFor: 'zone-budget' });
  });

  it('is named with the PodDisruptionBudget that allows no eviction', () => {
    const plan = planOf([{ name: 'a' }, { name: 'b' }, { name: 'c' }], { rotateBy: 'evict' }, [budget({ minAvailable: '100%' })]);
    const message = 'PodDisruptionBudget pdb allows no eviction: minAvailable is 100%';
    expect(plan?.risks).toEqual([risk(message, { object: 'PodDisruptionBudget mimir/pdb', field: 'spec.minAvailable' })]);
    expect(plan?.outcome).toBe('blocked');
  });

  it('is absent for a budget by number, which may select unknown pods', () => {
    const plan = planOf([{ name: 'a' }, { name: 'b' }, { name: 'c' }], { rotateBy: 'evict' }, [budget({ minAvailable: 9 })]);
    expect([plan?.risks, plan?.outcome]).toEqual([[], 'waits']);
  });

  it('is absent if an exception lets the plan complete, also one that starts later', () => {
    const planned = (zone: ZoneOverrides, dates: Partial<ExceptionDefinition>, budgets: readonly unknown[] = []) =>
      planGroups(
        planInput({
          groups: [group({ zones: [zone, 'b', 'c'] })],
          exceptions: [exception('zone-budget', { allow: { podsAtMost: 1 }, expiresMs: kitNowMs + 48 * hourMs, ...dates })],
          current: [...manifests(), ...budgets],
          desired: [...manifests({ image: fixed }), ...budgets],
        }),
      ).groups[0];
    const zero: ZoneOverrides = { name: 'a', maxUnavailable: 0 };
    const whole = (plan: ReturnType<typeof planned>) => [plan?.risks, plan?.totals.restarts, plan?.outcome];
    const complete = whole(planned({ name: 'a' }, {}));
    expect(complete.slice(0, 2)).toEqual([[], 9]);
    expect(whole(planned(zero, {}))).toEqual(complete);
    expect(whole(planned(zero, { notBeforeMs: kitNowMs + 24 * hourMs }))).toEqual(complete);
    expect(whole(planned({ name: 'a', maxUnavailable: 'fromBudget' }, {}, [budget({ maxUnavailable: 0 })]))).toEqual(complete);
    expect(planned(zero, { expiresMs: kitNowMs })?.risks).toMatchObject([{ code: 'RG5008' }]);
  });

  it('is absent if a pod may be replaced, without a rollout, and if the zone is paused', () => {
    expect(planOf([{ name: 'a' }, { name: 'b' }, { name: 'c' }], { rotateBy: 'evict' }, [budget({ minAvailable: 8 })])?.risks).toEqual([]);
    expect(risksOf({ groups: [group({ zones: [{ name: 'a', maxUnavailable: 0 }, 'b', 'c'] })] })).toEqual([]);
    const paused = planOf([{ name: 'a', maxUnavailable: 0, paused: true }, { name: 'b' }, { name: 'c' }]);
    expect([paused?.risks, paused?.outcome]).toEqual([[], 'waits']);
  });
});

describe('RG5009, a canary without pods', () => {
  const wave = (name: string, zones: readonly string[], amount: WaveDefinition['amount']): WaveDefinition => ({
    name,
    zones,
    amount,
    before: { gates: [] },
    after: { soakMs: 0, gates: [] },
  });
  const waves = [wave('canary', ['a'], { pods: 1 }), wave('rest', ['a', 'b', 'c'], { percent: 100 })];
  const planned = (replicasOfA: number, list: readonly WaveDefinition[] = waves, image: string = fixed) =>
    risksOf({
      groups: [group({ rollout: { waves: list }, sources: { 'waves.canary': { file: 'group.yaml', line: 5, column: 1 } } })],
      current: [manifest('a', { replicas: replicasOfA }), manifest('b'), manifest('c')],
      desired: [manifest('a', { replicas: replicasOfA, image }), manifest('b', { image }), manifest('c', { image })],
    });

  it('is named with its wave, and with the first wave that has pods', () => {
    expect(planned(0)).toEqual([
      {
        code: 'RG5009',
        severity: 'warning',
        message: 'wave canary has no pods: zone a has 0 replicas; wave rest updates the first pods',
        source: { file: 'group.yaml', line: 5, column: 1 },
      },
    ]);
    const [more] = planned(0, [wave('canary', ['a'], { pods: 1 }), wave('half', ['a'], { percent: 50 }), ...waves.slice(1)]) ?? [];
    expect(more?.message).toMatch(/^waves canary to half have no pods/);
  });

  it('is absent if the zone has pods, without a rollout, and if no wave has pods', () => {
    expect(planned(1)).toEqual([]);
    expect(planned(0, waves, 'grafana/mimir:2.16.0')).toEqual([]);
    expect(planned(0, [wave('canary', ['a', 'b'], { pods: 1 }), ...waves.slice(1)])).toEqual([]);
    expect(planned(0, waves.slice(0, 1))?.filter(({ code }) => code === 'RG5009')).toEqual([]);
  });

  it('leaves pods outdated that no wave includes (RG5017)', () => {
    expect(planned(3, waves.slice(0, 1))?.map(({ code, severity, message }) => `${code} ${severity}: ${message}`)).toEqual([
      'RG5017 warning: 2 pods of zone a stay outdated: no wave includes them',
      'RG5017 warning: 3 pods of zone b stay outdated: no wave includes them',
      'RG5017 warning: 3 pods of zone c stay outdated: no wave includes them',
    ]);
  });
});

describe('the risks of a plan', () => {
  it('include only the risks of its members, by code', () => {
    const bad = { image: 'x', container: { readinessProbe: undefined } };
    const stranger = { ...manifest('d', bad) };
    const foreign = manifest('a', { ...bad, metadata: { namespace: 'loki' } });
    expect(asking(...manifests(), stranger, foreign)).toEqual([]);
    expect(asking(manifest('a', bad), manifest('b'))?.map(({ code }) => code)).toEqual(['RG5003', 'RG5006', 'RG5007']);
  });

  it('include members without a namespace for groups in the default one', () => {
    const loose = manifest('a', { image: 'x', metadata: { namespace: undefined } });
    expect(risksOf({ groups: [group({ namespace: 'default', zones: ['a'] })], desired: [loose] })?.map(({ code }) => code)).toEqual([
      'RG5006',
    ]);
    expect(asking(loose)).toEqual([]);
  });
});

describe('RG5010, a deadline that the durations of the plan exceed', () => {
  const planned = (deadlines: RolloutDefinition['deadlines'], overrides: Partial<PlanInput> = {}) => {
    const zones = ['a', 'b', 'c'];
    const current = manifests({ replicas: 4 });
    const desired = manifests({ replicas: 4, image: fixed });
    return planGroups(planInput({ groups: [group({ zones, rollout: { deadlines } })], current, desired, ...overrides })).groups[0];
  };
  const times = (seconds: number) => ({ p50Seconds: seconds, p90Seconds: 2 * seconds });
  const given = { ...defaultAssumptions, groups: { ingester: { start: times(300) } } };

  it('never blocks the plan, however short it is', () => {
    for (const deadlines of [{ progressMs: 1000 }, { progressMs: minuteMs }, { runMs: minuteMs }, { progressMs: minuteMs, runMs: 1000 }]) {
      for (const assumptions of [defaultAssumptions, given]) {
        const plan = planned(deadlines, { assumptions });
        expect(plan?.outcome).toBe('complete');
        expect(plan?.totals.p90Seconds).toBeGreaterThanOrEqual(plan?.totals.p50Seconds ?? Number.NaN);
      }
    }
  });

  it('is named with the numbers for given times and for the whole run, and not for default times of pods', () => {
    expect(planned({ progressMs: minuteMs })?.risks).toEqual([]);
    expect(planned({ progressMs: minuteMs }, { assumptions: given })?.risks).toEqual([
      {
        code: 'RG5010',
        severity: 'warning',
        message: 'a slow pod stops and starts in 10m24s (p90), longer than the progress deadline of 1m',
      },
    ]);
    expect(planned({ runMs: 10 * minuteMs })?.risks).toEqual([
      {
        code: 'RG5010',
        severity: 'warning',
        message: 'the run takes 18m (p90 1h) without pauses, approvals and windows, longer than its deadline of 10m',
      },
    ]);
    expect(planned({ runMs: hourMs })?.risks).toEqual([]);
  });
});

describe('RG5011, an exception that ends before the plan', () => {
  const planned = (expiresMs: number, rule: string, overrides: Partial<PlanInput>) =>
    planGroups(
      planInput({
        exceptions: [exception(rule, { expiresMs, allow: { podsAtMost: 1 } })],
        current: manifests(),
        desired: manifests({ image: fixed }),
        ...overrides,
      }),
    ).groups[0];
  const risk = (rule: string) => ({
    code: 'RG5011',
    message: `exception exception-1 ends before the rollout does, and then ${rule} blocks the rest; extend the exception`,
  });
  const zero = { groups: [group({ zones: [{ name: 'a', maxUnavailable: 0 }, 'b', 'c'] })] };
  const held = { policies: [policy({ rules: [policyRule({ name: 'frozen', effect: 'hold' })] })] };

  it('makes the plan wait instead of blocked, because the times are assumed', () => {
    const soonMs = kitNowMs + 2 * minuteMs;
    const plans = [planned(soonMs, 'zone-budget', zero), planned(soonMs, 'safety/frozen', held)];
    expect(plans.map((plan) => plan?.outcome)).toEqual(['waits', 'waits']);
    expect(plans.map((plan) => plan?.risks.at(-1))).toMatchObject([risk('zone-budget'), risk('safety/frozen')]);
  });

  it('shows the rule neither as a stop nor before a current block', () => {
    const soon = planned(kitNowMs + 2 * minuteMs, 'safety/frozen', held);
    expect([soon?.stops, soon?.waits.map(({ rule }) => rule)]).toEqual([undefined, ['safety/frozen']]);
    const both = planned(kitNowMs + 2 * minuteMs, 'safety/frozen', { ...held, ...zero });
    expect([both?.outcome, both?.stops, both?.waits.map(({ rule }) => rule)]).toEqual(['blocked', undefined, ['zone-budget']]);
  });

  it('is a risk of a plan that completes if only the p90 durations exceed the exception', () => {
    const { p50Seconds = 0, p90Seconds = 0 } = planned(kitNowMs + hourMs, 'safety/frozen', held)?.totals ?? {};
    const between = planned(kitNowMs + 500 * (p50Seconds + p90Seconds), 'safety/frozen', held);
    expect([between?.outcome, between?.totals.p50Seconds, between?.totals.p90Seconds]).toEqual(['complete', p50Seconds, undefined]);
    const message =
      'exception exception-1 ends before a slow rollout (p90) does, and then safety/frozen blocks the rest; extend the exception';
    expect(between?.risks).toMatchObject([{ code: 'RG5011', message }]);
  });

  it('is a risk of a plan that waits for a window to open after the exception', () => {
    const closed = { policies: [policy({ windows: [freeze()] })] };
    const plan = planned(kitNowMs + 2 * minuteMs, 'window', closed);
    expect([plan?.outcome, plan?.risks]).toMatchObject(['complete', [risk('window')]]);
    expect(planned(kitNowMs + hourMs, 'window', closed)?.risks).toEqual([]);
    expect(planned(kitNowMs, 'window', closed)?.risks).toEqual([]);
  });

  it('is absent for an exception that lasts long enough, and for an expired one, which blocks', () => {
    const lasting = planned(kitNowMs + hourMs, 'zone-budget', zero);
    expect([lasting?.outcome, lasting?.risks]).toEqual(['complete', []]);
    const ended = planned(kitNowMs, 'zone-budget', zero);
    expect([ended?.outcome, ended?.risks]).toMatchObject(['blocked', [{ code: 'RG5008' }]]);
  });
});

describe('RG5013, soaks, gates and approvals that a return skips', () => {
  const image = (version: string) => manifests({ image: `grafana/mimir:${version}` });
  const risksOfPlan = (desired: string, rollout: Partial<RolloutDefinition>) => {
    const waves = [wave('canary', ['a'], { after: { soakMs: hourMs, gates: [] } }), wave('rest', ['b', 'c'])];
    const groups = [group({ rollout: { waves, ...rollout } })];
    const [previous, running] = ['1.0', '1.1'].map((version) => readPlanSnapshots(planInput({ groups, current: image(version) })).before);
    const revisions = (snapshot: Snapshot | undefined) =>
      Object.fromEntries(snapshot?.statefulSets.map(({ name, status }) => [name.slice(-1), status.updateRevision]) ?? []);
    const run = runOf({ outcome: 'completed', target: revisions(running), previous: revisions(previous) });
    const snapshot = running && { ...running, ledgers: [ledgerOf({ run })] };
    return risksOf({ groups, current: image('1.1'), desired: image(desired), ...defined({ running: snapshot }) });
  };

  it('are named with their waves', () => {
    const message = 'the change returns to the previous template, so the soaks, gates and approvals of canary are skipped (skipOnRollback)';
    expect(risksOfPlan('1.0', {})).toEqual([{ code: 'RG5013', severity: 'notice', message }]);
  });

  it('are named if only one zone returns before the rollout of the others continues', () => {
    const waves = [wave('canary', ['a'], { after: { soakMs: hourMs, gates: [] } }), wave('rest', ['b', 'c'])];
    const groups = [group({ rollout: { waves } })];
    const [before, now] = ['1.0', '1.1'].map((version) => readPlanSnapshots(planInput({ groups, current: image(version) })).before);
    const revisionsOf = (snapshot: Snapshot | undefined) =>
      Object.fromEntries(snapshot?.statefulSets.map(({ name, status }) => [name.slice(-1), status.updateRevision]) ?? []);
    const run = runOf({ target: revisionsOf(now), previous: revisionsOf(before), startedMs: kitNowMs - hourMs });
    // The pods of zones b and c still run 1.0.
    const pods = now?.pods.map((one, index) => (one.statefulSet.endsWith('a') ? one : (before?.pods[index] ?? one)));
    const running = now && { ...now, ...defined({ pods }), ledgers: [ledgerOf({ run })] };
    const desired = image('1.1').map((object, index) => (index === 0 ? (image('1.0')[0] ?? object) : object));
    expect(risksOf({ groups, current: image('1.1'), desired, ...defined({ running }) })).toMatchObject([
      { code: 'RG5007' },
      { code: 'RG5013', message: expect.stringMatching(/^the change first returns zone a to the previous template/) },
    ]);
  });

  it('are absent for another template, without soaks and approvals, and if the group keeps them', () => {
    expect([risksOfPlan('1.2', {}), risksOfPlan('1.0', { waves: [wave('all', ['a', 'b', 'c'])] })]).toEqual([[], []]);
    expect(risksOfPlan('1.0', { skipOnRollback: false })).toEqual([]);
  });
});

describe('RG5014, a StatefulSet that leaves its group', () => {
  const [before, after] = [group(), group({ zones: ['a', 'b'] })];
  const withoutProbe = { container: { readinessProbe: undefined } };
  const leaving = (desired: readonly unknown[]) =>
    risksOf({ groups: groupsToPlan([after], [before]), groupsBefore: [before], desiredGroups: [after], desired });

  it('is named, and no other risk of the group concerns it', () => {
    const message =
      'the change removes ingester-zone-c from the group: the rules of the group no longer apply there, and outdated pods stay outdated';
    expect(leaving([...manifests({}, ['a', 'b']), manifest('c', withoutProbe)])).toEqual([
      { code: 'RG5014', severity: 'warning', message },
    ]);
  });

  it('names the partition that stays', () => {
    const [from, to] = [group({ rollout: { strategy: 'pinned' } }), group({ zones: ['a', 'b'], rollout: { strategy: 'pinned' } })];
    const risks = risksOf({ groups: groupsToPlan([to], [from]), groupsBefore: [from], desiredGroups: [to], desired: manifests() });
    expect(risks?.[0]?.message).toContain('; a partition that the agent set stays, so a new template reaches no pod');
  });

  it('is absent if the StatefulSet is deleted, and if it stays', () => {
    expect(leaving(manifests({}, ['a', 'b']))).toEqual([]);
    expect(risksOf({ groups: [before], groupsBefore: [before], desiredGroups: [before] })).toEqual([]);
  });
});

describe('RG5016, a restart that changes the revision', () => {
  const partitioned = group({ zones: ['a'], rollout: { strategy: 'partition' } });
  const rollingUpdate = (image?: string) => [manifest('a', { spec: { updateStrategy: { type: 'RollingUpdate' } }, ...defined({ image }) })];

  it('names the pods and the revision, and is absent without such a pod', () => {
    const { before } = readPlanSnapshots(planInput({ groups: [partitioned], current: rollingUpdate() }));
    // An earlier rollout has replaced the last pod only.
    const risks = (currentRevision: string) => {
      const statefulSets = before.statefulSets.map((set) => ({ ...set, status: { ...set.status, currentRevision } }));
      const pods = before.pods.map((view) => ({
        ...view,
        pods: isUnknown(view.pods) ? view.pods : view.pods.map((pod) => (pod.ordinal < 2 ? { ...pod, revision: currentRevision } : pod)),
      }));
      const running = { ...before, statefulSets, pods };
      return risksOf({ groups: [partitioned], current: rollingUpdate(), desired: rollingUpdate(fixed), running })?.filter(
        ({ code }) => code === 'RG5016',
      );
    };
    expect(risks(before.statefulSets[0]?.status.currentRevision ?? '')).toEqual([]);
    expect(risks('rev-0')).toEqual([
      {
        code: 'RG5016',
        severity: 'warning',
        message: 'ingester-zone-a-2 would come back at rev-0 when restarted, below partition 1000000',
        source: { object: 'StatefulSet mimir/ingester-zone-a', field: 'spec.updateStrategy.rollingUpdate.partition' },
      },
    ]);
  });
});
