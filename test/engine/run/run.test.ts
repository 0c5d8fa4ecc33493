import { describe, expect, it } from 'vitest';
import { digestOfWaves } from '../../../engine/run/requests.ts';
import { advanceRun } from '../../../engine/run/run.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { failRun } from '../../../engine/run/states.ts';
import { group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, outdatedStatefulSet, statefulSet } from '../../kit/objects.ts';
import { ago, contextWith, hourMs, intent, ledgerOf, minuteMs, outdatedSets, runOf, updatedPods, withFields } from '../../kit/questions.ts';
import { podsIn, replacedPods, roll } from '../../kit/rolls.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const definition = group();
const three = group({ rollout: { waves: [wave('a', ['a'], { after: { soakMs: hourMs, gates: [] } }), wave('rest', ['b', 'c'])] } });
const outdated = outdatedSets();
const allUpdated = Object.fromEntries(['a', 'b', 'c'].map((name) => [`ingester-zone-${name}`, updatedPods()]));
const withoutOptional = ({ openZone, lastDisruptionMs, waveAvailableMs, ...rest }: RunState) => rest;

/** The run after a look at the group, with this one in the ledger. */
function advanced(run: RunState | undefined, overrides: SnapshotOverrides = { statefulSets: outdated }, of = definition) {
  const ledgers = run === undefined ? [] : [ledgerOf({ run })];
  return advanceRun(contextWith(of, { ledgers, ...overrides }));
}

function must<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('the test expected a value');
  return value;
}

const begun = {
  startedMs: kitNowMs,
  wave: 0,
  waveStartedMs: kitNowMs,
  movableMs: 0,
  movableAsOfMs: kitNowMs,
  isMovable: false,
  outcome: 'running',
} as const;
const revisions = (revision: string) => ({ a: revision, b: revision, c: revision });
const current = (zones: readonly string[]) => zones.map((zone) => statefulSet({ name: `ingester-zone-${zone}` }));
/** An undo from the revision to the new revision. */
const undone = (revision = 'rev-3'): SnapshotOverrides => ({
  statefulSets: outdated,
  intents: [intent({ action: 'undo', reason: 'bad', undone: ['a', 'b', 'c'].map((zone) => ({ zone, revision, to: newRevision })) })],
});
const anyId = expect.stringMatching(/^[0-9a-f]{10}$/);

describe('a first run', () => {
  it('does not exist while every pod is at its update revision', () => {
    expect(advanced(undefined, {})).toBeUndefined();
  });

  it('begins with the first outdated pod, from what most pods run, in the first wave', () => {
    const mixed = { 'ingester-zone-a': { 0: { revision: 'rev-0' } }, 'ingester-zone-b': { 0: { revision: newRevision } } };
    const change = { target: revisions(newRevision), previous: revisions(oldRevision), kept: { a: ['rev-0'] } };
    const first = advanced(undefined, { statefulSets: outdated, podChanges: mixed })?.run;
    expect(first).toEqual({ ...begun, id: anyId, kind: 'rollout', ...change });
  });

  it('takes the lower name of two revisions that as many pods run', () => {
    const halves = { 'ingester-zone-a': { 0: { revision: 'rev-0' }, 2: 'missing' } } as const;
    expect(advanced(undefined, { statefulSets: outdated, podChanges: halves })?.run.previous['a']).toBe('rev-0');
  });

  it('begins from what most available pods run, and has no earlier revision of a zone without one', () => {
    const never = { revision: 'rev-0', isReady: false, waitingReasons: ['CrashLoopBackOff'] };
    const previous = (pods: Readonly<Record<number, object>>) =>
      advanced(undefined, { statefulSets: outdated, podChanges: { 'ingester-zone-a': pods } })?.run.previous['a'];
    expect(previous({ 0: never, 1: never })).toBe(oldRevision);
    expect(previous({ 0: never, 1: never, 2: never })).toBeUndefined();
  });

  it('has an id of its group, target and instant alone', () => {
    const id = (overrides: SnapshotOverrides) => advanced(undefined, { statefulSets: outdated, ...overrides })?.run.id;
    expect(id({ statefulSets: outdated.toReversed() })).toBe(id({}));
    expect(id({ nowMs: kitNowMs + 1 })).not.toBe(id({}));
    expect(advanced(undefined, { statefulSets: outdatedSets(['a']) })?.run.id).not.toBe(id({}));
  });
});

