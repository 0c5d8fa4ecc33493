import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { judge } from '../../../engine/judge/judge.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import type { IntentView } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { adopted, gate, group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, statefulSet } from '../../kit/objects.ts';
import {
  ago,
  exception,
  freeze,
  hourMs,
  intent,
  ledgerOf,
  minuteMs,
  outdatedSets,
  policy,
  type RunFields,
  runOf,
  secondMs,
  updatedPods,
} from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const decided = (definition: GroupDefinition, overrides: SnapshotOverrides) =>
  decideGroup(snapshotOf({ groups: [definition], ...overrides }), definition);
const withRun = (run: Partial<RunState>) => ({ ledgers: [ledgerOf({ run: runOf(run) })] });
const pods = (definition: GroupDefinition, overrides: SnapshotOverrides) =>
  decided(definition, overrides).actions.map((action) => ('pod' in action ? action.pod : action.kind));
const allUpdated = Object.fromEntries(['a', 'b', 'c'].map((name) => [`ingester-zone-${name}`, updatedPods()]));

describe('a window with work under way', () => {
  const finishAll = { policies: [policy({ windows: [freeze({ inFlight: 'finishAll' })] })], statefulSets: outdatedSets() };

  it('allows a run that has replaced a pod to continue', () => {
    expect(pods(group(), { ...finishAll, ...withRun({ lastDisruptionMs: ago(minuteMs) }) })).toEqual(['ingester-zone-a-2']);
  });

  it('starts no run because an earlier run replaced pods', () => {
    const before = withRun({ target: { a: 'rev-1' }, outcome: 'completed', lastDisruptionMs: ago(minuteMs) });
    expect(decided(group(), { ...finishAll, ...before })).toMatchObject({ actions: [], waits: [{ rule: 'window' }] });
  });

  it('keeps a new template out of the zone that an earlier run opened', () => {
    const zone = { policies: [policy({ windows: [freeze({ inFlight: 'finishZone' })] })], statefulSets: outdatedSets() };
    const before = withRun({ target: { a: 'rev-0' }, openZone: 'a', lastDisruptionMs: ago(minuteMs) });
    expect(decided(group(), { ...zone, ...before })).toMatchObject({ actions: [], waits: [{ rule: 'window' }] });
  });
});

describe('a clock that was set back', () => {
  const approved = { gates: [], approval: { count: 1, from: [] } };

  it('starts no run without the approval of its first wave', () => {
    const careful = group({ rollout: { waves: [wave('all', ['a', 'b', 'c'], { before: approved })] } });
    const before = withRun({ target: { a: 'rev-0' }, lastDisruptionMs: kitNowMs + hourMs });
    expect(decided(careful, { statefulSets: outdatedSets(), ...before })).toMatchObject({ actions: [], waits: [{ rule: 'approval' }] });
  });

  it('starts no wave without its approval', () => {
    const careful = group({ rollout: { waves: [wave('first', ['a']), wave('rest', ['b', 'c'], { before: approved })] } });
    const state = { statefulSets: outdatedSets(), podChanges: { 'ingester-zone-a': updatedPods() } };
    const decision = decided(careful, { ...state, ...withRun({ lastDisruptionMs: kitNowMs + hourMs, openZone: 'a' }) });
    expect(decision).toMatchObject({ wave: { name: 'rest' }, actions: [], waits: [{ rule: 'approval' }] });
  });

  it('does not block the next run for longer than the interval between replacements', () => {
    const paced = group({ rollout: { minIntervalMs: minuteMs } });
    const before = withRun({ target: { a: 'rev-0' }, lastDisruptionMs: kitNowMs + hourMs });
    expect(decided(paced, { statefulSets: outdatedSets(), ...before })).toMatchObject({ wakeAtMs: kitNowMs + minuteMs - 1 });
  });

  it('keeps the interval if an outdated pod comes back after the run completed', () => {
    const paced = group({ rollout: { minIntervalMs: minuteMs } });
    const before = withRun({ outcome: 'completed', completedMs: ago(1), lastDisruptionMs: ago(minuteMs / 2) });
    const state = { statefulSets: outdatedSets(), podChanges: { ...allUpdated, 'ingester-zone-a': { 0: { revision: oldRevision } } } };
    expect(decided(paced, { ...state, ...before })).toMatchObject({ actions: [], waits: [{ rule: 'min-interval' }] });
  });
});

