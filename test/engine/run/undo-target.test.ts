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

  it.each<[string, RunState | undefined, Zones, Zones, Zones?]>([
    ['what the run replaced, if the run rolls out the templates', run(in3('r1'), in3('r0')), in3('r1'), in3('r0')],
    ['the same after the run is completed', run(in3('r1'), in3('r0'), completed), in3('r1'), in3('r0')],
    ['what a completed run rolled out, if no run knows the templates yet', run(in3('r1'), in3('r0'), completed), in3('r2'), in3('r1')],
    ['only the changed zone, if no run knows its template yet', run(in3('r1'), in3('r0'), completed), in3('r2', 'r1', 'r1'), in3('r1')],
    ['what an unfinished run replaced, if no run knows the templates yet', run(in3('r1'), in3('r0')), in3('r2'), in3('r0')],
    ['what pods run after a rollback', run(in3('r0'), in3('r1'), { ...back, ...completed }), in3('r1'), in3('r0')],
    ['what pods run during a rollback', run(in3('r0'), in3('r1'), back), in3('r1'), in3('r0')],
    ['what pods run after a rollback and another template', run(in3('r0'), in3('r1'), { ...back, ...completed }), in3('r2'), in3('r0')],
    ['what most outdated pods run, without a run', undefined, in3('r2'), in3('r1'), in3('r1')],
    ['what outdated pods run, if the publication is too large for revisions', run({}, {}, completed), in3('r2'), in3('r1'), in3('r1')],
    ['no known revision without a run and without an outdated pod', undefined, in3('r2'), {}],
  ])('%s', (_, known, templates, expected, pods) => {
    expect(restored(known, templates, pods)).toEqual(expected);
  });

  it('what a completed run rolled out, if the templates have no pod to replace', () => {
    const known = run(in3('r1'), in3('r0'), { ...completed, wave: 1 });
    const one = group({ rollout: { waves: [wave('all', ['a', 'b', 'c'])] } });
    const at = (revision: string) => Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision }]));
    const decided = (of: Zones, pods: Zones) => {
      const statefulSets = Object.entries(of).flatMap(([zone, updateRevision]) => outdatedSets([zone], { status: { updateRevision } }));
      const podChanges = podsIn(Object.fromEntries(Object.entries(pods).map(([zone, revision]) => [zone, at(revision)])));
      return decideGroup(snapshotOf({ groups: [one], statefulSets, ledgers: [ledgerOf({ run: known })], ...podChanges }), one).run;
    };
    for (const templates of [in3('r2'), in3('r2', 'r1', 'r1')]) {
      const after = decided(templates, templates);
      expect([after?.id, after?.outcome, restored(after, templates)]).toEqual([known.id, 'completed', in3('r1')]);
    }
  });
});
