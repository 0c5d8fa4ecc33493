import { describe, expect, it } from 'vitest';
import type { Actor } from '../../../simulation/server/request.ts';
import { controller, History } from './history.ts';

const setResource = 'statefulsets.apps';
const holding = 1_000_000;

/** Zones under rolling updates that hold every pod back. */
function held(overrides: ConstructorParameters<typeof History>[0] = {}): History {
  const history = new History({ strategy: 'partition', ...overrides });
  for (const set of ['ing-a', 'ing-b', 'ing-c']) move(history, set, holding, { user: 'kubernetes-admin' });
  return history.advance(20_000);
}

function move(history: History, set: string, partition: number, actor: Actor = history.agent()): void {
  history.change(
    setResource,
    set,
    ({ spec }) => ({ spec: { ...(spec as object), updateStrategy: { rollingUpdate: { partition } } } }),
    actor,
  );
}

function announce(history: History, set: string, to: number): void {
  history.announce([{ verb: 'setPartition', zone: set.slice(4), uid: history.set(set).metadata.uid, to }]);
}

/** The partition of zone a as an agent moves it, announced. */
function lower(history: History, partition: number, set = 'ing-a'): void {
  announce(history, set, partition);
  move(history, set, partition);
}

describe('a partition that is lowered', () => {
  it('by what the budget has room for, announced, breaks nothing', () => {
    const history = held();
    lower(history, 2);
    expect(history.broken()).toEqual([]);
  });

  it("breaks 'S19' when it was not announced, unless no pod goes by it", () => {
    const history = held();
    move(history, 'ing-a', 2);
    expect(history.found('S19')).toEqual(['a1 lowers the partition of ing-a to 2, and the ledger does not announce it']);
    const covering = held();
    move(covering, 'ing-a', 3);
    expect(covering.broken()).toEqual([]);
  });

  it("breaks 'S2' when more pods go than may be down, those included that went before and stand still", () => {
    const history = held();
    lower(history, 1);
    expect(history.found('S2')).toEqual([
      'a1 exposes ing-a-1, ing-a-2 by partition 1 of ing-a while nothing is unavailable or already exposed, and at most 1 may be',
    ]);
    const twice = held();
    lower(twice, 2);
    lower(twice, 1);
    expect(twice.found('S2')).toEqual([
      'a1 exposes ing-a-1 by partition 1 of ing-a while ing-a-2 is unavailable or already exposed, and at most 1 may be',
    ]);
    const wide = held({ maxUnavailable: 2 });
    lower(wide, 1);
    expect(wide.broken()).toEqual([]);
  });

  it("breaks 'S1' while another zone is not whole", () => {
    const history = held();
    history.ready('ing-b-0', false);
    history.advance(20_000);
    lower(history, 2);
    expect(history.found('S1')).toEqual(['a1 exposes ing-a-2 by partition 2 of ing-a while ing-b has unavailable pods: ing-b-0']);
  });

  it("breaks 'S4' while a status is older than its spec", () => {
    const history = held();
    history.change(setResource, 'ing-c', () => ({ metadata: { generation: 2 } }));
    history.advance(20_000);
    lower(history, 2);
    expect(history.found('S4')).toEqual(['a1 exposes ing-a-2 by partition 2 of ing-a while the status of ing-c is older than its spec']);
  });

  it("breaks 'S28' while the group is paused", () => {
    const history = held();
    history.write('rolloutintents.rollout-group.dev', { metadata: { name: 'stop' }, spec: { group: 'ing', action: 'pause' } });
    history.advance(20_000);
    lower(history, 2);
    expect(history.found('S28').some((message) => message === 'a1 exposes ing-a-2 by partition 2 of ing-a during a pause')).toBe(true);
  });

  it('by another client is not judged', () => {
    const history = held();
    move(history, 'ing-a', 0, { user: 'kubernetes-admin' });
    expect(history.broken()).toEqual([]);
  });
});

describe('a partition that is raised', () => {
  /** Zone a after a rollout, with partition 0 and this current revision. */
  function updated(currentRevision: string): History {
    const history = held();
    for (const ordinal of [0, 1, 2]) history.replace(`ing-a-${ordinal}`);
    move(history, 'ing-a', 0, { user: 'kubernetes-admin' });
    history.change(setResource, 'ing-a', ({ status }) => ({ status: { ...(status as object), currentRevision } }), controller);
    return history.advance(20_000);
  }

  it("breaks 'S6' before the update revision is the current revision, at which updated pods would come back", () => {
    const history = updated('r1');
    move(history, 'ing-a', holding);
    expect(history.found('S6')).toEqual(['a1 raises the partition of ing-a, and ing-a-0, ing-a-1, ing-a-2 would come back at r1']);
  });

  it('breaks nothing afterwards, also after a stale controller created pods', () => {
    const history = updated('r2');
    history.replace('ing-a-2', 'r1');
    move(history, 'ing-a', holding);
    expect(history.broken()).toEqual([]);
  });
});

describe('a run', () => {
  const idle = { format: '1.0', namespace: 'mimir', group: 'ing', claims: [] };
  const begin = (history: History, target: Readonly<Record<string, string>>): void => {
    const metadata = { name: 'rollout-group-ing', labels: { 'rollout-group.dev/document': 'ledger' } };
    const ledger = JSON.stringify({ ...idle, run: { outcome: 'running', target } });
    history.write('configmaps', { metadata, data: { ledger } }, history.agent());
  };
  /** Pod a-2 is updated, and the partition of zone a exposes the other pods. */
  function rolling(partition: number): History {
    const history = held();
    move(history, 'ing-a', partition, { user: 'kubernetes-admin' });
    history.replace('ing-a-2');
    return history.advance(20_000);
  }

  it("that starts breaks 'S6' while the partition exposes pods that no run exposed", () => {
    const history = rolling(0);
    begin(history, { a: 'r2' });
    expect(history.found('S6')).toEqual(['a1 begins a run while partition 0 exposes ing-a-0, ing-a-1']);
  });

  it('breaks nothing in a frozen zone, in another zone, and above a pod that is updated', () => {
    const frozen = rolling(2);
    begin(frozen, { a: 'r2' });
    expect(frozen.broken()).toEqual([]);
    const other = rolling(0);
    begin(other, { b: 'r2' });
    expect(other.broken()).toEqual([]);
    const mixed = rolling(0);
    mixed.replace('ing-a-0');
    mixed.advance(20_000);
    begin(mixed, { a: 'r2' });
    expect(mixed.broken()).toEqual([]);
  });

  it('that lowers the partition itself breaks nothing, nor does its next write', () => {
    const history = rolling(2);
    begin(history, { a: 'r2' });
    move(history, 'ing-a', 1);
    history.advance(20_000);
    begin(history, { a: 'r2' });
    expect(history.found('S6')).toEqual([]);
  });
});
