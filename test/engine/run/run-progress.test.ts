import { describe, expect, it } from 'vitest';
import type { GroupDecision } from '../../../engine/decision.ts';
import { stalledSinceMs } from '../../../engine/run/durations.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { completeRun, enterWave, failRun, passesCheckpoint, retryRun, revertProgress, startRun } from '../../../engine/run/states.ts';
import { waveProgress } from '../../../engine/run/waves.ts';
import { group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision } from '../../kit/objects.ts';
import { ago, contextWith, hourMs, minuteMs, outdatedSets, runOf } from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const definition = group();
const outdated = outdatedSets();
const withoutOptional = ({ openZone, lastDisruptionMs, waveAvailableMs, ...rest }: RunState) => rest;

describe('how far a wave is', () => {
  const context = (podChanges: SnapshotOverrides['podChanges'], of = definition) =>
    contextWith(of, { statefulSets: outdated, podChanges: podChanges ?? {} });
  const read = (progress: ReturnType<typeof waveProgress>) => [
    progress.zones.map(({ view, target, remaining }) => `${view.zone.name} ${target}-${remaining}`).join(', '),
    progress.isFilled,
    progress.isAvailable,
  ];

  it('is told per zone, and pods that are updated already count', () => {
    const leaked = context({ 'ingester-zone-b': { 1: { revision: newRevision } } });
    expect(read(waveProgress(leaked, wave('half', ['a', 'b'], { amount: { percent: 50 } })))).toEqual(['a 2-2, b 2-1', false, false]);
  });

  it('never asks for more pods than are outdated, which missing ones are not', () => {
    const missing = context({ 'ingester-zone-a': { 0: 'missing', 1: 'missing' } });
    expect(read(waveProgress(missing, wave('all', ['a'])))).toEqual(['a 3-1', false, false]);
  });

  it('is filled with the amount, and available when every zone of the group is whole', () => {
    const filled = { 'ingester-zone-a': { 2: { revision: newRevision } } };
    const canary = wave('canary', ['a'], { amount: { pods: 1 } });
    expect(read(waveProgress(context(filled), canary))).toEqual(['a 1-0', true, true]);
    expect(read(waveProgress(context({ ...filled, 'ingester-zone-c': { 0: { isReady: false } } }), canary))).toEqual([
      'a 1-0',
      true,
      false,
    ]);
  });

  it('passes over a zone that the group does not have', () => {
    expect(read(waveProgress(context({}), wave('all', ['x', 'a'])))).toEqual(['a 3-3', false, false]);
  });

  describe('with stuck pods', () => {
    /** A run that has replaced pods since it began. */
    const moved = runOf({ startedMs: ago(2 * hourMs), lastDisruptionMs: ago(hourMs) });
    const never = { isReady: false, readyChangedMs: ago(hourMs) };
    const all = wave('all', ['a']);

    it('has those of the open zone in it, also when the zone is not', () => {
      const stuck = context({ 'ingester-zone-b': { 0: never, 1: { isReady: false, readyChangedMs: ago(minuteMs) } } });
      const inB = runOf({ ...moved, openZone: 'b' });
      expect(read(waveProgress(stuck, all, inB))).toEqual(['b 0-1, a 3-3', false, false]);
      expect(read(waveProgress(stuck, wave('all', ['a', 'b'], { amount: { pods: 0 } }), inB))).toEqual(['a 0-0, b 0-1', false, false]);
      expect(read(waveProgress(stuck, all, moved))).toEqual(['a 3-3', false, false]);
    });

    it('has those in it that a run in between has left in any zone, and not those of what ran before', () => {
      const left = context({ 'ingester-zone-b': { 0: { ...never, revision: 'between' } }, 'ingester-zone-c': { 0: never } });
      expect(read(waveProgress(left, all, moved))).toEqual(['b 0-1, a 3-3', false, false]);
      expect(read(waveProgress(left, all, runOf({ ...moved, openZone: 'c' })))).toEqual(['c 0-1, b 0-1, a 3-3', false, false]);
    });

    it('has those of every zone in it that broke before the run, or before the run replaced a pod', () => {
      const older = { ...never, readyChangedMs: ago(3 * hourMs) };
      const stuck = context({ 'ingester-zone-b': { 0: older }, 'ingester-zone-c': { 0: never } });
      expect(read(waveProgress(stuck, all, moved))).toEqual(['b 0-1, a 3-3', false, false]);
      expect(read(waveProgress(stuck, all, runOf({ startedMs: ago(2 * hourMs) })))).toEqual(['b 0-1, c 0-1, a 3-3', false, false]);
    });
  });
});

