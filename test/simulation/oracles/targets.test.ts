import { describe, expect, it } from 'vitest';
import { controller, History } from './history.ts';

const setResource = 'statefulsets.apps';

function target(history: History, set: string, updateRevision: string): void {
  history.change(setResource, set, ({ status }) => ({ status: { ...(status as object), updateRevision } }));
}

describe('S4', () => {
  it('finds a pod that is replaced while a status has been older than its spec for more than 10 s', () => {
    const history = new History();
    history.change(setResource, 'ing-b', () => ({ metadata: { generation: 2 } }));
    history.advance(9000).take('ing-a-2');
    expect(history.found('S4')).toEqual([]);
    history.advance(2000).take('ing-a-1');
    expect(history.found('S4')).toEqual(['a1 disrupts ing-a-1 while the status of ing-b is older than its spec']);
  });

  it('does not bind adopted groups, which do not look at it', () => {
    const history = new History({ kind: 'adopted' });
    history.change(setResource, 'ing-b', () => ({ metadata: { generation: 2 } }));
    history.advance(60_000).take('ing-a-2');
    expect(history.found('S4')).toEqual([]);
  });
});

describe('S6', () => {
  it('finds a pod that is replaced although it has been at the update revision for 10 s', () => {
    const history = new History();
    target(history, 'ing-a', 'r1');
    history.advance(9000).take('ing-a-2');
    expect(history.found('S6')).toEqual([]);
    history.advance(2000).take('ing-a-1');
    expect(history.found('S6')).toEqual(['a1 disrupts ing-a-1, which is at the update revision r1']);
  });
});

describe('S7', () => {
  it('finds a pod that is replaced twice, by any agent', () => {
    const history = new History();
    const preconditions = { uid: history.uidOf('ing-a-2') };
    history.take('ing-a-2');
    history.answer({
      verb: 'create',
      subresource: 'eviction',
      name: 'ing-a-2',
      actor: history.agent('b1'),
      body: { deleteOptions: { preconditions } },
    });
    expect(history.found('S7')).toHaveLength(1);
  });

  it('finds one that another client has been deleting for more than 10 s, and no delete during the request', () => {
    const history = new History();
    const ask = (sentAgoMs: number): void => {
      const body = { deleteOptions: { preconditions: { uid: history.uidOf('ing-a-2') } } };
      history.answer({ verb: 'create', subresource: 'eviction', name: 'ing-a-2', actor: history.agent('a1', sentAgoMs), body });
    };
    history.take('ing-a-2', controller);
    history.advance(12_000);
    ask(3000);
    expect(history.found('S7')).toEqual([]);
    ask(1000);
    expect(history.found('S7')).toHaveLength(1);
  });

  it('ignores a denied request', () => {
    const history = new History();
    history.take('ing-a-2');
    history.answer({
      verb: 'delete',
      name: 'ing-a-2',
      status: 409,
      actor: history.agent(),
      body: { preconditions: { uid: history.uidOf('ing-a-2') } },
    });
    expect(history.found('S7')).toEqual([]);
  });
});

describe('S22', () => {
  it('finds a pod that has another owner, and one whose StatefulSet left the group', () => {
    const rogue = new History();
    rogue.change('pods', 'ing-a-2', () => ({
      metadata: { ownerReferences: [{ kind: 'Job', name: 'job', uid: 'other', controller: true }] },
    }));
    rogue.take('ing-a-2');
    expect(rogue.found('S22')).toEqual(['a1 disrupts ing-a-2, which ing-a does not own']);
    const left = new History({ kind: 'adopted' });
    left.change(setResource, 'ing-a', () => ({ metadata: { labels: {} } }));
    left.advance(9000).take('ing-a-2');
    expect(left.found('S22')).toEqual([]);
    left.advance(2000).take('ing-a-1');
    expect(left.found('S22')).toHaveLength(1);
  });
});

describe('S28', () => {
  const pause = (history: History, spec: object = {}) =>
    history.write('rolloutintents.rollout-group.dev', { metadata: { name: 'wait' }, spec: { group: 'ing', action: 'pause', ...spec } });

  it('finds a pod, a decrease and an announcement of 10 s after the pause', () => {
    const history = new History();
    pause(history);
    history.advance(9000).take('ing-a-2');
    expect(history.found('S28')).toEqual([]);
    history.advance(2000).announce([history.claimOf('ing-a-1')]);
    history.take('ing-a-1');
    history.scale('ing-a', 2, history.agent());
    expect(history.found('S28')).toHaveLength(3);
  });

  it('ends with the pause, and binds the zone that it names', () => {
    const history = new History();
    pause(history, { zone: 'b' });
    history.advance(60_000).take('ing-a-2');
    history.remove('rolloutintents.rollout-group.dev', 'wait');
    history.take('ing-b-2');
    pause(history, { expires: history.time() });
    history.advance(20_000).take('ing-b-1');
    expect(history.found('S28')).toEqual([]);
    pause(history, { zone: 'c', expires: undefined });
    history.advance(20_000).take('ing-c-1');
    expect(history.found('S28')).toHaveLength(1);
  });

  it('treats a zone that is paused by its settings as paused', () => {
    const history = new History({ kind: 'adopted' });
    history.change(setResource, 'ing-a', () => ({ metadata: { annotations: { 'grafana.com/rollout-paused': 'true' } } }));
    history.advance(11_000).take('ing-a-2');
    expect(history.found('S28')).toHaveLength(1);
  });

  it('accepts a downscale of such a zone, because its settings pause only replacements', () => {
    const history = new History({ kind: 'adopted' });
    history.change(setResource, 'ing-a', () => ({ metadata: { annotations: { 'grafana.com/rollout-paused': 'true' } } }));
    history.advance(11_000).announce([{ verb: 'scaleDown', zone: 'a', uid: history.claimOf('ing-a-2').uid, to: 2 }]);
    history.scale('ing-a', 2, history.agent());
    expect(history.found('S28')).toEqual([]);
  });
});
