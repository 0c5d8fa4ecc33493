import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import type { AdmissionRequest, GroupDecision } from '../../../engine/decision.ts';
import { judge } from '../../../engine/judge/judge.ts';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import { recordedKind } from '../../../engine/run/origin.ts';
import { rollbackDelayMs } from '../../../engine/run/run.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { type IntentView, isUnknown, type Ledger, type Snapshot } from '../../../engine/snapshot.ts';
import { newPod, placementOf } from '../../../engine/strategies/pinned/placement.ts';
import { createWorld } from '../../../engine/world/world.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { type GroupOverrides, group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, type PodChanges, type StatefulSetOverrides } from '../../kit/objects.ts';
import {
  ago,
  hourMs,
  intent,
  ledgerOf,
  minuteMs,
  outdatedSets,
  type RunFields,
  runOf,
  updatedPods,
  withFields,
} from '../../kit/questions.ts';
import { podsIn } from '../../kit/rolls.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';
import { afterwards, podIn } from '../../kit/worlds.ts';

const zones = ['a', 'b'];
const both = (revision: string) => ({ a: revision, b: revision });
const soaking = [wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: hourMs, gates: [] } }), wave('rest', zones)];

/** A run to the new revision that failed a minute ago. */
const failed = runOf({
  target: both(newRevision),
  previous: both(oldRevision),
  outcome: 'failed',
  failure: 'gate errors',
  failedMs: ago(minuteMs),
});
/** What became of it: every pod went back, while the StatefulSets still name the new revision. */
const rolledBack = runOf({
  id: 'run-2',
  kind: 'rollback',
  target: both(oldRevision),
  previous: both(newRevision),
  wave: 2,
  outcome: 'completed',
  completedMs: ago(minuteMs),
  restores: both(oldRevision),
  rolledBack: { revisions: both(newRevision), because: 'gate errors' },
});
/** As after a whole zone had moved: Kubernetes takes the revision that failed for the current one. */
const moved: StatefulSetOverrides = { status: { currentRevision: newRevision, updateRevision: newRevision } };

/** As after a whole zone had moved to a template that another one superseded, which then failed. */
const between: StatefulSetOverrides = { status: { currentRevision: 'rev-1b', updateRevision: newRevision } };

/** Every pod of a zone at the revision of before. */
const isBack: PodChanges = { 0: { revision: oldRevision }, 1: { revision: oldRevision }, 2: { revision: oldRevision } };

interface State {
  readonly run: RunState;
  readonly group?: GroupOverrides;
  readonly a?: StatefulSetOverrides;
  readonly b?: StatefulSetOverrides;
  readonly pods?: Readonly<Record<string, PodChanges>>;
  readonly ledger?: Partial<Ledger>;
  readonly intents?: Snapshot['intents'];
}

function question({ run, group: overrides = {}, a = {}, b = {}, pods = {}, ledger = {}, intents = [] }: State) {
  const rollout = { strategy: 'pinned' as const, onFailure: 'rollback' as const, waves: soaking, ...overrides.rollout };
  const of = group({ zones, ...overrides, rollout });
  const holding = { updateStrategy: 'RollingUpdate' as const, partition: holdingPartition };
  const statefulSets = [...outdatedSets(['a'], { ...holding, ...a }), ...outdatedSets(['b'], { ...holding, ...b })];
  const more: SnapshotOverrides = { groups: [of], statefulSets, ledgers: [ledgerOf({ run, ...ledger })], intents, ...podsIn(pods) };
  return { of, snapshot: snapshotOf(more) };
}

function decided(state: State): GroupDecision {
  const { of, snapshot } = question(state);
  return decideGroup(snapshot, of);
}

/** Pods that go, with what they come back at, such as `a-2 rev-1`. */
function going({ actions }: GroupDecision): readonly string[] {
  return actions.flatMap((action) => ('pod' in action ? [`${action.pod.replace('ingester-zone-', '')} ${action.pinTo ?? ''}`] : []));
}

function said(action: IntentView['action'], atMs: number, more: Partial<IntentView> = {}): IntentView {
  return intent({ action, requestedBy: { user: 'anna', groups: [], atMs }, ...more });
}

