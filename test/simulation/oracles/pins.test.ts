import { describe, expect, it } from 'vitest';
import type { Actor, Json } from '../../../simulation/server/request.ts';
import { History, type PinText } from './history.ts';

const setResource = 'statefulsets.apps';
const holding = 1_000_000;
const person: Actor = { user: 'kubernetes-admin' };

/** Zones whose pods are made at `r1` unless they are pinned, and that ask for `r2`. */
function pinnedZones(): History {
  const history = new History({ strategy: 'pinned' });
  for (const set of ['ing-a', 'ing-b', 'ing-c']) {
    move(history, set, holding, person);
    say(history, set, { currentRevision: 'r1' });
  }
  return history.advance(20_000);
}

function say(history: History, set: string, status: Json): void {
  history.change(setResource, set, (object) => ({ status: { ...(object['status'] as Json), ...status } }));
}

function move(history: History, set: string, partition: number, actor: Actor = history.agent()): void {
  const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition } };
  history.change(setResource, set, ({ spec }) => ({ spec: { ...(spec as Json), updateStrategy } }), actor);
}

function pin(pod: string, revision = 'r2'): PinText {
  return { zone: pod.slice(4, 5), ordinal: Number(pod.slice(6)), revision };
}

/** The ledger as an agent writes it. */
function note(history: History, pins: readonly PinText[], claimed: readonly string[] = []): void {
  history.announce(
    claimed.map((pod) => history.claimOf(pod)),
    history.agent(),
    1,
    pins,
  );
}

/** An agent pins the pod and takes it away; it comes back as it should, or without the webhook. */
function pinned(history: History, pod: string, isUnavailable = false): void {
  history.renew();
  note(history, [pin(pod)], [pod]);
  history.take(pod);
  history.advance(5_000).comeBack(pod, isUnavailable ? { isUnavailable } : { revision: 'r2' });
  history.advance(20_000);
}

/** Somebody else takes the pod away. */
function lose(history: History, pod: string): void {
  history.take(pod, person);
  history.advance(5_000);
}

describe('a pod that comes back', () => {
  it('at the revision to which it is pinned breaks nothing', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2');
    expect(history.broken()).toEqual([]);
  });

  it('as it was breaks nothing, wherever that is', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2');
    lose(history, 'ing-a-2');
    history.comeBack('ing-a-2', { revision: 'r2' });
    lose(history, 'ing-a-1');
    history.comeBack('ing-a-1');
    expect(history.found('S6')).toEqual([]);
  });

  it('at the current revision though the ledger pins it is found', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2');
    lose(history, 'ing-a-2');
    history.comeBack('ing-a-2');
    expect(history.found('S6')).toEqual(['ing-a-2 was at r2, and its successor is at r1 instead of r2']);
  });

  it('at the update revision without a decision is found', () => {
    const history = pinnedZones();
    lose(history, 'ing-a-2');
    note(history, [pin('ing-a-2')]);
    history.comeBack('ing-a-2', { revision: 'r2' });
    expect(history.found('S6')).toEqual(['ing-a-2 was at r1, and its successor is at r2 instead of r1']);
  });

  it('at an unrequested revision is found', () => {
    const history = pinnedZones();
    lose(history, 'ing-a-2');
    history.comeBack('ing-a-2', { revision: 'r0' });
    expect(history.found('S6')).toContain('ing-a-2 is created at r0, which neither the StatefulSet controller nor the ledger requests');
  });

  it('while the webhook is away comes back as the StatefulSet controller asks', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2');
    lose(history, 'ing-a-2');
    history.comeBack('ing-a-2', { isUnavailable: true });
    expect(history.found('S6')).toEqual([]);
    lose(history, 'ing-a-2');
    history.comeBack('ing-a-2', { isUnavailable: true, revision: 'r2' });
    expect(history.found('S6')).toEqual(['ing-a-2 is created at r2, which neither the StatefulSet controller nor the ledger requests']);
  });

  it("is the StatefulSet controller's doing above the partition, or of a past that it works with", () => {
    const history = pinnedZones();
    lose(history, 'ing-a-2');
    history.comeBack('ing-a-2', { createdRevision: 'r0' });
    lose(history, 'ing-a-1');
    history.comeBack('ing-a-1', { createdRevision: 'r2' });
    expect(history.found('S6')).toEqual([]);
  });
});

