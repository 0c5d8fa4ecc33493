import { describe, expect, it } from 'vitest';
import { decide, decideGroup } from '../../../engine/decide/decide.ts';
import { publishedDecision } from '../../../engine/publish/decision.ts';
import type { PublishedDecision } from '../../../engine/publish/published.ts';
import { readPublished } from '../../../engine/publish/read.ts';
import { groupStatus, mayRetry, type StatusContext, scaleTargetOf } from '../../../engine/publish/status.ts';
import type { Ledger } from '../../../engine/snapshot.ts';
import type { RolloutDefinition } from '../../../policies/definition.ts';
import { rolloutGroupStatus } from '../../../policies/schema/rollout-group.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, newRevision, outdatedStatefulSet, statefulSet } from '../../kit/objects.ts';
import { ledgerOf, outdatedSets, runOf } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

function statusOf(overrides: SnapshotOverrides, context: StatusContext = {}) {
  return groupStatus(publishedOf(overrides), context);
}

function publishedOf(overrides: SnapshotOverrides): PublishedDecision {
  const snapshot = snapshotOf({ groups: [group({ zones: ['a', 'b'] })], ...overrides });
  const [one] = snapshot.groups;
  const [decision] = decide(snapshot).groups;
  if (one === undefined || decision === undefined) throw new Error('the snapshot has no group');
  return publishedDecision({ group: one, decision, snapshot, atMs: snapshot.nowMs });
}

const outdated = { statefulSets: ['a', 'b'].map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}` })) };
const conditionsOf = (overrides: SnapshotOverrides) =>
  statusOf(overrides).conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`);

/** Not for so long that it would count as stuck. */
const unreadyNow = { isReady: false, readyChangedMs: kitNowMs - 60_000 };

