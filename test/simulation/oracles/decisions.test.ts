import { describe, expect, it } from 'vitest';
import type { TurnReport } from '../../../agent/report.ts';
import { decideGroup } from '../../../engine/decide/decide.ts';
import type { TakenAction } from '../../../engine/publish/published.ts';
import type { Snapshot } from '../../../engine/snapshot.ts';
import { runStartMs } from '../../../simulation/process/clock.ts';
import { knownPods, outdatedStatefulSet, statefulSet } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';
import { definition, History } from './history.ts';

/** A view of the history's objects as they stand; the pods of zone a are behind. */
function viewOf(history: History): Snapshot {
  const versionOf = (resource: string, name: string) => history.get(resource, name).metadata;
  const sets = ['ing-a', 'ing-b', 'ing-c'].map((name, index) => {
    const { uid, resourceVersion } = versionOf('statefulsets.apps', name);
    return (index === 0 ? outdatedStatefulSet : statefulSet)({ name, uid, resourceVersion });
  });
  const snapshot = snapshotOf({ groups: [definition], statefulSets: sets, nowMs: runStartMs + history.nowMs, policyDigest: 'd' });
  const pods = snapshot.pods.map((view) => ({
    ...view,
    pods: knownPods(view).map((pod) => ({
      ...pod,
      uid: versionOf('pods', pod.name).uid,
      resourceVersion: versionOf('pods', pod.name).resourceVersion,
    })),
  }));
  return { ...snapshot, pods };
}

function reportOf(snapshot: Snapshot, ordinal: number, result: TakenAction['result'] = 'done'): Partial<TurnReport> {
  const decision = decideGroup(snapshot, definition);
  const pod = knownPods(snapshot.pods[0])[ordinal];
  const action = {
    kind: 'deletePod',
    namespace: 'mimir',
    zone: 'a',
    statefulSet: 'ing-a',
    pod: `ing-a-${ordinal}`,
    ordinal,
    because: 'outdated',
  } as const;
  return {
    group: definition,
    snapshot,
    decision,
    performed: [{ action: { ...action, uid: pod?.uid ?? '', resourceVersion: pod?.resourceVersion ?? '' }, result }],
  };
}

describe('a turn that is as it should be', () => {
  it('accepts valid decisions', () => {
    const history = new History();
    const snapshot = viewOf(history);
    history.renew();
    history.announceAndTake('ing-a-2');
    history.turn(reportOf(snapshot, 2));
    expect(history.said).toEqual([]);
  });
});

describe('S4', () => {
  it('finds a disruption although a zone was not read', () => {
    const history = new History();
    const snapshot = viewOf(history);
    const unread = {
      ...snapshot,
      pods: snapshot.pods.map((view) => (view.statefulSet === 'ing-b' ? { ...view, pods: { unknown: 'forbidden' } } : view)),
    };
    history.turn({ ...reportOf(snapshot, 2), snapshot: unread });
    expect(history.found('S4')).toEqual(['a1: a decision disrupts although ing-b was not read']);
    history.turn({ snapshot: unread, group: definition });
    expect(history.found('S4')).toHaveLength(1);
  });
});