describe('a run whose replacements were all refused', () => {
  const before = runOf({ openZone: 'a', lastDisruptionMs: ago(hourMs), waveStartedMs: ago(2 * hourMs) });

  it('is where it was', () => {
    const moved = { ...before, openZone: 'b', lastDisruptionMs: kitNowMs, inFlightSinceMs: kitNowMs };
    expect(revertProgress(moved, before)).toEqual(before);
  });

  it('keeps since when pods are down for another reason', () => {
    const moved = { ...before, lastDisruptionMs: kitNowMs, inFlightSinceMs: ago(minuteMs) };
    expect(revertProgress(moved, before)).toEqual({ ...before, inFlightSinceMs: ago(minuteMs) });
  });

  it('has not started the wave that it had reached, with any change of the clock', () => {
    const ahead = { ...before, lastDisruptionMs: kitNowMs + hourMs };
    const moved = { ...before, wave: 1, waveStartedMs: kitNowMs, openZone: 'b', lastDisruptionMs: kitNowMs };
    expect(revertProgress(moved, ahead)).toMatchObject({ wave: 1, lastDisruptionMs: kitNowMs - 1, openZone: 'a' });
  });

  it('is a run all the same when it is new, with its zone open and nothing replaced', () => {
    const moved = { ...runOf({ id: 'new', startedMs: kitNowMs, waveStartedMs: kitNowMs }), openZone: 'c', lastDisruptionMs: kitNowMs };
    expect(revertProgress(moved, undefined)).toEqual({ ...withoutOptional(moved), openZone: 'c' });
  });
});

describe('a checkpoint', () => {
  const change = { kind: 'rollout', target: { a: 'r2' }, previous: { a: 'r1' } } as const;
  const run = startRun({ change, group: 'mimir/ingester', nowMs: kitNowMs });
  const failed = failRun(run, 'no progress', kitNowMs);

  it('is the end of a wave, also of the last, and a failed run that continues', () => {
    expect(passesCheckpoint(run, enterWave(run, 1, kitNowMs))).toBe(true);
    expect(passesCheckpoint(run, completeRun(run, kitNowMs))).toBe(true);
    expect(passesCheckpoint(failed, retryRun(failed, kitNowMs))).toBe(true);
  });

  it('is no failure, no return to an earlier wave, and no other run', () => {
    const later = enterWave(run, 1, kitNowMs);
    expect([failed, run, undefined].map((after) => passesCheckpoint(run, after))).toEqual([false, false, false]);
    expect(passesCheckpoint(later, run)).toBe(false);
    expect(passesCheckpoint(failed, enterWave({ ...run, id: 'another' }, 1, kitNowMs))).toBe(false);
    expect(passesCheckpoint(undefined, later)).toBe(false);
  });
});

describe('a run in progress', () => {
  const { snapshot } = contextWith(definition, { statefulSets: outdated });
  const since = (fields: Parameters<typeof runOf>[0]) => {
    const decision: Pick<GroupDecision, 'steps' | 'run'> = { steps: [], run: runOf({ startedMs: ago(2 * hourMs), ...fields }) };
    return stalledSinceMs(snapshot, definition, decision);
  };

  it('has progressed when its wave begins, because the soak of the wave before ended then', () => {
    expect(since({ waveStartedMs: ago(minuteMs), lastDisruptionMs: ago(hourMs) })).toBe(ago(minuteMs));
    expect(since({ waveStartedMs: ago(2 * hourMs), lastDisruptionMs: ago(hourMs) })).toBe(ago(hourMs));
    expect(since({ isMovable: false })).toBeUndefined();
  });
});