describe('a run of another zone after a rollback', () => {
  const stopsOf = ({ stops }: GroupDecision) => stops.filter(({ rule }) => rule === 'rolled-back');
  const was = 'the update revision is blocked, because it was rolled back: gate errors';

  it('does not say that the rolled-back revision is being rolled back', () => {
    const forward = decided({ run: rolledBack, b: { status: { updateRevision: 'rev-3' } } });
    expect(forward.run).toMatchObject({ kind: 'rollout', outcome: 'running', rolledBack: { revisions: { a: newRevision } } });
    expect(stopsOf(forward)).toMatchObject([{ fact: was, zones: ['a'], isBlocking: false }]);
    const { run } = forward;
    if (run === undefined) throw new Error('the test expected a run');
    const undo = decided({ run, b: { status: { updateRevision: oldRevision } }, pods: { b: { 2: { revision: 'rev-3' } } } });
    expect(undo.run).toMatchObject({ kind: 'rollback', outcome: 'running', rolledBack: { revisions: { a: newRevision } } });
    expect(stopsOf(undo)).toMatchObject([{ fact: was, isBlocking: false }]);
  });

  it('is recorded with its own kind and cause, and reads its gates', () => {
    const { run } = decided({ run: rolledBack, b: { status: { updateRevision: 'rev-3' } } });
    if (run === undefined) throw new Error('the test expected a run');
    const back = decided({ run, b: { status: { updateRevision: oldRevision } }, pods: { b: { 2: { revision: 'rev-3' } } } }).run;
    expect([back && recordedKind(back), back?.origin]).toEqual(['rollout', undefined]);
  });

  it('says so while pods still return', () => {
    const running = withFields(rolledBack, { wave: 1, outcome: 'running' });
    const fact = 'the update revision is blocked, because it is being rolled back: gate errors';
    expect(stopsOf(decided({ run: running, pods: { b: { 2: { revision: newRevision } } } }))).toMatchObject([{ fact }]);
    // Another template of zone b does not end the return of zone a.
    const more = decided({ run: running, b: { status: { updateRevision: 'rev-3' } }, pods: { a: { 2: { revision: newRevision } } } });
    expect(stopsOf(more)).toMatchObject([{ fact, zones: ['a'] }]);
  });
});

describe('a StatefulSet that is created again after a rollback', () => {
  it('keeps the block of its failed template, also before its controller observes it', () => {
    const unobserved = decided({ run: rolledBack, b: { status: { updateRevision: '', currentRevision: '' } } });
    expect(unobserved.run?.rolledBack?.revisions).toEqual(both(newRevision));
    const pods = { b: { ...isBack, 2: { revision: newRevision } } };
    const observed = decided({ run: unobserved.run ?? rolledBack, b: moved, pods });
    expect([observed.run?.rolledBack?.revisions, going(observed)]).toEqual([both(newRevision), [`b-2 ${oldRevision}`]]);
    // Another zone gets a template meanwhile.
    const other = decided({ run: rolledBack, a: { status: { updateRevision: 'rev-3' } }, b: { status: { updateRevision: '' } } });
    expect(other.run?.rolledBack?.revisions).toMatchObject({ b: newRevision });
  });
});

