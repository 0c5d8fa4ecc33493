import { describe, expect, it } from 'vitest';
import { controller, History } from './history.ts';

/** Each zone by deletes with claims, one pod at a time, until all is at the new revision. */
function roll(history: History, pods: readonly string[]): void {
  for (const pod of pods) {
    history.renew();
    history.announceAndTake(pod);
    history.advance(3000).replace(pod, 'r2', false);
    history.advance(5000).ready(pod, true);
    history.announce([], history.agent());
    history.advance(1000);
  }
}

const all = ['ing-a', 'ing-b', 'ing-c'].flatMap((set) => [2, 1, 0].map((ordinal) => `${set}-${ordinal}`));

describe('a careful roll', () => {
  it.each(['native', 'adopted'] as const)('breaks nothing in a group that is %s, with other disturbances in between', (kind) => {
    const history = new History({ kind });
    roll(history, all.slice(0, 4));
    history.take('ing-c-0', controller);
    history.advance(2000).replace('ing-c-0', 'r2');
    history.advance(2000);
    roll(history, all.slice(4, 8));
    expect(history.said).toEqual([]);
  });
});

describe('S1', () => {
  it('finds a pod that goes while another zone has lacked one for more than 10 s', () => {
    const history = new History();
    history.ready('ing-b-0', false);
    history.advance(10_500).take('ing-a-2', history.agent('a1', 400));
    expect(history.found('S1')).toEqual(['a1 disrupts ing-a-2 while ing-b has unavailable pods: ing-b-0']);
  });

  it('allows a deletion that was requested less than 10 s after the other pod failed, even if it arrives late', () => {
    const history = new History();
    history.ready('ing-b-0', false);
    history.advance(40_000).take('ing-a-2', history.agent('a1', 30_500));
    expect(history.found('S1')).toEqual([]);
  });

  it('counts what an agent has done at once, also another process, and until a pod is available again', () => {
    const history = new History();
    history.announceAndTake('ing-b-0', 'b1');
    history.advance(100).take('ing-a-2', history.agent('a1', 5000));
    expect(history.found('S1')).toEqual(['a1 disrupts ing-a-2 while ing-b has unavailable pods: ing-b-0']);
    const waiting = new History();
    waiting.announceAndTake('ing-b-0');
    waiting.advance(3000).replace('ing-b-0', 'r2', false);
    // Whoever deletes the successor now delays what the agent began.
    waiting.take('ing-b-0', controller);
    waiting.replace('ing-b-0', 'r2', false);
    waiting.advance(1000).take('ing-a-2');
    expect(waiting.found('S1')).toHaveLength(1);
  });

  it('takes a pod that was down already for the agent’s own once an agent has replaced it', () => {
    const history = new History();
    history.ready('ing-b-0', false);
    history.announceAndTake('ing-b-0');
    history.advance(1000).take('ing-a-2');
    expect(history.found('S1')).toHaveLength(1);
  });

  it('does not count what has failed again after it was available for a moment', () => {
    const history = new History();
    history.ready('ing-b-0', false);
    history.advance(20_000).ready('ing-b-0', true);
    history.advance(1000).ready('ing-b-0', false);
    history.advance(9000).take('ing-a-2');
    expect(history.found('S1')).toEqual([]);
  });

  it('waits for minReadySeconds by the true clock, less what the wall clock of the process is ahead', () => {
    const young = (aheadMs: number): History => {
      const history = new History({ minReadySeconds: 30 });
      history.advance(60_000).ready('ing-b-0', false);
      history.advance(20_000).ready('ing-b-0', true);
      history.clocks.set('a1', { rate: 1, wallErrorMs: aheadMs });
      history.advance(25_000).take('ing-a-2');
      return history;
    };
    expect(young(0).found('S1')).toHaveLength(1);
    expect(young(6000).found('S1')).toEqual([]);
  });

  it('counts as far back as the clock of the process is slow', () => {
    const history = new History();
    history.clocks.set('a1', { rate: 0.5, wallErrorMs: 0 });
    history.ready('ing-b-0', false);
    history.advance(19_000).take('ing-a-2');
    expect(history.found('S1')).toEqual([]);
    history.advance(2000).take('ing-a-1');
    expect(history.found('S1')).toHaveLength(1);
  });

  it('asks for a StatefulSet that is there, unless it has just gone', () => {
    const history = new History();
    history.remove('statefulsets.apps', 'ing-b');
    history.advance(9000).take('ing-a-2');
    expect(history.found('S1')).toEqual([]);
    history.advance(2000).take('ing-c-2');
    expect(history.found('S1')).toContain('a1 disrupts ing-c-2 while the StatefulSet ing-b does not exist');
  });

  it('does not count a zone that has left the group', () => {
    const history = new History();
    history.ready('ing-b-0', false);
    history.change('rolloutgroups.rollout-group.dev', 'ing', ({ spec }) => {
      const zones = (spec as { readonly members: { readonly zones: readonly { readonly name: string }[] } }).members.zones;
      return { spec: { ...(spec as object), members: { zones: zones.filter(({ name }) => name !== 'b') } } };
    });
    history.advance(20_000).take('ing-a-2');
    expect(history.found('S1')).toEqual([]);
  });

  it('counts deletes by other clients after 10 s, and those of agents at once', () => {
    const byPeople = new History();
    byPeople.scale('ing-b', 4);
    byPeople.advance(9000).take('ing-a-2');
    expect(byPeople.found('S1')).toEqual([]);
    byPeople.advance(2000).take('ing-c-2');
    expect(byPeople.found('S1').join()).toContain('ing-b has unavailable pods: ing-b-3');
    const byAgent = new History();
    byAgent.scale('ing-b', 4, byAgent.agent());
    byAgent.advance(1000).take('ing-a-2');
    expect(byAgent.found('S1')).toHaveLength(1);
  });

  it('passes over a paused zone of an adopted group', () => {
    const history = new History({ kind: 'adopted' });
    history.change('statefulsets.apps', 'ing-b', () => ({ metadata: { annotations: { 'grafana.com/rollout-paused': 'true' } } }));
    history.ready('ing-b-0', false);
    history.advance(60_000).take('ing-a-2');
    expect(history.found('S1')).toEqual([]);
  });
});