describe('a pod that never becomes ready', () => {
  const never = { isReady: false, waitingReasons: ['CrashLoopBackOff'] };
  /** The pods that the first wave, of zone a, replaces next. */
  const repaired = (run: RunState, pods: Parameters<typeof podsIn>[0]): string => replacedPods(roll(three, run, podsIn(pods)));

  it('is repaired in a zone that the wave does not include, because nothing can go before it', () => {
    expect(repaired(runOf(), { c: { 0: never } })).toBe('c-0');
  });

  it('is repaired in one zone after the other, although each of these zones blocks the others', () => {
    expect(repaired(runOf(), { b: { 0: never }, c: { 0: never } })).toBe('b-0');
    const whole = { ...runOf(), lastDisruptionMs: ago(minuteMs) };
    expect(repaired(whole, { a: updatedPods(), b: { 0: { revision: newRevision } }, c: { 0: never } })).toBe('c-0');
  });

  it('is not repaired outside its wave if it may become ready by itself, or if it broke after a replacement', () => {
    expect(repaired(runOf(), { c: { 0: { isReady: false, readyChangedMs: ago(minuteMs) } } })).toBe('');
    const replaced = runOf({ startedMs: ago(hourMs), lastDisruptionMs: ago(minuteMs) });
    expect(repaired(replaced, { c: { 0: { ...never, readyChangedMs: ago(minuteMs) } } })).toBe('');
    expect(repaired(replaced, { c: { 0: never } })).toBe('c-0');
  });
});

describe('a run under way', () => {
  it('stays as it is while pods of its wave are outdated', () => {
    const run = runOf({ openZone: 'a', lastDisruptionMs: ago(minuteMs) });
    expect(advanced(run)?.run).toEqual(run);
  });

  it('waits from now on for what a clock that was fast has dated ahead', () => {
    const ahead = kitNowMs + 12 * minuteMs;
    const rest = { startedMs: ago(hourMs), openZone: 'a' };
    const run = runOf({ ...rest, waveStartedMs: ahead, lastDisruptionMs: ahead + 1000, inFlightSinceMs: ahead + 1000 });
    const now = { waveStartedMs: kitNowMs, lastDisruptionMs: kitNowMs, inFlightSinceMs: kitNowMs };
    const down = { statefulSets: outdated, podChanges: { 'ingester-zone-a': { 0: 'missing' } } } as const;
    expect(advanced(run, down)?.run).toEqual({ ...run, ...now });
    const unbegun = runOf({ ...rest, waveStartedMs: ahead, lastDisruptionMs: ahead - 1 });
    expect(advanced(unbegun)?.run).toEqual({ ...unbegun, waveStartedMs: kitNowMs, lastDisruptionMs: kitNowMs - 1 });
    const near = runOf({ ...rest, waveStartedMs: kitNowMs + 30_000 });
    expect(advanced(near)?.run).toEqual(near);
  });

  it('soaks from now on when the wave is said to be available since an instant that lies ahead', () => {
    const run = runOf({ waveAvailableMs: kitNowMs + 12 * minuteMs });
    const state = { statefulSets: outdated, podChanges: { 'ingester-zone-a': updatedPods() } };
    const next = advanced(run, state, three);
    expect(next?.run.waveAvailableMs).toBe(kitNowMs);
    expect(next?.after.map(({ earliestMs }) => earliestMs)).toContain(kitNowMs + hourMs);
  });

  it('keeps the target of a zone whose StatefulSet could not be read', () => {
    const gone = { groups: [], statefulSets: outdatedSets(['a', 'b']) };
    const run = runOf();
    expect(advanced(run, gone)?.run).toEqual(run);
  });

  it('keeps the target of a zone that has no update revision yet', () => {
    const blank = [...outdatedSets(['a', 'b']), statefulSet({ name: 'ingester-zone-c', status: { updateRevision: '' } })];
    expect(advanced(runOf(), { statefulSets: blank })?.run).toEqual(runOf());
  });

  it('is not superseded while a zone could not be read, because its outdated pods are unknown', () => {
    const pods = [{ namespace: 'mimir', statefulSet: 'ingester-zone-b', pods: { unknown: 'forbidden' } }];
    const run = runOf({ target: revisions('rev-1x') });
    expect(advanced(run, { statefulSets: outdated, pods })?.run).toEqual(run);
  });
});