describe('a run that fails', () => {
  it('stands as failed until it has been told, then every pod goes back', () => {
    const fresh = decided({ run: withFields(failed, { failedMs: kitNowMs }), pods: { a: { 2: { revision: newRevision } } } });
    expect([fresh.run?.outcome, fresh.wakeAtMs]).toEqual(['failed', kitNowMs + rollbackDelayMs]);
    const back = decided({ run: failed, pods: { a: { 2: { revision: newRevision } } } });
    expect(going(back)).toEqual([`a-2 ${oldRevision}`]);
    expect(back.run).toMatchObject({
      kind: 'rollback',
      target: both(oldRevision),
      rolledBack: { revisions: both(newRevision), because: 'gate errors' },
    });
  });

  it.each<[string, Partial<Snapshot>]>([
    ['unread', { unread: [{ kind: 'StatefulSet', name: 'ingester-zone-b', unknown: 'forbidden' }] }],
    ['absent', {}],
  ])('waits for a read and for no time while a zone is %s', (_, unread) => {
    const { of, snapshot } = question({ run: failed, pods: { a: { 2: { revision: newRevision } } } });
    const statefulSets = snapshot.statefulSets.filter(({ name }) => name !== 'ingester-zone-b');
    const { run, warnings, wakeAtMs } = decideGroup({ ...snapshot, ...unread, statefulSets }, of);
    const [warning] = warnings.filter(({ rule }) => rule === 'rolled-back');
    expect([run?.outcome, warning?.outcome, warning?.earliestMs, wakeAtMs]).toEqual(['failed', 'unknown', undefined, undefined]);
  });

  it('goes back at once when a fast clock has dated the failure ahead', () => {
    const ahead = withFields(failed, { failedMs: kitNowMs + hourMs });
    expect(going(decided({ run: ahead, pods: { a: { 2: { revision: newRevision } } } }))).toEqual([`a-2 ${oldRevision}`]);
  });

  it.each([
    ['the group says pause', { group: { rollout: { onFailure: 'pause' } } }],
    ['another strategy replaces pods', { group: { rollout: { strategy: 'partition' } } }],
    ['it was going back itself', { run: { ...failed, kind: 'rollback' } }],
    ['a person ended it, also when the word is gone', { run: withFields(failed, { onFailure: 'pause' }) }],
    ['nobody knows what people said', { intents: { unknown: 'forbidden' } }],
  ] as const)('does not go back when %s', (_, more) => {
    const decision = decided({ run: failed, pods: { a: { 2: { revision: newRevision } } }, ...(more as Partial<State>) });
    expect([going(decision), decision.run?.outcome, decision.run?.rolledBack]).toEqual([[], 'failed', undefined]);
  });

  it('stops without another turn if its target is the revision of before, as in a group that was defined during a rollout', () => {
    const decision = decided({ run: withFields(failed, { previous: both(newRevision) }), pods: { a: { 2: { revision: newRevision } } } });
    expect([going(decision), decision.run?.outcome, decision.warnings, decision.wakeAtMs]).toEqual([[], 'failed', [], undefined]);
    expect(decision.stops.map(({ rule }) => rule)).toEqual(['run-failed']);
  });

  it('remembers what the person wanted who ended it', () => {
    const running = withFields(failed, { outcome: 'running' });
    const aborted = (rollback: boolean) =>
      decided({ run: running, intents: [said('abort', ago(1000), { runId: failed.id, rollback })] }).run;
    expect([aborted(true), aborted(false)]).toMatchObject([{ onFailure: 'rollback' }, { onFailure: 'pause' }]);
    expect(decided({ run: withFields(failed, { onFailure: 'rollback' }), group: { rollout: { onFailure: 'pause' } } }).run?.kind).toBe(
      'rollback',
    );
  });

  it('returns to the previous revision on request after every kind of failure, until a retry', () => {
    const aborted = (more: object, intents: readonly IntentView[] = []) => {
      const rollback = said('abort', ago(1000), { runId: failed.id, rollback: true, ...more });
      return decided({ run: withFields(failed, { onFailure: 'pause' }), intents: [rollback, ...intents] }).run;
    };
    const because = 'gate errors; rollback requested by anna (INC-441)';
    expect(aborted({ reason: 'INC-441' })).toMatchObject({ kind: 'rollback', rolledBack: { because }, origin: { cause: because } });
    expect(aborted({ rollback: false })?.outcome).toBe('failed');
    expect(aborted({ runId: 'another' })?.outcome).toBe('failed');
    expect(aborted({}, [said('retry', ago(500), { runId: failed.id })])).toMatchObject({ kind: 'rollout', outcome: 'running' });
    expect(decided({ run: failed, group: { rollout: { onFailure: 'pause' } } }).run?.outcome).toBe('failed');
  });

  it('counts each abort and each retry once, also if a fast clock dated the failure after the retry', () => {
    const request = (action: 'abort' | 'retry', name: string, atMs: number) => said(action, atMs, { name, runId: failed.id });
    const group: GroupOverrides = { rollout: { onFailure: 'pause' } };
    const [early, abort] = [request('retry', 'early', ago(hourMs)), request('abort', 'abort', ago(minuteMs))];
    const next = (run: RunState | undefined, intents: readonly IntentView[]): RunState => {
      const found = run && decided({ run, group, intents }).run;
      if (found === undefined) throw new Error('the test expected a run');
      return found;
    };
    const ended = next(withFields(failed, { outcome: 'running' }), [early, abort]);
    expect([ended.outcome, next(ended, [early, abort]).outcome]).toEqual(['failed', 'failed']);
    const retried = next(withFields(ended, { failedMs: kitNowMs + 20_000 }), [early, abort, request('retry', 'retry', ago(1000))]);
    expect([retried.outcome, next(retried, [early, abort]).outcome]).toEqual(['running', 'running']);
    const fast = withFields(retried, { retriedMs: kitNowMs + 20_000 });
    expect(next(fast, [abort, request('abort', 'again', ago(500))])).toMatchObject({ outcome: 'failed', answered: retried.answered });
  });

  it('passes no gate on its way back, for they may measure what failed', () => {
    const gates = [{ name: 'errors' }] as unknown as GroupDefinition['gates'];
    const waves = [wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: 0, gates: ['errors'] } }), wave('rest', zones)];
    const state: State = { run: failed, group: { gates, rollout: { waves } }, pods: { b: { 2: { revision: newRevision } } } };
    expect(going(decided(state))).toEqual([`b-2 ${oldRevision}`]);
  });
});

