import { describe, expect, it } from 'vitest';
import { podsToReplace, revisionsOfRollback } from '../../../engine/plan/controller.ts';
import type { GroupPlan } from '../../../engine/plan/document.ts';
import { isOneZoneAtATime } from '../../../engine/plan/document.ts';
import { type PlanInput, planGroups } from '../../../engine/plan/plan.ts';
import { readPlanSnapshots } from '../../../engine/plan/world.ts';
import { isUnknown, type Snapshot } from '../../../engine/snapshot.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { group, wave } from '../../kit/groups.ts';
import { manifests, planInput } from '../../kit/manifests.ts';
import { newRevision, oldRevision } from '../../kit/objects.ts';
import { ago, hourMs, intent, ledgerOf, outdatedSets, runOf } from '../../kit/questions.ts';
import { podsIn } from '../../kit/rolls.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const rolling = { updateStrategy: { type: 'RollingUpdate' } };
const partitioned = group({
  rollout: { strategy: 'partition', waves: [wave('canary', ['a'], { amount: { pods: 1 } }), wave('rest', ['a', 'b', 'c'])] },
});
const objects = (version: string) => manifests({ spec: rolling, image: `grafana/mimir:${version}` });

/** Returns a run from 1.0 to 1.1 in which the given partitions are lowered, and the pods at or above them are updated. */
function midRun(partitions: Readonly<Record<string, number>>, more: Partial<Snapshot> = {}): Snapshot {
  const [old, next] = ['1.0', '1.1'].map(
    (version) => readPlanSnapshots(planInput({ groups: [partitioned], current: objects(version) })).before,
  );
  if (old === undefined || next === undefined) throw new Error('no snapshot');
  const revision = (snapshot: Snapshot, name: string) =>
    snapshot.statefulSets.find((set) => set.name === name)?.status.updateRevision ?? '';
  const target = Object.fromEntries(old.statefulSets.map(({ name }) => [name.slice(-1), revision(next, name)]));
  return {
    ...old,
    ledgers: [ledgerOf({ run: runOf({ target }) })],
    statefulSets: old.statefulSets.map((set) => ({
      ...set,
      partition: partitions[set.name.slice(-1)] ?? holdingPartition,
      status: {
        ...set.status,
        updateRevision: revision(next, set.name),
        updatedReplicas: Math.max(0, 3 - (partitions[set.name.slice(-1)] ?? 3)),
      },
    })),
    pods: old.pods.map((view) => ({
      ...view,
      pods: (isUnknown(view.pods) ? [] : view.pods).map((pod) =>
        pod.ordinal < (partitions[view.statefulSet.slice(-1)] ?? 3) ? pod : { ...pod, revision: revision(next, view.statefulSet) },
      ),
    })),
    ...more,
  };
}

function planTo(version: string, running: Snapshot, change: Partial<PlanInput> = {}): GroupPlan {
  const objectsOf = { current: objects('1.1'), desired: objects(version), running };
  const [plan] = planGroups(planInput({ groups: [partitioned], ...objectsOf, ...change })).groups;
  if (plan === undefined) throw new Error('no plan');
  return plan;
}

const stepsOf = ({ waves }: GroupPlan) =>
  waves.flatMap(({ name, steps }) =>
    steps.map(({ kind, zone, pods, startSeconds }) => [name, kind, zone, pods.map((pod) => pod.slice(-3)).join(' '), startSeconds]),
  );
it('counts every pod that a rollback replaces, also pods of a superseded template', () => {
  const names = ['a', 'b', 'c'] as const;
  const all = (revision: string) => Object.fromEntries(names.map((name) => [name, revision]));
  const ofGroup = group({ rollout: { strategy: 'pinned', waves: [wave('all', [...names])] } });
  const run = runOf({ target: all(newRevision), previous: all(oldRevision) });
  const superseded = { revision: 'rev-1b' };
  const snapshot = snapshotOf({
    groups: [ofGroup],
    statefulSets: outdatedSets(names, { updateStrategy: 'RollingUpdate', partition: holdingPartition }),
    ledgers: [ledgerOf({ run })],
    ...podsIn({ a: { 0: superseded, 1: superseded, 2: { revision: newRevision } } }),
  });
  const revisions = revisionsOfRollback(snapshot, ofGroup, run.id);
  expect([...revisions]).toEqual(names.map((name) => [name, { to: oldRevision, inNoWave: 0 }]));
  expect(revisionsOfRollback(snapshot, ofGroup, 'another').size).toBe(0);
  expect(snapshot.statefulSets.map((set) => podsToReplace(snapshot, set, revisions.get(set.name.slice(-1))?.to ?? ''))).toEqual([3, 0, 0]);
  const unread = { ...snapshot, pods: [] };
  expect(snapshot.statefulSets.map((set) => podsToReplace(unread, set, oldRevision))).toEqual([3, 3, 3]);
});

const risksOf = ({ risks }: GroupPlan) => risks.filter(({ code }) => code === 'RG5012').map(({ message }) => message);
const risk =
  'the StatefulSet controller replaces ingester-zone-a-2 at once: it is at or above the partition 2; no gate, pause or protection stops it';