describe('the progress deadline', () => {
  const soaking = group({
    rollout: {
      deadlines: { progressMs: 20 * minuteMs },
      waves: [wave('all', ['a', 'b', 'c'], { after: { soakMs: 8 * hourMs, gates: [] } })],
    },
  });
  const down = { ...allUpdated, 'ingester-zone-b': { ...updatedPods(), 1: 'missing' } } as const;
  const state = { statefulSets: outdatedSets(), podChanges: down };
  const run = { lastDisruptionMs: ago(hourMs), waveAvailableMs: ago(50 * minuteMs) };

  it('starts when a pod becomes unavailable, not at the last replacement hours before', () => {
    const { phase, run: after, wakeAtMs } = decided(soaking, { ...state, ...withRun(run) });
    expect({ phase, wakeAtMs, outcome: after?.outcome, since: after?.inFlightSinceMs }).toEqual({
      phase: 'Waiting',
      wakeAtMs: kitNowMs + 20 * minuteMs,
      outcome: 'running',
      since: kitNowMs,
    });
  });

  it('fails the run if no pod came back within it', () => {
    const { run: after } = decided(soaking, { ...state, ...withRun({ ...run, inFlightSinceMs: ago(20 * minuteMs) }) });
    expect(after).toMatchObject({ outcome: 'failed', failure: 'no pod became available for 20m' });
  });

  it('starts again with the next unavailable pod', () => {
    const healthy = { statefulSets: outdatedSets(), podChanges: allUpdated };
    const { run: after } = decided(soaking, { ...healthy, ...withRun({ ...run, inFlightSinceMs: ago(hourMs) }) });
    expect(after?.inFlightSinceMs).toBeUndefined();
  });
});

describe('a StatefulSet with incomplete data', () => {
  const without = (definition: GroupDefinition, overrides: Parameters<typeof statefulSet>[0]) =>
    decided(definition, { statefulSets: [...outdatedSets(['b', 'c']), statefulSet(overrides)] });
  const because = (fact: string) => [
    { rule: 'view-complete', outcome: 'unknown', fact },
    { rule: 'other-zones-ready', outcome: 'wait', fact, limit: 'all available' },
  ];

  it.each([
    ['native', group()],
    ['adopted', adopted()],
  ])('loses no pod while its status names no update revision (%s)', (_, definition) => {
    expect(without(definition, { status: { updateRevision: '' } })).toMatchObject({
      actions: [],
      waits: because('StatefulSet ingester-zone-a has no status.updateRevision'),
    });
  });

  it.each([
    ['native', group()],
    ['adopted', adopted()],
  ])('blocks its group while it is being deleted (%s)', (_, definition) => {
    expect(without(definition, { isTerminating: true })).toMatchObject({
      actions: [],
      waits: because('StatefulSet ingester-zone-a is being deleted'),
    });
  });
});

describe('a group that waits without a rule that says why', () => {
  it('names the pod on a node that is not ready, because the pod could not terminate', () => {
    const last = { ...updatedPods(), 2: { nodeReady: false } };
    const definition = group({ zones: [{ name: 'a', maxUnavailable: 2 }] });
    expect(decided(definition, { statefulSets: outdatedSets(['a']), podChanges: { 'ingester-zone-a': last } }).waits).toEqual([
      { rule: 'pods-in-flight', outcome: 'wait', fact: 'ingester-zone-a-2 cannot terminate: node node-2 is not ready' },
    ]);
  });

  it('does not call a spent budget permitted by an exception that allows no more than the budget', () => {
    const allowed = exception('zone-budget', { allow: { podsAtMost: 1 } });
    const one = { 'ingester-zone-a': { 1: { isReady: false, readyChangedMs: ago(secondMs) } } };
    expect(decided(group(), { statefulSets: outdatedSets(), podChanges: one, exceptions: [allowed] }).waits).toEqual([
      expect.objectContaining({ rule: 'zone-budget', outcome: 'wait', fact: '1 of at most 1 pod unavailable in zone a' }),
    ]);
  });
});

