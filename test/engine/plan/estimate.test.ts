// The likely end of a rollout under way: the model run forward with the times that the run itself has shown.
import { describe, expect, it } from 'vitest';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import { type Estimate, type EstimateInput, estimateEnd, forecastScale, type SuccessorPod } from '../../../engine/plan/estimate.ts';
import { isUnknown } from '../../../engine/snapshot.ts';
import { forecastTexts } from '../../../plugin/output/scale.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, outdatedStatefulSet, statefulSet } from '../../kit/objects.ts';
import { exception, intent, policy, policyRule } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const definition = group({ rollout: { waves: [wave('all', ['a', 'b', 'c'])] } });
const sets = definition.zones.map(({ statefulSet: name }) => outdatedStatefulSet({ name, replicas: 4 }));

/** Pods that were all on their way at once and took this long to start. */
const took = (...seconds: readonly number[]): readonly SuccessorPod[] =>
  seconds.map((each) => ({ zone: 'a', createdMs: kitNowMs - 1_000_000, readyMs: kitNowMs - 1_000_000 + each * 1000 }));

/** Drains take no time, so that only starts count. */
const assumptions = { ...defaultAssumptions, pods: { ...defaultAssumptions.pods, drain: { p50Seconds: 0, p90Seconds: 0 } } };

function estimated(overrides: SnapshotOverrides = {}, more: Partial<EstimateInput> = {}) {
  const groups = [more.group ?? definition];
  const snapshot = snapshotOf({ groups, statefulSets: sets, ...overrides });
  return estimateEnd({ snapshot, group: definition, pods: [], assumptions, ...more });
}

function known(estimate: ReturnType<typeof estimateEnd>): Estimate {
  if (estimate === undefined || isUnknown(estimate)) throw new Error(`no estimate: ${estimate?.unknown}`);
  return estimate;
}

const secondsOf = ({ end }: Estimate) => [(end.p50Ms - kitNowMs) / 1000, ((end.p90Ms ?? Number.NaN) - kitNowMs) / 1000];