describe('S2 and S3', () => {
  it('finds the deletion of a healthy pod beyond the budget, and allows the last one within it', () => {
    const history = new History({ maxUnavailable: 2 });
    history.ready('ing-a-0', false);
    history.advance(11_000).take('ing-a-2');
    expect(history.broken()).not.toContain('S2');
    history.take('ing-a-1');
    expect(history.found('S2')).toEqual([
      'a1 disrupts ing-a-1 while ing-a has ing-a-0, ing-a-2 unavailable, and no more than 2 may be unavailable',
    ]);
    expect(history.found('S3')).toHaveLength(1);
  });

  it('allows the deletion of a pod that is unavailable, or was until a moment ago', () => {
    const history = new History();
    history.ready('ing-a-0', false);
    history.ready('ing-a-2', false);
    history.advance(60_000).take('ing-a-2');
    history.ready('ing-a-0', true);
    history.take('ing-a-0');
    expect(history.broken()).not.toContain('S2');
  });

  it('takes the most lenient limit of the last 10 s, and percentages of the replicas', () => {
    const history = new History({ maxUnavailable: '67%' });
    history.take('ing-a-2');
    history.take('ing-a-1');
    expect(history.found('S2')).toEqual([]);
    history.take('ing-a-0');
    expect(history.found('S2')).toHaveLength(1);
    const changed = new History({ maxUnavailable: 2 });
    changed.take('ing-a-2');
    changed.change('rolloutgroups.rollout-group.dev', 'ing', ({ spec }) => ({
      spec: { ...(spec as object), rollout: { maxUnavailable: 1 } },
    }));
    changed.advance(9000).take('ing-a-1');
    expect(changed.found('S2')).toEqual([]);
    changed.replace('ing-a-1');
    changed.advance(2000).take('ing-a-0');
    expect(changed.found('S2')).toHaveLength(1);
  });
});

describe('S26', () => {
  it('keeps the last readable budget when an unreadable one would be wider', () => {
    const history = new History({ kind: 'adopted', maxUnavailable: 1 });
    history.change('statefulsets.apps', 'ing-a', () => ({ metadata: { annotations: { 'rollout-max-unavailable': 'many' } } }));
    history.take('ing-a-2');
    expect(history.found('S26')).toEqual([]);
    history.take('ing-a-1');
    expect(history.found('S26')).toHaveLength(1);
  });
});

describe('S8', () => {
  it('finds a zone that is begun before the successor runs the new revision', () => {
    const history = new History();
    history.take('ing-b-0');
    history.advance(3000).replace('ing-b-0', 'r1');
    history.advance(60_000).take('ing-a-2');
    expect(history.found('S8')).toEqual(['a1 disrupts ing-a-2 before ing-b-0 settled']);
  });

  it('accepts an unavailable zone that comes first, once the successor is available at any revision', () => {
    const history = new History();
    history.take('ing-b-0');
    history.advance(3000).replace('ing-b-0', 'r1');
    history.advance(60_000).ready('ing-a-2', false);
    history.advance(60_000).take('ing-a-2');
    expect(history.found('S8')).toEqual([]);
    const early = new History();
    early.take('ing-b-0');
    early.advance(60_000).ready('ing-a-2', false);
    early.advance(60_000).take('ing-a-2');
    expect(early.found('S8')).toEqual(['a1 disrupts ing-a-2 before ing-b-0 settled']);
  });

  it('is content with a successor at any revision that was asked for since', () => {
    const history = new History();
    history.take('ing-b-0');
    history.advance(3000).replace('ing-b-0', 'r1');
    history.change('statefulsets.apps', 'ing-b', ({ status }) => ({ status: { ...(status as object), updateRevision: 'r1' } }));
    history.advance(60_000).take('ing-a-2');
    expect(history.found('S8')).toEqual([]);
  });

  it('does not bind adopted groups, nor after the successor was available once', () => {
    const adopted = new History({ kind: 'adopted' });
    adopted.take('ing-b-0');
    adopted.replace('ing-b-0', 'r1');
    adopted.take('ing-a-2');
    expect(adopted.found('S8')).toEqual([]);
    const settled = new History();
    settled.take('ing-b-0');
    settled.replace('ing-b-0');
    settled.advance(1000).ready('ing-b-0', false);
    settled.advance(1000).take('ing-a-2');
    expect(settled.found('S8')).toEqual([]);
  });
});