describe('a return to the previous template', () => {
  const waves = [wave('canary', ['a'], { after: { soakMs: 0, gates: ['errors'] } }), wave('rest', ['b', 'c'])];
  const gated = (rollout: object = {}) => group({ gates: [gate({ name: 'errors' })], rollout: { waves, ...rollout } });
  const readings = [1, 2, 3].map((minutes) => ({ atMs: ago(minutes * minuteMs), result: 'value', value: 9 }) as const);
  // Zone a is back, and b and c still run the revision that the gate measures.
  const returned = (definition: GroupDefinition, fields: RunFields = {}, intents: readonly IntentView[] = []) => {
    const [to, from] = [newRevision, oldRevision];
    const both = (revision: string) => ({ a: revision, b: revision, c: revision });
    const back = { kind: 'rollback', target: both(to), previous: both(from), restores: both(to), startedMs: ago(5 * minuteMs) } as const;
    const run = runOf({ ...back, ...fields });
    const updated = Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision: to, readyChangedMs: ago(4 * minuteMs) }]));
    return decided(definition, {
      statefulSets: outdatedSets(),
      podChanges: { 'ingester-zone-a': updated },
      ledgers: [ledgerOf({ run })],
      intents,
      gateReadings: [{ namespace: 'mimir', group: 'ingester', gate: 'errors', readings }],
    });
  };

  it('is not blocked by the gate that requires it, unless the group keeps its checks', () => {
    expect(returned(gated())).toMatchObject({ outcome: 'act', actions: [{ zone: 'b' }], run: { outcome: 'running', wave: 1 } });
    expect(returned(gated({ skipOnRollback: false })).actions).toEqual([]);
  });

  it('that failed because of a gate it does not skip continues with a promotion and a retry, and its stop names both', () => {
    const checked = gated({ skipOnRollback: false });
    const failed = {
      outcome: 'failed',
      failure: 'gate errors is 9; 0 of 3 successes in a row, 3 failed',
      failedMs: ago(2 * minuteMs),
    } as const;
    const retry = 'kubectl rollout-group retry mimir/ingester';
    expect(returned(checked, failed).stops).toMatchObject([
      {
        fact: `the run failed: ${failed.failure}; this return does not skip gates (skipOnRollback: false)`,
        endsWith: `kubectl rollout-group promote mimir/ingester --full, then ${retry}`,
        alternatives: [retry, 'apply another pod template'],
      },
    ]);
    const asks = (['promote', 'retry'] as const).map((action) => intent({ name: action, action, runId: 'run-1' }));
    expect(returned(checked, failed, asks)).toMatchObject({
      outcome: 'act',
      actions: [{ zone: 'b' }],
      run: { outcome: 'running', wave: 1 },
    });
    // A retry alone is enough if the return skips gates, or if another cause failed it.
    const endsOf = (definition: GroupDefinition, fields: RunFields) => returned(definition, fields).stops.map(({ endsWith }) => endsWith);
    expect(endsOf(gated(), failed)).toEqual([retry]);
    expect(endsOf(checked, { ...failed, failure: 'no pod became available' })).toEqual([retry]);
  });
});

