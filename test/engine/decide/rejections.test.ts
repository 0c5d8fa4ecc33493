// A rejection of a wave: the verb refuses exactly the rejections that stop nothing.
import { describe, expect, it } from 'vitest';
import { contextOf } from '../../../engine/context.ts';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { effectOfAnswer } from '../../../engine/run/effects.ts';
import { digestOfWaves } from '../../../engine/run/requests.ts';
import type { RunningRun } from '../../../engine/run/run-state.ts';
import { group, wave } from '../../kit/groups.ts';
import { ago, hourMs, intent, ledgerOf, minuteMs, outdatedSets, runOf, updatedPods } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const approval = { count: 1, from: ['oncall'] };
const definition = group({
  zones: ['a', 'b', 'c'],
  rollout: {
    waves: [
      wave('first', ['a'], { before: { approval, gates: [] } }),
      wave('second', ['b'], { after: { approval, soakMs: 0, gates: [] } }),
      wave('third', ['c'], { before: { approval, gates: [] } }),
    ],
  },
});
const waves = digestOfWaves(definition);
const started = { waveStartedMs: ago(10 * minuteMs), lastDisruptionMs: ago(5 * minuteMs), waves };

/** What stops the group because of a rejection that was made before the last replacement, and why the verb would refuse it. */
function rejecting(name: string, run: Partial<RunningRun>, updated: readonly string[] = []) {
  const rejection = intent({ name: 'no', action: 'reject', wave: name, runId: 'run-1' });
  const requestedBy = { user: 'kim', groups: ['oncall'], atMs: ago(7 * minuteMs) };
  const snapshot = snapshotOf({
    groups: [definition],
    statefulSets: outdatedSets(),
    podChanges: Object.fromEntries(updated.map((zone) => [`ingester-zone-${zone}`, updatedPods()])),
    ledgers: [ledgerOf({ run: runOf(run) })],
    intents: [{ ...rejection, requestedBy }],
  });
  const decision = decideGroup(snapshot, definition);
  const isStopped = [...decision.stops, ...decision.waits].some(({ source }) => source?.object === 'RolloutIntent mimir/no');
  const [rejected] = definition.rollout.waves.filter((one) => one.name === name);
  const context = contextOf(snapshot, definition);
  const why = rejected && context.view.ledger.run && effectOfAnswer(context, context.view.ledger.run, rejected, 'reject').why;
  return { isStopped, why, zones: decision.stops.find(({ rule }) => rule === 'approval')?.zones };
}

const previous = { a: 'rev-1', b: 'rev-1', c: 'rev-1' };

describe('a rejection', () => {
  it.each<[string, string, Partial<RunningRun>, readonly string[]]>([
    ['of a wave that has not started', 'first', {}, []],
    [
      'of a wave that has not started in a run that replaced pods',
      'third',
      { ...started, wave: 2, waveStartedMs: ago(minuteMs) },
      ['a', 'b'],
    ],
    ['of a later wave', 'third', started, []],
    ['of the end of a later wave', 'second', started, []],
    ['of the end of a wave that replaces pods', 'second', { ...started, wave: 1 }, ['a']],
    ['of the end of a wave whose pods are replaced', 'second', { ...started, wave: 1, waveAvailableMs: ago(minuteMs) }, ['a', 'b']],
    ['of a started wave, if the waves changed since', 'first', { ...started, waves: 'older' }, []],
  ])('%s stops the run', (_name, wanted, run, updated) => {
    expect(rejecting(wanted, run, updated)).toMatchObject({ isStopped: true, why: undefined });
  });

  it('of the next wave stops each zone of the wave, not only the zone of the step', () => {
    const rest = wave('rest', ['b', 'c'], { before: { approval, gates: [] } });
    const halves = group({ zones: ['a', 'b', 'c'], rollout: { waves: [wave('first', ['a']), rest] } });
    const rejection = intent({ name: 'no', action: 'reject', wave: 'rest', runId: 'run-1' });
    const snapshot = snapshotOf({
      groups: [halves],
      statefulSets: outdatedSets(),
      podChanges: { 'ingester-zone-a': updatedPods() },
      ledgers: [ledgerOf({ run: runOf({ ...started, wave: 1, waveStartedMs: ago(minuteMs), waves: digestOfWaves(halves) }) })],
      intents: [{ ...rejection, requestedBy: { user: 'kim', groups: ['oncall'], atMs: ago(7 * minuteMs) } }],
    });
    const { stops, steps } = decideGroup(snapshot, halves);
    expect(steps.map(({ zone }) => zone)).toEqual(['b']);
    expect(stops.map(({ rule, zones }) => ({ rule, zones }))).toEqual([{ rule: 'approval', zones: ['b', 'c'] }]);
  });

  it.each([
    ['first', {}, [], ['a', 'b', 'c']],
    ['third', started, [], ['c']],
  ] as const)('of wave %s also stops the zones of later waves', (name, run, updated, zones) => {
    expect(rejecting(name, run, updated).zones).toEqual(zones);
  });

  it.each<[string, string, Partial<RunningRun>, readonly string[], string]>([
    ['of a started wave', 'first', started, [], 'wave first has already started'],
    ['of a started last wave', 'third', { ...started, wave: 2 }, ['a', 'b'], 'wave third has already started'],
    ['of an earlier wave', 'first', { ...started, wave: 1 }, ['a'], 'wave first is over; the run is in wave second'],
    [
      'in a rollback that skips approvals',
      'third',
      { kind: 'rollback', startedMs: ago(hourMs), previous },
      [],
      'a return to the previous template needs no approval (skipOnRollback)',
    ],
  ])('%s has no effect and is denied', (_name, wanted, run, updated, why) => {
    expect(rejecting(wanted, run, updated)).toMatchObject({ isStopped: false, why });
  });
});
