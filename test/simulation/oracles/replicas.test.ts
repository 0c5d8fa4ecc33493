import { describe, expect, it } from 'vitest';
import type { GroupShape } from '../../../simulation/scenario.ts';
import type { Json } from '../../../simulation/server/request.ts';
import { History } from './history.ts';

describe('S1 of decreases', () => {
  it('finds one while another zone lacks a pod, in a native group alone', () => {
    const [native, adopted] = (['native', 'adopted'] as const).map((kind) => {
      const history = new History({ kind });
      history.ready('ing-b-0', false);
      history.advance(11_000).scale('ing-c', 2, history.agent());
      return history.found('S1');
    });
    expect(native).toEqual(['a1 scales ing-c from 3 to 2 while ing-b has unavailable pods: ing-b-0']);
    expect(adopted).toEqual([]);
  });
});

describe('a decrease that was sent before a webhook admitted an eviction in another zone', () => {
  it("breaks 'S1' only if the group has a budget, so that the ledger announced the eviction", () => {
    const found = (shape: Partial<GroupShape>): readonly string[] => {
      const history = new History({ replicas: 'own', ...shape });
      history.advance(11_000).evict('ing-b-0');
      history.remove('pods', 'ing-b-0');
      history.advance(1000).scale('ing-c', 2, history.agent('a1', 2000));
      return history.found('S1');
    };
    expect(found({ disruption: 1 })).toEqual(['a1 scales ing-c from 3 to 2 while ing-b has unavailable pods: ing-b-0']);
    expect(found({})).toEqual([]);
  });
});

describe('a decrease while another zone shrinks', () => {
  it("breaks 'S1', also if a user shrinks the other zone", () => {
    const history = new History({ replicas: 'own', betweenZonesSeconds: 0 });
    history.scale('ing-a', 2);
    history.advance(11_000).scale('ing-b', 2, history.agent());
    expect(history.found('S1')).toEqual(['a1 scales ing-b from 3 to 2 while pods of ing-a are being removed']);
  });
});

describe('S12', () => {
  const shrink = (secondAfterMs: number, arrangement: (history: History) => void = () => undefined): readonly string[] => {
    const history = new History({ replicas: 'own', betweenZonesSeconds: 120 });
    history.scale('ing-a', 2, history.agent());
    history.remove('pods', 'ing-a-2');
    history.advance(secondAfterMs);
    arrangement(history);
    history.scale('ing-b', 2, history.agent());
    return history.found('S12');
  };

  it('finds two zones that shrink within the time between zones', () => {
    expect(shrink(105_000)).toEqual(['a1 scales ing-b from 3 to 2, only 105000 ms after ing-a shrank; the minimum is 120000 ms']);
    expect(shrink(120_000)).toEqual([]);
  });

  it('counts from the time at which the first arrived, also if it was sent long before', () => {
    const history = new History({ replicas: 'own', betweenZonesSeconds: 120 });
    history.scale('ing-a', 2, history.agent('a1', 30_000));
    history.remove('pods', 'ing-a-2');
    history.advance(115_000).scale('ing-b', 2, history.agent());
    expect(history.found('S12')).toHaveLength(1);
  });

  it('forgives what the wall clock was set forward in between', () => {
    expect(shrink(60_000, ({ clocks }) => clocks.set('a1', { rate: 1, wallErrorMs: 60_000 }))).toEqual([]);
  });

  it('ignores one zone alone, and forced replicas', () => {
    const history = new History({ replicas: 'own' });
    history.scale('ing-a', 2, history.agent());
    history.advance(1000).scale('ing-a', 1, history.agent());
    expect(history.found('S12')).toEqual([]);
    const force = (of: History): void => {
      const zones = ['a', 'b', 'c'].map((name) => ({ name, statefulSet: `ing-${name}`, forceReplicas: 1 }));
      of.change('rolloutgroups.rollout-group.dev', 'ing', ({ spec }) => ({ spec: { ...(spec as object), members: { zones } } }));
    };
    expect(shrink(1000, force)).toEqual([]);
  });
});

describe('S13', () => {
  it('finds a follower below the requested or current replicas of its leader', () => {
    const history = new History({ replicas: 'leader' });
    history.scale('ing-b', 2, history.agent());
    expect(history.found('S13')).toHaveLength(1);
    const ending = new History({ replicas: 'leader' });
    ending.scale('ing-a', 2);
    ending.advance(20_000).scale('ing-b', 2, ending.agent());
    expect(ending.found('S13')).toEqual(['a1 scales ing-b from 3 to 2, and its leader ing-a has 2 replicas and 3 pods']);
  });

  it('lets it follow when the pods of the leader are gone, also one that has just been asked for again', () => {
    const history = new History({ replicas: 'leader' });
    history.scale('ing-a', 2);
    history.remove('pods', 'ing-a-2');
    history.advance(20_000).scale('ing-a', 3);
    history.advance(9000).scale('ing-b', 2, history.agent());
    expect(history.found('S13')).toEqual([]);
  });
});

