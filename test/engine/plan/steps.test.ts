import { describe, expect, it } from 'vitest';
import type { Action, GroupDecision, RuleResult, Step } from '../../../engine/decision.ts';
import { requestedScales, type TracedStep, traceRequested, traceTurn } from '../../../engine/plan/steps.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, statefulSet } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const idle: GroupDecision = {
  namespace: 'mimir',
  group: 'ingester',
  goal: '',
  phase: 'Waiting',
  outcome: 'wait',
  zones: ['a', 'b'].map((zone) => ({
    zone,
    statefulSet: `ingester-zone-${zone}`,
    replicas: 3,
    updated: 0,
    available: 3,
    isReady: true,
    revisions: [],
  })),
  steps: [],
  actions: [],
  waits: [],
  stops: [],
  warnings: [],
  wantedReadings: [],
};

const wave = (name: string) => ({ wave: { name, index: 0, count: 2 } });
const podOf = (zone: string, ordinal: number) => ({
  namespace: 'mimir',
  zone,
  statefulSet: `ingester-zone-${zone}`,
  pod: `ingester-zone-${zone}-${ordinal}`,
  ordinal,
  uid: '',
});
const replace = (zone: string, ordinal: number): Action => ({ ...podOf(zone, ordinal), kind: 'evictPod', because: 'outdated' });
const resize = (from: number, to: number): Action => ({
  kind: 'scaleStatefulSet',
  namespace: 'mimir',
  zone: 'a',
  statefulSet: 'ingester-zone-a',
  uid: '',
  resourceVersion: '',
  from,
  to,
});
const prepare = (call: 'delayed' | 'prepare', method: 'POST' | 'DELETE' = 'POST'): Action => ({
  kind: 'callPods',
  namespace: 'mimir',
  zone: 'a',
  statefulSet: 'ingester-zone-a',
  call,
  method,
  ordinals: [3, 4],
});
const ok: RuleResult = { rule: 'paused', outcome: 'ok', fact: 'no pause applies' };
const held = (rule: string, more: Partial<RuleResult> = {}): RuleResult => ({ rule, outcome: 'wait', fact: 'it waits', ...more });
const asked = (id: string, ...results: readonly RuleResult[]): Step => ({
  id,
  kind: id.startsWith('scale') ? 'scaleDown' : 'roll',
  zone: 'a',
  pods: [],
  outcome: results.some(({ outcome }) => outcome === 'wait') ? 'wait' : 'act',
  results,
});

/** The steps after decisions at the given seconds. */
function trace(...turns: readonly (readonly [number, Partial<GroupDecision>])[]): readonly TracedStep[] {
  const steps: TracedStep[] = [];
  for (const [nowMs, change] of turns) {
    const decision = { ...idle, ...change };
    // The highest ordinals are the unavailable ones.
    const seen = decision.zones.map(({ zone: name, replicas, available }) => {
      const [zone] = group({ zones: [name] }).zones;
      if (zone === undefined) throw new Error('the group has one zone');
      return { zone, replicas, available: new Set(Array.from({ length: available }, (_, ordinal) => ordinal)) };
    });
    traceTurn(steps, { nowMs, decision }, seen);
  }
  return steps;
}

const lines = (steps: readonly TracedStep[]) =>
  steps.map(({ wave: name, kind, zone, pods, atOnce, waitsFor, startMs, endMs }) =>
    [`${name}:`, kind, zone ?? '*', pods.map((pod) => pod.slice(-3)).join(' '), atOnce ?? '', waitsFor ?? '', `${startMs}-${endMs}`]
      .filter((part) => part !== '')
      .join(' '),
  );

