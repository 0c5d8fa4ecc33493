import { describe, expect, it } from 'vitest';
import { type Claim, emptyLedger } from '../../../engine/snapshot.ts';
import { openWork } from '../../../simulation/oracles/converged.ts';
import { KnownClaims } from '../../../simulation/oracles/documents.ts';
import { createMachineClock, runStartMs } from '../../../simulation/process/clock.ts';
import { controller, History } from './history.ts';

describe('S19', () => {
  it('finds a pod and a decrease that were not announced', () => {
    const history = new History();
    history.take('ing-a-2');
    history.scale('ing-b', 2, history.agent());
    expect(history.found('S19')).toEqual([
      'a1 disrupts ing-a-2, and the ledger does not announce it',
      'a1 scales ing-b to 2, and the ledger does not announce it',
    ]);
  });

  it('is content with what is announced, and with growth', () => {
    const history = new History();
    history.announceAndTake('ing-a-2');
    history.announce([{ verb: 'scaleDown', zone: 'b', uid: history.set('ing-b').metadata.uid, to: 2 }]);
    history.scale('ing-b', 2, history.agent());
    history.scale('ing-b', 4, history.agent());
    expect(history.found('S19').filter((message) => message.includes('does not announce'))).toEqual([]);
  });

  it('finds a claim that is forgotten while its pod still ends', () => {
    const history = new History();
    history.announceAndTake('ing-a-2');
    history.announce([]);
    expect(history.found('S19').join()).toContain('while ing-a-2 is still terminating');
    const replaced = new History();
    replaced.announceAndTake('ing-a-2');
    replaced.replace('ing-a-2');
    replaced.announce([]);
    expect(replaced.found('S19')).toEqual([]);
  });

  it('finds another process that forgets a claim whose pod stands untouched', () => {
    const forget = (process: string, between: (history: History) => void): readonly string[] => {
      const history = new History();
      history.announce([history.claimOf('ing-a-2')], history.agent('a1'));
      between(history);
      history.announce([], history.agent(process), 2);
      return history.found('S19');
    };
    expect(forget('b1', () => undefined)).toHaveLength(1);
    expect(forget('a1', () => undefined)).toEqual([]);
    expect(
      forget('b1', (history) =>
        history.change('pods', 'ing-a-2', () => ({ metadata: { annotations: { touched: 'yes' } } }), history.agent('b1')),
      ),
    ).toEqual([]);
    expect(forget('b1', (history) => history.advance(120_000))).toEqual([]);
    expect(forget('b1', (history) => history.advance(119_000))).toHaveLength(1);
    // Somebody else ends it, and so the request that was announced must fail.
    expect(forget('b1', (history) => history.take('ing-a-2', controller))).toEqual([]);
  });

  it('counts the age of a claim by a clock whose rate has changed since', () => {
    const forget = (process: string): readonly string[] => {
      const history = new History();
      history.announce([history.claimOf('ing-a-2')], history.agent('a1'));
      const machine = createMachineClock(history.scene, 2);
      const { elapsedSinceMs } = machine;
      history.advance(60_000);
      machine.mend();
      history.clocks.set('b1', { rate: machine.rate(), elapsedSinceMs, wallErrorMs: 0 });
      history.announce([], history.agent(process), 2);
      return history.found('S19');
    };
    expect(forget('b1')).toEqual([]);
    // The clock of this process was never fast.
    expect(forget('c1')).toHaveLength(1);
  });

  it('finds a process that forgets its own claim without knowing the outcome of its request', () => {
    const history = new History();
    const claim = history.claimOf('ing-a-2');
    history.announce([claim]);
    const action = { kind: 'deletePod', namespace: 'mimir', zone: 'a', statefulSet: 'ing-a', pod: 'ing-a-2', ordinal: 2 } as const;
    const { uid, resourceVersion = '' } = claim;
    history.turn({ performed: [{ action: { ...action, because: 'outdated', uid, resourceVersion }, result: 'unknown' }] });
    history.announce([]);
    expect(history.found('S19').join()).toContain('of a1 although ing-a-2 is unchanged');
  });

  it('lets a claim on a newer state of the pod take the place of the older one', () => {
    const history = new History();
    history.announce([history.claimOf('ing-a-2')], history.agent('a1'));
    history.ready('ing-a-2', false);
    history.announce([history.claimOf('ing-a-2')], history.agent('b1'), 2);
    expect(history.found('S19')).toEqual([]);
  });

  it('finds a decrease that is forgotten while its pods are on their way out', () => {
    const history = new History();
    const claim = { verb: 'scaleDown', zone: 'b', uid: history.set('ing-b').metadata.uid, to: 2 } as const;
    history.announce([claim]);
    history.scale('ing-b', 2, history.agent());
    history.announce([]);
    expect(history.found('S19')).toHaveLength(1);
    const over = new History();
    over.announce([{ ...claim, uid: over.set('ing-b').metadata.uid }]);
    over.scale('ing-b', 2, over.agent());
    over.remove('pods', 'ing-b-2');
    over.announce([]);
    expect(over.found('S19')).toEqual([]);
  });

  it('finds a ledger that cannot be read', () => {
    const history = new History();
    const metadata = { name: 'rollout-group-ing', labels: { 'rollout-group.dev/document': 'ledger' } };
    history.write('configmaps', { metadata, data: { ledger: '{' } }, history.agent());
    expect(history.found('S19')).toEqual(['a1 wrote a ledger that cannot be read']);
  });
});