describe('the estimate', () => {
  it('is the estimate of a plan until the first pod of the run has come back', () => {
    const estimate = known(estimated());
    expect(secondsOf(estimate)).toEqual([12 * 60, 12 * 180]);
    expect([estimate.measuredPods, estimate.start]).toEqual([0, defaultAssumptions.pods.start]);
  });

  it('uses the times of the pods of the run; with few pods, the slow case is the slowest or twice the median', () => {
    expect(secondsOf(known(estimated({}, { pods: took(10, 20, 30) })))).toEqual([12 * 20, 12 * 40]);
    expect(secondsOf(known(estimated({}, { pods: took(20, 90, 10) })))).toEqual([12 * 20, 12 * 90]);
    const many = [...Array.from({ length: 18 }, () => 20), 60, 900];
    expect(secondsOf(known(estimated({}, { pods: took(...many) })))).toEqual([12 * 20, 12 * 60]);
  });

  it.each(['onDelete', 'partition', 'pinned'] as const)('is calculated for the strategy %s', (strategy) => {
    const rolling = group({ rollout: { strategy, waves: [wave('all', ['a', 'b', 'c'])] } });
    const update = strategy === 'onDelete' ? {} : { updateStrategy: 'RollingUpdate' as const, partition: holdingPartition };
    const statefulSets = rolling.zones.map(({ statefulSet: name }) => outdatedStatefulSet({ name, replicas: 4, ...update }));
    const more = { group: rolling, pods: took(20, 20), assumptions: defaultAssumptions };
    expect(secondsOf(known(estimated({ statefulSets }, more)))).toEqual([12 * (30 + 20), 12 * (120 + 40)]);
  });

  it('ends while a zone shrinks whose pods stopped at once', () => {
    const counted = { kind: 'count', count: 3 } as const;
    const shrinking = group({
      zones: [
        { name: 'a', replicas: counted },
        { name: 'b', follows: 'a', replicas: counted, betweenZonesMs: 10_000 },
      ],
    });
    const before = ['a', 'b'].map((zone) => statefulSet({ name: `ingester-zone-${zone}`, replicas: 4 }));
    // The StatefulSet controller has not deleted the fourth pod of zone a yet.
    const { pods } = snapshotOf({ groups: [shrinking], statefulSets: before });
    const statefulSets = before.map((set, index) => (index === 0 ? { ...set, replicas: 3 } : set));
    expect(secondsOf(known(estimated({ statefulSets, pods }, { group: shrinking })))).toEqual([0, 0]);
  });

  it('uses the time between one pod and the next as the time to stop, if pods of one zone are replaced one by one', () => {
    const oneByOne = (gap: number, zones = 'aaaaa'): readonly SuccessorPod[] =>
      [...zones].map((zone, index) => {
        const createdMs = kitNowMs - 1_000_000 + index * (20 + gap) * 1000;
        return { zone, createdMs, readyMs: createdMs + 20_000 };
      });
    const estimate = known(estimated({}, { pods: oneByOne(50) }));
    expect([estimate.stop.p50Seconds, estimate.measuredStops, secondsOf(estimate)[0]]).toEqual([50, 4, 12 * 70]);
    const stopsMeasured = (pods: readonly SuccessorPod[], more: Partial<EstimateInput> = {}) =>
      known(estimated({}, { pods, ...more })).measuredStops;
    // Between zones a wave may soak; side by side nobody knows whose gap it is; what is to be waited for anyhow is no time of a pod.
    expect(stopsMeasured(oneByOne(50, 'aabbc'))).toBe(0);
    expect(stopsMeasured(oneByOne(-10))).toBe(0);
    expect(stopsMeasured(oneByOne(50), { group: group({ rollout: { minIntervalMs: 60_000 } }) })).toBe(0);
    const paced = { policies: [policy({ limits: { minIntervalMs: 60_000 } })] };
    expect(known(estimated(paced, { pods: oneByOne(50) })).measuredStops).toBe(0);
  });

  it('has the end of each incomplete zone, in the order of the rollout', () => {
    const done = statefulSet({ name: 'ingester-zone-a', replicas: 4 });
    const { zones } = known(estimated({ statefulSets: [done, ...sets.slice(1)] }, { pods: took(10, 10) }));
    expect(Object.entries(zones).map(([zone, { p50Ms }]) => [zone, (p50Ms - kitNowMs) / 1000])).toEqual([
      ['b', 40],
      ['c', 80],
    ]);
  });

  it('counts the remaining soaks, and excludes the time of approvals but counts them', () => {
    const careful = group({
      rollout: {
        waves: [
          wave('canary', ['a'], { after: { soakMs: 600_000, gates: [] } }),
          wave('rest', ['b', 'c'], { before: { approval: { count: 2, from: [] }, gates: [] } }),
        ],
      },
    });
    const estimate = known(estimated({}, { group: careful, pods: took(10, 10) }));
    expect([secondsOf(estimate)[0], estimate.approvals]).toEqual([120 + 600, 2]);
  });

  it('is empty without work', () => {
    expect(estimated({ statefulSets: [] })).toBeUndefined();
  });

  it('is absent, with the reason, for a paused group and for a pod that does not come back', () => {
    const pause = { namespace: 'mimir', name: 'pause.ingester', group: 'ingester', action: 'pause', reason: 'INC-1' } as const;
    expect(estimated({ intents: [pause] })).toEqual({ unknown: 'the group is paused by an unverified requester (INC-1)' });
    const crashing = { revision: newRevision, isReady: false, containersReady: false, waitingReasons: ['CrashLoopBackOff'] };
    expect(estimated({ podChanges: { 'ingester-zone-a': { 3: crashing } } })).toEqual({
      unknown: expect.stringContaining('unavailable in zone a'),
    });
  });

  it('contains the rest of a pause that ends by itself', () => {
    const pause = {
      namespace: 'mimir',
      name: 'pause.ingester',
      group: 'ingester',
      action: 'pause',
      expiresMs: kitNowMs + 600_000,
    } as const;
    expect(secondsOf(known(estimated({ intents: [pause] }, { pods: took(20, 20) })))).toEqual([600 + 12 * 20, 600 + 12 * 40]);
  });

  it('ends under every deadline, however short, and with pods of any age and phase', () => {
    const starting = (seconds: number) => ({
      podChanges: {
        'ingester-zone-a': {
          3: {
            revision: newRevision,
            phase: 'Pending' as const,
            isReady: false,
            containersReady: false,
            readyChangedMs: kitNowMs - seconds * 1000,
          },
        },
      },
    });
    for (const progressMs of [5_000, 60_000, 240_000]) {
      const timed = group({ rollout: { waves: [wave('all', ['a', 'b', 'c'])], deadlines: { progressMs, runMs: 60_000 } } });
      for (const age of [0, progressMs / 3000]) {
        for (const pods of [[], took(20), took(90, 20)]) {
          const { end } = known(estimated(starting(age), { group: timed, pods, assumptions: defaultAssumptions }));
          expect(end.p90Ms).toBeGreaterThanOrEqual(end.p50Ms);
        }
      }
    }
  });

  it('shortens the assumed times in proportion until a slow pod stops and starts within the progress deadline', () => {
    const timed = group({ rollout: { deadlines: { progressMs: 60_000 } } });
    const { start, stop } = known(estimated({}, { group: timed, assumptions: defaultAssumptions }));
    expect({ start, stop }).toEqual({ start: { p50Seconds: 12, p90Seconds: 36 }, stop: { p50Seconds: 6, p90Seconds: 24 } });
    const lenient = group({ rollout: { deadlines: { progressMs: 300_000 } } });
    expect(known(estimated({}, { group: lenient, assumptions: defaultAssumptions })).start).toEqual(defaultAssumptions.pods.start);
    // Given times stay, also if they are longer.
    expect(known(estimated({}, { group: timed, assumptions })).stop).toEqual(assumptions.pods.drain);
  });

  it('waits for a late pod up to a limit', () => {
    const starting = (seconds: number) => ({
      podChanges: {
        'ingester-zone-a': {
          3: { revision: newRevision, isReady: false, containersReady: false, readyChangedMs: kitNowMs - seconds * 1000 },
        },
      },
    });
    expect(secondsOf(known(estimated(starting(100), { pods: took(40, 40) })))[0]).toBe(10 + 11 * 40);
    expect(isUnknown(estimated(starting(241), { pods: took(40, 40) }) ?? { unknown: 'nothing' })).toBe(true);
  });

  it('names the exception that ends before the rollout', () => {
    const held = {
      policies: [policy({ rules: [policyRule({ name: 'moves', effect: 'hold', message: 'the storage moves' })] })],
      exceptions: [exception('safety/moves', { expiresMs: kitNowMs + 90_000 })],
    };
    expect(estimated(held)).toEqual({ unknown: 'exception exception-1 ends before the rollout; then the storage moves' });
  });

  it('ends with a window that does not open again in the forecast period', () => {
    const closed = {
      namespace: 'mimir',
      name: 'calm',
      targets: { all: true as const },
      metrics: {},
      rules: [],
      windows: [
        {
          name: 'spring',
          kind: 'allow' as const,
          actions: ['rollout' as const],
          ranges: [{ fromMs: kitNowMs + 90 * 86_400_000, toMs: kitNowMs + 91 * 86_400_000 }],
          inFlight: 'finishPod' as const,
          source: {},
        },
      ],
      limits: {},
      limitSources: {},
    };
    expect(estimated({ policies: [closed] })).toEqual({ unknown: 'it does not end within 60 days' });
  });
});

