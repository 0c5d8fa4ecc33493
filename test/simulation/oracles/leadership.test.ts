import { describe, expect, it } from 'vitest';
import { History } from './history.ts';

function act(history: History, process = 'a1', sentAgoMs = 0): void {
  history.answer({
    verb: 'patch',
    name: 'ing-a-2',
    actor: history.agent(process, sentAgoMs),
    body: { metadata: { resourceVersion: '1' } },
  });
}

describe('S17', () => {
  it('finds a request that left more than 10 s after the last renewal left', () => {
    const history = new History();
    history.renew('a1', 2000);
    history.advance(8000);
    act(history);
    expect(history.found('S17')).toEqual([]);
    history.advance(100);
    act(history);
    expect(history.found('S17')).toHaveLength(1);
  });

  it('counts until the request left, and not until it arrived', () => {
    const history = new History();
    history.renew();
    history.advance(40_000);
    act(history, 'a1', 30_500);
    expect(history.found('S17')).toEqual([]);
  });

  it('finds a process that never had the Lease, or gave it away', () => {
    const history = new History();
    history.renew('a1');
    act(history, 'b1');
    expect(history.found('S17')).toHaveLength(1);
    history.renew('a1', 0, '');
    act(history, 'a1');
    expect(history.found('S17')).toHaveLength(2);
  });

  it('uses the Lease when the request left, although the process has given it away since', () => {
    const history = new History();
    history.renew();
    history.advance(1000).renew('a1', 0, '');
    history.advance(5000);
    act(history, 'a1', 5500);
    expect(history.found('S17')).toEqual([]);
    act(history, 'a1', 4500);
    expect(history.found('S17')).toHaveLength(1);
  });

  it('finds a request that left before the process had the Lease, or had it again', () => {
    const history = new History();
    history.renew('a1', 1000);
    act(history, 'a1', 1500);
    // It was on its way, and nobody could know that it would arrive.
    act(history, 'a1', 500);
    expect(history.found('S17')).toHaveLength(2);
    history.advance(30_000).renew('a1', 1000);
    act(history, 'a1', 2000);
    expect(history.found('S17')).toHaveLength(3);
    history.advance(1000);
    act(history);
    expect(history.found('S17')).toHaveLength(3);
  });

  it('finds what left after the Lease was given away, whichever of the two arrives first', () => {
    const history = new History();
    history.renew();
    history.advance(5000).renew('a1', 3000, '');
    act(history, 'a1', 2000);
    expect(history.found('S17')).toEqual(['a1: patch pods ing-a-2 was sent by a process that holds no Lease']);
  });

  it('finds a process that acts without any Lease', () => {
    const history = new History();
    act(history);
    expect(history.found('S17')).toHaveLength(1);
  });

  it('counts by the clock of the process', () => {
    const history = new History();
    history.clocks.set('a1', { rate: 0.8, wallErrorMs: 0 });
    history.renew();
    history.advance(12_400);
    act(history);
    expect(history.found('S17')).toEqual([]);
    history.advance(200);
    act(history);
    expect(history.found('S17')).toHaveLength(1);
  });

  it('finds a process that calls a pod without the Lease', () => {
    const history = new History();
    history.renew();
    history.call('ing-a-2', 'POST');
    history.call('ing-a-2', 'POST', { process: 'b1' });
    history.advance(60_000);
    history.call('ing-a-2', 'DELETE');
    expect(history.found('S17')).toEqual([
      'b1: POST to pod ing-a-2 was sent by a process that holds no Lease',
      'a1: DELETE to pod ing-a-2 was sent by a process that renewed its Lease 60000 ms before',
    ]);
  });

  it('lets a former leader tell what it did', () => {
    const history = new History();
    history.renew();
    history.advance(60_000);
    for (const resource of ['events.events.k8s.io', 'rolloutruns.rollout-group.dev']) {
      history.answer({ verb: 'create', resource, actor: history.agent(), body: { metadata: { name: 'x' } } });
    }
    history.answer({
      verb: 'update',
      resource: 'configmaps',
      name: 'rollout-status-ing',
      actor: history.agent(),
      body: { metadata: { resourceVersion: '1' } },
    });
    expect(history.found('S17')).toEqual([]);
    history.answer({
      verb: 'update',
      resource: 'configmaps',
      name: 'rollout-group-ing',
      actor: history.agent(),
      body: { metadata: { resourceVersion: '1' } },
    });
    expect(history.found('S17')).toHaveLength(1);
  });
});

describe('L3', () => {
  const afterHealing = (arrange: (history: History) => void): readonly string[] => {
    const history = new History();
    history.renew('a1');
    history.process('a1', 'crashed');
    history.process('b1', 'started');
    history.heal().advance(15_000);
    arrange(history);
    history.advance(6000).end();
    return history.found('L3');
  };

  it('finds a Lease without a holder, and accepts a new holder', () => {
    expect(afterHealing(() => undefined)).toEqual(['no process took the Lease within 20000 ms after all faults ended']);
    expect(afterHealing((history) => history.renew('b1'))).toEqual([]);
  });

  it('counts from when a process comes back that was being stopped', () => {
    const history = new History();
    history.process('a1', 'started');
    history.heal();
    history.process('a1', 'stopped');
    history.advance(22_000).process('a2', 'started');
    history.answer({ verb: 'get', name: 'ing-a-2', actor: history.agent('a2') });
    expect(history.found('L3')).toEqual([]);
    history.advance(21_000).end();
    expect(history.found('L3')).toHaveLength(1);
  });

  it('finds a missing Lease that no process creates', () => {
    const history = new History();
    history.process('a1', 'started');
    history.heal().advance(21_000).end();
    expect(history.found('L3')).toHaveLength(1);
  });
});