describe('S18', () => {
  it('finds a leadership that goes back', () => {
    const history = new History();
    history.announce([], history.agent('b1'), 3);
    history.announce([], history.agent('b1'), 3);
    expect(history.found('S18')).toEqual([]);
    history.announce([], history.agent('a1'), 2);
    expect(history.found('S18')).toEqual(['a1 wrote epoch 2 after epoch 3']);
  });

  it('finds the delete of a former leader that arrives after the next one has written', () => {
    const late = (verb: 'deletePod' | 'evictPod'): readonly string[] => {
      const history = new History();
      const claim = { ...history.claimOf('ing-a-2'), verb };
      history.announce([claim], history.agent('a1'), 1);
      history.announce([claim], history.agent('b1'), 2);
      history.advance(20_000).take('ing-a-2', history.agent('a1', 20_000));
      return history.found('S18');
    };
    expect(late('deletePod')).toEqual(['a1 disrupts ing-a-2 in epoch 1, after epoch 2 wrote the ledger']);
    // Which cannot be made void by a touch, and is waited for.
    expect(late('evictPod')).toEqual([]);
  });
});

describe('S1 of announcements', () => {
  it('finds two zones that are announced together', () => {
    const history = new History();
    history.announce([history.claimOf('ing-a-2')]);
    expect(history.found('S1')).toEqual([]);
    history.announce([history.claimOf('ing-a-2'), history.claimOf('ing-b-2')]);
    expect(history.found('S1')).toHaveLength(1);
  });

  it('lets a recreated zone be forgotten, and adopted groups shrink several', () => {
    const anew = new History();
    const claim = anew.claimOf('ing-a-2');
    anew.announce([claim]);
    anew.remove('statefulsets.apps', 'ing-a');
    anew.announce([claim, anew.claimOf('ing-b-2')]);
    expect(anew.found('S1')).toEqual([]);
    const adopted = new History({ kind: 'adopted' });
    adopted.announce(['a', 'b'].map((zone) => ({ verb: 'scaleDown', zone, uid: adopted.set(`ing-${zone}`).metadata.uid, to: 2 }) as const));
    expect(adopted.found('S1')).toEqual([]);
  });
});

function claimOfWebhook(history: History, atMs: number): Claim {
  return { verb: 'evictPod', zone: 'b', ordinal: 2, uid: history.uidOf('ing-b-2'), atMs };
}

