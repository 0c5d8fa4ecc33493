import { describe, expect, it } from 'vitest';
import { choosePods } from '../../../engine/rules/budget.ts';
import type { PodView } from '../../../engine/snapshot.ts';
import type { LimitsDefinition, RolloutDefinition } from '../../../policies/definition.ts';
import { adopted, group, type ZoneOverrides } from '../../kit/groups.ts';
import { kitNowMs, newRevision, type PodChanges, statefulSet } from '../../kit/objects.ts';
import {
  ago,
  contextWith,
  exception,
  ledgerOf,
  line,
  minuteMs,
  outdatedSets,
  policy,
  preparation,
  rollQuestion,
} from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const sources = { 'zones.a.maxUnavailable': line(1), disruption: line(2) };

interface Given {
  readonly build?: typeof group;
  readonly zone?: Omit<ZoneOverrides, 'name'>;
  readonly rollout?: Partial<RolloutDefinition>;
  readonly replicas?: number;
  readonly pods?: PodChanges;
  readonly more?: SnapshotOverrides;
  readonly disruption?: number;
}

/** The pods of zone a that go now, of five outdated ones unless the case says otherwise. */
function choose({ build = group, zone = {}, rollout = {}, replicas = 5, pods = {}, more = {}, disruption }: Given) {
  const own = disruption === undefined ? {} : { disruption: { maxUnavailable: disruption, crossZoneDelayMs: 0 } };
  const definition = build({ zones: [{ name: 'a', ...zone }, 'b'], rollout, sources, ...own });
  const statefulSets = outdatedSets(['a', 'b'], { replicas });
  return choosePods(rollQuestion(contextWith(definition, { statefulSets, podChanges: { 'ingester-zone-a': pods }, ...more })));
}

/** The ordinals that go, those that are cured marked by an exclamation mark. */
const going = (given: Given) =>
  choose(given)
    .chosen.map(({ pod, because }) => `${pod.ordinal}${because === 'stuck' ? '!' : ''}`)
    .join(' ');
const queue = (given: Given) => choose(given).queue.map(({ ordinal }) => ordinal);

/** Unready for a minute, which is not long enough to be stuck. */
const unready: Partial<PodView> = { isReady: false, readyChangedMs: ago(minuteMs) };
const stuck: Partial<PodView> = { isReady: false, readyChangedMs: ago(5 * minuteMs) };
const crashing: Partial<PodView> = { ...unready, waitingReasons: ['CrashLoopBackOff'] };
const two: Given = { zone: { maxUnavailable: 2 } };

describe('the ledger', () => {
  const claim = { verb: 'deletePod', zone: 'a', ordinal: 9, atMs: kitNowMs } as const;
  const open = (count: number) => ({
    ledgers: [ledgerOf({ claims: Array.from({ length: count }, (_, index) => ({ ...claim, uid: `gone-${index}` })) })],
  });

  it.each([group, adopted])('has room for every chosen replacement', (build) => {
    const all: Given = { build, zone: { maxUnavailable: '100%' }, replicas: 300 };
    expect(choose(all).chosen).toHaveLength(100);
    expect(choose({ ...all, more: open(97) }).chosen).toHaveLength(3);
    expect(choose({ ...all, more: open(100) }).chosen).toHaveLength(0);
  });
});

describe('an exception', () => {
  const spent: Given = { zone: { maxUnavailable: 3 }, disruption: 1, pods: { 0: unready } };
  const excepted = (podsAtMost: number) => ({
    ...spent,
    more: { exceptions: [exception('disruption-budget', { allow: { podsAtMost } })] },
  });

  it('of the disruption budget allows as many pods as it names', () => {
    expect([going(spent), going(excepted(1)), going(excepted(2))]).toEqual(['0', '0', '0 4']);
  });

  it('of the disruption budget counts pods in flight', () => {
    const inFlight = { pods: { 0: { isTerminating: true } } };
    expect([1, 2, 3].map((podsAtMost) => going({ ...excepted(podsAtMost), ...inFlight }))).toEqual(['', '4', '4 3']);
  });

  it('of unreadable disruption budgets allows as many pods as it names', () => {
    const { more } = excepted(2);
    const unread = { ...spent, more: { ...more, zoneBudgets: { unknown: 'timeout' } } };
    expect([going(unread), going({ ...unread, pods: {} }), going({ ...unread, more: { zoneBudgets: { unknown: 'timeout' } } })]).toEqual([
      '0 4',
      '4 3',
      '',
    ]);
  });
});