describe('the status of a group', () => {
  it('counts pods, and fits the schema of the object', () => {
    const status = statusOf(outdated, { generation: 4, scale: { replicas: 3, selector: 'name=ingester-zone-a' } });
    expect(status).toMatchObject({
      observedGeneration: 4,
      phase: 'Rolling',
      pods: 6,
      updatedPods: 0,
      readyPods: 6,
      replicas: 3,
      decidedAt: '2026-03-02T12:00:00Z',
    });
    expect(rolloutGroupStatus.safeParse(JSON.parse(JSON.stringify(status))).error).toBeUndefined();
  });

  it('names the first fields that differ from the manifests, and counts all of them', () => {
    const fields = Array.from({ length: 4 }, (_, index) => ({ field: `spec.f${index}`, manager: 'kubectl-edit', atMs: kitNowMs }));
    const statefulSets = ['a', 'b'].map((zone) => statefulSet({ name: `ingester-zone-${zone}`, drift: { count: 7, fields } }));
    const status = statusOf({ statefulSets });
    const named = (zone: string, index: number) => ({
      statefulSet: `ingester-zone-${zone}`,
      field: `spec.f${index}`,
      manager: 'kubectl-edit',
      lastWriteAt: '2026-03-02T12:00:00Z',
    });
    expect(status.drift).toEqual({ fieldCount: 14, fields: [...[0, 1, 2, 3].map((index) => named('a', index)), named('b', 0)] });
    expect(status.decision.warnings.map(({ rule }) => rule)).toEqual(['drift']);
    expect(rolloutGroupStatus.safeParse(JSON.parse(JSON.stringify(status))).error).toBeUndefined();
    expect(readPublished(JSON.stringify(status.decision))).toEqual(status.decision);
    expect(statusOf({})).not.toHaveProperty('drift');
  });

  it('reports that the webhooks may miss requests, and does not name them otherwise', () => {
    const snapshot = snapshotOf({ groups: [group({ zones: ['a', 'b'] })] });
    const [one] = snapshot.groups;
    const [decision] = decide(snapshot).groups;
    if (one === undefined || decision === undefined) throw new Error('the snapshot has no group');
    const published = publishedDecision({ group: one, decision, snapshot, atMs: snapshot.nowMs, unenforced: 'rules were changed' });
    const status = groupStatus(published);
    expect(status.conditions.at(-1)).toMatchObject({
      type: 'Enforced',
      status: 'False',
      reason: 'RegistrationChanged',
      message: 'rules were changed',
    });
    expect(rolloutGroupStatus.safeParse(JSON.parse(JSON.stringify(status))).error).toBeUndefined();
    expect(conditionsOf({})).toHaveLength(3);
  });

  it.each<[string, SnapshotOverrides, readonly string[]]>([
    ['done', {}, ['Ready=True Complete', 'Progressing=False Done', 'Degraded=False AsExpected']],
    [
      'rolling',
      outdated,
      ['Ready=False InProgress', 'Progressing=True Rolling', 'Degraded=False AsExpected', 'Reconciling=True InProgress'],
    ],
    [
      'waiting for a zone that is not whole',
      { ...outdated, podChanges: { 'ingester-zone-a': { 0: unreadyNow }, 'ingester-zone-b': { 0: unreadyNow } } },
      [
        'Ready=False OtherZonesNotReady',
        'Progressing=True OtherZonesNotReady',
        'Degraded=False AsExpected',
        'Reconciling=True OtherZonesNotReady',
      ],
    ],
    [
      'broken by crashing pods',
      { podChanges: { 'ingester-zone-a': { 0: { isReady: false, waitingReasons: ['CrashLoopBackOff'] } } } },
      ['Ready=False PodsUnavailable', 'Progressing=False Done', 'Degraded=True PodsCrashing', 'Reconciling=True PodsUnavailable'],
    ],
    [
      'blocked by the strategy',
      { statefulSets: outdated.statefulSets.map((set) => ({ ...set, updateStrategy: 'RollingUpdate' as const })) },
      [
        'Ready=False UpdateStrategyNotReady',
        'Progressing=False UpdateStrategyNotReady',
        'Degraded=True UpdateStrategyNotReady',
        'Stalled=True UpdateStrategyNotReady',
      ],
    ],
    [
      'not readable',
      { pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }] },
      ['Ready=Unknown ViewIncomplete', 'Progressing=True ViewIncomplete', 'Degraded=False AsExpected', 'Reconciling=True ViewIncomplete'],
    ],
    [
      'without a StatefulSet',
      { absent: ['ingester-zone-b'] },
      [
        'Ready=False StatefulSetMissing',
        'Progressing=False ViewIncomplete',
        'Degraded=True StatefulSetMissing',
        'Stalled=True StatefulSetMissing',
      ],
    ],
    [
      'with a StatefulSet that could not be read',
      {
        absent: ['ingester-zone-b'],
        unread: [{ kind: 'StatefulSet', namespace: 'mimir', name: 'ingester-zone-b', unknown: 'forbidden' }],
      },
      ['Ready=Unknown ViewIncomplete', 'Progressing=True ViewIncomplete', 'Degraded=False AsExpected', 'Reconciling=True ViewIncomplete'],
    ],
  ])('has the expected conditions: %s', (_case, overrides, expected) => {
    expect(conditionsOf(overrides)).toEqual(expected);
  });

  it('stays degraded if a pause is added to a denied step', () => {
    const statefulSets = outdated.statefulSets.map((set) => ({ ...set, updateStrategy: 'RollingUpdate' as const }));
    const paused = [group({ zones: ['a', 'b'].map((name) => ({ name, paused: true })) })];
    expect(statusOf({ statefulSets, groups: paused }).phase).toBe('Paused');
    expect(conditionsOf({ statefulSets, groups: paused })).toContain('Degraded=True UpdateStrategyNotReady');
  });

  it('is degraded and not ready while a completed run keeps a revision that was rolled back, also during a scale-up', () => {
    const back = runOf({
      kind: 'rollback',
      target: { a: 'rev-1', b: 'rev-1' },
      previous: { a: newRevision, b: newRevision },
      outcome: 'completed',
      completedMs: kitNowMs - 60_000,
      rolledBack: { revisions: { a: newRevision, b: newRevision }, because: 'gate errors' },
    });
    const pinned = group({ zones: ['a', 'b'], rollout: { strategy: 'pinned' } });
    const held = { updateStrategy: 'RollingUpdate', partition: holdingPartition } as const;
    const statefulSets = ['a', 'b'].map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}`, ...held }));
    const overrides = { groups: [pinned], statefulSets, ledgers: [ledgerOf({ run: back })] };
    const { phase, reason, conditions } = statusOf(overrides);
    expect([phase, reason]).toEqual(['RolledBack', 'RolledBack']);
    // A large publication has no warnings.
    const short = { ...publishedOf(overrides), warnings: [] };
    expect([groupStatus(short).conditions, mayRetry(short)]).toEqual([conditions, true]);
    const message =
      'the update revision is blocked, because it was rolled back: gate errors. To end it: kubectl rollout-group retry mimir/ingester, or kubectl rollout-group undo mimir/ingester, or apply another pod template';
    expect(conditions).toMatchObject([
      { type: 'Ready', status: 'False', reason: 'RevisionRolledBack', message },
      { type: 'Progressing', status: 'False', reason: 'RolledBack' },
      { type: 'Degraded', status: 'True', reason: 'RevisionRolledBack', message },
      { type: 'Stalled', status: 'True', reason: 'RevisionRolledBack', message },
      { type: 'Stopped', status: 'True', reason: 'RevisionRolledBack', message },
    ]);
    const more = group({ zones: [{ name: 'a', replicas: { kind: 'count', count: 4 } }, 'b'], rollout: { strategy: 'pinned' } });
    const scaling = statusOf({ ...overrides, groups: [more] });
    expect([scaling.phase, ...scaling.conditions.map(({ status }) => status)]).toEqual([
      'Scaling',
      'False',
      'True',
      'True',
      'True',
      'True',
    ]);
    // Another template ends the state.
    const other = statefulSets.map((set) => ({ ...set, status: { ...set.status, updateRevision: 'rev-3' } }));
    expect(statusOf({ ...overrides, statefulSets: other }).phase).not.toBe('RolledBack');
    expect(statusOf({ ...overrides, ledgers: [] }).phase).toBe('Rolling');
  });

  it('names every missing StatefulSet, and keeps the reason of a failed run', () => {
    const { conditions, phase } = statusOf({ absent: ['ingester-zone-a', 'ingester-zone-b'] });
    const message = 'StatefulSet ingester-zone-a of zone a and StatefulSet ingester-zone-b of zone b do not exist';
    expect([phase, ...conditions.map((one) => one.message)]).toEqual(['Waiting', message, expect.any(String), message, message]);
    const failed = runOf({ outcome: 'failed', failure: 'gate errors', target: { a: newRevision, b: newRevision } });
    const after = statusOf({ absent: ['ingester-zone-b'], ledgers: [ledgerOf({ run: failed })] });
    expect(after.conditions.find(({ type }) => type === 'Degraded')?.reason).toBe('RunFailed');
  });

  it('keeps the time of a condition while its status is the same', () => {
    const first = statusOf(outdated);
    const later = statusOf({ ...outdated, nowMs: kitNowMs + 60_000 }, { previous: first });
    const done = statusOf({ nowMs: kitNowMs + 60_000 }, { previous: first });
    const times = (status: typeof first) => status.conditions.map(({ lastTransitionTime }) => lastTransitionTime.slice(11, 16));
    expect([times(first), times(later), times(done)]).toEqual([
      ['12:00', '12:00', '12:00', '12:00'],
      ['12:00', '12:00', '12:00', '12:00'],
      ['12:01', '12:01', '12:00'],
    ]);
  });

  it('describes the leading zone while it is scaled', () => {
    const one = group({ zones: [{ name: 'b', follows: 'a' }, { name: 'a' }] });
    const sets = [statefulSet({ selector: 'name=ingester-zone-a' }), statefulSet({ name: 'ingester-zone-b' })];
    expect(scaleTargetOf(one, { statefulSets: sets })).toEqual({ replicas: 3, selector: 'name=ingester-zone-a' });
    expect(scaleTargetOf(one, { statefulSets: [] })).toBeUndefined();
  });
});

/** What is published of zones a and b, as a reader finds it. */
function zonesUnder(strategy: RolloutDefinition['strategy'], partitions: readonly [number, number], ledger: Partial<Ledger> = {}) {
  const one = group({ zones: ['a', 'b'], rollout: { strategy } });
  const sets = outdatedSets(['a', 'b'], { updateStrategy: strategy === 'onDelete' ? 'OnDelete' : 'RollingUpdate' });
  const statefulSets = sets.map((set, index) => ({ ...set, partition: partitions[index] ?? 0 }));
  const snapshot = snapshotOf({ groups: [one], statefulSets, ledgers: [ledgerOf(ledger)] });
  const published = publishedDecision({ group: one, decision: decideGroup(snapshot, one), snapshot, atMs: kitNowMs });
  const read = readPublished(JSON.stringify(published));
  if ('unknown' in read) throw new Error(read.unknown);
  return [read.strategy, ...read.zones.map(({ partition, pinned }) => partition ?? pinned)];
}

describe('a published decision shows the progress of its strategy in each zone', () => {
  const pins = [3, 1, 2].map((ordinal) => ({ zone: 'b', ordinal, revision: 'rev-2', placements: 1 }));

  it('by the lowered partition, by the pinned pods, and not at all under onDelete', () => {
    expect(zonesUnder('partition', [2, holdingPartition])).toEqual(['partition', 2, undefined]);
    expect(zonesUnder('pinned', [holdingPartition, holdingPartition], { pins })).toEqual(['pinned', undefined, '1-3']);
    expect(zonesUnder('onDelete', [0, 0], { pins })).toEqual(['onDelete', undefined, undefined]);
  });
});