describe('pods that the StatefulSet controller replaces without an action of the agent', () => {
  it('are the first step of the plan, and restarts', () => {
    const plan = planTo('1.2', midRun({ a: 2 }));
    expect(stepsOf(plan).map((step) => step.slice(0, 4))).toEqual([
      ['at once', 'roll', 'a', 'a-2'],
      ['rest', 'roll', 'a', 'a-1 a-0'],
      ['rest', 'roll', 'b', 'b-2 b-1 b-0'],
      ['rest', 'roll', 'c', 'c-2 c-1 c-0'],
    ]);
    expect(plan.totals).toMatchObject({ restarts: 9, waves: 1 });
    expect([risksOf(plan), isOneZoneAtATime(plan)]).toEqual([[risk], true]);
  });

  it('are shown under a pause and a protection', () => {
    const requests = [intent({ action: 'pause' }), intent({ action: 'protect', statefulSet: 'ingester-zone-a', ordinals: [2] } as object)];
    for (const one of requests) {
      const plan = planTo('1.2', midRun({ a: 2 }, { intents: [one] }));
      expect([stepsOf(plan)[0], plan.totals.restarts, risksOf(plan)]).toEqual([['at once', 'roll', 'a', 'a-2', 0], 9, [risk]]);
    }
  });

  it('are shown during a return to the earlier template', () => {
    const plan = planTo('1.0', midRun({ a: 2 }));
    expect([plan.outcome, stepsOf(plan), plan.totals.restarts]).toEqual(['complete', [['at once', 'roll', 'a', 'a-2', 0]], 1]);
    expect(plan.timeline).toMatchObject([{ zone: 'a', kind: 'roll', startSeconds: 0 }]);
    expect(plan.timeline[0]?.endSeconds).toBeGreaterThan(0);
  });

  it('of several zones at the same time end the promise of one zone at a time', () => {
    const plan = planTo('1.2', midRun({ a: 1, b: 2 }));
    expect(stepsOf(plan).slice(0, 2)).toEqual([
      ['at once', 'roll', 'a', 'a-2 a-1', 0],
      ['at once', 'roll', 'b', 'b-2', 0],
    ]);
    expect([risksOf(plan).length, isOneZoneAtATime(plan), plan.totals.restarts]).toEqual([2, false, 9]);
  });

  it('are the pods that a partition lowered by hand exposes', () => {
    const run = midRun({ a: 2 });
    const lowered = { ...run, statefulSets: run.statefulSets.map((set) => (set.name.endsWith('a') ? { ...set, partition: 1 } : set)) };
    expect(stepsOf(planTo('1.1', lowered))[0]).toEqual(['at once', 'roll', 'a', 'a-1', 0]);
  });

  it('are the only ones if the change deletes the group', () => {
    const plan = planTo('1.2', midRun({ a: 2 }), { groupsBefore: [partitioned], desiredGroups: [] });
    expect([stepsOf(plan), plan.totals.restarts, risksOf(plan)]).toEqual([[['at once', 'roll', 'a', 'a-2', 0]], 1, [risk]]);
  });

  it('do not exist without an exposed pod', () => {
    expect(risksOf(planTo('1.1', midRun({ a: 2 })))).toEqual([]);
    expect(risksOf(planTo('1.2', midRun({})))).toEqual([]);
  });
});

it('blocks the plan of pinned pods that only a retry replaces again, and not the plan of another template', () => {
  const pinned = group({ rollout: { strategy: 'pinned', waves: [wave('all', ['a', 'b', 'c'])] } });
  const running = midRun({});
  const revision = running.statefulSets.find(({ name }) => name === 'ingester-zone-a')?.status.updateRevision ?? '';
  const pins = [{ zone: 'a', ordinal: 2, revision, placements: 2, replaces: 'gone', atMs: ago(hourMs) }];
  const misplaced = { ...running, ledgers: running.ledgers.map((ledger) => ({ ...ledger, pins })) };
  const planned = (version: string) => {
    const { outcome, waits } = planTo(version, misplaced, { groups: [pinned] });
    return [outcome, waits.map(({ rule }) => rule)];
  };
  expect(planned('1.1')).toEqual(['blocked', ['pin-applied']]);
  expect(planned('1.2')).toEqual(['complete', []]);
});

it('names the zones after a wait in the order of the remaining waves', () => {
  const ofGroup = group({
    rollout: { waves: [wave('first', ['b'], { amount: { pods: 1 } }), wave('mid', ['c', 'a']), wave('rest', ['b'])] },
  });
  const paused = { ...midRun({}), intents: [intent({ action: 'pause' })] };
  const zonesOf = (run: Parameters<typeof runOf>[0], of: Snapshot = paused) => {
    const ledgers = of.ledgers.map((ledger) => ({ ...ledger, ...(ledger.run && { run: runOf({ target: ledger.run.target, ...run }) }) }));
    return planTo('1.1', { ...of, ledgers }, { groups: [ofGroup] }).zones.flatMap(({ zone, afterWait = [] }) =>
      afterWait.length > 0 ? [zone] : [],
    );
  };
  expect(zonesOf({})).toEqual(['b', 'c', 'a']);
  expect(zonesOf({ wave: 1 })).toEqual(['c', 'a', 'b']);
});