describe('the disruption budget of a group', () => {
  const down: PodChanges = { 1: stuck };

  it('is not checked for a stuck pod, also if a pod of the other zone is stuck', () => {
    const podChanges = { 'ingester-zone-a': down, 'ingester-zone-b': down };
    expect(going({ disruption: 1, more: { podChanges } })).toBe('1!');
  });

  it('keeps a pod while a pod of the other zone is unready', () => {
    expect(going({ disruption: 1 })).toBe('4');
    expect(going({ disruption: 1, more: { podChanges: { 'ingester-zone-b': { 1: unready } } } })).toBe('');
  });
});

describe('the order of replacements', () => {
  it.each<[string, Given, readonly number[]]>([
    ['is by ordinal from the top', {}, [4, 3, 2, 1, 0]],
    ['is by ordinal from the bottom where the group says so', { rollout: { order: 'ascending' } }, [0, 1, 2, 3, 4]],
    ['leaves out pods that are updated', { pods: { 3: { revision: newRevision } } }, [4, 2, 1, 0]],
    ['puts unready pods first', { pods: { 1: unready } }, [1, 4, 3, 2, 0]],
    ['puts stuck pods before other unready ones', { pods: { 3: unready, 1: stuck, 0: crashing } }, [1, 0, 3, 4, 2]],
    [
      'puts pods that wait to leave after all others',
      { more: { ledgers: [ledgerOf({ preparations: [preparation(4), preparation(3)] })] } },
      [2, 1, 0, 4, 3],
    ],
    [
      'has unready pods that wait to leave first all the same',
      { pods: { 4: stuck }, more: { ledgers: [ledgerOf({ preparations: [preparation(4), preparation(3)] })] } },
      [4, 2, 1, 0, 3],
    ],
    [
      'does not count preparations of other zones',
      { more: { ledgers: [ledgerOf({ preparations: [preparation(4, { zone: 'b' })] })] } },
      [4, 3, 2, 1, 0],
    ],
    ['puts pods on a node that is down last', { pods: { 4: { nodeReady: false } } }, [3, 2, 1, 0, 4]],
    ['is by ordinal alone in adopted groups', { build: adopted, pods: { 3: stuck } }, [0, 1, 2, 3, 4]],
  ])('%s', (_name, given, expected) => {
    expect(queue(given)).toEqual(expected);
  });

  it('ends with the amount of the wave', () => {
    const half: Given = {
      rollout: { waves: [{ name: 'half', zones: ['a'], amount: { percent: 50 }, before: { gates: [] }, after: { soakMs: 0, gates: [] } }] },
    };
    expect(queue(half)).toEqual([4, 3, 2]);
  });
});

describe('the budget of a native zone', () => {
  it.each<[string, Given, string]>([
    ['lets one pod go', {}, '4'],
    ['lets several go', { zone: { maxUnavailable: 3 } }, '4 3 2'],
    ['lets a percentage go', { zone: { maxUnavailable: '40%' } }, '4 3'],
    ['counts pods that are missing', { ...two, pods: { 1: 'missing' } }, '4'],
    ['counts pods that terminate', { ...two, pods: { 4: { isTerminating: true } } }, '3'],
    ['counts pods that are unready', { pods: { 2: { revision: newRevision, isReady: false } } }, ''],
    [
      'counts claims',
      { more: { ledgers: [ledgerOf({ claims: [{ verb: 'evictPod', zone: 'a', uid: 'uid-ingester-zone-a-0', atMs: kitNowMs }] })] } },
      '',
    ],
    ['of nothing lets nothing go', { zone: { maxUnavailable: 0 } }, ''],
    ['lets an unready pod go as one that is down already', { ...two, pods: { 1: unready } }, '1 4'],
    ['that is spent by an unready pod lets nothing go', { pods: { 1: unready } }, ''],
    ['is not asked for a stuck pod', { pods: { 1: stuck } }, '1!'],
    ['of nothing is not asked for a stuck pod either', { zone: { maxUnavailable: 0 }, pods: { 1: stuck } }, '1!'],
    ['is not asked for a crashing pod', { pods: { 1: crashing } }, '1!'],
    ['lets no more stuck pods go than the limit', { ...two, pods: { 0: stuck, 1: stuck, 2: stuck } }, '2! 1!'],
    ['counts pods in flight against stuck ones', { ...two, pods: { 0: stuck, 1: stuck, 4: 'missing' } }, '1!'],
    ['has no room for a stuck pod while as many are in flight', { pods: { 0: stuck, 4: 'missing' } }, ''],
    ['never lets a stuck pod on a broken node go', { pods: { 1: { ...stuck, nodeReady: false } } }, ''],
    ['never lets an unready pod on a broken node go', { ...two, pods: { 1: { ...unready, nodeReady: false } } }, '4'],
    [
      'lets a claimed stuck pod go once',
      {
        pods: { 1: stuck },
        more: { ledgers: [ledgerOf({ claims: [{ verb: 'deletePod', zone: 'a', uid: 'uid-ingester-zone-a-1', atMs: kitNowMs }] })] },
      },
      '',
    ],
    ['cures nothing where the group says so', { rollout: { replaceUnready: { when: 'none', afterMs: 0 } }, pods: { 1: crashing } }, ''],
    [
      'cures crashing pods alone where the group says so',
      { zone: { maxUnavailable: 1 }, rollout: { replaceUnready: { when: 'crashing', afterMs: 0 } }, pods: { 1: stuck } },
      '',
    ],
  ])('%s', (_name, given, expected) => {
    expect(going(given)).toBe(expected);
  });
});