describe('the forecast of a scale request', () => {
  const endpoint = { scheme: 'http', port: 8080, path: '/prepare', timeout: '5s' } as const;
  const down = {
    betweenZonesMs: 30_000,
    delayed: { afterMs: 45_000, endpoint, onUnreachable: 'hold' },
    prepare: { endpoint, onFailure: 'deny' },
  } as const;
  const bounds = { min: 2, max: 6, multipleOf: 1, parity: 'any' } as const;
  const counted = (count: number) =>
    group({
      zones: [
        { name: 'a', replicas: { kind: 'count', count }, bounds, ...down },
        { name: 'b', follows: 'a', bounds, ...down },
      ],
    });
  const forecast = (count: number, present: number, replicas: number, overrides: SnapshotOverrides = {}) => {
    const groups = [counted(count)];
    const statefulSets = ['a', 'b'].map((name) => statefulSet({ name: `ingester-zone-${name}`, replicas: present }));
    const { changes, ...rest } = forecastScale(snapshotOf({ groups, statefulSets, ...overrides }), counted(count), 'a', replicas);
    const lines = changes.map(({ zone, from, to, afterMs, waitsFor }) =>
      `${zone} ${from}-${to} ${afterMs / 1000}s ${waitsFor.join(' ')}`.trim(),
    );
    return { lines, ...rest };
  };

  it('names no wait of a pending decrease that the request ends', () => {
    const statefulSets = [statefulSet({ replicas: 2 }), statefulSet({ name: 'ingester-zone-b', replicas: 3 })];
    const intents = [intent({ action: 'pause', name: 'pause.ingester' })];
    expect(forecast(2, 2, 4, { statefulSets, intents }).lines).toEqual(['a 2-4 0s', 'b 3-4 0s']);
  });

  it('uses the direction of the zones, not of the earlier request, and counts delays and intervals', () => {
    expect(forecast(3, 6, 4)).toMatchInlineSnapshot(`
      {
        "approvals": [],
        "facts": [],
        "lines": [
          "a 6-4 45s delayed-downscale prepare-downscale",
          "b 6-4 120s leader-floor other-zones-ready zone-gap delayed-downscale prepare-downscale",
        ],
      }
    `);
  });

  it('names the approval of the rollout that the change waits for', () => {
    const approval = { count: 1, from: [] };
    const waves = [wave('rest', ['a', 'b'], { before: { approval, gates: [] } })];
    const rolling = group({ zones: counted(6).zones, rollout: { waves } });
    const statefulSets = ['a', 'b'].map((name) => outdatedStatefulSet({ name: `ingester-zone-${name}`, replicas: 6 }));
    const forecast = forecastScale(snapshotOf({ groups: [rolling], statefulSets }), rolling, 'a', 4);
    expect(forecast).toMatchObject({ approvals: ['wave rest'] });
    expect(forecastTexts(forecast, 'mimir/ingester')).toContain('the times assume that wave rest is approved at once');
  });

  it('applies the bounds, and names them', () => {
    expect(forecast(5, 5, 9)).toMatchInlineSnapshot(`
      {
        "approvals": [],
        "facts": [
          "the group asks for 9 replicas; the bounds change that to 6 (at least 2, at most 6)",
        ],
        "lines": [
          "a 5-6 0s",
          "b 5-6 0s",
        ],
      }
    `);
    expect(forecast(5, 6, 9)).toMatchObject({
      lines: [],
      facts: ['the group asks for 9 replicas; the bounds change that to 6 (at least 2, at most 6)'],
    });
    expect(forecast(3, 2, 1).facts).toEqual(['the group asks for 1 replica; the bounds change that to 2 (at least 2, at most 6)']);
  });

  it('names the user who cancelled the downscale, and the permanent block of the change', () => {
    const cancelled = { intents: [intent({ action: 'cancel', zone: 'a', replicas: 3 })] };
    expect(forecast(3, 6, 3, cancelled)).toMatchInlineSnapshot(`
      {
        "approvals": [],
        "facts": [
          "zone a stays at 6 replicas: kim cancelled the decrease to 3. To continue it, run: kubectl rollout-group cancel mimir/ingester intent-1",
        ],
        "lines": [],
      }
    `);
    expect(forecast(6, 6, 4, { intents: [intent({ action: 'pause' })] })).toMatchObject({ lines: [], stop: { rule: 'paused' } });
  });

  it('starts with the change of a directly scaled StatefulSet, and follows a mirrored object', () => {
    const own = group({ zones: ['a', { name: 'b', follows: 'a' }] });
    const statefulSets = ['a', 'b'].map((name) => statefulSet({ name: `ingester-zone-${name}`, replicas: 3 }));
    const changed = forecastScale(snapshotOf({ groups: [own], statefulSets }), own, 'a', 2);
    expect(changed.changes.map(({ zone, from, to }) => `${zone} ${from}-${to}`)).toEqual(['a 3-2', 'b 3-2']);
    const kind = {
      kind: 'mirror',
      apiVersion: 'v1',
      resourceKind: 'Template',
      name: 'x',
      read: 'scale',
      writeBack: 'none',
      onMissing: 'hold',
    } as const;
    const mirroring = group({ zones: [{ name: 'a', replicas: kind }] });
    const replicaSources = [{ namespace: 'mimir', apiVersion: 'v1', kind: 'Template', name: 'x', replicas: 3 }];
    const snapshot = snapshotOf({ groups: [mirroring], statefulSets, replicaSources });
    expect(forecastScale(snapshot, mirroring, 'a', 4).changes.map(({ from, to }) => `${from}-${to}`)).toEqual(['3-4']);
  });
});