describe('a rollback that fails', () => {
  const fields: RunFields = { outcome: 'failed', failure: 'no pod became available for 5m', failedMs: ago(minuteMs), wave: 0 };
  const late = withFields(rolledBack, { ...fields, awaitsPods: true });
  const left = { 0: { revision: newRevision }, 1: { revision: newRevision } };
  const returned = (change: object): NonNullable<State['pods']> => ({ a: { ...left, 2: { revision: oldRevision, ...change } } });
  const available = returned({ readyChangedMs: ago(1000) });
  const applied: StatefulSetOverrides = { status: { updateRevision: oldRevision } };
  const created: StatefulSetOverrides = { status: { ...applied.status, currentRevision: newRevision } };
  const runAfter = (state: State): RunState => decided(state).run ?? failed;

  it('continues when its pod becomes available, and says so until then', () => {
    const down = decided({ run: late, pods: returned({ isReady: false }) });
    expect([down.run?.outcome, ...down.stops.map(({ rule }) => rule)]).toEqual(['failed', 'run-failed', 'rolled-back']);
    expect(down.stops[0]?.fact).toContain('available for 5m; it continues when the pods in flight are available');
    const next = decided({ run: late, pods: available });
    expect([next.run?.id, next.run?.outcome, going(next)]).toEqual([late.id, 'running', [`a-1 ${oldRevision}`]]);
    const { rolledBack: _rolledBack, ...undo } = late;
    expect(runAfter({ run: undo, pods: available, a: applied, b: applied })).toMatchObject({ id: late.id, outcome: 'running' });
  });

  it.each<[string, Partial<State>]>([
    ['its pods were available before', { pods: returned({ readyChangedMs: ago(hourMs) }) }],
    ['another pod is in flight', { pods: { ...available, b: { 2: { revision: oldRevision, isReady: false } } } }],
    ['it took too long', { run: withFields(rolledBack, fields) }],
    ['a person aborts it', { intents: [said('abort', ago(1000), { runId: late.id })] }],
    ['the requests are unknown', { intents: { unknown: 'forbidden' } }],
  ])('stays failed if %s', (_, more) => {
    expect(runAfter({ run: late, pods: available, ...more })).toMatchObject({ id: late.id, outcome: 'failed' });
  });

  it('returns the pods with another run once when every StatefulSet with such pods has the earlier template', () => {
    const pods = { a: left, b: left };
    const lost = withFields(rolledBack, { ...fields, failure: 'lost' });
    expect(runAfter({ run: lost, pods, a: applied })).toMatchObject({ id: lost.id, outcome: 'failed' });
    const next = runAfter({ pods, a: applied, b: applied, run: lost });
    expect(next).toMatchObject({ kind: 'rollback', outcome: 'running', target: both(oldRevision), from: both(newRevision) });
    expect(next.rolledBack?.revisions).toEqual({});
    const kept = runAfter({ pods, a: created, b: created, run: lost });
    expect(kept.rolledBack?.revisions).toEqual(both(newRevision));
    for (const run of [next, kept]) expect(runAfter({ pods, a: created, b: created, run: withFields(run, fields) }).id).toBe(run.id);
  });
});

