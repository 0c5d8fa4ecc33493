import { describe, expect, it } from 'vitest';
import type { AdmissionRequest } from '../../../../engine/decision.ts';
import { judge } from '../../../../engine/judge/judge.ts';
import type { Pin } from '../../../../engine/snapshot.ts';
import { holdingPartition } from '../../../../policies/strategies.ts';
import { group } from '../../../kit/groups.ts';
import { newRevision, type StatefulSetOverrides } from '../../../kit/objects.ts';
import { ledgerOf, outdatedSets } from '../../../kit/questions.ts';
import { podsIn } from '../../../kit/rolls.ts';
import { type SnapshotOverrides, snapshotOf } from '../../../kit/snapshots.ts';

const pinned = group({ zones: ['a'], rollout: { strategy: 'pinned' } });
const isNew = { revision: newRevision };
const allNew = podsIn({ a: { 0: isNew, 1: isNew, 2: isNew } });
type Update = Extract<AdmissionRequest, { kind: 'update' }>;

/** The answer to an update of three pods, of which the highest runs the new revision, with the rule that refuses it. */
function answer(request: Partial<Update>, set: StatefulSetOverrides = {}, more: SnapshotOverrides = {}): string {
  const statefulSets = outdatedSets(['a'], { updateStrategy: 'RollingUpdate', partition: holdingPartition, ...set });
  const pods = 'podChanges' in more ? {} : podsIn({ a: { 2: isNew } });
  const judgement = judge(snapshotOf({ groups: [pinned], statefulSets, ...pods, ...more }), {
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
  const rules = judgement.results.map(({ rule, outcome }) => `${rule} ${outcome}`);
  return [judgement.outcome, ...rules.filter((rule) => !rule.endsWith(' ok') && !rule.endsWith(' skip'))].join(' ');
}

const pin = (ordinal: number): Pin => ({ zone: 'a', ordinal, revision: newRevision, placements: 0 });
const noted = (...ordinals: readonly number[]): SnapshotOverrides => ({ ledgers: [ledgerOf({ pins: ordinals.map(pin) })] });
const onDelete: StatefulSetOverrides = { updateStrategy: 'OnDelete', partition: 0 };

describe('a write to a StatefulSet of the strategy pinned', () => {
  const cases: readonly (readonly [string, string, Partial<Update>, StatefulSetOverrides?, SnapshotOverrides?])[] = [
    ['is refused when it lowers the partition while a pod is not at the update revision', 'deny update-strategy no', { partition: 0 }],
    ['is refused also where no pod stands above the lower partition', 'deny update-strategy no', { partition: 3 }],
    ['passes then when every pod is', 'allow', { partition: 3 }, {}, allNew],
    ['is refused with a template in the same write', 'deny update-strategy no', { partition: 0, isTemplateChanged: true }, {}, allNew],
    ['passes when it raises the partition', 'allow', { partition: holdingPartition }, { partition: 1 }],
    ['passes with a template that the partition holds', 'allow', { isTemplateChanged: true }],
    ['waits with a template until the partition holds it', 'deny update-strategy wait', { isTemplateChanged: true }, { partition: 0 }],
    ['is refused when it changes to OnDelete in the middle', 'deny update-strategy no', { strategy: 'OnDelete' }],
    ['passes to OnDelete when every pod is at the update revision', 'allow', { strategy: 'OnDelete' }, {}, allNew],
    [
      'waits from OnDelete until the agent has noted what every pod runs',
      'deny update-strategy wait',
      { partition: holdingPartition },
      onDelete,
    ],
    ['passes from OnDelete then', 'allow', { partition: holdingPartition }, onDelete, noted(2)],
    ['waits from OnDelete when something else is noted', 'deny update-strategy wait', { partition: holdingPartition }, onDelete, noted(1)],
    ['is refused from OnDelete without a partition that holds', 'deny update-strategy no', { partition: 0 }, onDelete, noted(2)],
    ['passes from OnDelete with a template too', 'allow', { partition: holdingPartition, isTemplateChanged: true }, onDelete, noted(2)],
    [
      'is refused from OnDelete with a template that the partition does not hold',
      'deny update-strategy no',
      { partition: 2, isTemplateChanged: true },
      onDelete,
      noted(2),
    ],
  ];
  for (const [name, expected, request, set, more] of cases) {
    it(name, () => {
      expect(answer(request, set, more)).toBe(expected);
    });
  }

  it('is unknown while its pods cannot be read', () => {
    const unread = { podChanges: {}, pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }] };
    expect(answer({ partition: holdingPartition }, onDelete, unread)).toBe('deny view-complete unknown');
  });
});
