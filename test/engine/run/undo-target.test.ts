import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { countRevisions, revisionsOfUndo } from '../../../engine/run/revisions.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { group, wave } from '../../kit/groups.ts';
import { ago, ledgerOf, minuteMs, outdatedSets, runOf } from '../../kit/questions.ts';
import { podsIn } from '../../kit/rolls.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

type Zones = Readonly<Record<string, string>>;
const in3 = (a: string, b = a, c = a): Zones => ({ a, b, c });
const completed = { outcome: 'completed', completedMs: ago(minuteMs) } as const;
const run = (target: Zones, previous: Zones, more: Parameters<typeof runOf>[0] = {}): RunState => runOf({ target, previous, ...more });

interface DecidedState {
  readonly templates: Zones;
  readonly pods: Parameters<typeof podsIn>[0];
  readonly waves: ReturnType<typeof wave>[];
}

function restored(known: RunState | undefined, templates: Zones, pods: Zones = {}): Zones {
  const zones = Object.entries(templates).map(([zone, updateRevision]) => ({
    zone,
    updateRevision,
    pods: countRevisions(pods[zone] === undefined ? [] : [{ revision: pods[zone] }, { revision: updateRevision }]),
  }));
  return Object.fromEntries([...revisionsOfUndo(known, zones)].map(([zone, { to }]) => [zone, to]));
}