describe('the repair of stuck pods under OrderedReady', () => {
  const ordered: SnapshotOverrides = { statefulSets: outdatedSets(['a', 'b'], { replicas: 5, podManagementPolicy: 'OrderedReady' }) };
  it.each<[string, Given, string]>([
    ['is not held back by missing pods that wait for it', { pods: { 0: crashing, 1: 'missing', 2: 'missing', 4: 'missing' } }, '0!'],
    ['begins with the lowest, as nothing above it would come back before', { pods: { 0: stuck, 1: 'missing', 3: stuck } }, '0!'],
    ['takes one pod at once', { ...two, pods: { 0: stuck, 1: stuck, 2: stuck, 3: 'missing' } }, '0!'],
    ['waits for an unavailable pod below, which is not stuck', { ...two, pods: { 0: unready, 1: stuck } }, ''],
    ['waits for a missing pod below, which comes by itself', { pods: { 0: 'missing', 1: stuck, 2: 'missing' } }, ''],
    ['waits for a pod that terminates', { pods: { 0: stuck, 1: 'missing', 4: { isTerminating: true } } }, ''],
    ['waits for a pod that is new and unready', { pods: { 0: stuck, 4: { revision: newRevision, isReady: false } } }, ''],
    ['leaves healthy pods where they are', { pods: { 1: 'missing' } }, ''],
    ['takes one healthy pod, whatever the budget', { ...two }, '4'],
    ['takes no healthy pod above an unavailable one', { zone: { maxUnavailable: 3 }, pods: { 2: { ...unready, nodeReady: false } } }, '1'],
  ])('%s', (_name, given, expected) => {
    expect(going({ more: ordered, ...given })).toBe(expected);
  });
});

describe('the interval between replacements', () => {
  const paced: Given = { zone: { maxUnavailable: 3 }, rollout: { minIntervalMs: minuteMs } };
  const limits: LimitsDefinition = { minIntervalMs: minuteMs };
  it.each<[string, Given, string]>([
    ['lets one pod go at a time', paced, '4'],
    ['lets one stuck pod go at a time', { ...paced, pods: { 0: stuck, 1: stuck } }, '1!'],
    ['lets none go when the budget is spent', { zone: { maxUnavailable: 0 }, rollout: { minIntervalMs: minuteMs } }, ''],
    ['may come from a policy', { zone: { maxUnavailable: 3 }, more: { policies: [policy({ limits })] } }, '4'],
    [
      'of a policy holds for stuck pods too',
      { zone: { maxUnavailable: 3 }, pods: { 0: stuck, 1: stuck }, more: { policies: [policy({ limits })] } },
      '1!',
    ],
  ])('%s', (_name, given, expected) => {
    expect(going(given)).toBe(expected);
  });
});

describe('the budget of an adopted zone', () => {
  const adoptedTwo: Given = { build: adopted, zone: { maxUnavailable: 2 } };
  const down: Partial<PodView> = { containersReady: false };
  it.each<[string, Given, string]>([
    ['lets the first pods go', adoptedTwo, '0 1'],
    ['uses a slot up for a pod that goes already', { ...adoptedTwo, pods: { 0: { isTerminating: true } } }, ''],
    ['counts unready pods, and passes over none', { ...adoptedTwo, pods: { 4: down } }, '0'],
    [
      'lets every crashing pod go in addition',
      { ...adoptedTwo, pods: { 3: { ...down, ...crashing }, 4: { ...down, ...crashing } } },
      '3! 4!',
    ],
    [
      'lets a crashing pod on a broken node go too',
      { build: adopted, pods: { 2: { ...crashing, containersReady: false, nodeReady: false } } },
      '2!',
    ],
    [
      'cures nothing where the group says so',
      { ...adoptedTwo, rollout: { replaceUnready: { when: 'none', afterMs: 0 } }, pods: { 3: { ...down, ...crashing } } },
      '0',
    ],
  ])('%s', (_name, given, expected) => {
    expect(going(given)).toBe(expected);
  });
});

