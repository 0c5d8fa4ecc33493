import { describe, expect, it } from 'vitest';
import type { GroupDecision } from '../../../engine/decision.ts';
import { firstDifference } from '../../../simulation/oracles/converged.ts';
import { controller, History } from './history.ts';

const decision = (outcome: GroupDecision['outcome']): GroupDecision =>
  ({
    outcome,
    waits: outcome === 'wait' ? [{ rule: 'paused', outcome: 'wait', fact: 'it is paused' }] : [],
    actions: [],
  }) as unknown as GroupDecision;

/** A group in which nothing is left to do, and everything is mended. */
function done(): History {
  const history = new History();
  for (const set of ['ing-a', 'ing-b', 'ing-c']) for (const ordinal of [0, 1, 2]) history.replace(`${set}-${ordinal}`);
  history.heal();
  history.ready('ing-a-0', true);
  history.turn({ decision: decision('done') });
  return history;
}

function publish(history: History, outcome: string): void {
  const waits = outcome === 'wait' ? [{ rule: 'paused' }] : [];
  history.write(
    'configmaps',
    { metadata: { name: 'rollout-status-ing' }, data: { decision: JSON.stringify({ outcome, waits }) } },
    history.agent(),
  );
}

describe('L1', () => {
  it('finds a group that is not complete at the end, and names the remaining work', () => {
    const history = new History();
    history.heal().end();
    expect(history.found('L1')).toEqual(['at the end ing-a-0 is at r1, not at r2']);
    const settled = done();
    settled.end();
    expect(settled.found('L1')).toEqual([]);
  });

  it('finds an agent that continues without work, unless there is a new request', () => {
    const history = done();
    history.take('ing-a-2');
    expect(history.found('L1')).toEqual(['a1 changes ing-a-2 although nothing was left to do']);
    const asked = done();
    asked.scale('ing-a', 4);
    asked.scale('ing-b', 4, asked.agent());
    expect(asked.found('L1')).toEqual([]);
  });

  it('requires only the actions that a paused group may take', () => {
    const history = new History();
    history.write('rolloutintents.rollout-group.dev', { metadata: { name: 'wait' }, spec: { group: 'ing', action: 'pause' } });
    history.heal().end();
    expect(history.found('L1')).toEqual([]);
  });
});

describe('L6', () => {
  it('finds a pod that is left at a revision which never became ready', () => {
    const history = done();
    history.replace('ing-b-0', 'broken', false);
    history.end();
    expect(history.found('L6')).toHaveLength(1);
    expect(history.found('L1')).toEqual([]);
  });
});

describe('L2', () => {
  const write = (history: History, resource: string): readonly string[] => {
    history.answer({ verb: 'patch', resource, name: 'x', actor: history.agent(), body: { metadata: { resourceVersion: '1' } } });
    return history.found('L2');
  };
  const writeAfter = (ms: number, resource: string): readonly string[] => write(done().advance(ms), resource);

  it('finds a write a minute after the end of all work, except renewals of the Lease', () => {
    expect(writeAfter(59_000, 'rolloutruns.rollout-group.dev')).toEqual([]);
    expect(writeAfter(60_000, 'rolloutruns.rollout-group.dev')).toHaveLength(1);
    expect(writeAfter(60_000, 'leases.coordination.k8s.io')).toEqual([]);
  });

  it('counts from the time at which the last dead watch is closed', () => {
    const closed = (): History => {
      const history = done();
      history.isWatchDead = true;
      history.advance(85_000).renew();
      history.isWatchDead = false;
      return history;
    };
    expect(write(closed().advance(59_000), 'rolloutruns.rollout-group.dev')).toEqual([]);
    expect(write(closed().advance(60_000), 'rolloutruns.rollout-group.dev')).toHaveLength(1);
  });
});