describe('S9', () => {
  it('finds more pods in replacement than the limit, although the next one is down itself', () => {
    const history = new History();
    history.take('ing-a-2');
    history.replace('ing-a-2', 'r2', false);
    history.ready('ing-a-1', false);
    history.advance(60_000).take('ing-a-1');
    expect(history.found('S9')).toEqual(['a1 disrupts ing-a-1 while ing-a-2 are being replaced, and no more than 1 may be at once']);
  });

  it.each(['OrderedReady', 'Parallel'] as const)('knows whether what is missing above waits for the cure, or comes: %s', (policy) => {
    const history = new History();
    history.change('statefulsets.apps', 'ing-a', ({ spec }) => ({ spec: { ...(spec as object), podManagementPolicy: policy } }));
    history.take('ing-a-1');
    history.remove('pods', 'ing-a-1');
    history.ready('ing-a-0', false);
    history.advance(60_000).take('ing-a-0');
    expect(history.found('S9')).toHaveLength(policy === 'OrderedReady' ? 0 : 1);
  });

  it('finds a second pod, and a pod above an unavailable pod, with OrderedReady', () => {
    const ordered = (): History => {
      const history = new History({ maxUnavailable: 2 });
      history.change('statefulsets.apps', 'ing-a', ({ spec }) => ({ spec: { ...(spec as object), podManagementPolicy: 'OrderedReady' } }));
      return history;
    };
    const second = ordered();
    second.take('ing-a-2');
    second.advance(60_000).take('ing-a-1');
    expect(second.found('S9')).toEqual(['a1 disrupts ing-a-1 while ing-a-2 are being replaced, and no more than 1 may be at once']);
    const above = ordered();
    above.ready('ing-a-0', false);
    above.advance(60_000).take('ing-a-1');
    expect(above.found('S9')).toEqual(['a1 disrupts ing-a-1, whose successor would wait for ing-a-0 (OrderedReady)']);
  });

  it('lets a broken revision be replaced by another one', () => {
    const history = new History({ maxUnavailable: 2 });
    for (const pod of ['ing-a-2', 'ing-a-1']) {
      history.take(pod);
      history.replace(pod, 'r2', false);
    }
    history.change('statefulsets.apps', 'ing-a', ({ status }) => ({ status: { ...(status as object), updateRevision: 'r3' } }));
    history.take('ing-a-2');
    history.take('ing-a-1');
    expect(history.found('S9')).toEqual([]);
  });
});

describe('S15', () => {
  it('finds a pod that goes while pods are on their way out', () => {
    const history = new History();
    history.scale('ing-b', 2, history.agent());
    history.take('ing-a-2');
    expect(history.found('S15')).toEqual(['a1 disrupts ing-a-2 while pods of ing-b are being removed']);
  });

  it('permits it when they are gone, and when another client has just started it', () => {
    const history = new History();
    history.scale('ing-b', 2, history.agent());
    history.remove('pods', 'ing-b-2');
    history.take('ing-a-2');
    const byPeople = new History();
    byPeople.scale('ing-b', 2);
    byPeople.advance(9000).take('ing-a-2');
    expect([...history.found('S15'), ...byPeople.found('S15')]).toEqual([]);
    byPeople.advance(2000).take('ing-a-1');
    expect(byPeople.found('S15')).toHaveLength(1);
  });

  it('allows the deletion of an unavailable pod if no pod leaves before its repair, as under OrderedReady', () => {
    const shrunk = (podManagementPolicy: string) => {
      const history = new History();
      history.change('statefulsets.apps', 'ing-a', ({ spec }) => ({ spec: { ...(spec as object), podManagementPolicy } }));
      history.ready('ing-a-0', false);
      history.scale('ing-a', 2, history.agent());
      return history.advance(11_000);
    };
    const ordered = shrunk('OrderedReady');
    ordered.take('ing-a-0');
    expect(ordered.found('S15')).toEqual([]);
    ordered.take('ing-a-1');
    expect(ordered.found('S15')).toHaveLength(1);
    const parallel = shrunk('Parallel');
    parallel.take('ing-a-0');
    expect(parallel.found('S15')).toHaveLength(1);
  });

  it('finds a zone that shrinks while pods of another are being replaced', () => {
    const history = new History();
    history.take('ing-a-2');
    history.scale('ing-b', 2, history.agent());
    expect(history.found('S15')).toEqual(['a1 scales ing-b from 3 to 2 while ing-a-2 are being replaced']);
  });
});
