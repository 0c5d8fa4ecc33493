// The record of a change whose members are written one by one: it counts the pods that the StatefulSet controller replaces meanwhile.
import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { decidedLedger, withObservedLedgers } from '../../../engine/ledger/ledger.ts';
import { replacedPodCount, runRecord } from '../../../engine/publish/run-record.ts';
import { failRun } from '../../../engine/run/states.ts';
import { isUnknown, ledgerOf as storedLedger } from '../../../engine/snapshot.ts';
import { step } from '../../../engine/world/world.ts';
import type { RolloutRun } from '../../../policies/schema/kinds.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { type GroupOverrides, group, wave } from '../../kit/groups.ts';
import { newRevision, oldRevision, statefulSet } from '../../kit/objects.ts';
import { hourMs } from '../../kit/questions.ts';
import { seconds, worldOf } from '../../kit/worlds.ts';

type StrategyName = NonNullable<NonNullable<GroupOverrides['rollout']>['strategy']>;

const zones = ['a', 'b', 'c'];
const orders = zones.flatMap((first) => {
  const [second, third] = zones.filter((zone) => zone !== first);
  return [
    [first, second, third],
    [first, third, second],
  ].map((order) => order.filter((zone) => zone !== undefined));
});

/** What happens after the write of each member. Pods drain in 30 s and start in 60 s. */
const pauses: Readonly<Record<string, (rollout: Rollout) => void>> = {
  'at once': () => undefined,
  'with a turn between': (rollout) => rollout.turn(),
  'with turns until the pods are replaced': (rollout) => rollout.turns(6),
  'with a turn while the pod drains': (rollout) => rollout.elapse(10).turn(),
  'with a turn when the pod is gone': (rollout) => rollout.elapse(31).turn(),
  'with a turn when the pod is replaced': (rollout) => rollout.elapse(100).turn(),
};

interface Situation {
  readonly strategy?: StrategyName;
  readonly pods?: number;
  readonly maxUnavailable?: number;
  readonly isSoaking?: boolean;
  readonly turns?: number;
}

/** A rollout whose canary wave has replaced pods of zone a, and the records of the group. */
class Rollout {
  #world;
  readonly #group;
  readonly #records = new Map<string, RolloutRun>();
  #last: RolloutRun | undefined;

  constructor({ strategy = 'partition', pods = 1, maxUnavailable = 1, isSoaking = true, turns = 10 }: Situation = {}) {
    const after = { soakMs: isSoaking ? hourMs : 0, gates: [] };
    const waves = [wave('canary', ['a'], { amount: { pods }, after }), wave('rest', zones)];
    const members = zones.map((name) => ({ name, maxUnavailable }));
    this.#group = group({ zones: members, rollout: { strategy, waves } });
    const updateStrategy = strategy === 'onDelete' ? ('OnDelete' as const) : ('RollingUpdate' as const);
    const partition = strategy === 'onDelete' ? 0 : holdingPartition;
    const statefulSets = zones.map((zone) => statefulSet({ name: `ingester-zone-${zone}`, updateStrategy, partition }));
    this.#world = worldOf({ groups: [this.#group], statefulSets });
    for (const zone of zones) this.write(zone, newRevision);
    this.turns(turns);
  }

  scale(zone: string, replicas: number): void {
    this.#world = step(this.#world, { kind: 'setReplicas', namespace: 'mimir', statefulSet: `ingester-zone-${zone}`, replicas });
  }

  /** Removes a pod, before the controller creates it again. */
  lose(name: string): void {
    const { snapshot } = this.#world;
    const pods = snapshot.pods.map((view) =>
      isUnknown(view.pods) ? view : { ...view, pods: view.pods.filter((pod) => pod.name !== name) },
    );
    this.#world = { ...this.#world, snapshot: { ...snapshot, pods } };
  }

  write(zone: string, revision: string): void {
    this.#world = step(this.#world, { kind: 'setTemplate', namespace: 'mimir', statefulSet: `ingester-zone-${zone}`, revision });
  }

  /** Writes the members in this order, and pauses after each. */
  writeAll(order: readonly string[], revision: string, pause: (rollout: Rollout) => void): void {
    for (const zone of order) {
      this.write(zone, revision);
      pause(this);
    }
  }

  elapse(count: number): this {
    this.#world = step(this.#world, seconds(this.#world, count));
    return this;
  }

  /** Decides, records and acts this number of times, every 30 s. */
  turns(count: number): void {
    for (let turn = 0; turn < count; turn += 1) {
      this.turn();
      this.elapse(30);
    }
  }

