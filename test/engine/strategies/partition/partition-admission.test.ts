import { describe, expect, it } from 'vitest';
import type { AdmissionRequest, Judgement } from '../../../../engine/decision.ts';
import { judge } from '../../../../engine/judge/judge.ts';
import type { Claim } from '../../../../engine/snapshot.ts';
import { holdingPartition } from '../../../../policies/strategies.ts';
import { group } from '../../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, type StatefulSetOverrides } from '../../../kit/objects.ts';
import { ledgerOf, outdatedSets } from '../../../kit/questions.ts';
import { podsIn } from '../../../kit/rolls.ts';
import { type SnapshotOverrides, snapshotOf } from '../../../kit/snapshots.ts';

const partitioned = group({ zones: ['a'], rollout: { strategy: 'partition' } });
const isNew = { revision: newRevision };
const allNew = podsIn({ a: { 0: isNew, 1: isNew, 2: isNew } });
/** A zone whose rollout is complete for Kubernetes, before the agent raises its partition. */
const atRest: StatefulSetOverrides = { partition: 0, status: { currentRevision: newRevision } };
const isOld = { revision: oldRevision };
const allOld = podsIn({ a: { 0: isOld, 1: isOld, 2: isOld } });
const oneNew = podsIn({ a: { 0: isOld, 1: isOld, 2: isNew } });
const underOnDelete: StatefulSetOverrides = { updateStrategy: 'OnDelete', partition: 0 };
type Update = Extract<AdmissionRequest, { kind: 'update' }>;

/** The answer to an update of three pods under a rolling update, with the rule that refuses it. */
function answer(request: Partial<Update>, set: StatefulSetOverrides = {}, more: SnapshotOverrides = {}): string {
  const { outcome, results } = judged(request, set, more);
  const rules = results.map((one) => `${one.rule} ${one.outcome}`);
  return [outcome, ...rules.filter((rule) => !rule.endsWith(' ok') && !rule.endsWith(' skip'))].join(' ');
}

function judged(request: Partial<Update>, set: StatefulSetOverrides = {}, more: SnapshotOverrides = {}): Judgement {
  const statefulSets = outdatedSets(['a'], { updateStrategy: 'RollingUpdate', partition: 2, ...set });
  const pods = 'podChanges' in more ? {} : podsIn({ a: { 2: isNew } });
  const snapshot = snapshotOf({ groups: [partitioned], statefulSets, ...pods, ...more });
  return judge(snapshot, {
    kind: 'update',
    namespace: 'mimir',
    statefulSet: 'ingester-zone-a',
    from: 3,
    to: 3,
    isTemplateChanged: false,
    strategy: 'RollingUpdate',
    via: 'patch',
    dryRun: false,
    ...request,
  });
}

const announced: Claim = {
  verb: 'setPartition',
  zone: 'a',
  uid: 'uid-ingester-zone-a',
  from: 2,
  to: 1,
  resourceVersion: '100',
  atMs: kitNowMs,
  epoch: 4,
};
const claims = (...open: readonly Claim[]): SnapshotOverrides => ({ ledgers: [ledgerOf({ claims: open })] });