describe('a new template', () => {
  it('supersedes the run: wave one again, from what ran before both', () => {
    const run = runOf({ target: revisions('rev-1x'), wave: 1, waveAvailableMs: ago(minuteMs), movableMs: hourMs });
    expect(advanced(run)?.run).toEqual({
      ...begun,
      id: anyId,
      kind: 'rollout',
      target: revisions(newRevision),
      previous: revisions(oldRevision),
      from: revisions(oldRevision),
      base: revisions('rev-1x'),
      joined: { id: run.id, startedMs: run.startedMs },
    });
  });

  it('continues one change while its zones get it one by one, also if its first zone has replaced a pod of an earlier template', () => {
    const sets = (...updated: readonly string[]) =>
      ['a', 'b', 'c'].map((zone) =>
        outdatedStatefulSet({
          name: `ingester-zone-${zone}`,
          status: { updateRevision: updated.includes(zone) ? newRevision : 'rev-1x' },
        }),
      );
    const undoneTemplate = runOf({ target: revisions('rev-1x') });
    const joined = { id: undoneTemplate.id, startedMs: undoneTemplate.startedMs };
    const first = advanced(undoneTemplate, { statefulSets: sets('a') })?.run;
    expect(first).toMatchObject({ joined, from: revisions(oldRevision), base: revisions('rev-1x') });
    const begun = { ...must(first), lastDisruptionMs: kitNowMs };
    const second = advanced(begun, { statefulSets: sets('a', 'b'), nowMs: kitNowMs + 1 })?.run;
    expect(second).toMatchObject({ joined, from: revisions(oldRevision), target: { ...revisions(newRevision), c: 'rev-1x' } });
    const third = advanced(second, { statefulSets: sets('a', 'b', 'c'), nowMs: kitNowMs + 2 })?.run;
    expect(third).toMatchObject({ joined, target: revisions(newRevision) });
    const other = advanced(third, { statefulSets: sets(), nowMs: kitNowMs + 3 })?.run;
    expect([other?.joined, other?.from]).toEqual([undefined, revisions(newRevision)]);
  });

  it('leaves the open zone open, and remembers when a pod was last replaced', () => {
    const run = runOf({ target: revisions('rev-1x'), openZone: 'b', lastDisruptionMs: ago(minuteMs) });
    const broken = { 'ingester-zone-b': { 2: { isReady: false } } };
    expect(advanced(run, { statefulSets: outdated, podChanges: broken })?.run).toMatchObject({
      openZone: 'b',
      lastDisruptionMs: ago(minuteMs),
    });
  });

  it('is a rollback when it is what ran before', () => {
    const run = runOf({ target: revisions('rev-3'), previous: revisions(newRevision) });
    expect(advanced(run)?.run).toMatchObject({ kind: 'rollback', target: revisions(newRevision), previous: revisions(newRevision) });
  });

  it('is no rollback while another zone still rolls to its new template, and is one when that zone returns too', () => {
    const sets = (...back: readonly string[]) =>
      ['a', 'b', 'c'].map((zone) =>
        outdatedStatefulSet({ name: `ingester-zone-${zone}`, status: { updateRevision: back.includes(zone) ? oldRevision : newRevision } }),
      );
    const run = runOf({ lastDisruptionMs: ago(minuteMs) });
    const first = must(advanced(run, { statefulSets: sets('a') })?.run);
    expect(first).toMatchObject({
      kind: 'rollout',
      target: { ...revisions(newRevision), a: oldRevision },
      previous: revisions(oldRevision),
    });
    const second = must(advanced(first, { statefulSets: sets('a', 'b'), nowMs: kitNowMs + 1 })?.run);
    expect(second).toMatchObject({ kind: 'rollout', joined: { id: first.id }, from: revisions(newRevision) });
    const third = advanced(second, {
      statefulSets: sets('a', 'b', 'c'),
      podChanges: { 'ingester-zone-a': { 0: { revision: newRevision } } },
    })?.run;
    expect(third).toMatchObject({
      kind: 'rollback',
      joined: { id: first.id },
      target: revisions(oldRevision),
      from: revisions(newRevision),
    });
  });

  it('continues no failed run while another zone with outdated pods has the failed template', () => {
    const sets = (...back: readonly string[]) =>
      ['a', 'b', 'c'].map((zone) =>
        outdatedStatefulSet({ name: `ingester-zone-${zone}`, status: { updateRevision: back.includes(zone) ? oldRevision : newRevision } }),
      );
    const failed = runOf({ outcome: 'failed', failedMs: ago(minuteMs), failure: 'aborted by anna', onFailure: 'pause' });
    const first = must(advanced(failed, { statefulSets: sets('a') })?.run);
    expect(first).toMatchObject({ outcome: 'failed', id: failed.id });
    const broken = { 'ingester-zone-a': { 0: { revision: newRevision } } };
    const all = advanced(first, { statefulSets: sets('a', 'b', 'c'), podChanges: broken, nowMs: kitNowMs + 1 })?.run;
    expect(all).toMatchObject({ outcome: 'running', kind: 'rollback', target: revisions(oldRevision) });
  });

  it('names the undo that wrote it, and no undo of another revision', () => {
    const run = runOf({ target: revisions('rev-3'), previous: revisions(newRevision) });
    expect(advanced(run, undone())?.run.origin).toEqual({ isUndo: true, cause: expect.stringMatching(/^undo by .* \(bad\)$/) });
    expect(advanced(run, undone('rev-4'))?.run.origin).toBeUndefined();
    expect(advanced(advanced(run)?.run, undone())?.run.origin).toEqual({
      isUndo: true,
      cause: expect.stringMatching(/^undo by .* \(bad\)$/),
    });
  });

  it('is a rollback also after the run is complete, and the completed template is then the previous one', () => {
    const run = runOf({ target: revisions('rev-3'), previous: revisions(newRevision), outcome: 'completed', wave: 1 });
    const at = { 2: { revision: 'rev-3' } };
    const back = { kind: 'rollback', target: revisions(newRevision), previous: revisions('rev-3') };
    expect(advanced(run, { statefulSets: outdated, ...podsIn({ a: at, b: at, c: at }) })?.run).toMatchObject(back);
  });

  it('is no rollback when it goes forth again after one, since that template has failed once', () => {
    const run = runOf({ kind: 'rollback', target: revisions('rev-3'), previous: revisions(newRevision), outcome: 'completed' });
    expect(advanced(run)?.run).toMatchObject({ kind: 'rollout' });
  });

  it.each(['running', 'completed'] as const)(
    'is a rollback zone by zone, as manifests are written one after the other, when the run is %s',
    (outcome) => {
      const first = { a: newRevision, b: 'rev-3', c: 'rev-3' };
      const run = runOf({ kind: 'rollback', target: first, previous: revisions('rev-3'), restores: revisions(newRevision), outcome });
      expect(advanced(run)?.run).toMatchObject({ kind: 'rollback', restores: revisions(newRevision) });
      expect(advanced({ ...run, restores: revisions('rev-0') })?.run).toMatchObject({ kind: 'rollout' });
    },
  );

  it('is no rollback when one of the zones goes somewhere else', () => {
    const run = runOf({ target: revisions('rev-3'), previous: { ...revisions(newRevision), b: 'rev-0' } });
    expect(advanced(run)?.run).toMatchObject({ kind: 'rollout' });
  });

  it('that every pod runs already is a run that completes at once', () => {
    const run = runOf({ openZone: 'a', outcome: 'failed', failure: 'gate errors', failedMs: ago(minuteMs) });
    const next = advanced(run, {})?.run;
    expect(next).toMatchObject({ target: revisions(oldRevision), wave: 1, outcome: 'completed', completedMs: kitNowMs });
    expect(next?.id).not.toBe(run.id);
  });

  it('that every pod runs already completes only when every pod is available and every spec is observed', () => {
    const run = runOf({ lastDisruptionMs: ago(minuteMs) });
    const down = advanced(run, { podChanges: { 'ingester-zone-a': { 0: 'missing' } } });
    expect([down?.run.outcome, down?.progress?.isAvailable]).toEqual(['running', false]);
    const stale = advanced(run, {
      statefulSets: [statefulSet({ name: 'ingester-zone-a', status: { observedGeneration: 0 } }), ...current(['b', 'c'])],
    });
    expect([stale?.run.outcome, stale?.after.map(({ rule }) => rule)]).toEqual(['running', ['view-complete']]);
    expect(advanced(stale?.run, {})?.run).toMatchObject({ id: stale?.run.id, outcome: 'completed' });
  });
});