describe('an undo of the present templates restores', () => {
  const rolledBack = { revisions: in3('r1'), because: 'the run failed' };
  const back = { kind: 'rollback', restores: in3('r0'), rolledBack } as const;

  const one = run(in3('r1'), in3('r0'), completed);
  const undoneB = run(in3('r1', 'r0', 'r1'), in3('r1'), { kind: 'rollback', restores: in3('r0'), ...completed });
  const undoneAB = run(in3('r0', 'r0', 'r1'), in3('r1', 'r0', 'r1'), { kind: 'rollback', restores: in3('r0'), ...completed });

  it.each<[string, RunState | undefined, Zones, Zones, Zones?]>([
    ['what the run replaced, if the run rolls out the templates', run(in3('r1'), in3('r0')), in3('r1'), in3('r0')],
    ['the same after the run is completed', run(in3('r1'), in3('r0'), completed), in3('r1'), in3('r0')],
    ['what a completed run rolled out, if no run knows the templates yet', run(in3('r1'), in3('r0'), completed), in3('r2'), in3('r1')],
    ['only the changed zone, if no run knows its template yet', run(in3('r1'), in3('r0'), completed), in3('r2', 'r1', 'r1'), in3('r1')],
    ['what an unfinished run replaced, if no run knows the templates yet', run(in3('r1'), in3('r0')), in3('r2'), in3('r0')],
    ['what pods run after a rollback', run(in3('r0'), in3('r1'), { ...back, ...completed }), in3('r1'), in3('r0')],
    ['what pods run during a rollback', run(in3('r0'), in3('r1'), back), in3('r1'), in3('r0')],
    ['what pods run after a rollback and another template', run(in3('r0'), in3('r1'), { ...back, ...completed }), in3('r2'), in3('r0')],
    [
      'no failed template in a zone that has the restored one',
      run(in3('r0'), in3('r1'), { ...back, ...completed }),
      in3('r1', 'r0', 'r1'),
      in3('r0'),
    ],
    [
      'no failed template after every zone got the restored one',
      run(in3('r0'), in3('r1'), { ...back, rolledBack: { ...rolledBack, revisions: {} }, ...completed }),
      in3('r0'),
      in3('r0'),
    ],
    ['the other zones too, after the undo of one zone', undoneB, { ...in3('r1'), b: 'r0' }, { a: 'r0', b: 'r1', c: 'r0' }],
    ['the other zones too, if no run knows the undo of one zone yet', one, { ...in3('r1'), b: 'r0' }, { a: 'r0', b: 'r1', c: 'r0' }],
    ['the last zone too, after the undos of two zones', undoneAB, in3('r0', 'r0', 'r1'), in3('r1', 'r0', 'r0')],
    [
      'the undone templates after an undo of all zones',
      run(in3('r0'), in3('r1'), { kind: 'rollback', restores: in3('r0') }),
      in3('r0'),
      in3('r1'),
    ],
    ['the undone templates, if no run knows the undo of all zones yet', one, in3('r0'), in3('r1')],
    ['only the changed zone, after its new template', run(in3('r1', 'r2', 'r1'), in3('r1'), completed), in3('r1', 'r2', 'r1'), in3('r1')],
    ['only the changed zone, after the undo of another', undoneB, in3('r1', 'r0', 'r2'), in3('r1', 'r0', 'r1')],
    ['what most outdated pods run, without a run', undefined, in3('r2'), in3('r1'), in3('r1')],
    ['what outdated pods run, if the publication is too large for revisions', run({}, {}, completed), in3('r2'), in3('r1'), in3('r1')],
    ['no known revision without a run and without an outdated pod', undefined, in3('r2'), {}],
  ])('%s', (_, known, templates, expected, pods) => {
    expect(restored(known, templates, pods)).toEqual(expected);
  });

  const at = (revision: string) => Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision }]));
  const halves = { 0: { revision: 'r0' }, 1: { revision: 'r1' }, 2: { revision: 'r1' } };
  function decided(known: RunState, { templates, pods, waves }: DecidedState) {
    const of = group({ rollout: { waves } });
    const statefulSets = Object.entries(templates).flatMap(([zone, updateRevision]) =>
      outdatedSets([zone], { status: { updateRevision } }),
    );
    return decideGroup(snapshotOf({ groups: [of], statefulSets, ledgers: [ledgerOf({ run: known })], ...podsIn(pods) }), of).run;
  }
  const all = [wave('all', ['a', 'b', 'c'])];

  it('what a completed run rolled out, if the templates have no pod to replace', () => {
    const known = run(in3('r1'), in3('r0'), { ...completed, wave: 1 });
    for (const templates of [in3('r2'), in3('r2', 'r1', 'r1')]) {
      const pods = Object.fromEntries(Object.entries(templates).map(([zone, revision]) => [zone, at(revision)]));
      const after = decided(known, { templates, pods, waves: all });
      expect([after?.id, after?.outcome, restored(after, templates)]).toEqual([known.id, 'completed', in3('r1')]);
    }
  });

  it('only the changed zone, although a zone in no wave still runs an earlier template', () => {
    const known = run(in3('r1'), in3('r0'), { ...completed, wave: 1 });
    const templates = in3('r2', 'r1', 'r1');
    const pods = { a: at('r1'), b: at('r1'), c: at('r0') };
    const present = Object.entries(templates).map(([zone, updateRevision]) => {
      return { zone, updateRevision, pods: countRevisions(Object.values(pods[zone as keyof typeof pods])) };
    });
    for (const after of [known, decided(known, { templates, pods, waves: [wave('some', ['a', 'b'])] })])
      expect([...revisionsOfUndo(after, present)].map(([zone, { to }]) => [zone, to])).toEqual(Object.entries(in3('r1')));
  });

  it.each<[string, Omit<DecidedState, 'templates'>, string, RunState['kind']]>([
    ['full waves', { pods: { a: at('r1'), b: at('r1'), c: at('r1') }, waves: all }, 'b', 'rollback'],
    [
      'waves that end at half',
      { pods: { a: halves, b: halves, c: halves }, waves: [wave('half', ['a', 'b', 'c'], { amount: { percent: 50 } })] },
      'b',
      'rollback',
    ],
    ['a zone in no wave', { pods: { a: at('r1'), b: at('r1'), c: at('r0') }, waves: [wave('some', ['a', 'b'])] }, 'c', 'rollout'],
  ])('the other zones of a completed run after the undo of one zone: %s', (_, state, zone, kind) => {
    const known = run(in3('r1'), in3('r0'), { ...completed, wave: 1 });
    const templates = { ...in3('r1'), [zone]: 'r0' };
    const after = decided(known, { templates, ...state });
    const { [zone]: _undone, ...others } = restored(after, templates);
    expect([after?.kind, new Set(Object.values(others))]).toEqual([kind, new Set(['r0'])]);
    // The undo of the others is a return too.
    expect(after && decided(after, { templates: in3('r0'), ...state })?.kind).toBe('rollback');
  });
});