  turn(): void {
    const snapshot = withObservedLedgers(this.#world.snapshot);
    const decision = decideGroup(snapshot, this.#group);
    const ledger = decidedLedger(storedLedger(snapshot, this.#group), decision, { snapshot, group: this.#group });
    const performed = decision.actions.map((action) => ({ action, result: 'done' as const }));
    for (let count = 0; count < 2; count += 1) {
      this.#last = runRecord(this.#last, { group: this.#group, snapshot, decision, performed, startedMs: snapshot.nowMs });
      if (this.#last !== undefined) this.#records.set(this.#last.metadata.name, this.#last);
    }
    this.#world = { ...this.#world, snapshot: { ...this.#world.snapshot, ledgers: [ledger] } };
    for (const { action } of performed) this.#world = step(this.#world, { kind: 'action', action });
  }

  /** Fails the running run. */
  fail(): void {
    const { snapshot } = this.#world;
    const ledger = storedLedger(snapshot, this.#group);
    if (ledger.run?.outcome !== 'running') throw new Error('the test expected a running run');
    const run = failRun(ledger.run, 'gate errors', snapshot.nowMs);
    this.#world = { ...this.#world, snapshot: { ...snapshot, ledgers: [{ ...ledger, run }] } };
    this.turns(1);
  }

  /** Returns the records after the first one: `completed, 1 replaced: a rev-2 to rev-1, b rev-1 to rev-1, c rev-1 to rev-1`. */
  later(): readonly string[] {
    return [...this.#records.values()].slice(1).map(({ spec }) => {
      const changes = spec.zones.map(({ zone, fromRevision, toRevision }) => `${zone} ${fromRevision} to ${toRevision}`);
      return `${spec.outcome}, ${replacedPodCount(spec)} replaced: ${changes.join(', ')}`;
    });
  }
}
const returned = 'completed, 1 replaced: a rev-2 to rev-1, b rev-1 to rev-1, c rev-1 to rev-1';

describe.each(Object.keys(pauses))('the record of a change with members that are written one by one, %s', (name) => {
  const pause = pauses[name] ?? (() => undefined);

  it.for(['partition', 'onDelete', 'pinned'] as const)('counts the pods that return after a failed run, in every order: %s', (strategy) => {
    for (const order of orders) {
      const rollout = new Rollout({ strategy });
      rollout.fail();
      rollout.writeAll(order, oldRevision, pause);
      rollout.turns(10);
      expect({ order, later: rollout.later() }).toEqual({ order, later: [returned] });
    }
  });

  it('counts the pods that a third template replaces at once after a failed run, in every order', () => {
    for (const order of orders) {
      const rollout = new Rollout({ pods: 2 });
      rollout.fail();
      rollout.writeAll(order, 'rev-3', pause);
      rollout.turns(6);
      expect({ order, later: rollout.later() }).toEqual({
        order,
        later: ['running, 2 replaced: a rev-2 to rev-3, b rev-1 to rev-3, c rev-1 to rev-3'],
      });
    }
  });
});

// If zone a has returned before the next write, then the rollout of the other zones starts over, so these are several changes.
describe.each(Object.keys(pauses).filter((name) => !name.startsWith('with turns')))('the return of a running rollout, %s', (name) => {
  it('is one record with the returned pods, in every order', () => {
    for (const order of orders) {
      const rollout = new Rollout();
      rollout.writeAll(order, oldRevision, pauses[name] ?? (() => undefined));
      rollout.turns(10);
      expect({ order, later: rollout.later() }).toEqual({ order, later: [returned] });
    }
  });
});

describe('the record of a return', () => {
  it('counts no pod that the earlier run exposed and the controller did not replace', () => {
    const rollout = new Rollout({ pods: 2, maxUnavailable: 2, turns: 1 });
    rollout.fail();
    rollout.writeAll(zones, oldRevision, (one) => one.turn());
    rollout.turns(10);
    expect(rollout.later()).toEqual([returned]);
  });

  it('counts no pod of a scale-up in the same write', () => {
    const rollout = new Rollout();
    rollout.fail();
    rollout.scale('a', 5);
    rollout.writeAll(zones, oldRevision, (one) => one.elapse(100).turn());
    rollout.turns(10);
    expect(rollout.later()).toEqual([returned]);
  });

  it('counts no pod below the partition that is absent for another reason', () => {
    const rollout = new Rollout({ isSoaking: false });
    rollout.turns(50);
    for (const zone of zones) rollout.write(zone, oldRevision);
    rollout.lose('ingester-zone-b-1');
    rollout.turn();
    expect(rollout.later()).toEqual(['running, 0 replaced: a rev-2 to rev-1, b rev-2 to rev-1, c rev-2 to rev-1']);
  });

  it('counts every pod after a completed run, in every order', () => {
    for (const order of orders) {
      const rollout = new Rollout({ isSoaking: false });
      rollout.turns(50);
      rollout.writeAll(order, oldRevision, (one) => one.elapse(100).turn());
      rollout.turns(60);
      const later = ['completed, 9 replaced: a rev-2 to rev-1, b rev-2 to rev-1, c rev-2 to rev-1'];
      expect({ order, later: rollout.later() }).toEqual({ order, later });
    }
  });
});