describe('the result of the zone budget', () => {
  const budget = (given: Given) => choose(given).results[0];
  const rule = 'zone-budget';

  it('is ok with the used number, the limit and its location', () => {
    expect(choose({ ...two, pods: { 1: 'missing' } }).results).toEqual([
      { rule, outcome: 'ok', fact: '1 of at most 2 pods unavailable in zone a', limit: '2', source: line(1) },
    ]);
    expect(budget({})).toMatchObject({ fact: '0 of at most 1 pod unavailable in zone a' });
  });

  it('is ok for a stuck pod, with any used number', () => {
    expect(budget({ pods: { 1: stuck } })).toMatchObject({ outcome: 'ok', fact: '1 of at most 1 pod unavailable in zone a' });
  });

  it('names no time while pods are in flight', () => {
    expect(budget({ pods: { 4: 'missing' } })).toEqual({
      rule,
      outcome: 'wait',
      fact: '1 of at most 1 pod unavailable in zone a',
      limit: '1',
      source: line(1),
    });
  });

  it('names no time for a pod that starts, which becomes ready long before it counts as stuck', () => {
    expect(budget({ pods: { 1: unready } })).toMatchObject({ outcome: 'wait' });
    expect(budget({ pods: { 1: unready } })?.earliestMs).toBeUndefined();
  });

  it('waits until a pod that is ready counts as available', () => {
    const statefulSets = [...outdatedSets(['a'], { replicas: 5, minReadySeconds: 90 }), statefulSet({ name: 'ingester-zone-b' })];
    expect(budget({ pods: { 1: { revision: newRevision, readyChangedMs: ago(minuteMs) } }, more: { statefulSets } })?.earliestMs).toBe(
      kitNowMs + 30_000,
    );
  });
});

describe('the limit', () => {
  const budget = (given: Given) => {
    const [answer] = choose(given).results;
    return [answer?.limit, answer?.source];
  };
  const capped = (maxUnavailable: number | string, name = 'safety') =>
    policy({ name, limits: { maxUnavailable: maxUnavailable as number }, limitSources: { maxUnavailable: line(40) } });
  const three: Given = { zone: { maxUnavailable: 3 } };
  const pdb = (name: string, amount: object) => ({
    namespace: 'mimir',
    name,
    selector: { matchLabels: { 'rollout-group': 'ingester' } },
    ...amount,
  });

  it.each<[string, Given, readonly unknown[]]>([
    ["is the zone's own", three, ['3', line(1)]],
    ['is lowered by a policy', { ...three, more: { policies: [capped(2)] } }, ['2', line(40)]],
    ['is not raised by one', { ...three, more: { policies: [capped(4)] } }, ['3', line(1)]],
    ['is lowered by a percentage of this zone', { ...three, more: { policies: [capped('20%')] } }, ['1', line(40)]],
    [
      'is lowered by the strictest policy, counts and percentages alike',
      { ...three, more: { policies: [capped(2), capped('20%', 'b')] } },
      ['1', line(40)],
    ],
    [
      'is raised by an exception',
      { ...three, more: { exceptions: [exception('zone-budget', { allow: { podsAtMost: 4 } })] } },
      ['4', line(30)],
    ],
    [
      'is not lowered by an exception',
      { ...three, more: { exceptions: [exception('zone-budget', { allow: { podsAtMost: 2 } })] } },
      ['3', line(1)],
    ],
    [
      'is its own with an exception of as many',
      { ...three, more: { exceptions: [exception('zone-budget', { allow: { podsAtMost: 3 } })] } },
      ['3', line(1)],
    ],
    ['is the whole zone with an exception of everything', { ...three, more: { exceptions: [exception('zone-budget')] } }, ['5', line(30)]],
    [
      'is raised by an exception over a policy',
      { ...three, more: { policies: [capped(1)], exceptions: [exception('zone-budget', { allow: { podsAtMost: 2 } })] } },
      ['2', line(30)],
    ],
    [
      'is its own with two exceptions',
      { ...three, more: { exceptions: [exception('zone-budget'), exception('zone-budget', { name: 'x' })] } },
      ['3', line(1)],
    ],
    [
      'is its own with an exception of another zone',
      { ...three, more: { exceptions: [exception('zone-budget', { zone: 'b' })] } },
      ['3', line(1)],
    ],
    ['is 1 without a PodDisruptionBudget to take it from', { zone: { maxUnavailable: 'fromBudget' } }, ['1', line(1)]],
    [
      'is what PodDisruptionBudgets let go of this zone',
      { zone: { maxUnavailable: 'fromBudget' }, more: { podBudgets: [pdb('one', { maxUnavailable: '50%' })] } },
      ['3', line(1)],
    ],
    [
      'is what the strictest of them lets go',
      {
        zone: { maxUnavailable: 'fromBudget' },
        more: { podBudgets: [pdb('one', { maxUnavailable: 3 }), pdb('two', { minAvailable: 3 })] },
      },
      ['2', line(1)],
    ],
  ])('%s', (_name, given, expected) => {
    expect(budget(given)).toEqual(expected);
  });
});