describe('the trace of a roll', () => {
  it('starts a step with the rules that were evaluated before its first pod', () => {
    expect(trace([5, { ...wave('canary'), outcome: 'act', actions: [replace('a', 2)], steps: [asked('roll/a', ok)] }])).toEqual([
      {
        key: 'roll/canary/a',
        wave: 'canary',
        kind: 'roll',
        zone: 'a',
        pods: ['ingester-zone-a-2'],
        atOnce: 1,
        gates: [],
        rules: [ok],
        startMs: 5,
        endMs: 5,
      },
    ]);
  });

  it('continues with further pods of the wave and the zone', () => {
    const first = { ...wave('canary'), actions: [replace('a', 2)], steps: [asked('roll/a', ok)] };
    const second = { ...wave('canary'), actions: [replace('a', 1)], steps: [asked('roll/a', held('paused'))] };
    const [step, ...more] = trace([0, first], [90, second], [180, {}]);
    expect(more).toEqual([]);
    expect(step).toMatchObject({ pods: ['ingester-zone-a-2', 'ingester-zone-a-1'], rules: [ok], startMs: 0, endMs: 180 });
  });

  it('is another step in another zone or wave', () => {
    const steps = trace(
      [0, { ...wave('canary'), actions: [replace('a', 2)] }],
      [90, { ...wave('rest'), actions: [replace('a', 1)] }],
      [180, { ...wave('rest'), actions: [replace('b', 2)] }],
    );
    expect(lines(steps)).toEqual(['canary: roll a a-2 1 0-90', 'rest: roll a a-1 1 90-180', 'rest: roll b b-2 1 180-180']);
  });

  it('is named all if there are no waves', () => {
    expect(lines(trace([0, { actions: [replace('a', 2)] }]))).toEqual(['all: roll a a-2 1 0-0']);
  });

  it('counts the maximum of unavailable pods', () => {
    const zones = idle.zones.map((zone) => ({ ...zone, available: 2 }));
    const both = { actions: [replace('a', 2), replace('a', 1)] };
    expect(
      trace([0, { actions: [replace('a', 2)] }], [30, { actions: [replace('a', 1)], zones }], [60, { actions: [replace('a', 0)] }])[0]
        ?.atOnce,
    ).toBe(2);
    expect(trace([0, both])[0]?.atOnce).toBe(2);
    // The pod of the first replacement is unavailable already.
    expect(trace([0, { ...both, zones }])[0]?.atOnce).toBe(2);
    // A crashing pod is down before it is replaced.
    const crashing: Action = { ...podOf('a', 2), kind: 'deletePod', resourceVersion: '', because: 'stuck' };
    expect(trace([0, { actions: [crashing], zones }], [30, { actions: [replace('a', 1)] }])[0]?.atOnce).toBe(1);
  });

  it('continues while its pods are in flight', () => {
    const working = { ...wave('all'), steps: [asked('roll/a', held('zone-budget'))] };
    expect(
      lines(
        trace([0, { ...wave('all'), actions: [replace('a', 2)] }], [30, working], [90, { ...wave('all'), actions: [replace('a', 1)] }]),
      ),
    ).toEqual(['all: roll a a-2 a-1 1 0-90']);
  });
});

describe('the trace of a change of replicas', () => {
  it('is a separate step each time', () => {
    const steps = trace(
      [0, { actions: [resize(3, 5)], steps: [asked('scale/a', ok)] }],
      [60, { actions: [resize(5, 4)] }],
      [90, { actions: [resize(5, 4)] }],
    );
    expect(steps[0]).toEqual({
      key: 'scale/a/3/5',
      wave: 'replicas',
      kind: 'scaleUp',
      zone: 'a',
      pods: [],
      from: 3,
      to: 5,
      gates: [],
      rules: [ok],
      startMs: 0,
      endMs: 60,
    });
    expect(steps.map(({ kind, startMs }) => [kind, startMs])).toEqual([
      ['scaleUp', 0],
      ['scaleDown', 60],
      ['scaleDown', 90],
    ]);
  });

  it('has the called pods, and no cancelled pods', () => {
    const [step] = trace([0, { actions: [prepare('delayed')], steps: [asked('scale/a', held('delayed-downscale'))] }]);
    expect(step).toMatchObject({
      key: 'prepare/a/delayed',
      wave: 'replicas',
      kind: 'prepare',
      zone: 'a',
      pods: ['ingester-zone-a-3', 'ingester-zone-a-4'],
      waitsFor: 'delayed-downscale',
      rules: [{ rule: 'delayed-downscale' }],
    });
    expect(trace([0, { actions: [prepare('prepare')] }])[0]).toMatchObject({ waitsFor: 'prepare-downscale' });
    expect(trace([0, { actions: [prepare('delayed', 'DELETE')] }])).toEqual([]);
  });

  it('has pods before replicas, and replicas before preparations', () => {
    expect(trace([0, { actions: [prepare('delayed'), resize(3, 5), replace('a', 2)] }])[0]?.kind).toBe('roll');
    expect(trace([0, { actions: [prepare('delayed'), resize(3, 5)] }])[0]?.kind).toBe('scaleUp');
  });
});

