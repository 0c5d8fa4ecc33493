import { describe, expect, it } from 'vitest';
import { adopted, group, type ZoneOverrides } from '../../kit/groups.ts';
import { podsIn, replace, violated } from '../../kit/hand-made.ts';
import { kitNowMs, type PodChanges, pod, statefulSet } from '../../kit/objects.ts';
import { ago, hourMs, ledgerOf, minuteMs, outdatedSets, runOf } from '../../kit/questions.ts';

const down = { isReady: false, readyChangedMs: ago(hourMs) };
const zones = (a: Omit<ZoneOverrides, 'name'>, b: Omit<ZoneOverrides, 'name'> = {}) =>
  group({ zones: [{ name: 'a', ...a }, { name: 'b', ...b }, 'c'] });

describe('a repair while other zones are not ready', () => {
  const two = podsIn({ a: { 2: down }, b: { 1: down } });

  it('violates neither S1 nor S8', () => {
    expect(violated([replace('a', 2, 'stuck')], two)).toEqual([]);
    expect(violated([replace('a', 2, 'stuck')], { ...two, ledgers: [ledgerOf({ run: runOf({ openZone: 'b' }) })] })).toEqual([]);
  });

  it('is of one pod, that is down, while nothing is announced elsewhere, and never in adopted groups', () => {
    const s1 = 'S1: zone a is disrupted while zone b is not ready';
    expect(violated([replace('a', 1, 'stuck')], two)).toContain(s1);
    expect(violated([replace('a', 2)], two)).toContain(s1);
    expect(violated([replace('a', 1, 'stuck'), replace('a', 2, 'stuck')], podsIn({ a: { 1: down, 2: down }, b: { 1: down } }))).toContain(
      s1,
    );
    const claims = [{ verb: 'deletePod', zone: 'b', uid: 'uid-ingester-zone-b-1', ordinal: 1, atMs: kitNowMs }] as const;
    expect(violated([replace('a', 2, 'stuck')], { ...two, ledgers: [ledgerOf({ claims })] })).toContain(s1);
    const broken = podsIn({ a: { 2: { containersReady: false } }, b: { 1: { containersReady: false } } });
    expect(violated([replace('a', 2, 'stuck')], broken, adopted())).toContain(s1);
  });
});

describe('S15, a cure while a zone shrinks', () => {
  it('is not violated by the stuck pod that surplus pods wait for under OrderedReady', () => {
    const sets = outdatedSets(['a'], { podManagementPolicy: 'OrderedReady' });
    const [owner = statefulSet()] = sets;
    const pods = [0, 1, 2, 3].map((ordinal) => pod(owner, ordinal, ordinal === 0 ? down : {}));
    const shrinking = { statefulSets: sets, pods: [{ namespace: 'mimir', statefulSet: owner.name, pods }] };
    const alone = group({ zones: [{ name: 'a', maxUnavailable: 2 }] });
    expect(violated([replace('a', 0, 'stuck')], shrinking, alone)).toEqual([]);
    expect(violated([replace('a', 1)], shrinking, alone)).toEqual(['S15: pods are replaced while zone a shrinks']);
    const parallel = { ...shrinking, statefulSets: outdatedSets(['a']) };
    expect(violated([replace('a', 0, 'stuck')], parallel, alone)).toEqual(['S15: pods are replaced while zone a shrinks']);
  });
});

describe('S9, the cure of stuck pods', () => {
  it('is violated by more pods in flight than the limit', () => {
    expect(violated([replace('a', 1, 'stuck'), replace('a', 2, 'stuck')], podsIn({ a: { 1: down, 2: down } }))).toEqual([
      'S9: 2 pods of zone a would be in flight',
    ]);
    expect(violated([replace('a', 1, 'stuck')], podsIn({ a: { 1: down, 2: 'missing' } }))).toEqual([
      'S9: 2 pods of zone a would be in flight',
    ]);
  });

  it('is not violated under OrderedReady by what is missing above the pod that is cured', () => {
    const cure = (ordinal: number) => [replace('a', ordinal, 'stuck')];
    const more = (changes: PodChanges) => ({
      ...podsIn({ a: changes }),
      statefulSets: outdatedSets(undefined, { podManagementPolicy: 'OrderedReady' }),
    });
    expect(violated(cure(1), more({ 1: down, 2: 'missing' }))).toEqual([]);
    expect(violated(cure(1), more({ 0: 'missing', 1: down }))).toEqual(['S9: 2 pods of zone a would be in flight']);
  });

  it('is violated by the cure of a pod that is well, or not stuck yet', () => {
    const none = zones({ maxUnavailable: 2 });
    expect(violated([replace('a', 2, 'stuck')], {}, none)).toEqual(['S9: ingester-zone-a-2 is available, not stuck']);
    const young = { 2: { isReady: false, readyChangedMs: ago(5 * minuteMs) + 1 } };
    expect(violated([replace('a', 2, 'stuck')], podsIn({ a: young }))).toEqual([
      'S9: ingester-zone-a-2 is replaced before it counts as stuck',
    ]);
    const crashing = { 2: { ...young[2], waitingReasons: ['CrashLoopBackOff'] } };
    expect(violated([replace('a', 2, 'stuck')], podsIn({ a: crashing }))).toEqual([]);
  });
});