describe('S5', () => {
  const right = { rate: 1, wallErrorMs: 0 };
  /** `ended` is the clock when the turn ends: it may have been put right since. */
  const carriedOut = (afterMs: number, clock = right, ended = clock, history = new History()): readonly string[] => {
    history.clocks.set('a1', clock);
    const snapshot = viewOf(history);
    const seen = { ...snapshot, nowMs: snapshot.nowMs + clock.wallErrorMs };
    const sent = { ...history.advance(afterMs).agent(), sentWallMs: seen.nowMs + clock.rate * afterMs };
    history.clocks.set('a1', ended);
    history.take('ing-a-2', sent);
    history.turn({ ...reportOf(snapshot, 2), snapshot: seen, durationMs: clock.rate * afterMs });
    return history.found('S5');
  };

  it('finds an action that is carried out more than 10 s after its decision, by the clock of the process', () => {
    expect(carriedOut(10_500)).toEqual([]);
    expect(carriedOut(12_000)).toHaveLength(1);
    expect(carriedOut(12_000, { rate: 0.7, wallErrorMs: 0 })).toEqual([]);
    expect(carriedOut(12_000, { rate: 1, wallErrorMs: 3_600_000 })).toHaveLength(1);
  });

  it('applies to the last disruption of a turn as to the first, and not to turns without one', () => {
    const twice = (secondMs: number, isDisruption: boolean): readonly string[] => {
      const history = new History();
      const snapshot = viewOf(history);
      history.advance(1_000).take('ing-a-2');
      history.advance(secondMs - 1_000);
      if (isDisruption) history.take('ing-a-1');
      else history.change('pods', 'ing-a-1', () => ({ metadata: { annotations: { touched: 'yes' } } }), history.agent());
      history.turn({ ...reportOf(snapshot, 2), durationMs: secondMs });
      return history.found('S5');
    };
    expect(twice(10_500, true)).toEqual([]);
    expect(twice(12_000, true)).toHaveLength(1);
    expect(twice(12_000, false)).toEqual([]);
  });

  it('uses the clock at the time of the request', () => {
    const slow = { rate: 0.9, wallErrorMs: -40_000 };
    expect(carriedOut(2_000, slow, right)).toEqual([]);
    expect(carriedOut(14_000, slow, right)).toHaveLength(1);
  });

  it('takes no clock that is set in the first turn of a process for a long turn', () => {
    const history = new History();
    const snapshot = viewOf(history);
    history.take('ing-a-2', { ...history.advance(2_000).agent(), sentWallMs: snapshot.nowMs + 3_602_000 });
    history.turn({ ...reportOf(snapshot, 2), durationMs: 4_000 });
    expect(history.found('S5')).toEqual([]);
  });

  it('knows a clock that is slow from one that has been set', () => {
    const later = (wallErrorMs: number): readonly string[] => {
      const history = new History();
      history.clocks.set('a1', { rate: 0.9, wallErrorMs: -40_000 });
      history.turn({});
      history.advance(60_000);
      return carriedOut(14_000, { rate: 0.9, wallErrorMs }, undefined, history);
    };
    expect(later(-46_000)).toHaveLength(1);
    expect(later(-40_000)).toEqual([]);
  });
});