describe('L4', () => {
  it('finds a claim that stays, and what is announced at the end', () => {
    const history = new History();
    const claims = [history.claimOf('ing-a-2')];
    history.announce(claims);
    history.heal().advance(260_000).announce(claims);
    expect(history.found('L4')).toEqual([]);
    history.advance(10_000).announce(claims);
    expect(history.found('L4')).toHaveLength(1);
    history.end();
    expect(history.found('L4')).toHaveLength(2);
  });

  it('counts the claim of a webhook from the turn in which the leader read it, not by the clock of the webhook', () => {
    const history = new History();
    for (const ordinal of [0, 1, 2]) for (const zone of ['a', 'b', 'c']) history.replace(`ing-${zone}-${ordinal}`);
    const known = new KnownClaims(() => history.nowMs);
    const left = () => openWork({ ...history.scene, claimKnownMs: (claim) => known.knownMs(claim) }, history.scene.statefulSets);
    known.committed(history.renew());
    // The clock of this webhook is ten minutes behind.
    known.committed(history.admit(['ing-b-2'], 600_000));
    const open = claimOfWebhook(history, runStartMs + history.nowMs - 600_000);
    const ledger = { ...emptyLedger('mimir', 'ing'), claims: [open] };
    history.advance(60_000);
    known.turnEnded('b1', { ledger });
    known.turnEnded('a1', { ledger });
    history.advance(120_000);
    known.turnEnded('a1', { ledger });
    expect(left()).toBe('the ledger rollout-group-ing announces 1 disruptions');
    history.advance(1_000);
    expect(left()).toBeUndefined();
    // The next leader counts again.
    known.committed(history.renew('b1'));
    expect(left()).toBe('the ledger rollout-group-ing announces 1 disruptions');
    history.advance(121_000);
    expect(left()).toBeUndefined();
    // So does the same process after the Lease was deleted.
    known.committed({ ...history.renew('b1'), type: 'DELETED' });
    expect(left()).toBe('the ledger rollout-group-ing announces 1 disruptions');
  });

  it('counts the claim again if its leader could not renew the Lease and leads again without another holder', () => {
    const history = new History();
    for (const ordinal of [0, 1, 2]) for (const zone of ['a', 'b', 'c']) history.replace(`ing-${zone}-${ordinal}`);
    const known = new KnownClaims(() => history.nowMs);
    const left = () => openWork({ ...history.scene, claimKnownMs: (claim) => known.knownMs(claim) }, history.scene.statefulSets);
    known.committed(history.renew());
    known.leadershipChanged('a1', true);
    known.committed(history.admit(['ing-b-2']));
    const ledger = { ...emptyLedger('mimir', 'ing'), claims: [claimOfWebhook(history, runStartMs + history.nowMs)] };
    known.turnEnded('a1', { ledger });
    history.advance(106_000);
    known.leadershipChanged('a1', false);
    known.leadershipChanged('a1', true);
    history.advance(4_000);
    known.turnEnded('a1', { ledger });
    // Another process, and a repeated report, change nothing.
    known.leadershipChanged('b1', true);
    known.leadershipChanged('a1', true);
    history.advance(120_000);
    expect(left()).toBe('the ledger rollout-group-ing announces 1 disruptions');
    history.advance(1_000);
    expect(left()).toBeUndefined();
  });

  it('counts the time of a repeated request from its own claim', () => {
    const history = new History();
    for (const ordinal of [0, 1, 2]) for (const zone of ['a', 'b', 'c']) history.replace(`ing-${zone}-${ordinal}`);
    const known = new KnownClaims(() => history.nowMs);
    const left = () => openWork({ ...history.scene, claimKnownMs: (claim) => known.knownMs(claim) }, history.scene.statefulSets);
    const turn = (atMs: number) =>
      known.turnEnded('a1', { ledger: { ...emptyLedger('mimir', 'ing'), claims: [claimOfWebhook(history, atMs)] } });
    known.committed(history.renew());
    const [firstMs, againMs] = [runStartMs + history.nowMs, runStartMs + history.nowMs + 40_000];
    known.committed(history.admit(['ing-b-2']));
    turn(firstMs);
    history.advance(40_000);
    known.committed(history.admit(['ing-b-2']));
    // The leader reads the ledger again when the claim that it knows ends.
    history.advance(80_000);
    turn(firstMs);
    turn(againMs);
    history.advance(120_000);
    expect(left()).toBe('the ledger rollout-group-ing announces 1 disruptions');
    history.advance(1_000);
    expect(left()).toBeUndefined();
  });

  it('counts a claim that a webhook removed until it has ended for the leader too, which then writes the ledger', () => {
    const history = new History();
    for (const ordinal of [0, 1, 2]) for (const zone of ['a', 'b', 'c']) history.replace(`ing-${zone}-${ordinal}`);
    const known = new KnownClaims(() => history.nowMs);
    const scene = { ...history.scene, hasRemovedClaim: () => known.hasRemovedClaim(history.scene) };
    const left = () => openWork(scene, history.scene.statefulSets);
    const turn = (claims: readonly Claim[]) => known.turnEnded('a1', { ledger: { ...emptyLedger('mimir', 'ing'), claims } });
    known.committed(history.renew());
    const open = claimOfWebhook(history, runStartMs + history.nowMs);
    known.committed(history.admit(['ing-b-2']));
    history.advance(60_000);
    turn([open]);
    history.advance(61_000);
    known.committed(history.announce([]));
    expect(left()).toBe('the leader waits for the end of a claim that a webhook has removed');
    history.advance(60_000);
    expect(left()).toBeUndefined();
    // The next leader reads the ledger without the claim.
    known.committed(history.admit(['ing-b-2']));
    turn([claimOfWebhook(history, runStartMs + history.nowMs)]);
    known.committed(history.announce([]));
    expect(left()).toBe('the leader waits for the end of a claim that a webhook has removed');
    known.committed(history.renew('b1'));
    expect(left()).toBeUndefined();
  });

  it('is content when it is over', () => {
    const history = new History();
    history.announce([history.claimOf('ing-a-2')]);
    history.announce([]);
    history.heal().end();
    expect(history.found('L4')).toEqual([]);
  });
});

describe('a ledger that only a later version reads', () => {
  it("finds 'S4' if a process replaces the ledger, or acts although it had to know the ledger", () => {
    const history = new History();
    history.inFormat('3.0');
    history.advance(5_000).take('ing-a-2');
    expect(history.found('S4')).toEqual([]);
    history.advance(6_000).take('ing-a-1');
    history.scale('ing-b', 2, history.agent());
    history.announce([]);
    expect(history.found('S4')).toEqual([
      'a1 disrupts ing-a-1 although its version cannot read the ledger',
      'a1 scales ing-b to 2 although its version cannot read the ledger',
      'a1 replaces the ledger of a later version',
    ]);
  });

  it('accepts the end of the upgrade, and a ledger of a later minor version', () => {
    const history = new History();
    history.inFormat('3.0');
    history.inFormat('1.99');
    history.advance(20_000).announceAndTake('ing-a-2');
    expect(history.found('S4')).toEqual([]);
  });
});
