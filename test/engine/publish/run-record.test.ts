import { describe, expect, it } from 'vitest';
import { decide } from '../../../engine/decide/decide.ts';
import type { Action } from '../../../engine/decision.ts';
import { bytesOf } from '../../../engine/publish/bounds.ts';
import type { TakenAction } from '../../../engine/publish/published.ts';
import { type RunTurn, replacedPodCount, runRecord } from '../../../engine/publish/run-record.ts';
import { type RolloutRun, schemas } from '../../../policies/schema/kinds.ts';
import { groupBy } from '../../../policies/values/group-by.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, outdatedStatefulSet } from '../../kit/objects.ts';
import { intent, type RunFields, withFields } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const minute = 60_000;
const annotations = { 'kubernetes.io/change-cause': 'image 2.0', 'rollout-group.dev/plan': 'abc' };
const sets = ['a', 'b'].map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}`, annotations }));
const snapshot = snapshotOf({ groups: [group({ zones: ['a', 'b'] })], statefulSets: sets, policyDigest: 'd1' });
const decision = must(decide(snapshot).groups[0]);
const run = must(decision.run);
const soaking = { rule: 'soak', outcome: 'wait' as const, fact: 'available for 1m' };

function must<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('the test expected a value');
  return value;
}

function turn(atMinute: number, changes: Partial<RunTurn> & { readonly run?: RunFields; readonly decided?: object } = {}): RunTurn {
  const { run: ofRun, decided, ...rest } = changes;
  const changed = { ...decision, ...decided, run: withFields(run, ofRun ?? {}) };
  return { group: must(snapshot.groups[0]), snapshot, decision: changed, performed: [], startedMs: kitNowMs + atMinute * minute, ...rest };
}

const target = { namespace: 'mimir', zone: 'a', statefulSet: 'ingester-zone-a', uid: 'u', because: 'outdated' as const };
const evict = (ordinal: number): Action => ({ kind: 'evictPod', ...target, pod: `ingester-zone-a-${ordinal}`, ordinal });
const done = (action: Action): TakenAction => ({ action, result: 'done' });
const waiting = { phase: 'Waiting', outcome: 'wait', waits: [soaking], steps: [] };

/** A decision whose pods run these revisions: by zone, the revision of each ordinal from 0. */
function running(pods: Readonly<Record<string, readonly string[]>>) {
  const zones = decision.zones.map((zone) => {
    const ofZone = (pods[zone.zone] ?? []).map((revision, ordinal) => ({ revision, ordinals: `${ordinal}` }));
    const revisions = [...groupBy(ofZone, ({ revision }) => revision)].map(([revision, same]) => ({
      revision,
      ordinals: same.map(({ ordinals }) => ordinals).join(','),
    }));
    return { ...zone, revisions };
  });
  return { zones };
}

const changes = ({ spec }: RolloutRun) => spec.zones.map(({ zone, fromRevision, toRevision }) => [zone, fromRevision, toRevision]);

/** The first run of the change of a later run. */
const ofChange = { joined: { id: run.id, startedMs: run.startedMs } };

/** The record after several turns, which fits its schema each time. */
function recordAfter(...turns: readonly RunTurn[]): RolloutRun {
  let record: RolloutRun | undefined;
  for (const one of turns) {
    record = runRecord(record, one);
    if (record !== undefined) expect(schemas.RolloutRun.safeParse(record).error).toBeUndefined();
  }
  return must(record);
}

describe('the record of a rollout', () => {
  it('starts with the run, and names its target and its origin', () => {
    const record = recordAfter(turn(0));
    expect(record).toMatchObject({
      kind: 'RolloutRun',
      metadata: { namespace: 'mimir', name: expect.stringMatching(/^ingester-[a-z0-9-]+$/) },
      spec: {
        group: 'ingester',
        id: run.id,
        kind: 'rollout',
        outcome: 'running',
        zones: [{ zone: 'a', statefulSet: 'ingester-zone-a', toRevision: 'rev-2' }, { zone: 'b' }],
        policyDigest: 'd1',
        planDigest: 'abc',
        cause: 'image 2.0',
      },
    });
  });

  it('counts pods that the StatefulSet controller replaces at or above a partition, each once', () => {
    const exposed = sets.map((set, index) => ({
      ...set,
      updateStrategy: 'RollingUpdate' as const,
      partition: index === 0 ? 1 : 1_000_000,
    }));
    const groups = [group({ zones: ['a', 'b'], rollout: { strategy: 'partition' } })];
    const exposing = { snapshot: snapshotOf({ groups, statefulSets: exposed }), group: must(groups[0]) };
    const record = recordAfter(turn(0), turn(1, exposing));
    expect(record.spec.steps).toMatchObject([{ zone: 'a', action: 'replace', pods: '1-2', count: 2 }]);
    expect(runRecord(record, turn(2, exposing))).toBe(record);
  });

  it('puts replacements in one zone, one after the other, into one step', () => {
    const failed: TakenAction = { action: evict(0), result: 'refused', message: 'budget' };
    const record = recordAfter(turn(0, { performed: [done(evict(2)), done(evict(1))] }), turn(5, { performed: [failed] }));
    expect(record.spec.steps).toEqual([
      {
        zone: 'a',
        wave: 'all',
        action: 'replace',
        what: 'evict pod ingester-zone-a-0',
        pods: '1-2',
        count: 2,
        failures: 1,
        message: 'refused: budget',
        startedAt: '2026-03-02T12:00:00Z',
        endedAt: '2026-03-02T12:05:00Z',
      },
    ]);
  });

  it('is the same value without progress, so it is not written again', () => {
    const first = recordAfter(turn(0, { decided: waiting }));
    expect(runRecord(first, turn(1, { decided: waiting }))).toBe(first);
    expect(runRecord(first, turn(2, { decided: { ...waiting, waits: [{ ...soaking, fact: 'available for 2m' }] } }))).toBe(first);
  });

  it('counts only the replaced pods of a zone that left the group', () => {
    const podsIn = ({ spec }: RolloutRun) => spec.zones.map(({ zone, pods }) => [zone, pods]);
    const first = recordAfter(turn(0, { performed: [done(evict(2))] }));
    expect(podsIn(first)).toEqual([
      ['a', 3],
      ['b', 3],
    ]);
    const left = (zone: string) =>
      must(runRecord(first, turn(1, { decided: { zones: decision.zones.filter((one) => one.zone !== zone) } })));
    expect([podsIn(left('a')), podsIn(left('b'))]).toEqual([
      [
        ['a', 1],
        ['b', 3],
      ],
      [
        ['a', 3],
        ['b', 0],
      ],
    ]);
  });

  it('names a rejection during the wait for an approval', () => {
    const asked = { rule: 'approval', outcome: 'wait', fact: '0 of 1 approvals' };
    const rejected = { rule: 'approval', outcome: 'no', fact: 'rejected by kim', source: { object: 'RolloutIntent mimir/reject' } };
    const record = recordAfter(...[asked, rejected].map((one, at) => turn(at, { decided: { ...waiting, waits: [one] } })));
    expect(record.spec.waiting).toEqual({ rule: 'approval', fact: 'rejected by kim', since: '2026-03-02T12:00:00Z' });
  });

  it('names the first reading of a gate during the wait for it, and no later one', () => {
    const facts = ['errors has no reading yet', 'errors is 9; 0 of 2 successes in a row, 1 failed', 'errors is 8'];
    const waits = facts.map((fact) => ({ rule: 'gate', outcome: 'wait' as const, fact }));
    const record = recordAfter(...waits.map((wait, at) => turn(at, { decided: { ...waiting, waits: [wait] } })));
    expect(record.spec.waiting).toEqual({ rule: 'gate', fact: facts[1], since: '2026-03-02T12:00:00Z' });
  });

  it('adds up the waits, and ends with the run', () => {
    const completed = { outcome: 'completed' as const, completedMs: kitNowMs + 20 * minute };
    const record = recordAfter(turn(0), turn(5, { decided: waiting }), turn(15), turn(20, { run: completed }));
    expect(record.spec).toMatchObject({
      outcome: 'completed',
      waited: 600,
      waits: [{ rule: 'soak', fact: 'available for 1m', seconds: 600 }],
      endedAt: '2026-03-02T12:20:00Z',
      took: expect.any(Number),
    });
    expect(record.spec.waiting).toBeUndefined();
    expect(runRecord(record, turn(25, { run: completed }))).toBe(record);
  });

  it('adds no wait that ended at once, as that of the turn that fails the run', () => {
    const failed = { outcome: 'failed' as const, failedMs: kitNowMs + minute, failure: 'aborted by kim' };
    const waits = [{ rule: 'run-failed', outcome: 'no', fact: 'aborted by kim' }] as const;
    const { spec } = recordAfter(turn(0), turn(1, { run: failed, decided: { ...waiting, waits } }));
    expect([spec.outcome, spec.waits, spec.waited]).toEqual(['failed', [], 0]);
  });

  it('continues after a retry of a failed run, and keeps the cause of the failure', () => {
    const failed = { outcome: 'failed' as const, failedMs: kitNowMs + minute, failure: 'gate errors failed' };
    const first = recordAfter(turn(0), turn(1, { run: failed }));
    expect(first.spec).toMatchObject({ outcome: 'failed', failure: 'gate errors failed' });
    const next = must(runRecord(first, turn(2)));
    expect([next.spec.outcome, next.spec.failure, next.spec.endedAt, next.spec.id]).toEqual([
      'running',
      'gate errors failed',
      undefined,
      first.spec.id,
    ]);
  });

  it('is superseded by a run to another revision, which starts with its request', () => {
    const first = recordAfter(turn(0));
    const superseded = must(runRecord(first, turn(3, { run: { id: 'other' } })));
    expect([superseded.metadata.name, superseded.spec.outcome]).toEqual([first.metadata.name, 'superseded']);
    const next = must(runRecord(superseded, turn(3, { run: { id: 'other' } })));
    expect([next.spec.id, next.spec.outcome, next.metadata.name === first.metadata.name]).toEqual(['other', 'running', false]);
  });

  it('continues if the other zones get their new template a moment later, as if manifests are applied one by one', () => {
    const before = { target: { a: 'a-2', b: 'b-1' }, previous: { a: 'a-1', b: 'b-1' } };
    const decided = running({ a: ['a-1', 'a-1'], b: ['b-1', 'b-1'] });
    const first = recordAfter(turn(0, { run: before, decided }));
    const next = { ...before, id: 'other', ...ofChange, target: { a: 'a-2', b: 'b-2' } };
    const joined = must(runRecord(first, turn(1, { run: next, decided: running({ a: ['a-1', 'a-2'], b: ['b-1', 'b-1'] }) })));
    expect([joined.metadata.name, joined.spec.outcome, joined.spec.id]).toEqual([first.metadata.name, 'running', 'other']);
    expect(joined.spec.earlierIds).toEqual([run.id]);
    expect(changes(joined)).toEqual([
      ['a', 'a-1', 'a-2'],
      ['b', 'b-1', 'b-2'],
    ]);
    const moved = { ...before, id: 'other', target: { a: 'a-3', b: 'b-2' } };
    const changed = must(runRecord(first, turn(1, { run: { ...moved, ...ofChange } })));
    expect([changed.spec.outcome, changed.spec.zones.map(({ toRevision }) => toRevision)]).toEqual(['running', ['a-3', 'b-2']]);
    const acted = recordAfter(turn(0, { run: before, performed: [done(evict(1))] }));
    const replaced = must(runRecord(acted, turn(1, { run: moved })));
    expect(replaced.spec.outcome).toBe('superseded');
  });

  it('is one run while an undo returns zone after zone, also of an unfinished run', () => {
    const before = { target: { a: 'a-2', b: 'b-2' }, previous: { a: 'a-1', b: 'b-1' } };
    const failed = { ...before, outcome: 'failed' as const, failedMs: kitNowMs, failure: 'a gate failed' };
    const first = recordAfter(turn(0, { run: before }), turn(1, { run: failed }));
    const back = {
      kind: 'rollback' as const,
      previous: before.previous,
      restores: before.previous,
      from: before.target,
      origin: { isUndo: true as const },
    };
    const decided = running({ a: ['a-2', 'a-2'], b: ['b-2', 'b-2'] });
    const began = must(runRecord(first, turn(2, { run: { ...back, id: 'one', target: { a: 'a-1', b: 'b-2' } }, decided })));
    expect(changes(began)[1]).toEqual(['b', 'b-2', 'b-2']);
    const next = { ...back, id: 'two', joined: { id: 'one', startedMs: 0 }, target: { a: 'a-1', b: 'b-1' } };
    const joined = must(runRecord(began, turn(3, { run: next, decided: running({ a: ['a-1', 'a-1'], b: ['b-2', 'b-2'] }) })));
    expect([joined.metadata.name, joined.spec.id, joined.spec.outcome]).toEqual([began.metadata.name, 'two', 'running']);
    expect(changes(joined)).toEqual([
      ['a', 'a-2', 'a-1'],
      ['b', 'b-2', 'b-1'],
    ]);
  });

  it('starts from the outdated pods of a zone that keeps its template, because the run replaces them too', () => {
    const first = { target: { a: 'a-2', b: 'b-2' }, previous: { a: 'a-1', b: 'b-1' } };
    const zones = decision.zones.map((zone) => ({ ...zone, revisions: [{ revision: `${zone.zone}-1`, ordinals: '0-2' }] }));
    const back = { id: 'back', target: { a: 'a-1', b: 'b-2' }, previous: first.previous, from: first.target };
    const superseded = recordAfter(turn(0, { run: first }), turn(1, { run: back }));
    const next = must(runRecord(superseded, turn(1, { run: back, decided: { zones } })));
    expect(next.spec.zones.map(({ fromRevision, toRevision }) => [fromRevision, toRevision])).toEqual([
      ['a-1', 'a-1'],
      ['b-1', 'b-2'],
    ]);
    // A return of zone a alone replaces no pod of zone b, so the record does not name the template of zone b as its change.
    const undone = { ...back, kind: 'rollback' as const, returning: ['a'] };
    const returning = must(runRecord(superseded, turn(1, { run: undone, decided: running({ a: ['a-2'], b: ['b-1'] }) })));
    expect(returning.spec.zones.map(({ fromRevision, toRevision }) => [fromRevision, toRevision])).toEqual([
      ['a-2', 'a-1'],
      ['b-2', 'b-2'],
    ]);
  });

  it('starts from the revision of most outdated pods, not from a template that no pod ran', () => {
    const next = { target: { a: 'a-3', b: 'b-3' }, previous: { a: 'a-1', b: 'b-1' }, from: { a: 'a-2', b: 'b-2' } };
    const after = recordAfter(turn(0, { run: next, decided: running({ a: ['a-1', 'a-1', 'a-2'], b: ['b-1'] }) }));
    expect(changes(after)).toEqual([
      ['a', 'a-1', 'a-3'],
      ['b', 'b-1', 'b-3'],
    ]);
    const undo = { ...next, kind: 'rollback' as const, target: next.previous, origin: { isUndo: true as const } };
    const undone = recordAfter(turn(0, { run: undo, decided: running({ a: ['a-1', 'a-1', 'a-2'], b: ['b-1'] }) }));
    expect(changes(undone)).toEqual([
      ['a', 'a-2', 'a-1'],
      ['b', 'b-1', 'b-1'],
    ]);
    const ended = { ...undo, outcome: 'completed' as const, startedMs: kitNowMs, completedMs: kitNowMs };
    const unmoved = recordAfter(turn(0, { run: ended, decided: running({ a: ['a-1'], b: ['b-1'] }) }));
    expect([unmoved.spec.outcome, changes(unmoved)[0]]).toEqual(['completed', ['a', 'a-1', 'a-1']]);
  });

  it('of a rollback starts from the failed template only if pods ran it, and not from pods that stay', () => {
    const rolledBack = { revisions: { a: 'a-3', b: 'b-3' }, because: 'gate errors' };
    const back = {
      kind: 'rollback' as const,
      target: { a: 'a-2', b: 'b-2' },
      previous: rolledBack.revisions,
      kept: { a: ['a-1'] },
      rolledBack,
    };
    const record = recordAfter(turn(0, { run: back, decided: running({ a: ['a-1', 'a-1', 'a-3'], b: ['b-2', 'b-2'] }) }));
    expect(changes(record)).toEqual([
      ['a', 'a-3', 'a-2'],
      ['b', 'b-2', 'b-2'],
    ]);
  });

  it('counts a pod that was replaced in two waves once', () => {
    const wave = (name: string) => ({ wave: { name, index: 0, count: 2 } });
    const record = recordAfter(
      turn(0, { performed: [done(evict(1)), done(evict(2))], decided: wave('canary') }),
      turn(1, { performed: [done(evict(2))], decided: wave('rest') }),
    );
    expect([record.spec.steps.map(({ count }) => count), replacedPodCount(record.spec)]).toEqual([[2, 1], 2]);
  });

  it('does not count a pod whose replacement was denied', () => {
    const denied: TakenAction = { action: evict(2), result: 'refused', message: 'budget' };
    const record = recordAfter(turn(0, { performed: [denied] }));
    expect([record.spec.steps.map(({ count, failures }) => [count, failures]), replacedPodCount(record.spec)]).toEqual([[[0, 1]], 0]);
  });

  it('is cancelled if its change is reverted before a pod was replaced, and recorded if it ends in the turn in which it begins', () => {
    const change = { target: { a: 'a-2', b: 'b-1' }, previous: { a: 'a-1', b: 'b-1' } };
    const completed = { outcome: 'completed' as const, startedMs: kitNowMs, completedMs: kitNowMs };
    const reverted = { ...change, ...completed, id: 'other', ...ofChange, target: change.previous };
    const decided = { zones: decision.zones.map((zone) => ({ ...zone, revisions: [] })) };
    expect(recordAfter(turn(0, { run: change, decided }), turn(0, { run: reverted, decided })).spec.outcome).toBe('cancelled');
    expect(recordAfter(turn(0, { run: { ...change, ...completed } })).spec).toMatchObject({ outcome: 'completed', took: 0 });
  });

  it('keeps the revisions and the cause of a change that was reverted, zone after zone, before a pod was replaced', () => {
    const from = { a: 'a-1', b: 'b-1' };
    const change = { target: { a: 'a-2', b: 'b-2' }, previous: from, origin: { cause: 'image 2.0' } };
    const decided = running({ a: ['a-1'], b: ['b-1'] });
    const undone = { ...change, ...ofChange, base: change.target };
    const ended = { outcome: 'completed' as const, completedMs: kitNowMs, kind: 'rollback' as const, origin: {} };
    const { spec } = recordAfter(
      turn(0, { run: change, decided }),
      turn(1, { run: { ...undone, id: 'one', target: { a: 'a-1', b: 'b-2' } }, decided }),
      turn(2, { run: { ...undone, ...ended, id: 'two', target: from }, decided }),
    );
    expect(spec).toMatchObject({
      kind: 'rollout',
      outcome: 'cancelled',
      cause: 'image 2.0',
      zones: [{ toRevision: 'a-2' }, { toRevision: 'b-2' }],
    });
  });

  it('counts each pod once, however often its eviction was requested', () => {
    const refused: TakenAction = { action: evict(2), result: 'refused', message: 'budget' };
    const steps = (...performed: readonly TakenAction[]) =>
      recordAfter(...performed.map((one) => turn(0, { performed: [one] }))).spec.steps;
    expect(steps(refused, refused, done(evict(2)), done(evict(2)), done(evict(1)))).toMatchObject([{ pods: '1-2', count: 2, failures: 2 }]);
    expect(steps(refused)).toMatchObject([{ count: 0, failures: 1 }]);
  });

  it('has the largest number of pods of each zone, also after a scale-up during the run', () => {
    const scaled = (replicas: number) => ({ zones: decision.zones.map((one) => ({ ...one, replicas })) });
    const { zones } = recordAfter(turn(0), turn(1, { decided: scaled(5) }), turn(2, { decided: scaled(4) })).spec;
    expect(zones.map(({ pods }) => pods)).toEqual([5, 5]);
  });

  it('does not start for a completed run and for a failed turn', () => {
    expect(runRecord(undefined, turn(0, { run: { outcome: 'completed', startedMs: kitNowMs - minute } }))).toBeUndefined();
    const { decision: _, ...failed } = turn(0);
    expect(runRecord(undefined, failed)).toBeUndefined();
  });

  it('keeps its bounds for any length of the run and its texts', () => {
    const turns = Array.from({ length: 300 }, (_, index): RunTurn => {
      const zone = `zone-${index % 2}`;
      const statefulSet = 's'.repeat(253);
      const action: Action = {
        kind: 'callPods',
        namespace: 'mimir',
        zone,
        statefulSet,
        call: 'prepare',
        method: 'POST',
        ordinals: Array.from({ length: 700 }, (_, n) => n * 2),
      };
      const replace: Action = { kind: 'evictPod', ...target, zone, pod: 'p'.repeat(253), ordinal: index };
      return turn(index, {
        performed: [
          { action: replace, result: 'failed', message: 'x'.repeat(5000) },
          { action, result: 'done' },
        ],
      });
    });
    const record = recordAfter(...turns);
    expect(bytesOf(record)).toBeLessThanOrEqual(64 * 1024);
    expect(record.spec.steps.length).toBeLessThanOrEqual(100);
    expect(record.spec.steps.length + (record.spec.stepsOmitted ?? 0)).toBe(300);
  });
});

describe('the record of a change of replicas', () => {
  const step = { id: 'scale/a', kind: 'scaleDown' as const, zone: 'a', pods: [], from: 5, to: 3, outcome: 'wait' as const, results: [] };
  const scale: Action = {
    kind: 'scaleStatefulSet',
    namespace: 'mimir',
    zone: 'a',
    statefulSet: 'ingester-zone-a',
    uid: 'u',
    resourceVersion: '1',
    from: 5,
    to: 3,
  };
  const ask: Action = {
    kind: 'callPods',
    namespace: 'mimir',
    zone: 'a',
    statefulSet: 'ingester-zone-a',
    call: 'delayed',
    method: 'POST',
    ordinals: [3, 4],
  };
  const whole = decision.zones.map((zone) => ({ ...zone, isReady: true }));
  const shrinking = { steps: [step], zones: whole };
  const over = { steps: [], zones: whole };

  it('starts when pods are called or replicas written, and ends when every zone is ready again', () => {
    expect(runRecord(undefined, turn(0, { decided: shrinking }), 'scale')).toBeUndefined();
    const asked = must(runRecord(undefined, turn(0, { decided: shrinking, performed: [done(ask)] }), 'scale'));
    const scaled = must(runRecord(asked, turn(10, { decided: shrinking, performed: [done(scale)] }), 'scale'));
    const shrunk = { steps: [], zones: whole.map((zone) => ({ ...zone, replicas: 3 })) };
    const ended = must(runRecord(scaled, turn(20, { decided: shrunk }), 'scale'));
    expect(schemas.RolloutRun.safeParse(ended).error).toBeUndefined();
    expect(ended.spec).toMatchObject({
      kind: 'scale',
      outcome: 'completed',
      took: 1200,
      zones: [{ zone: 'a', statefulSet: 'ingester-zone-a', fromReplicas: 5, toReplicas: 3 }],
      steps: [
        { action: 'prepare', pods: '3-4' },
        { action: 'scale', what: 'scale ingester-zone-a from 5 to 3' },
      ],
    });
  });

  it('ends with the replicas of the zones, without zones whose change was cancelled', () => {
    const growing = { ...shrinking, steps: [step, { ...step, id: 'scale/b', zone: 'b', from: 6, to: 5 }] };
    const asked = must(runRecord(undefined, turn(0, { decided: growing, performed: [done({ ...scale, to: 6 })] }), 'scale'));
    const present = whole.map((zone) => ({ ...zone, replicas: 6 }));
    const ended = must(runRecord(asked, turn(20, { decided: { steps: [], zones: present } }), 'scale'));
    expect([ended.spec.outcome, ended.spec.zones.map((zone) => `${zone.zone} ${zone.fromReplicas}-${zone.toReplicas}`)]).toEqual([
      'completed',
      ['a 5-6'],
    ]);
  });

  it('is cancelled if a user cancelled the change of a zone after another zone has changed', () => {
    const growing = { ...shrinking, steps: [step, { ...step, id: 'scale/b', zone: 'b', from: 6, to: 5 }] };
    const asked = must(runRecord(undefined, turn(0, { decided: growing, performed: [done(scale)] }), 'scale'));
    const zones = [
      { ...decision.zones[0], replicas: 3 },
      { ...decision.zones[1], replicas: 6 },
    ].map((one) => ({ ...one, isReady: true }));
    const source = { object: 'RolloutIntent mimir/cancel.b' };
    const cancelled = { rule: 'replica-source', outcome: 'ok', fact: 'zone b stays at 6 replicas', source };
    const endedWith = (zone: string, warnings: readonly object[]) => {
      const requestedBy = { user: 'bob', groups: [], atMs: kitNowMs };
      const intents = [intent({ name: 'cancel.b', action: 'cancel', zone, requestedBy, reason: 'traffic peak' })];
      const ending = turn(20, { snapshot: { ...snapshot, intents }, decided: { steps: [], zones, warnings } });
      const { outcome, people } = must(runRecord(asked, ending, 'scale')).spec;
      return [outcome, people?.map(({ action, by, reason, about }) => [action, by, reason, about])];
    };
    expect(endedWith('b', [cancelled])).toEqual(['cancelled', [['cancel', 'bob', 'traffic peak', 'zone b']]]);
    expect(endedWith('b', [])).toEqual(['completed', undefined]);
    // The cancellation of another zone cancels no change of the record.
    expect(endedWith('c', [cancelled])).toEqual(['completed', undefined]);
  });

  it('is cancelled if the pods are cancelled', () => {
    const asked = must(runRecord(undefined, turn(0, { decided: shrinking, performed: [done(ask)] }), 'scale'));
    const stayed = must(runRecord(asked, turn(1, { decided: over, performed: [done({ ...ask, method: 'DELETE' })] }), 'scale'));
    const ended = must(runRecord(stayed, turn(2, { decided: over }), 'scale'));
    expect([ended.spec.outcome, ended.spec.steps.map(({ action }) => action)]).toEqual(['cancelled', ['prepare', 'withdraw']]);
  });
});