describe('S21', () => {
  const twice = (result: TakenAction['result'], process: string): readonly string[] => {
    const history = new History();
    const snapshot = viewOf(history);
    history.take('ing-a-2', history.agent());
    history.turn(reportOf(snapshot, 2, result));
    history.take('ing-a-1', history.agent(process));
    history.turn(reportOf(snapshot, 1), process);
    return history.found('S21');
  };

  it('finds an agent that acts on state that it has changed since, restarted or not', () => {
    expect(twice('done', 'a1')).toHaveLength(1);
    expect(twice('done', 'a2')).toHaveLength(1);
  });

  it('finds a decision by an older state than that of an earlier decision of the process', () => {
    const history = new History();
    const before = viewOf(history);
    history.ready('ing-b-1', false);
    history.turn({ snapshot: viewOf(history), decision: decideGroup(before, definition) });
    history.turn({ snapshot: before, decision: decideGroup(before, definition) }, 'b1');
    expect(history.found('S21')).toEqual([]);
    history.turn({ snapshot: before, decision: decideGroup(before, definition) });
    expect(history.found('S21')).toEqual([
      expect.stringMatching(/^a1: a decision reads ing-b-1 at resource version \d+, although an earlier/),
    ]);
    // A zone that leaves the group is read only from the caches.
    const smaller = { ...definition, zones: definition.zones.filter(({ statefulSet }) => statefulSet !== 'ing-b') };
    history.turn({ snapshot: before, decision: decideGroup(before, smaller), group: smaller });
    history.turn({ snapshot: before, decision: decideGroup(before, definition) });
    expect(history.found('S21')).toHaveLength(1);
  });

  it('finds a decision with an object whose deletion an earlier decision knew', () => {
    const history = new History();
    const before = viewOf(history);
    const turn = (snapshot: Snapshot): void => history.turn({ snapshot, decision: decideGroup(before, definition) });
    const without = (pod: string): Snapshot => ({
      ...before,
      pods: before.pods.map((view) => ({ ...view, pods: knownPods(view).filter(({ name }) => name !== pod) })),
    });
    turn(before);
    // A pod that only left the StatefulSet may be adopted again.
    turn(without('ing-b-1'));
    turn(before);
    history.remove('pods', 'ing-b-1');
    // A decision without the pods of the zone does not know the deletion.
    turn({ ...before, pods: before.pods.map((view) => ({ ...view, pods: { unknown: 'Too many requests' } })) });
    turn({ ...before, statefulSets: [], pods: [] });
    turn(before);
    expect(history.found('S21')).toEqual([]);
    turn(without('ing-b-1'));
    turn(before);
    expect(history.found('S21')).toHaveLength(1);
  });

  it('accepts an agent that sees the pod terminate, at any version', () => {
    const history = new History();
    const snapshot = viewOf(history);
    history.take('ing-a-2', history.agent());
    history.turn(reportOf(snapshot, 2, 'done'));
    const going = snapshot.pods.map((view) =>
      'unknown' in view.pods
        ? view
        : { ...view, pods: view.pods.map((pod) => (pod.name === 'ing-a-2' ? { ...pod, isTerminating: true } : pod)) },
    );
    history.take('ing-a-1', history.agent('a1'));
    history.turn(reportOf({ ...snapshot, pods: going }, 1), 'a1');
    expect(history.found('S21')).toEqual([]);
  });

  it('does not report an agent that cannot know', () => {
    expect(twice('unknown', 'a1')).toEqual([]);
    expect(twice('done', 'b1')).toEqual([]);
  });
});

describe('S25', () => {
  it('finds two definitions under one digest, and a group that is not that of its snapshot', () => {
    const history = new History();
    const snapshot = viewOf(history);
    const report = { ...reportOf(snapshot, 2), performed: [] };
    history.turn(report);
    history.turn({ ...report, group: { ...(JSON.parse(JSON.stringify(definition)) as typeof definition), generation: 2 } });
    expect(history.found('S25')).toEqual([]);
    const paused = { ...definition, labels: { other: 'yes' } };
    history.turn({ ...report, group: paused });
    expect(history.found('S25')).toEqual([
      'a1: a decision uses another definition of ingester than its snapshot has',
      'a1: a decision uses another definition of ingester than an earlier decision with the policy digest d',
    ]);
  });
});

describe('S27', () => {
  it('finds a decision that its snapshot does not give', () => {
    const history = new History();
    const snapshot = viewOf(history);
    const report = reportOf(snapshot, 2);
    history.turn(report);
    expect(history.found('S27')).toEqual([]);
    history.turn({ ...report, decision: { ...decideGroup(snapshot, definition), goal: 'something else' } });
    expect(history.found('S27')).toHaveLength(1);
  });
});

describe('L9 of decisions', () => {
  it('finds a wait without a cause', () => {
    const history = new History();
    const snapshot = viewOf(history);
    const decision = decideGroup(snapshot, definition);
    history.turn({ snapshot, group: definition, decision: { ...decision, outcome: 'wait', waits: [] } });
    expect(history.found('L9')).toEqual(['a1: a decision neither acts nor gives a reason']);
  });
});

describe('L8', () => {
  const seenAfter = (afterMs: number): readonly string[] => {
    const history = new History();
    history.heal();
    const snapshot = viewOf(history);
    history.advance(120_000).ready('ing-a-2', false);
    history.advance(afterMs).turn({ ...reportOf(snapshot, 2), performed: [] });
    return history.found('L8');
  };

  it('finds a turn with state that ended over a minute ago', () => {
    expect(seenAfter(59_000)).toEqual([]);
    expect(seenAfter(60_000)).toHaveLength(1);
  });
});
