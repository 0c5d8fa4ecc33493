// Tests the report about a group whose definition is removed.
import { describe, expect, it } from 'vitest';
import { decideRemoval, type GroupRemoval, type RemovalQuestion, removalGraceMs, undoneBy } from '../../../engine/release/removal.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import type { Snapshot, StatefulSetView } from '../../../engine/snapshot.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { adopted, group } from '../../kit/groups.ts';
import { newRevision, outdatedStatefulSet, type StatefulSetOverrides } from '../../kit/objects.ts';
import { withFields } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const held = group({ rollout: { strategy: 'pinned' } });
const whole: RemovalQuestion['sources'] = { directory: 'none', objects: 'complete', adopted: 'complete' };
const updated = { revision: newRevision };
const running: RunState = {
  id: 'r',
  kind: 'rollout',
  target: {},
  previous: {},
  startedMs: 0,
  wave: 0,
  waveStartedMs: 0,
  movableMs: 0,
  movableAsOfMs: 0,
  isMovable: true,
  outcome: 'running',
};

/** Three zones whose pods are outdated and held. */
function cluster(changes: StatefulSetOverrides = {}, more: Parameters<typeof snapshotOf>[0] = {}): Snapshot {
  const statefulSets = ['a', 'b', 'c'].map(
    (zone): StatefulSetView =>
      outdatedStatefulSet({ name: `ingester-zone-${zone}`, updateStrategy: 'RollingUpdate', partition: holdingPartition, ...changes }),
  );
  return snapshotOf({ groups: [], statefulSets, ...more });
}

const allUpdated = Object.fromEntries(['a', 'b', 'c'].map((zone) => [`ingester-zone-${zone}`, { 0: updated, 1: updated, 2: updated }]));

function decided(more: Partial<RemovalQuestion> = {}): GroupRemoval {
  return decideRemoval({ group: held, snapshot: cluster(), sources: whole, goneForMs: removalGraceMs, ...more });
}

/** Returns the report about the first zone in short form. */
function told(more: Partial<RemovalQuestion> = {}): string {
  const removal = decided(more);
  const [first] = removal.kind === 'report' ? removal.reports : [];
  return first === undefined
    ? removal.kind
    : `${first.isWarning ? 'Warning' : 'Normal'} ${first.note.replace(/^.* to this StatefulSet/, '')}`;
}