describe('L2 and L4', () => {
  const admitted = (admit: (history: History) => void, ms: number): History => {
    const history = done();
    admit(history);
    history.advance(ms).ready('ing-a-0', true);
    return history;
  };

  it.each<[string, (history: History) => void]>([
    ['an eviction', (history) => history.admit(['ing-b-0'])],
    ['a decrease of replicas', (history) => history.admitScaleDown('ing-b', 2)],
  ])('count the claim of a webhook on %s as open work until its request can no longer arrive', (_, admit) => {
    const open = admitted(admit, 120_000);
    open.end();
    expect(open.found('L4')).toHaveLength(1);
    const ended = admitted(admit, 121_000);
    ended.advance(59_000);
    ended.answer({ verb: 'update', resource: 'configmaps', name: 'rollout-group-ing', actor: ended.agent() });
    ended.end();
    expect(ended.found('L4')).toEqual([]);
    expect(ended.found('L2')).toEqual([]);
  });

  it('count a claim as open work again when the leader reads it late', () => {
    const history = admitted((one) => one.admit(['ing-b-0']), 121_000);
    history.claimsKnownMs = history.nowMs;
    history.turn({ decision: decision('done') });
    history.advance(119_000).answer({ verb: 'update', resource: 'configmaps', name: 'rollout-group-ing', actor: history.agent() });
    expect(history.found('L2')).toEqual([]);
  });

  it('count no claim on a decrease that is applied', () => {
    const applied = admitted((history) => history.admitScaleDown('ing-b', 3), 0);
    applied.end();
    expect(applied.found('L4')).toEqual([]);
  });
});

describe('L9', () => {
  it('finds a group that waits while no decision, or another one, is published', () => {
    const history = done();
    history.turn({ decision: decision('wait') });
    history.advance(59_000).ready('ing-a-0', true);
    expect(history.found('L9')).toEqual([]);
    history.advance(1000).ready('ing-a-0', true);
    expect(history.found('L9')).toHaveLength(1);
    const told = done();
    publish(told, 'wait');
    told.turn({ decision: decision('wait') });
    told.advance(70_000).ready('ing-a-0', true);
    expect(told.found('L9')).toEqual([]);
  });

  it('finds a complete group that is not reported as complete at the end', () => {
    const history = done();
    publish(history, 'wait');
    history.end();
    expect(history.found('L9')).toHaveLength(1);
    const told = done();
    publish(told, 'done');
    told.end();
    expect(told.found('L9')).toEqual([]);
  });
});

describe('L10', () => {
  const turnAfter = (ms: number, change: (history: History) => void): readonly string[] => {
    const history = done();
    history.advance(50_000);
    change(history);
    history.advance(ms).renew();
    history.turn({ decision: decision('done') });
    return history.found('L10');
  };

  it('finds a change that no turn begins after within 15 s', () => {
    const fail = (history: History) => history.ready('ing-a-0', false);
    expect(turnAfter(15_000, fail)).toEqual([]);
    expect(turnAfter(16_000, fail)).toEqual(['no turn has begun for 16000 ms since the change of ing-a-0']);
  });

  it('does not ask for what only a watch can tell of that has been dead since before', () => {
    const dies = (history: History): void => {
      history.isWatchDead = true;
      history.ready('ing-a-0', false);
      history.isWatchDead = false;
    };
    expect(turnAfter(16_000, dies)).toEqual([]);
  });

  it('ignores events that need no turn', () => {
    expect(
      turnAfter(60_000, (history) => history.change('pods', 'ing-a-0', () => ({ metadata: { annotations: { a: 'b' } } }), controller)),
    ).toEqual([]);
  });
});

describe('L12', () => {
  it('finds a group that is not done and has had no turn for longer than the longest pause', () => {
    const history = new History();
    history.heal().advance(330_000).renew();
    expect(history.found('L12')).toEqual([]);
    history.advance(1000).renew();
    expect(history.found('L12')).toHaveLength(1);
    const settled = done();
    settled.advance(900_000).renew();
    expect(settled.found('L12')).toEqual([]);
  });
});