describe('a zone that leaves or joins the group', () => {
  const without = group({ zones: definition.zones.filter(({ name }) => name !== 'c') });
  const two = { a: newRevision, b: newRevision };

  it('leaves the run of the other zones, whose waves start over, with its requests', () => {
    const run = runOf({ wave: 1, openZone: 'c', waveAvailableMs: ago(minuteMs) });
    const left = advanced(run, { statefulSets: outdatedSets(['a', 'b']) }, without)?.run;
    expect(left).toEqual({ ...run, target: two, wave: 0, waveStartedMs: kitNowMs, openZone: undefined, waveAvailableMs: undefined });
    expect(advanced(withFields(run, { openZone: 'b' }), { statefulSets: outdatedSets(['a', 'b']) }, without)?.run.openZone).toBe('b');
  });

  it('joins with its earlier template, which makes no rollback of the run', () => {
    const run = runOf({ target: two, previous: revisions(oldRevision), lastDisruptionMs: ago(minuteMs) });
    const joined = advanced(run, { statefulSets: outdatedSets(['a', 'b']) })?.run;
    expect(joined).toMatchObject({ kind: 'rollout', target: { ...two, c: oldRevision } });
  });

  it('lets a failed run fail, so that an abort still counts', () => {
    const failed = runOf({ outcome: 'failed', failure: 'aborted by anna', failedMs: ago(minuteMs) });
    const left = must(advanced(failed, { statefulSets: outdatedSets(['a', 'b']) }, without)?.run);
    expect(left).toMatchObject({ id: failed.id, outcome: 'failed', failure: 'aborted by anna', target: two });
    expect(advanced(left)?.run).toMatchObject({ id: failed.id, outcome: 'failed', target: revisions(newRevision) });
  });

  it('changes nothing else of a completed run', () => {
    const over = runOf({ outcome: 'completed', wave: 1 });
    expect(advanced(over, { statefulSets: outdatedSets(['a', 'b']), podChanges: allUpdated }, without)?.run).toEqual({
      ...over,
      target: two,
    });
  });

  it('keeps the promotion of a soak of the run', () => {
    const of = group({ ...without, rollout: { waves: [wave('a', ['a'], { after: { soakMs: hourMs, gates: [] } }), wave('b', ['b'])] } });
    const requestedBy = { user: 'anna', groups: [], atMs: ago(minuteMs) };
    const intents = [intent({ action: 'promote', wave: 'a', runId: 'run-1', requestedBy })];
    const seen = { statefulSets: outdatedSets(['a', 'b']), podChanges: { 'ingester-zone-a': updatedPods() } };
    expect(advanced(runOf(), { ...seen, intents }, of)?.run.wave).toBe(1);
    expect(advanced(runOf(), seen, of)?.run.wave).toBe(0);
  });
});