describe('S14', () => {
  it('finds a zone without replicas, and one below its minimum', () => {
    const history = new History({ replicas: 'own' });
    history.scale('ing-a', 1, history.agent());
    expect(history.found('S14')).toEqual([]);
    history.scale('ing-a', 0, history.agent());
    expect(history.found('S14')).toEqual(['a1 scales ing-a from 1 to 0, below its floor of 1']);
    const bounded = new History({ replicas: 'own' });
    bounded.change('rolloutgroups.rollout-group.dev', 'ing', ({ spec }) => ({
      spec: { ...(spec as object), replicas: { bounds: { min: 3 } } },
    }));
    bounded.advance(11_000).scale('ing-a', 2, bounded.agent());
    expect(bounded.found('S14')).toHaveLength(1);
  });

  it('does not bind adopted groups', () => {
    const history = new History({ kind: 'adopted', replicas: 'own' });
    history.scale('ing-a', 0, history.agent());
    expect(history.broken()).not.toContain('S14');
  });
});

describe('S16', () => {
  const toAndFro = (between: (history: History) => void): readonly string[] => {
    const history = new History({ replicas: 'mirror' });
    history.scale('ing-a', 2, history.agent());
    history.advance(20_000);
    between(history);
    history.scale('ing-a', 3, history.agent());
    return history.found('S16');
  };

  it('finds replicas that alternate although their source has not changed', () => {
    expect(toAndFro((history) => history.ready('ing-b-0', false))).toEqual([
      'a1 scales ing-a from 2 to 3 after the opposite change, although no input has changed since',
    ]);
  });

  it('lets them follow what was asked for, also before the first number arrived', () => {
    const source = (history: History) =>
      history.write('replicatemplates.rollout-operator.grafana.com', { metadata: { name: 'ing' }, spec: { replicas: 3 } });
    expect(toAndFro(source)).toEqual([]);
    const history = new History({ replicas: 'mirror' });
    source(history);
    history.advance(5000).scale('ing-a', 2, history.agent());
    history.advance(20_000).scale('ing-a', 3, history.agent());
    expect(history.found('S16')).toEqual([]);
  });

  it('allows a zone to continue in the same direction', () => {
    const history = new History({ replicas: 'own' });
    history.scale('ing-a', 2, history.agent());
    history.scale('ing-a', 1, history.agent());
    expect(history.found('S16')).toEqual([]);
  });
});

describe('S4 of decreases', () => {
  it('finds one while a status is older than its spec', () => {
    const history = new History({ replicas: 'own' });
    history.change('statefulsets.apps', 'ing-b', () => ({ metadata: { generation: 2 } }));
    history.advance(11_000).scale('ing-a', 2, history.agent());
    expect(history.found('S4')).toHaveLength(1);
  });
});

describe('S15 of changes during a rollout', () => {
  const change = (to: number, shape: Partial<GroupShape> = {}, progress: Json = {}, outcome = 'running'): readonly string[] => {
    const history = new History({ replicas: 'own', betweenZonesSeconds: 0, ...shape });
    history.ledger('run1', outcome, 'r2', undefined, progress);
    history.advance(11_000).scale('ing-a', to, history.agent());
    return history.found('S15');
  };

  it('finds a decrease during a run, and with `allow` only while another zone is open', () => {
    expect(change(2)).toEqual(['a1 scales ing-a from 3 to 2 during the run run1']);
    expect([change(2, {}, {}, 'failed'), change(2, {}, {}, 'completed')]).toEqual([[], []]);
    const allow = { scalesDuringRollout: true } as const;
    expect(change(2, allow, { openZone: 'b' })).toEqual(['a1 scales ing-a from 3 to 2 while zone b rolls']);
    expect([change(2, allow, { openZone: 'a' }), change(2, allow)]).toEqual([[], []]);
  });

  it('finds an increase only while a pod of the open zone is being replaced, and with `allow` none', () => {
    const grow = (shape: Partial<GroupShape> = {}): readonly string[] => {
      const history = new History({ replicas: 'own', ...shape });
      history.ledger('run1', 'running', 'r2', undefined, { openZone: 'b' });
      history.announceAndTake('ing-b-2');
      history.advance(11_000).scale('ing-a', 4, history.agent());
      return history.found('S15');
    };
    expect(grow()).toEqual(['a1 scales ing-a from 3 to 4 while ing-b-2 are being replaced']);
    expect([change(4, {}, { openZone: 'b' }), grow({ scalesDuringRollout: true })]).toEqual([[], []]);
  });
});
