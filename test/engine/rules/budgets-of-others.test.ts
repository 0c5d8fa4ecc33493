import { describe, expect, it } from 'vitest';
import { choosePods } from '../../../engine/rules/budget.ts';
import type { PodBudgetView, PodView, ZoneBudgetView } from '../../../engine/snapshot.ts';
import type { RolloutDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { newRevision, type PodChanges } from '../../kit/objects.ts';
import { ago, contextWith, intent, line, minuteMs, outdatedSets, rollQuestion } from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const zpdb: ZoneBudgetView = {
  namespace: 'mimir',
  name: 'zpdb',
  matchLabels: { 'rollout-group': 'ingester' },
  maxUnavailable: 1,
  crossZoneDelayMs: 0,
};
const pdb: PodBudgetView = {
  namespace: 'mimir',
  name: 'pdb',
  selector: { matchLabels: { 'rollout-group': 'ingester' } },
  maxUnavailable: 1,
};
const stuck: Partial<PodView> = { isReady: false, readyChangedMs: ago(5 * minuteMs) };

interface Given extends Omit<SnapshotOverrides, 'pods'> {
  readonly rotateBy?: RolloutDefinition['rotateBy'];
  readonly disruption?: number;
  readonly pods?: PodChanges;
  readonly minReadySeconds?: number;
}

/** Two zones of five outdated pods, of which two may be unavailable, rolled by deletion unless the case says otherwise. */
function ask({ rotateBy = 'delete', disruption, pods = {}, minReadySeconds = 0, ...overrides }: Given) {
  const own = disruption === undefined ? {} : { disruption: { maxUnavailable: disruption, crossZoneDelayMs: 0 } };
  const definition = group({
    zones: [{ name: 'a', maxUnavailable: 2 }, 'b'],
    rollout: { rotateBy },
    sources: { disruption: line(2) },
    ...own,
  });
  const statefulSets = outdatedSets(['a', 'b'], { replicas: 5, minReadySeconds });
  const choice = choosePods(rollQuestion(contextWith(definition, { statefulSets, podChanges: { 'ingester-zone-a': pods }, ...overrides })));
  return { going: choice.chosen.map(({ pod }) => pod.ordinal), results: choice.results.slice(1) };
}

describe('the disruption budget', () => {
  const source = { object: 'ZoneAwarePodDisruptionBudget mimir/zpdb' };
  const rule = 'disruption-budget';

  it('has no result if it is missing', () => {
    expect(ask({})).toEqual({ going: [4, 3], results: [] });
  });

  it('counts each chosen pod against the next', () => {
    expect(ask({ zoneBudgets: [zpdb] })).toEqual({
      going: [4],
      results: [{ rule, outcome: 'ok', fact: '0 of 1 unavailable in ingester-zone-a', limit: '1', source }],
    });
    expect(ask({ zoneBudgets: [{ ...zpdb, maxUnavailable: 2 }] }).going).toEqual([4, 3]);
  });

  it('of zero is overridden by the limit of the zone', () => {
    expect(ask({ zoneBudgets: [{ ...zpdb, maxUnavailable: 0 }] }).going).toEqual([4, 3]);
  });

  it('blocks every pod if another zone lacks one', () => {
    const podChanges = { 'ingester-zone-b': { 1: { isReady: false } } };
    expect(ask({ zoneBudgets: [zpdb], podChanges })).toEqual({
      going: [],
      results: [{ rule, outcome: 'wait', fact: 'ingester-zone-a-4: 1 pod not ready in ingester-zone-b', limit: '1', source }],
    });
  });

  it('of the group names its location', () => {
    expect(ask({ disruption: 1 })).toEqual({
      going: [4],
      results: [{ rule, outcome: 'ok', fact: '0 of 1 unavailable in ingester-zone-a', limit: '1', source: line(2) }],
    });
  });

  it('that could not be read blocks every pod', () => {
    expect(ask({ zoneBudgets: { unknown: 'forbidden' } })).toEqual({
      going: [],
      results: [{ rule, outcome: 'unknown', fact: 'disruption budgets could not be read: forbidden' }],
    });
  });

  it('is not checked if no pod is replaced', () => {
    expect(ask({ zoneBudgets: { unknown: 'forbidden' }, pods: { 0: 'missing', 1: 'missing' } })).toEqual({ going: [], results: [] });
  });
});

describe('the eviction budget', () => {
  const source = { object: 'PodDisruptionBudget mimir/pdb' };
  const rule = 'eviction-budget';
  const evict = (given: Given) => ask({ rotateBy: 'evict', ...given });

  it('does not apply to deletes, or if it is missing', () => {
    expect(ask({ podBudgets: [pdb] })).toEqual({ going: [4, 3], results: [] });
    expect(evict({})).toEqual({ going: [4, 3], results: [] });
    expect(evict({ podBudgets: [{ ...pdb, namespace: 'loki' }] })).toEqual({ going: [4, 3], results: [] });
  });

  it('limits the evictions so that enough pods stay healthy', () => {
    expect(evict({ podBudgets: [pdb] })).toEqual({
      going: [4],
      results: [{ rule, outcome: 'ok', fact: 'pdb requires 9 of 10 pods: 10 healthy', limit: '9 healthy', source }],
    });
    expect(evict({ podBudgets: [{ ...pdb, maxUnavailable: '20%' }] }).going).toEqual([4, 3]);
  });

  it('that is spent waits', () => {
    expect(evict({ podBudgets: [pdb], pods: { 0: { revision: newRevision, isReady: false } } })).toEqual({
      going: [],
      results: [{ rule, outcome: 'wait', fact: 'pdb requires 9 of 10 pods: 9 healthy', limit: '9 healthy', source }],
    });
  });

  it('that is spent names the time at which a pod becomes available', () => {
    const waking = { revision: newRevision, readyChangedMs: ago(minuteMs) };
    const podChanges = { 'ingester-zone-a': { 0: waking }, 'ingester-zone-b': { 1: { isReady: false } } };
    const spent = evict({ podBudgets: [pdb], minReadySeconds: 90, podChanges });
    expect(spent.results).toMatchObject([{ outcome: 'wait', earliestMs: ago(minuteMs) + 90_000 }]);
  });

  it('allows an unready pod while enough others are healthy', () => {
    const unready = { isReady: false, readyChangedMs: ago(minuteMs) };
    expect(evict({ podBudgets: [pdb], pods: { 1: unready } }).going).toEqual([1]);
    expect(evict({ podBudgets: [{ ...pdb, maxUnavailable: 0 }], pods: { 1: unready } }).going).toEqual([]);
  });

  it('that allows no disruption is a no and names the field', () => {
    const answer = (amounts: Partial<PodBudgetView>, given: Given = {}) => {
      const { maxUnavailable: _one, ...bare } = pdb;
      const { going, results } = evict({ podBudgets: [{ ...bare, ...amounts }], ...given });
      expect(going).toEqual([]);
      return results;
    };
    const no = (text: string, field: string) => [
      {
        rule,
        outcome: 'no',
        fact: `PodDisruptionBudget pdb allows no eviction: ${text}`,
        limit: '0',
        source: { ...source, field: `spec.${field}` },
      },
    ];
    expect(answer({ maxUnavailable: 0 })).toEqual(no('maxUnavailable is 0', 'maxUnavailable'));
    expect(answer({ maxUnavailable: '0%' })).toEqual(no('maxUnavailable is 0%', 'maxUnavailable'));
    expect(answer({ minAvailable: '100%' })).toEqual(no('minAvailable is 100%', 'minAvailable'));
    // With one pod less than it asks for it would wait for ever, too.
    expect(answer({ minAvailable: '100%' }, { pods: { 0: { revision: newRevision, isReady: false } } })).toMatchObject([{ outcome: 'no' }]);
    // It may cover pods of a Deployment, too, of which the snapshot says nothing.
    expect(answer({ minAvailable: 10 })).toEqual([
      { rule, outcome: 'wait', fact: 'pdb requires 10 of 10 pods: 10 healthy', limit: '10 healthy', source },
    ]);
    expect(answer({ minAvailable: '91%' })).toMatchObject([{ outcome: 'wait' }]);
  });

  it('that allows no pod waits while one may become stuck, and while the group is paused', () => {
    const none = [{ ...pdb, maxUnavailable: 0 }];
    const unready = { isReady: false, readyChangedMs: ago(minuteMs) };
    expect(evict({ podBudgets: none, pods: { 1: unready } }).results).toMatchObject([{ outcome: 'wait' }]);
    expect(evict({ podBudgets: none, intents: [intent({ action: 'pause' })] }).results).toMatchObject([{ outcome: 'wait' }]);
  });

  it('is not checked for stuck pods, which are deleted', () => {
    expect(evict({ podBudgets: [{ ...pdb, maxUnavailable: 0 }], pods: { 1: stuck } })).toMatchObject({
      going: [1],
      results: [{ outcome: 'ok' }],
    });
  });

  it('denies pods that two budgets select, except stuck ones', () => {
    const both = [{ ...pdb, name: 'second' }, pdb];
    const refusal = {
      rule,
      outcome: 'no',
      fact: '2 PodDisruptionBudgets select these pods (pdb, second); the eviction API accepts at most one',
      source,
    };
    expect(evict({ podBudgets: both })).toEqual({ going: [], results: [refusal] });
    expect(evict({ podBudgets: both, pods: { 1: stuck } })).toEqual({ going: [1], results: [{ ...refusal, outcome: 'ok' }] });
  });

  it('that could not be read blocks every pod', () => {
    expect(evict({ podBudgets: { unknown: 'forbidden' } })).toEqual({
      going: [],
      results: [{ rule, outcome: 'unknown', fact: 'PodDisruptionBudgets could not be read: forbidden' }],
    });
  });
});