describe('a removed group', () => {
  it('is reported on each StatefulSet: the partition stays, the consequence, and the next step', () => {
    const note =
      'group ingester has no definition any more, so no rollout order applies to this StatefulSet: the partition stays at 1000000, ' +
      'so template changes reach no pod (outdated now: 0-2); define the group again to continue; ' +
      'onPolicyDeleted: release lowers it automatically';
    const reports = ['a', 'b', 'c'].map((zone) => ({ zone, statefulSet: `ingester-zone-${zone}`, isWarning: true, note }));
    expect(decided()).toEqual({ kind: 'report', reports });
  });

  it('warns while pods stay outdated or a run was in progress, and not otherwise', () => {
    const still = cluster({}, { podChanges: allUpdated });
    const rest = ': the partition stays at 1000000, so template changes reach no pod; define the group again';
    expect(told({ snapshot: still })).toContain(`Normal ${rest}`);
    expect(told({ snapshot: still, run: running })).toContain(`Warning  (its rollout was running)${rest}`);
    expect(told({ snapshot: still, run: withFields(running, { outcome: 'completed' }) })).toContain(`Normal ${rest}`);
  });

  it('names the ordinal below which pods keep their revision, and the case without an outdated pod', () => {
    const group = { ...held, rollout: { ...held.rollout, strategy: 'partition' as const } };
    expect(told({ group, snapshot: cluster({ partition: 2 }) })).toMatch(
      /^Warning : the partition stays at 2, .* no pod below ordinal 2 \(/,
    );
    const above = { podChanges: Object.fromEntries(Object.keys(allUpdated).map((name) => [name, { 0: updated, 1: updated }])) };
    expect(told({ group, snapshot: cluster({ partition: 2 }, above) })).toMatch(/^Normal .*\(outdated now: 2\)/);
    expect(told({ group, snapshot: cluster({ partition: 0 }) })).toBe(
      'Normal : the StatefulSet controller replaces outdated pods (outdated now: 0-2)',
    );
    expect(told({ group, snapshot: cluster({ firstOrdinal: 3, partition: 0 }) })).toMatch(/^Normal : the StatefulSet controller replaces/);
    // The partition counts from the first ordinal, so 3 covers all three pods.
    expect(told({ group, snapshot: cluster({ firstOrdinal: 3, partition: 3 }) })).toMatch(/^Warning .*stays at 3, .* reach no pod \(/);
    expect(told({ group, snapshot: cluster({ firstOrdinal: 3, partition: 2 }) })).toMatch(
      /^Warning .*stays at 2, .* no pod below ordinal 5 \(/,
    );
    expect(told({ snapshot: cluster({ updateStrategy: 'OnDelete' }), run: running })).toMatch(
      /^Warning .*: outdated pods \(outdated now: 0-2\) stay until they are deleted/,
    );
  });

  it('is reported after a moment, in which the definition may return', () => {
    expect(decided({ goneForMs: removalGraceMs - 1 })).toEqual({ kind: 'wait', leftMs: 1 });
    expect(told({ snapshot: cluster({}, { groups: [held] }) })).toBe('none');
  });

  it('is not removed if another group has a member, or if that is unknown', () => {
    const other = group({ name: 'renamed', zones: [{ name: 'x', statefulSet: 'ingester-zone-c' }] });
    expect(told({ snapshot: cluster({}, { groups: [other] }) })).toBe('none');
    const unknown = { unknown: 'no answer' };
    expect(decided({ sources: { ...whole, directory: unknown } })).toEqual({ kind: 'unsure', because: 'no answer' });
    expect(told({ group: { ...held, sources: { '': { file: 'a.yaml', line: 1 } } } })).toBe('unsure');
  });

  it('is reported for a member that left a group that exists, also if a deletion of the group would release it', () => {
    const without = group({ zones: held.zones.filter(({ name }) => name !== 'c') });
    const snapshot = cluster({}, { groups: [without] });
    const note =
      'group ingester no longer contains this StatefulSet, so no rollout order applies to this StatefulSet (its rollout was running): the ' +
      'partition stays at 1000000, so template changes reach no pod (outdated now: 0-2); add the StatefulSet to the group again to continue';
    const report = { kind: 'report', reports: [{ zone: 'c', statefulSet: 'ingester-zone-c', isWarning: true, note }] };
    expect(decided({ snapshot, run: running })).toEqual(report);
    const release = group({ rollout: { strategy: 'pinned', onPolicyDeleted: 'release' } });
    expect(decided({ snapshot, run: running, group: release })).toEqual(report);
    const elsewhere = group({ name: 'other', zones: [{ name: 'x', statefulSet: 'ingester-zone-c' }] });
    expect(told({ snapshot: cluster({}, { groups: [without, elsewhere] }) })).toBe('none');
  });

  it('is reported when its StatefulSets can be read, for the remaining ones', () => {
    const unread = [{ kind: 'StatefulSet', name: 'ingester-zone-b', unknown: 'no answer' }] as const;
    expect(decided({ snapshot: cluster({}, { unread }) })).toEqual({ kind: 'wait' });
    const pods = [{ namespace: 'mimir', statefulSet: 'ingester-zone-b', pods: { unknown: 'no answer' } }];
    expect(decided({ snapshot: cluster({}, { pods }) })).toEqual({ kind: 'wait' });
    expect(told({ snapshot: cluster({ isTerminating: true }) })).toBe('none');
  });

  it('is not reported when the release reports itself, or when labels of another operator defined it', () => {
    const release = group({ rollout: { strategy: 'pinned', onPolicyDeleted: 'release' } });
    expect(told({ group: release })).toBe('none');
    expect(told({ group: group({ rollout: { strategy: 'onDelete', onPolicyDeleted: 'release' } }) })).toMatch(/^Warning/);
    const sources = { '': { object: 'StatefulSet mimir/ingester-zone-a', field: 'rollout-group' } };
    expect(told({ group: adopted({ sources }) })).toBe('none');
  });
});

describe('the effects of a release', () => {
  const terms = { zones: ['a', 'b', 'c'].map((zone) => ({ zone, statefulSet: `ingester-zone-${zone}` })) };
  const undone = (run: RunState | undefined, snapshot: Snapshot) =>
    undoneBy(terms, { namespace: 'mimir', ...(run === undefined ? {} : { run }) }, snapshot);
  const rest = 'its waves, soaks, approvals and pauses no longer apply';
  const still = cluster({}, { podChanges: allUpdated });

  it('are an unfinished run and blocked pods', () => {
    expect(undone(running, cluster())).toBe(`its rollout was running; ${rest}, and 9 pods will be replaced`);
    expect(undone(withFields(running, { outcome: 'failed' }), still)).toBe(`its rollout had failed; ${rest}`);
    expect(undone(undefined, cluster())).toBe(`${rest}, and 9 pods will be replaced`);
    expect(undone(withFields(running, { outcome: 'completed' }), still)).toBeUndefined();
  });
});