describe('a wave', () => {
  const updatedA = { statefulSets: outdated, podChanges: { 'ingester-zone-a': updatedPods() } };

  it('that all pods of are available begins to soak', () => {
    expect(advanced(runOf({ openZone: 'a' }), updatedA, three)).toMatchObject({
      run: withoutOptional({ ...runOf(), waveAvailableMs: kitNowMs }),
      after: [{ rule: 'soak', outcome: 'wait', earliestMs: kitNowMs + hourMs }],
    });
    expect(advanced(runOf({ openZone: 'a' }), updatedA, three)?.run).toEqual(runOf({ waveAvailableMs: kitNowMs }));
  });

  it('goes on soaking from when it began', () => {
    expect(advanced(runOf({ waveAvailableMs: ago(minuteMs) }), updatedA, three)?.run.waveAvailableMs).toBe(ago(minuteMs));
  });

  it('soaks from the beginning when a pod falls back, of whichever zone', () => {
    const fallen = {
      ...updatedA,
      podChanges: { ...updatedA.podChanges, 'ingester-zone-c': { 1: { isReady: false, readyChangedMs: kitNowMs } } },
    };
    const rolled = { lastDisruptionMs: ago(40 * minuteMs) };
    expect(advanced(runOf({ ...rolled, waveAvailableMs: ago(30 * minuteMs) }), fallen, three)?.run).toEqual(runOf(rolled));
  });

  it('that is over makes room for the next', () => {
    const next = advanced(runOf({ waveAvailableMs: ago(hourMs) }), updatedA, three);
    expect(next?.progress?.wave.name).toBe('rest');
    expect(next?.run).toEqual(runOf({ wave: 1, waveStartedMs: kitNowMs, waves: digestOfWaves(three) }));
  });

  it('that adds nothing is over at once', () => {
    const empty = group({ rollout: { waves: [wave('none', ['a'], { amount: { pods: 0 } }), wave('rest', ['a', 'b', 'c'])] } });
    expect(advanced(runOf(), { statefulSets: outdated }, empty)?.run.wave).toBe(1);
  });

  it('is not over while a zone of it could not be read', () => {
    const pods = [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }];
    expect(advanced(runOf(), { statefulSets: outdated, pods }, three)?.run.wave).toBe(0);
  });

  it('leaves its zone open until the zone is whole and has its amount', () => {
    const half = group({ rollout: { waves: [wave('half', ['a'], { amount: { pods: 2 } }), wave('rest', ['a', 'b', 'c'])] } });
    const openAfter = (podChanges: SnapshotOverrides['podChanges']) =>
      advanced(runOf({ openZone: 'a' }), { statefulSets: outdated, podChanges: podChanges ?? {} }, half)?.run.openZone;
    expect(openAfter({ 'ingester-zone-a': { 2: { revision: newRevision } } })).toBe('a');
    expect(openAfter({ 'ingester-zone-a': { 1: { revision: newRevision }, 2: { revision: newRevision, isReady: false } } })).toBe('a');
    expect(
      openAfter({ 'ingester-zone-a': { 1: { revision: newRevision }, 2: { revision: newRevision } }, 'ingester-zone-b': { 1: 'missing' } }),
    ).toBe(undefined);
  });
});

