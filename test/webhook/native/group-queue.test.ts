import { describe, expect, it } from 'vitest';
import { sleep } from '../../../cluster/env.ts';
import type { Claim, Ledger, Snapshot } from '../../../engine/snapshot.ts';
import { GroupQueue, type QueuedDecision } from '../../../webhook/native/group-queue.ts';
import { ledgerOf } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';
import { type VirtualEnv, virtualEnv } from '../../kit/virtual-env.ts';

const group = { namespace: 'mimir', name: 'ingester' };
const claim = (uid: string): Claim => ({ verb: 'evictPod', zone: 'a', uid, ordinal: 0, atMs: 0 });

/** Returns a queue, and a ledger that other writers change whenever an entry of `answers` is false. Counts reads and writes. */
function book(env: VirtualEnv, answers: readonly (boolean | Error)[] = []) {
  const stored: { ledger: Ledger; reads: number; writes: number } = { ledger: ledgerOf(), reads: 0, writes: 0 };
  const guard = {
    snapshot: async (): Promise<Snapshot> => {
      stored.reads += 1;
      return snapshotOf({ ledgers: [stored.ledger] });
    },
    store: async (_: unknown, base: Ledger, next: Ledger): Promise<boolean> => {
      const answer = answers[stored.writes] ?? true;
      stored.writes += 1;
      if (answer instanceof Error) throw answer;
      if (!answer) stored.ledger = { ...stored.ledger, claims: [...stored.ledger.claims, claim(`foreign-${stored.writes}`)] };
      else if (base === stored.ledger) stored.ledger = next;
      return answer;
    },
  };
  return { stored, guard, queue: new GroupQueue(env, guard, group) };
}

const passing = (uid: string) => (): QueuedDecision => ({ answer: { allowed: true }, claims: [claim(uid)] });
const question = (env: VirtualEnv, decide: (snapshot: Snapshot) => QueuedDecision, timeoutMs = 4000) => ({
  call: { deadlineMs: env.clock.monotonicMs() + timeoutMs, signal: new AbortController().signal },
  what: 'eviction',
  decide,
});
const uidsIn = ({ claims }: Ledger): readonly string[] => claims.map(({ uid }) => uid);

describe('the queue of a group', () => {
  it('decides the requests that arrive meanwhile with one snapshot and one write, and each request sees the claims of earlier requests', async () => {
    const env = virtualEnv();
    const { stored, queue } = book(env);
    const seen: number[] = [];
    const counting = (uid: string) => (snapshot: Snapshot) => {
      seen.push(snapshot.ledgers[0]?.claims.length ?? -1);
      return passing(uid)();
    };
    const first = queue.submit(question(env, counting('0')));
    const others = ['1', '2', '3'].map((uid) => queue.submit(question(env, counting(uid))));
    expect(queue.isIdle).toBe(false);
    expect((await env.finish(Promise.all([first, ...others]))).every(({ allowed }) => allowed)).toBe(true);
    expect(uidsIn(stored.ledger)).toEqual(['0', '1', '2', '3']);
    expect(seen).toEqual([0, 1, 2, 3]);
    expect(stored).toMatchObject({ reads: 2, writes: 2 });
    await env.settle();
    expect(queue.isIdle).toBe(true);
  });

  it('decides the allowed requests again after another writer changed the ledger', async () => {
    const env = virtualEnv();
    const { stored, queue } = book(env, [false, false, true]);
    const refused: QueuedDecision = { answer: { allowed: false, code: 429 }, claims: [] };
    let refusals = 0;
    const upTo = (most: number) => (snapshot: Snapshot) => {
      if ((snapshot.ledgers[0]?.claims.length ?? 0) < most) return passing(`below-${most}`)();
      refusals += 1;
      return refused;
    };
    const answers = [0, 1, 9].map((most) => queue.submit(question(env, upTo(most))));
    expect((await env.finish(Promise.all(answers))).map(({ allowed }) => allowed)).toEqual([false, false, true]);
    expect(uidsIn(stored.ledger)).toEqual(['foreign-1', 'foreign-2', 'below-9']);
    expect(refusals).toBe(2);
  });

  it('rejects a request if the write of its claim fails', async () => {
    const env = virtualEnv();
    const { queue } = book(env, [new Error('the server went away')]);
    await expect(env.finish(queue.submit(question(env, passing('0'))))).rejects.toThrow('the server went away');
    expect(await env.finish(queue.submit(question(env, passing('1'))))).toEqual({ allowed: true });
  });

  it('rejects a request at its deadline, and continues with the others', async () => {
    const env = virtualEnv();
    const { queue } = book(
      env,
      Array.from({ length: 6 }, () => false),
    );
    const late = queue.submit(question(env, passing('late'), 30));
    const patient = queue.submit(question(env, passing('patient')));
    const outcome = late.then(
      () => 'allowed',
      (error: Error) => error.message,
    );
    expect(await env.finish(outcome)).toContain('the deadline passed');
    expect(await env.finish(patient)).toEqual({ allowed: true });
  });

  it('stores no claim for a request whose deadline passed before its decision', async () => {
    const env = virtualEnv();
    const { stored, guard } = book(env);
    const snapshot = async (): Promise<Snapshot> => {
      await sleep(env, 1000);
      return guard.snapshot();
    };
    const slow = new GroupQueue(env, { ...guard, snapshot }, group);
    const late = slow.submit(question(env, passing('late'), 500)).catch((error: Error) => error.message);
    expect(await env.finish(late)).toContain('the deadline passed');
    expect(stored.writes).toBe(0);
    expect(await env.finish(slow.submit(question(env, passing('patient'))))).toEqual({ allowed: true });
    expect(uidsIn(stored.ledger)).toEqual(['patient']);
  });

  it('is not delayed by a request whose decision throws', async () => {
    const env = virtualEnv();
    const { queue } = book(env);
    const failing = queue.submit(
      question(env, () => {
        throw new Error('a defect');
      }),
    );
    const other = queue.submit(question(env, passing('0')));
    await expect(env.finish(failing)).rejects.toThrow('a defect');
    expect(await env.finish(other)).toEqual({ allowed: true });
  });
});