describe('a revision that was rolled back', () => {
  const calm: State = { run: rolledBack };

  it('is not rolled out by anything but a person or another template', () => {
    expect([decided(calm).phase, going(decided(calm))]).toEqual(['RolledBack', []]);
    expect(decided(calm).warnings.map(({ rule }) => rule)).toEqual(['rolled-back', 'rolled-back']);
  });

  it('is advised to be retried only after its rollback, because a retry has no effect before', () => {
    const running = decided({ run: failed, pods: { a: { 2: { revision: newRevision } } } });
    const limits = [running, decided(calm)].map(({ run, warnings }) => [run?.kind, run?.outcome, warnings[0]?.rule, warnings[0]?.limit]);
    expect(limits).toEqual([
      ['rollback', 'running', 'rolled-back', 'another template'],
      ['rollback', 'completed', 'rolled-back', 'another template, or retry'],
    ]);
  });

  it('says that a zone returns while a pod has it, and then that the zone stays', () => {
    const pause = intent({ action: 'pause' });
    const held = decided({ run: failed, pods: { a: { 2: { revision: newRevision } } }, intents: [pause] });
    expect([held.run?.kind, going(held)]).toEqual(['rollback', []]);
    expect(held.warnings.map(({ fact }) => fact)).toEqual([
      'zone a returns to rev-1, because rev-2 failed: gate errors',
      'zone b stays at rev-1, because rev-2 failed: gate errors',
    ]);
  });

  it('stays out when a pod comes at it all the same', () => {
    const leaked: State = { run: rolledBack, a: moved, pods: { a: { ...isBack, 2: { revision: newRevision } } } };
    const next = decided(leaked);
    expect(going(next)).toEqual([`a-2 ${oldRevision}`]);
    expect(next.run).toMatchObject({ kind: 'rollback', target: both(oldRevision), rolledBack: { revisions: both(newRevision) } });
  });

  it('is what pods come at without the webhook where a whole zone had moved, until the template returns', () => {
    const restarts = (state: State) => decided(state).warnings.flatMap(({ rule, fact }) => (rule === 'restart-version' ? [fact] : []));
    expect(restarts({ run: rolledBack, a: moved })).toEqual([
      'while no webhook answers, new and restarted pods of zone a start at rev-2, which was rolled back; return the template in Git to rev-1, or run: kubectl rollout-group undo mimir/ingester --zone a --to-revision rev-1',
    ]);
    expect(restarts({ run: withFields(rolledBack, { outcome: 'running', wave: 0, completedMs: 0 }), a: moved })).toHaveLength(1);
    expect(restarts(calm)).toEqual([]);
    // Every pod of the zone ran a template that another template superseded, which then failed.
    expect(restarts({ run: rolledBack, a: between })).toEqual([
      'while no webhook answers, new and restarted pods of zone a start at rev-1b, not at rev-1; return the template in Git to rev-1, or run: kubectl rollout-group undo mimir/ingester --zone a --to-revision rev-1',
    ]);
    expect(restarts({ run: rolledBack, a: { status: { updateRevision: oldRevision } } })).toEqual([]);
  });

  it('stays out of the other zones when one of them has another template', () => {
    const third: State = { run: rolledBack, a: { status: { updateRevision: 'rev-3' } } };
    const next = decided(third);
    expect(next.run).toMatchObject({
      kind: 'rollout',
      target: { a: 'rev-3', b: oldRevision },
      rolledBack: { revisions: { b: newRevision } },
    });
    expect(going(next)).toEqual(['a-2 rev-3']);
  });

  it('is not the target of a zone that leaves the group during the rollback and returns', () => {
    const underWay = withFields(rolledBack, { outcome: 'running', wave: 0, completedMs: 0 });
    const updated = { a: updatedPods(), b: { 2: { revision: newRevision } } };
    const without = decided({ run: underWay, group: { zones: ['b'] }, pods: updated });
    expect(without.run).toMatchObject({ kind: 'rollback', target: { b: oldRevision }, rolledBack: { revisions: both(newRevision) } });
    if (without.run === undefined) throw new Error('the test expected a run');
    for (const run of [without.run, withFields(rolledBack, { target: { b: oldRevision } })]) {
      const back = decided({ run, pods: { a: updatedPods() } });
      expect(back.run).toMatchObject({ kind: 'rollback', target: both(oldRevision), rolledBack: { revisions: both(newRevision) } });
      expect(going(back)).toEqual([`a-2 ${oldRevision}`]);
    }
  });

  it('makes no rollback of a rollout that its zone rejoins', () => {
    const third: State = { run: rolledBack, a: { status: { updateRevision: 'rev-3' } } };
    const { run } = decided(third);
    if (run === undefined) throw new Error('the test expected a run');
    const left = withFields(run, { target: { a: 'rev-3' } });
    expect(decided({ ...third, run: left }).run).toMatchObject({
      kind: 'rollout',
      target: { a: 'rev-3', b: oldRevision },
      rolledBack: { revisions: { b: newRevision } },
    });
  });

  it('is free again after a return to the earlier template, unless Kubernetes still creates pods at it', () => {
    const returned = (currentRevision: string, rollback: RunState = rolledBack) => {
      const status = { currentRevision, updateRevision: oldRevision, updatedReplicas: 3 };
      return decided({ run: rollback, a: { status }, b: { status }, pods: { a: isBack, b: isBack } });
    };
    const { run, phase, stops } = returned(oldRevision);
    const completed = returned(oldRevision, withFields(rolledBack, { outcome: 'running', completedMs: 0 }));
    expect([phase, stops, run?.kind, run?.rolledBack?.revisions]).toEqual(['Done', [], 'rollback', {}]);
    expect(returned(newRevision).run?.rolledBack?.revisions).toEqual(both(newRevision));
    expect([completed.run?.outcome, completed.run?.rolledBack?.revisions]).toEqual(['completed', {}]);
    if (run === undefined) throw new Error('the test expected a run');
    expect(decided({ run }).run).toMatchObject({ kind: 'rollout', target: both(newRevision) });
    const retry = said('retry', ago(1000), { runId: run.id });
    expect(
      decided({ run, a: { status: { updateRevision: oldRevision } }, b: { status: { updateRevision: oldRevision } }, intents: [retry] }).run
        ?.id,
    ).toBe(run.id);
  });

  it('is skipped when the template after it fails, too', () => {
    const underWay = withFields(rolledBack, { outcome: 'running', wave: 0, completedMs: 0 });
    const third = both('rev-3');
    const asked = { status: { updateRevision: 'rev-3' } };
    const next = decided({ run: underWay, a: asked, b: asked });
    expect(next.run).toMatchObject({ kind: 'rollout', target: third, previous: both(oldRevision) });
  });

  it('is tried again on request after it was rolled back, and rolls back until then', () => {
    const retry = (atMs: number) => [said('retry', atMs, { runId: rolledBack.id })];
    expect(decided({ ...calm, intents: retry(ago(1000)) }).run).toMatchObject({
      kind: 'rollout',
      target: both(newRevision),
      origin: { cause: 'retried by anna' },
    });
    expect(decided({ ...calm, intents: retry(ago(2 * minuteMs)) }).run).toMatchObject({ kind: 'rollback' });
    const stuck = withFields(rolledBack, { outcome: 'failed', failure: 'late', failedMs: ago(minuteMs), wave: 0 });
    const on = decided({ run: stuck, intents: retry(ago(1000)), pods: { a: { 2: { revision: newRevision } } } });
    expect([going(on), on.run?.kind]).toEqual([[`a-2 ${oldRevision}`], 'rollback']);
  });

  it('counts no more under another strategy, which could not keep pods from it', () => {
    const other = decided({
      ...calm,
      group: { rollout: { strategy: 'onDelete' } },
      a: { updateStrategy: 'OnDelete' },
      b: { updateStrategy: 'OnDelete' },
    });
    expect(other.run).toMatchObject({ kind: 'rollout', target: both(newRevision) });
    expect(other.run?.rolledBack).toBeUndefined();
  });

  it('has no pod made at it, also of a new ordinal, though Kubernetes takes it for the current one', () => {
    const pod = newPod('mimir', {
      metadata: {
        name: 'ingester-zone-a-3',
        labels: { 'controller-revision-hash': newRevision, 'apps.kubernetes.io/pod-index': '3' },
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'ingester-zone-a', uid: 'u', controller: true }],
      },
      spec: { containers: [{ name: 'c', image: 'x:2' }] },
    });
    if (pod === undefined || isUnknown(pod)) throw new Error('the test expected a pod');
    const template = (image: string) => ({
      kind: 'template' as const,
      template: { metadata: {}, spec: { containers: [{ name: 'c', image }] } },
    });
    const revisions = new Map([[newRevision, template('x:2')] as const, [oldRevision, template('x:1')] as const]);
    const placed = (run: RunState, updateRevision = newRevision, uid = 'u') =>
      placementOf(pod, { ledger: ledgerOf({ run }), zone: 'a', seen: { uid, updateRevision }, revisions });
    expect(placed(rolledBack)).toMatchObject({ kind: 'pinned', to: oldRevision });
    expect(placed(failed)).toMatchObject({ kind: 'stays' });
    // The controller creates the pod at a template that the failed one superseded.
    const superseding = withFields(rolledBack, { rolledBack: { revisions: both('rev-3'), because: 'gate errors' } });
    expect(placed(superseding, 'rev-3')).toMatchObject({ kind: 'pinned', to: oldRevision });
    expect([placed(superseding, 'rev-4'), placed(superseding, 'rev-3', 'former')]).toEqual([{ kind: 'stays' }, { kind: 'stays' }]);
  });

  it('is not what a plan makes pods of new ordinals at either', () => {
    const lastOf = (run: RunState, a = moved) => {
      const { snapshot } = question({ ...calm, run, a, pods: { a: isBack } });
      const grown = afterwards(createWorld(snapshot, defaultAssumptions, 'p50'), {
        kind: 'setReplicas',
        namespace: 'mimir',
        statefulSet: 'ingester-zone-a',
        replicas: 4,
      });
      return podIn(grown, 'ingester-zone-a-3').revision;
    };
    expect([lastOf(calm.run), lastOf(calm.run, between), lastOf(failed)]).toEqual([oldRevision, oldRevision, newRevision]);
  });

  it.each([
    ['a lower partition', { strategy: 'RollingUpdate', partition: 0 }],
    ['OnDelete', { strategy: 'OnDelete' }],
  ] as const)('is guarded from %s', (_, change) => {
    const { snapshot } = question({ ...calm, a: moved, pods: { a: isBack } });
    const request: AdmissionRequest = {
      kind: 'update',
      namespace: 'mimir',
      statefulSet: 'ingester-zone-a',
      from: 3,
      to: 3,
      isTemplateChanged: false,
      via: 'patch',
      dryRun: false,
      ...change,
    };
    expect(judge(snapshot, request)).toMatchObject({ outcome: 'deny' });
  });

  it('has a copy of the revision it was rolled back to while the run is not over', () => {
    const template = { metadata: {}, spec: { containers: [] } };
    const revisions = zones.map((zone) => ({ namespace: 'mimir', statefulSet: `ingester-zone-${zone}`, name: oldRevision, template }));
    const { of, snapshot } = question({ run: withFields(failed, { outcome: 'running' }), a: moved, pods: { a: updatedPods() } });
    const copies = [`a ${oldRevision}`, `b ${oldRevision}`];
    expect(decideGroup({ ...snapshot, revisions }, of).pinned?.templates?.map(({ zone, revision }) => `${zone} ${revision}`)).toEqual(
      copies,
    );
    const after = question({ run: rolledBack });
    const { pinned } = decideGroup({ ...after.snapshot, revisions }, after.of);
    expect(pinned?.templates?.map(({ zone, revision }) => `${zone} ${revision}`)).toEqual(copies);
  });

  it('stays where the earlier revision was deleted with the StatefulSet, and the run fails', () => {
    const underWay = withFields(rolledBack, { outcome: 'running', wave: 0, completedMs: 0 });
    const { of, snapshot } = question({ run: underWay, a: moved, pods: { a: updatedPods() } });
    const missing = { namespace: 'mimir', statefulSet: 'ingester-zone-a', name: oldRevision, template: undefined };
    const unread = { ...missing, template: { unknown: 'forbidden' } };
    const decision = (isMissing: boolean) => decideGroup({ ...snapshot, revisions: [isMissing ? missing : unread] }, of);
    const failure = `zone a cannot return to ${oldRevision}: its ControllerRevision no longer exists. Apply the pod template of ${oldRevision} again`;
    expect([going(decision(true)), decision(true).phase, decision(true).run]).toMatchObject([[], 'Failed', { outcome: 'failed', failure }]);
    expect(decision(true).stops[0]?.fact).toBe(`the run failed: ${failure}`);
    expect(decision(false).run?.outcome).toBe('running');
    const templates = [{ zone: 'a', revision: oldRevision, template: { metadata: {}, spec: {} } }];
    const copied = question({ run: underWay, a: moved, pods: { a: updatedPods() }, ledger: { templates } });
    expect(going(decideGroup({ ...copied.snapshot, revisions: [missing] }, copied.of))).toEqual([`a-2 ${oldRevision}`]);
  });
});