describe('a pod that an agent deletes', () => {
  it('is pinned before', () => {
    const history = pinnedZones();
    history.announceAndTake('ing-a-2');
    expect(history.found('S19')).toEqual(['a1 disrupts ing-a-2, and the ledger does not pin its successor']);
  });

  it('is pinned to what is asked for', () => {
    const history = pinnedZones();
    note(history, [pin('ing-a-2', 'r0')], ['ing-a-2']);
    history.take('ing-a-2');
    expect(history.found('S19')).toEqual(['a1 disrupts ing-a-2, and the ledger pins its successor to r0']);
  });

  it('goes twice in vain and not a third time', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2', true);
    pinned(history, 'ing-a-2', true);
    expect(history.broken()).toEqual([]);
    pinned(history, 'ing-a-2', true);
    expect(history.found('S7')).toEqual(['a1 disrupts ing-a-2 after 2 earlier disruptions, and no successor was at r2']);
  });

  it('goes again when a person says so', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2', true);
    pinned(history, 'ing-a-2', true);
    history.write('rolloutintents.rollout-group.dev', { metadata: { name: 'retry' }, spec: { group: 'ing', action: 'retry' } });
    pinned(history, 'ing-a-2', true);
    pinned(history, 'ing-a-2', true);
    expect(history.broken()).toEqual([]);
  });

  it('blocks no other zone when it came back without the webhook, but does while it is down', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2', true);
    pinned(history, 'ing-b-2');
    expect(history.found('S8')).toEqual([]);
    history.take('ing-c-2');
    history.advance(1_000);
    history.take('ing-a-1');
    expect(history.found('S8')).toEqual(['a1 disrupts ing-a-1 before ing-c-2 settled']);
  });

  it('goes for another revision as often', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2', true);
    pinned(history, 'ing-a-2', true);
    say(history, 'ing-a', { updateRevision: 'r3' });
    history.advance(20_000);
    note(history, [pin('ing-a-2', 'r3')], ['ing-a-2']);
    history.take('ing-a-2');
    expect(history.found('S7')).toEqual([]);
  });
});

describe('the revision of a pod that comes back', () => {
  it('is not forgotten while it stands', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2');
    note(history, []);
    expect(history.found('S6')).toEqual(['a1 drops the pin of ing-a-2 to r2']);
  });

  it('is forgotten when the StatefulSet controller makes it so', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2');
    say(history, 'ing-a', { currentRevision: 'r2' });
    note(history, []);
    expect(history.found('S6')).toEqual([]);
  });

  it('may become what is asked for now', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2');
    say(history, 'ing-a', { updateRevision: 'r3' });
    note(history, [pin('ing-a-2', 'r3')], ['ing-a-2']);
    expect(history.found('S6')).toEqual([]);
  });

  it('is said no more at the end', () => {
    const history = pinnedZones();
    pinned(history, 'ing-a-2');
    history.end();
    expect(history.found('L4').at(-1)).toBe('at the end the ledger still pins pod 2 of zone a to r2');
  });
});

describe('a partition', () => {
  it('is raised when the ledger says what pods come back at', () => {
    const history = pinnedZones();
    move(history, 'ing-a', 2, person);
    history.replace('ing-a-2', 'r2');
    history.advance(20_000);
    note(history, [pin('ing-a-2')]);
    move(history, 'ing-a', holding);
    expect(history.found('S6')).toEqual([]);
  });

  it('is not raised before', () => {
    const history = pinnedZones();
    move(history, 'ing-a', 2, person);
    history.replace('ing-a-2', 'r2');
    history.advance(20_000);
    move(history, 'ing-a', holding);
    expect(history.found('S6')).toEqual([`a1 writes the partition ${holding} of ing-a before the ledger pins ing-a-2 to r2`]);
  });

  it('is never written as anything else', () => {
    const history = pinnedZones();
    move(history, 'ing-a', 3);
    expect(history.found('S6')).toEqual(['a1 writes the partition 3 of ing-a']);
  });
});