describe('the last wave', () => {
  it('completes the run, at this instant', () => {
    const run = runOf({ openZone: 'c', lastDisruptionMs: ago(minuteMs), waveAvailableMs: ago(minuteMs) });
    const everyone = { statefulSets: outdated, podChanges: allUpdated };
    expect(advanced(run, everyone)).toEqual({
      run: {
        ...runOf({ lastDisruptionMs: ago(minuteMs), wave: 1, waveStartedMs: kitNowMs }),
        outcome: 'completed',
        completedMs: kitNowMs,
      },
      after: [],
      observations: [],
      wantedReadings: [],
    });
  });

  it('is not the end while an earlier one has an outdated pod again: that one is done again, in the same run', () => {
    const waves = [wave('a', ['a']), wave('b', ['b']), wave('c', ['c'])];
    const run = runOf({ wave: 2, waveStartedMs: ago(minuteMs), lastDisruptionMs: kitNowMs });
    const leaked = { ...allUpdated, 'ingester-zone-b': { ...updatedPods(), 1: { revision: oldRevision } } };
    const ordered = group({ rollout: { waves } });
    const again = advanced(run, { statefulSets: outdated, podChanges: leaked }, ordered);
    const entered = { wave: 1, waveStartedMs: kitNowMs, waves: digestOfWaves(ordered), lastDisruptionMs: kitNowMs - 1 };
    expect(again?.run).toEqual({ ...runOf(entered), outcome: 'running' });
    expect(again?.progress?.zones.map(({ view, remaining }) => [view.zone.name, remaining])).toEqual([['b', 1]]);
  });

  it('is not the end when policy has fewer waves than before: the run goes on in the first that is not done', () => {
    const run = runOf({ wave: 3, waveStartedMs: ago(hourMs) });
    expect(advanced(run)?.run).toMatchObject({ id: 'run-1', outcome: 'running', wave: 0, waveStartedMs: kitNowMs });
    expect(advanced(run, { statefulSets: outdated, podChanges: allUpdated })?.run).toMatchObject({ id: 'run-1', outcome: 'completed' });
  });

  it('is the end when the waves leave pods old', () => {
    const waves = [wave('most', ['a', 'b']), wave('some', ['c'], { amount: { pods: 1 } })];
    const run = runOf({ wave: 1, waveStartedMs: ago(minuteMs) });
    const podChanges = { ...allUpdated, 'ingester-zone-c': { ...updatedPods(), 1: { revision: oldRevision } } };
    expect(advanced(run, { statefulSets: outdated, podChanges }, group({ rollout: { waves } }))?.run.outcome).toBe('completed');
  });

  it('leaves the completed run alone afterwards', () => {
    const run = runOf({ outcome: 'completed', wave: 1, completedMs: ago(hourMs) });
    expect(advanced(run, { statefulSets: outdated, podChanges: allUpdated })?.run).toEqual(run);
  });

  it('is asked again, as a new run, when an old pod comes back', () => {
    const run = runOf({ outcome: 'completed', wave: 1, completedMs: ago(hourMs), lastDisruptionMs: ago(hourMs) });
    const leaked = { ...allUpdated, 'ingester-zone-b': { ...updatedPods(), 1: { revision: oldRevision } } };
    expect(advanced(run, { statefulSets: outdated, podChanges: leaked })?.run).toEqual({
      ...begun,
      ...{ id: anyId, kind: 'rollout', target: revisions(newRevision), previous: revisions(oldRevision), lastDisruptionMs: ago(hourMs) },
      kept: { a: [newRevision], b: [newRevision], c: [newRevision] },
    });
  });
});

