import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { decodeLedger, encodeLedger } from '../../../engine/ledger/ledger-document.ts';
import { publishedDecision } from '../../../engine/publish/decision.ts';
import { groupStatus } from '../../../engine/publish/status.ts';
import { lookAgainMs, withMembers } from '../../../engine/release/left.ts';
import { isUnknown } from '../../../engine/snapshot.ts';
import { type GroupOverrides, group } from '../../kit/groups.ts';
import { kitNowMs, type StatefulSetOverrides, statefulSet } from '../../kit/objects.ts';
import { ledgerOf } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const held: StatefulSetOverrides = { updateStrategy: 'RollingUpdate', partition: 1_000_000 };
const memberOf = (zone: string) => ({ zone, statefulSet: `ingester-zone-${zone}` });
const members = ['a', 'b', 'c'].map(memberOf);

/** A group of zones a and b whose ledger remembers zone c. */
function asked(set: StatefulSetOverrides, overrides: SnapshotOverrides = {}, changes: GroupOverrides = {}) {
  const of = group({ zones: ['a', 'b'], rollout: { strategy: 'partition' }, ...changes });
  const sets = ['a', 'b'].map((zone) => statefulSet({ name: `ingester-zone-${zone}`, ...held }));
  const statefulSets = [...sets, statefulSet({ name: 'ingester-zone-c', ...held, ...set })];
  const ledger = ledgerOf({ members });
  const snapshot = snapshotOf({ groups: [of], statefulSets, ledgers: [ledger], ...overrides });
  return { of, snapshot, ledger, decision: decideGroup(snapshot, of) };
}

describe('a StatefulSet that left a group', () => {
  it('is reported while it keeps a partition, with the command that ends it, although it needs no work', () => {
    const { of, snapshot, decision } = asked({});
    const fact = 'StatefulSet ingester-zone-c left the group and keeps the partition 1000000, so a new template reaches no pod';
    const command = `kubectl patch statefulset ingester-zone-c -n mimir --type merge -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'`;
    expect([decision.phase, decision.left]).toEqual([
      'Done',
      [{ ...memberOf('c'), fact, endsWith: command, alternatives: ['add the StatefulSet to the group again'] }],
    ]);
    // A change of this StatefulSet wakes no group.
    expect(decision.wakeAtMs).toBe(kitNowMs + lookAgainMs);
    const { conditions } = groupStatus(publishedDecision({ group: of, decision, snapshot, atMs: kitNowMs }));
    expect(conditions.at(-1)).toMatchObject({
      type: 'MemberLeft',
      status: 'True',
      reason: 'PartitionKept',
      message: `${fact}. To end it: ${command}, or add the StatefulSet to the group again`,
    });
    expect(asked({ partition: 2 }).decision.left?.[0]?.fact).toContain(
      'keeps the partition 2, so a new template reaches no pod below ordinal 2',
    );
    // The partition counts from the first ordinal, so 3 covers all three pods.
    const fromFive = (partition: number) => asked({ firstOrdinal: 5, partition }).decision.left?.[0]?.fact;
    expect(fromFive(3)).toMatch(/reaches no pod$/);
    expect(fromFive(2)).toMatch(/keeps the partition 2, so a new template reaches no pod below ordinal 7$/);
    expect(fromFive(0)).toBeUndefined();
  });

  it.each<[string, StatefulSetOverrides]>([
    ['a pod is outdated', { status: { updatedReplicas: 2 } }],
    ['a revision that some pods may lack is current', { status: { currentRevision: 'rev-0' } }],
    ['the controller has not observed the last change', { status: { observedGeneration: 0 } }],
  ])('must not be released by hand while %s, because the admission policy denies it', (_, set) => {
    expect(asked(set).decision.left).toMatchObject([{ endsWith: 'add the StatefulSet to the group again', alternatives: [] }]);
  });

  it.each<[string, StatefulSetOverrides, SnapshotOverrides]>([
    ['its partition is 0', { partition: 0 }, {}],
    ['its update strategy is OnDelete', { updateStrategy: 'OnDelete' }, {}],
    ['it is being deleted', { isTerminating: true }, {}],
    ['it does not exist', {}, { absent: ['ingester-zone-c'] }],
  ])('is dropped if %s', (_, set, overrides) => {
    const { of, snapshot, ledger, decision } = asked(set, overrides);
    expect(decision.left).toBeUndefined();
    expect(withMembers(ledger, { snapshot, group: of }).members).toEqual(members.slice(0, 2));
  });

  it('is dropped if another group contains it', () => {
    const other = group({ name: 'other', zones: [{ name: 'c', statefulSet: 'ingester-zone-c' }] });
    const { of, snapshot, ledger } = asked({});
    const both = { ...snapshot, groups: [of, other] };
    expect(decideGroup(both, of).left).toBeUndefined();
    expect(withMembers(ledger, { snapshot: both, group: of }).members).toEqual(members.slice(0, 2));
  });

  it('is not reported while it cannot be read, and is kept', () => {
    const unread = [{ kind: 'StatefulSet', namespace: 'mimir', name: 'ingester-zone-c', unknown: 'forbidden' }] as const;
    const { of, snapshot, ledger, decision } = asked({}, { absent: ['ingester-zone-c'], unread });
    expect(decision.left).toBeUndefined();
    expect(withMembers(ledger, { snapshot, group: of })).toBe(ledger);
  });
});

describe('the members in a ledger', () => {
  it('are the members of a group with partitions that the agent writes', () => {
    const { snapshot } = asked({});
    const of = (strategy: 'onDelete' | 'partition' | 'pinned') =>
      withMembers(ledgerOf(), { snapshot, group: group({ zones: ['a', 'b'], rollout: { strategy } }) }).members;
    expect([of('partition'), of('pinned'), of('onDelete')]).toEqual([members.slice(0, 2), members.slice(0, 2), undefined]);
  });

  it('are the same after writing and reading', () => {
    const ledger = ledgerOf({ members });
    const text = encodeLedger(ledger);
    if (isUnknown(text)) throw new Error(text.unknown);
    expect(decodeLedger(text, ledger)).toEqual(ledger);
    expect(JSON.parse(text).format).toBe('1.2');
  });
});