describe('the trace of a wait', () => {
  const waiting = (...results: readonly RuleResult[]) => ({ ...wave('canary'), steps: [asked('roll/a', ok, ...results)] });

  it.each<[string, readonly RuleResult[], string]>([
    ['for a soak', [held('soak')], 'canary: soak * canary 0-0'],
    ['for a soak before anything else', [held('approval'), held('soak')], 'canary: soak * canary 0-0'],
    ['for a gate, by its name', [held('gate', { fact: 'errors has no reading yet' })], 'canary: check * errors 0-0'],
    ['for a person', [held('approval')], 'canary: approval * canary 0-0'],
    ['for a person whom a policy asks', [held('safety/rule', { limit: '1', digest: 'd' })], 'canary: approval * canary 0-0'],
    ['for a policy', [held('safety/rule')], 'canary: wait a safety/rule 0-0'],
    ['for a window', [held('window')], 'canary: wait a window 0-0'],
  ])('%s', (_name, results, expected) => {
    expect(lines(trace([0, waiting(...results)]))).toEqual([expected]);
  });

  it('is in the step of the replicas if their change waits', () => {
    expect(lines(trace([0, { steps: [asked('scale/a', held('zone-gap'))] }]))).toEqual(['replicas: wait a zone-gap 0-0']);
  });

  it('lasts until the next step', () => {
    expect(
      lines(trace([0, waiting(held('soak'))], [60, waiting(held('soak'))], [90, { ...wave('canary'), actions: [replace('a', 2)] }])),
    ).toEqual(['canary: soak * canary 0-90', 'canary: roll a a-2 1 90-90']);
  });

  it.each([
    'zone-budget',
    'other-zones-ready',
    'wave-available',
    'pods-in-flight',
    'eviction-budget',
    'disruption-budget',
    'min-interval',
    'leader-ready',
    'leader-floor',
    'replica-write-in-flight',
    'rollout-in-progress',
  ])('is absent if the work itself takes time: %s', (rule) => {
    expect(trace([0, waiting(held(rule), held('window'))])).toEqual([]);
    expect(lines(trace([0, waiting(held(rule, { outcome: 'unknown' }), held('window'))]))).toEqual([`canary: wait a ${rule} 0-0`]);
  });

  it('is absent for a step that acts, for a complete group, and for one with work', () => {
    expect(trace([0, waiting()])).toEqual([]);
    expect(trace([0, { ...waiting(held('window')), outcome: 'done' }])).toEqual([]);
    expect(trace([0, { ...waiting(held('window')), actions: [prepare('delayed', 'DELETE')] }])).toEqual([]);
  });

  it('is the wait of the first step that waits for more than its own work', () => {
    const steps = [asked('scale/a', held('leader-ready')), asked('roll/a', held('window'))];
    expect(lines(trace([0, { steps }]))).toEqual(['all: wait a window 0-0']);
  });

  it('contains the gates that were read meanwhile', () => {
    const reading = (...gates: readonly string[]) => ({
      ...waiting(held('soak')),
      wantedReadings: gates.map((gate) => ({ gate, fromMs: 0 })),
    });
    expect(trace([0, reading('latency', 'errors')], [60, reading('queue', 'errors')])[0]?.gates).toEqual(['errors', 'latency', 'queue']);
  });
});

describe('requested replicas', () => {
  const definition = group({ zones: ['a', 'b'] });
  const state = (a: number, b: number, status: object = {}) =>
    snapshotOf({ statefulSets: [statefulSet({ replicas: a, status }), statefulSet({ name: 'ingester-zone-b', replicas: b })] });
  const scales = requestedScales(definition, state(3, 3), state(5, 2));

  it('are steps that start at once, for zones that change', () => {
    expect(scales.map(({ kind, zone, from, to, wave: name, startMs }) => [kind, zone, from, to, name, startMs])).toEqual([
      ['scaleUp', 'a', 3, 5, 'replicas', kitNowMs],
      ['scaleDown', 'b', 3, 2, 'replicas', kitNowMs],
    ]);
    expect(requestedScales(definition, state(3, 3), state(3, 3))).toEqual([]);
    const created = requestedScales(definition, snapshotOf(), state(3, 3));
    expect(created.map(({ from, to }) => [from, to])).toEqual([
      [0, 3],
      [0, 3],
    ]);
    expect(requestedScales(definition, state(3, 3), snapshotOf())).toEqual([]);
  });

  it('last until the zone has the requested number of ready pods', () => {
    const open = new Set(scales.map(({ key }) => key));
    const later = (seconds: number, readyReplicas: number) => ({ ...state(5, 2, { readyReplicas }), nowMs: kitNowMs + seconds });
    const starting = traceRequested(scales, definition, later(30, 4), open);
    expect([starting.map(({ endMs }) => endMs - kitNowMs), [...open]]).toEqual([[30, 30], ['request/a']]);
    const ready = traceRequested(starting, definition, later(60, 5), open);
    expect([ready.map(({ endMs }) => endMs - kitNowMs), [...open]]).toEqual([[60, 30], []]);
    expect(traceRequested(ready, definition, later(90, 5), open)).toEqual(ready);
  });

  it('end if the engine requests another number', () => {
    const open = new Set(scales.map(({ key }) => key));
    traceRequested(scales, definition, state(4, 2, { readyReplicas: 3 }), open);
    expect([...open]).toEqual([]);
  });
});