describe('a write to a StatefulSet of the strategy partition', () => {
  const cases: readonly (readonly [string, string, Partial<Update>, StatefulSetOverrides?, SnapshotOverrides?])[] = [
    ['is refused when it lowers the partition below outdated pods', 'deny update-strategy no', { partition: 1 }],
    ['passes when no pod goes by it', 'allow', { partition: 2 }, { partition: 3 }],
    [
      'counts the partition from the first ordinal',
      'allow',
      { partition: 2 },
      { partition: 3, firstOrdinal: 5 },
      podsIn({ a: { 7: isNew } }),
    ],
    ['passes when the agent opened a claim for this request', 'allow', { partition: 1 }, {}, claims(announced)],
    ['is refused when the agent has announced another one', 'deny update-strategy no', { partition: 0 }, {}, claims(announced)],
    [
      'is refused when it changes more than was announced',
      'deny update-strategy no',
      { partition: 1, isTemplateChanged: true },
      {},
      claims(announced),
    ],
    [
      'is denied if no agent announced it',
      'deny update-strategy no',
      { partition: 1 },
      {},
      claims({ ...announced, atMs: kitNowMs - 61_000 }),
    ],
    ['passes when it raises the partition', 'allow', { partition: holdingPartition }],
    ['is refused when it changes to OnDelete in the middle', 'deny update-strategy no', { strategy: 'OnDelete' }],
    [
      'is refused when it changes to OnDelete with a template',
      'deny update-strategy no',
      { strategy: 'OnDelete', isTemplateChanged: true },
      {},
      allNew,
    ],
    ['passes when it changes to OnDelete at rest', 'allow', { strategy: 'OnDelete' }, {}, allNew],
    ['passes with a template while pods are held', 'allow', { isTemplateChanged: true }, { partition: holdingPartition }, allNew],
    ['passes with a template in the middle, which cures a broken one', 'allow', { isTemplateChanged: true }],
    [
      'passes with a template when every pod is updated and one is broken',
      'allow',
      { isTemplateChanged: true },
      { partition: 0 },
      podsIn({ a: { 0: isNew, 1: { ...isNew, isReady: false }, 2: isNew } }),
    ],
    [
      'passes with a template when OrderedReady creates no pod above a broken one',
      'allow',
      { isTemplateChanged: true },
      { ...atRest, podManagementPolicy: 'OrderedReady' },
      podsIn({ a: { 0: { ...isNew, isReady: false }, 1: 'missing', 2: 'missing' } }),
    ],
    [
      'waits with a template when a missing pod is created soon',
      'deny update-strategy wait',
      { isTemplateChanged: true },
      atRest,
      podsIn({ a: { 0: isNew, 1: isNew, 2: 'missing' } }),
    ],
    [
      'waits with a template when the agent holds the zone with its broken pod',
      'deny update-strategy wait',
      { isTemplateChanged: true },
      atRest,
      podsIn({ a: { 0: isNew, 1: { ...isNew, isReady: false }, 2: isNew } }),
    ],
    [
      'waits with a template when the last pod is ready, and becomes available by time alone',
      'deny update-strategy wait',
      { isTemplateChanged: true },
      { partition: 0, minReadySeconds: 60 },
      podsIn({ a: { 0: { ...isNew, readyChangedMs: kitNowMs - 10_000 }, 1: isNew, 2: isNew } }),
    ],
    ['waits with a template while nothing is held yet', 'deny update-strategy wait', { isTemplateChanged: true }, { partition: 0 }, allNew],
    [
      'is refused with a template that takes the partition along',
      'deny update-strategy no',
      { isTemplateChanged: true, partition: 0 },
      { partition: holdingPartition },
      allNew,
    ],
    [
      'passes when it changes from OnDelete with a partition that holds the outdated pods',
      'allow',
      { strategy: 'RollingUpdate', partition: holdingPartition },
      underOnDelete,
    ],
    ['passes the same with a partition of its replicas', 'allow', { strategy: 'RollingUpdate', partition: 3 }, underOnDelete],
    [
      'passes the same together with a template, if every pod is at the current revision',
      'allow',
      { strategy: 'RollingUpdate', partition: holdingPartition, isTemplateChanged: true },
      underOnDelete,
      podsIn({}),
    ],
    ['is refused without the partition', 'deny update-strategy no', { strategy: 'RollingUpdate' }, underOnDelete],
    [
      'is refused with a partition below outdated pods',
      'deny update-strategy no',
      { strategy: 'RollingUpdate', partition: 1 },
      underOnDelete,
    ],
    [
      'is refused when outdated pods would come back at a revision that they left long ago',
      'deny update-strategy no',
      { strategy: 'RollingUpdate', partition: holdingPartition },
      { ...underOnDelete, status: { currentRevision: 'earliest' } },
      oneNew,
    ],
    [
      'passes if no pod is outdated, with any current revision',
      'allow',
      { strategy: 'RollingUpdate', partition: holdingPartition },
      { ...underOnDelete, status: { currentRevision: 'earliest' } },
      allNew,
    ],
  ];
  for (const [name, expected, request, set, more] of cases) it(name, () => expect(answer(request, set, more)).toBe(expected));

  const fits = `kubectl patch .*"type":"RollingUpdate","rollingUpdate":{"partition":${holdingPartition}}.*`;
  const earliest: StatefulSetOverrides = { ...underOnDelete, status: { currentRevision: 'earliest' } };
  const undone: StatefulSetOverrides = { ...underOnDelete, status: { currentRevision: 'earliest', updateRevision: oldRevision } };
  it.each<[string, StatefulSetOverrides, SnapshotOverrides, string]>([
    ['the partition', underOnDelete, oneNew, `${fits}manifest`],
    [
      'the return of the template first, if the current revision is older than the pods',
      earliest,
      allOld,
      `kubectl rollout-group undo mimir/ingester; then: ${fits}; then cancel the undo, and apply the new template again`,
    ],
    [
      'the end of the rollout first, if an undo would leave a pod at another revision',
      earliest,
      oneNew,
      `set a strategy of RolloutGroup mimir/ingester that needs OnDelete until the rollout is complete; then set partition again; then: ${fits}`,
    ],
  ])('is refused with the commands that fit: %s', (_, set, pods, expected) => {
    const [refusal] = judged({ strategy: 'RollingUpdate' }, set, pods).results;
    expect(refusal).toMatchObject({ rule: 'update-strategy', limit: 'partition 1000000' });
    expect(refusal?.fact).toMatch(/^RollingUpdate without the partition 1000000 would replace [23] pods/);
    expect(refusal?.endsWith).toMatch(new RegExp(`^${expected}$`));
  });

  it.each([
    ['passes after an undo if all pods have the same revision', allOld, 'allow'],
    ['is refused after an undo that leaves a pod at another revision', oneNew, 'deny update-strategy no'],
  ])('%s', (_, pods, expected) => {
    expect(answer({ strategy: 'RollingUpdate', partition: holdingPartition }, undone, pods)).toBe(expected);
  });

  it('is refused with a template under another strategy, however the ordinals begin', () => {
    const set = { updateStrategy: 'OnDelete', firstOrdinal: 5, partition: 0 } as const;
    expect(answer({ isTemplateChanged: true }, set, podsIn({ a: { 5: { revision: oldRevision } } }))).toBe('deny update-strategy no');
  });
});

describe('an eviction', () => {
  it('counts the pods that the StatefulSet controller may replace', () => {
    const definition = group({ zones: ['a'], rollout: { strategy: 'partition' }, disruption: { maxUnavailable: 1, crossZoneDelayMs: 0 } });
    const verdict = (partition: number): string => {
      const statefulSets = outdatedSets(['a'], { updateStrategy: 'RollingUpdate', partition });
      const snapshot = snapshotOf({ groups: [definition], statefulSets });
      return judge(snapshot, { kind: 'evictPod', namespace: 'mimir', pod: 'ingester-zone-a-0', dryRun: false }).outcome;
    };
    expect([verdict(holdingPartition), verdict(2)]).toEqual(['allow', 'deny']);
  });
});