describe('a StatefulSet in two groups', () => {
  it('loses no pod to either group', () => {
    const other = group({ name: 'other', zones: [{ name: 'x', statefulSet: 'ingester-zone-a' }] });
    const snapshot = snapshotOf({ groups: [other, group()], statefulSets: outdatedSets() });
    const fact = 'StatefulSet ingester-zone-a has several owners: zone a of group ingester, zone x of group other';
    for (const one of snapshot.groups) {
      expect(decideGroup(snapshot, one)).toMatchObject({
        phase: 'Blocked',
        actions: [],
        waits: expect.arrayContaining([
          {
            rule: 'view-complete',
            outcome: 'no',
            fact,
            endsWith: 'keep each StatefulSet in one zone of one RolloutGroup',
          },
        ]),
      });
    }
  });

  it('is unknown while the ledger cannot be read', () => {
    const other = group({ name: 'other', zones: [{ name: 'x', statefulSet: 'ingester-zone-a' }] });
    const unread = [{ kind: 'Ledger' as const, namespace: 'mimir', name: 'ingester', unknown: 'ConfigMap unreadable' }];
    const snapshot = snapshotOf({ groups: [other, group()], statefulSets: outdatedSets(), unread });
    const [, ingester] = snapshot.groups;
    const { waits } = decideGroup(snapshot, ingester ?? other);
    expect(waits).toContainEqual(expect.objectContaining({ rule: 'view-complete', outcome: 'unknown', fact: 'ConfigMap unreadable' }));
    expect(waits.filter(({ endsWith }) => endsWith !== undefined)).toEqual([]);
  });
});

describe('three StatefulSets in two groups', () => {
  it('are one block of each group', () => {
    const twin = group({ name: 'other', zones: ['a', 'b', 'c'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` })) });
    const snapshot = snapshotOf({ groups: [twin, group()], statefulSets: outdatedSets() });
    const names = 'ingester-zone-a, ingester-zone-b and ingester-zone-c';
    const fact = `StatefulSets ${names} have several owners: zones a, b and c of group ingester, zones a, b and c of group other`;
    for (const one of snapshot.groups)
      expect(decideGroup(snapshot, one).waits.map((wait) => [wait.rule, wait.fact])).toEqual([['view-complete', fact]]);
  });
});

describe('replicas', () => {
  it('of no zone decrease while a status is older than its spec', () => {
    const counted = group({ zones: [{ name: 'a', replicas: { kind: 'count', count: 2 } }, 'b'] });
    const old = { statefulSets: [statefulSet({ name: 'ingester-zone-b', generation: 2, status: { observedGeneration: 1 } })] };
    expect(decided(counted, {})).toMatchObject({ actions: [{ kind: 'scaleStatefulSet', to: 2 }] });
    expect(decided(counted, old)).toMatchObject({
      actions: [],
      waits: [
        {
          rule: 'view-complete',
          outcome: 'wait',
          fact: 'the StatefulSet controller has not observed the last change of ingester-zone-b: observed generation 1',
        },
      ],
    });
  });

  it('of a zone with a delayed downscale are not lowered without the agent', () => {
    const endpoint = { scheme: 'http', port: 8080, path: '/prepare', timeout: '5s' } as const;
    const delayed = { afterMs: 13 * hourMs, endpoint, onUnreachable: 'hold' } as const;
    const snapshot = snapshotOf({ groups: [group({ zones: [{ name: 'a', delayed }, 'b'] })] });
    const request = {
      kind: 'scale',
      namespace: 'mimir',
      statefulSet: 'ingester-zone-a',
      from: 3,
      to: 2,
      via: 'scale',
      dryRun: false,
    } as const;
    expect(judge(snapshot, request)).toMatchObject({ outcome: 'deny', effect: 'deny' });
    expect(judge(snapshot, { ...request, statefulSet: 'ingester-zone-b' })).toMatchObject({ outcome: 'allow' });
  });
});

describe('a retry', () => {
  const failed = { outcome: 'failed', failure: 'gate errors', failedMs: ago(hourMs) } as const;
  const asked = (runId: string | undefined) =>
    decided(group(), {
      statefulSets: outdatedSets(),
      ...withRun(failed),
      intents: [intent({ action: 'retry', ...(runId === undefined ? {} : { runId }) })],
    }).run?.outcome;

  it('applies to the run that it names, or to any run', () => {
    expect([asked('run-1'), asked(undefined), asked('run-0')]).toEqual(['running', 'running', 'failed']);
  });
});