describe('a failed run', () => {
  const failed = runOf({
    outcome: 'failed',
    failure: 'gate errors',
    failedMs: ago(10 * minuteMs),
    waveAvailableMs: ago(hourMs),
    movableMs: hourMs,
  });
  const updatedA = { statefulSets: outdated, podChanges: { 'ingester-zone-a': updatedPods() } };
  const retry = (atMs: number) => intent({ action: 'retry', requestedBy: { user: 'kim', groups: [], atMs } });

  it('is what it was, with its failure and the instant', () => {
    expect(failRun(runOf(), 'gate errors', kitNowMs)).toEqual(runOf({ outcome: 'failed', failure: 'gate errors', failedMs: kitNowMs }));
  });

  it('stays failed, and in its wave, also when everything is well again', () => {
    expect(advanced(failed, updatedA, three)?.run).toEqual(failed);
  });

  it('goes on when a person asks to, with soak and deadlines from now on', () => {
    expect(advanced(failed, { ...updatedA, intents: [retry(ago(minuteMs))] }, three)?.run).toEqual({
      ...withFields(failed, { outcome: 'running' }),
      waveAvailableMs: kitNowMs,
      retriedMs: kitNowMs,
      movableMs: 0,
      movableAsOfMs: kitNowMs,
      answered: [expect.any(String)],
    });
  });

  it('returns to a canary wave whose pods came back at the earlier revision', () => {
    const inRest = { ...failed, wave: 1, waveStartedMs: ago(20 * minuteMs) };
    const asked = { intents: [retry(ago(minuteMs))] };
    expect(advanced(inRest, { statefulSets: outdated, ...asked }, three)?.run).toMatchObject({ outcome: 'running', wave: 0 });
    expect(advanced(inRest, { ...updatedA, ...asked }, three)?.run).toMatchObject({ outcome: 'running', wave: 1 });
  });

  it('ends as failed if an abort is newer than the retry', () => {
    const abort = (atMs: number) => ({ ...retry(atMs), name: 'abort', action: 'abort' as const, runId: failed.id });
    const both = (abortMs: number) => ({ ...updatedA, intents: [abort(abortMs), retry(ago(2 * minuteMs))] });
    const outcome = (abortMs: number) => advanced(failed, both(abortMs), three)?.run.outcome;
    expect([outcome(ago(3 * minuteMs)), outcome(ago(minuteMs))]).toEqual(['running', 'failed']);
  });

  it.each([
    ['asked before it failed', [retry(ago(10 * minuteMs))]],
    ['asked without a name', [{ ...retry(ago(minuteMs)), requestedBy: undefined }].map(({ requestedBy: _none, ...rest }) => rest)],
    ['asked for something else', [{ ...retry(ago(minuteMs)), action: 'approve' as const }]],
    ['asked, but for another group', [{ ...retry(ago(minuteMs)), group: 'store-gateway' }]],
    ['asked, but nobody can read it', { unknown: 'forbidden' }],
  ])('stays failed when a person %s', (_name, intents) => {
    expect(advanced(failed, { ...updatedA, intents }, three)?.run.outcome).toBe('failed');
  });
});