describe('L8', () => {
  it('finds a dead watch that is still open long after everything was mended', () => {
    const deadFor = (ms: number): readonly string[] => {
      const history = new History();
      history.isWatchDead = true;
      history.heal().advance(ms).renew();
      return history.found('L8');
    };
    expect(deadFor(100_000)).toEqual([]);
    expect(deadFor(101_000)).toEqual(['a watch that died during the faults is still open 101000 ms after their end']);
  });

  const failed = (): History => {
    const history = new History();
    history.renew();
    history.turn({ error: 'the API server answered 503' });
    return history.advance(60_000).heal();
  };

  it('finds a leader without a retry of its failed turn within two minutes of the last fault', () => {
    const history = failed();
    history.advance(120_000).renew();
    expect(history.found('L8')).toEqual([]);
    history.advance(1000).renew();
    expect(history.found('L8')).toEqual(['a1 has not retried its failed turn within 121000 ms']);
  });

  it('finds a leader whose turns always fail', () => {
    const history = failed();
    for (let count = 0; count < 8; count += 1) history.advance(20_000).turn({ error: 'the watch cache is behind' });
    expect(history.found('L8')).toEqual(['every turn of a1 has failed for 160000 ms']);
  });

  it('ignores a process that has retried, or is no longer the leader', () => {
    const tried = failed();
    tried.advance(60_000).turn({ decision: decision('wait') });
    tried.advance(200_000).renew();
    expect(tried.found('L8')).toEqual([]);
    const other = failed();
    other.renew('b1');
    other.turn({ error: 'this process does not lead' });
    other.advance(200_000).renew('b1');
    expect(other.found('L8')).toEqual([]);
  });
});

describe('the missing parts of a requested state', () => {
  const missing = (change: (history: History) => void, wanted = { statefulSet: 'ing-a', image: 'r2', replicas: 3 }): string | undefined => {
    const history = done();
    change(history);
    return firstDifference(history.scene, [wanted]);
  };

  it.each<[string | undefined, (history: History) => void]>([
    [undefined, () => undefined],
    ['the StatefulSet ing-a does not exist', (history) => history.remove('statefulsets.apps', 'ing-a')],
    ['ing-a has 4 replicas, not 3', (history) => history.scale('ing-a', 4)],
    ['ing-a-0 does not exist', (history) => history.remove('pods', 'ing-a-0')],
    ['ing-a-0 is not available', (history) => history.ready('ing-a-0', false)],
    ['ing-a-0 runs r1, not r2', (history) => history.replace('ing-a-0', 'r1')],
    [
      'the status of ing-a is older than its spec',
      (history) => history.change('statefulsets.apps', 'ing-a', () => ({ metadata: { generation: 9 } })),
    ],
    ['the ledger rollout-group-ing announces 1 disruptions', (history) => history.announce([history.claimOf('ing-a-0')])],
  ])('reports: %s', (said, change) => expect(missing(change)).toBe(said));

  it('counts a pod that is told to end, and one too many', () => {
    expect(missing((history) => history.take('ing-a-0', controller))).toBe('ing-a-0 is not available');
    expect(missing((history) => history.scale('ing-a', 2), { statefulSet: 'ing-a', image: 'r2', replicas: 2 })).toBe(
      'ing-a-2 is still there',
    );
  });

  it('counts a follower that has not the replicas of its leader', () => {
    const history = done();
    history.scale('ing-a', 2);
    history.remove('pods', 'ing-a-2');
    const wanted = [
      { statefulSet: 'ing-a', image: 'r2', replicas: 2 },
      { statefulSet: 'ing-b', image: 'r2', replicas: 3 },
    ];
    expect(firstDifference(history.scene, wanted)).toBe('ing-b does not have the 2 replicas of ing-a');
  });
});
