// Judges concurrent requests of one group one after the other, and announces those that pass in one write of the ledger.
import { sleep } from '../../cluster/env.ts';
import { reserve } from '../../engine/judge/admission-claims.ts';
import type { Claim, Ledger, Snapshot } from '../../engine/snapshot.ts';
import type { GroupIdentity, Guard, WebhookEnv } from '../env.ts';
import { type Answer, type Call, leftMs } from '../review/review.ts';
import { Undecidable, unknownDenial } from './denial.ts';

/** The decision on a request for one snapshot. */
export interface Decided {
  readonly answer: Answer;
  /** Claims to announce before the answer; empty for a denial. */
  readonly claims: readonly Claim[];
  /** The admitted change hides an observed decrease, which must be recorded before, if possible. */
  readonly hidesDecrease?: boolean;
}

interface QueuedRequest {
  readonly call: Call;
  /** Names the request in messages: `eviction of pod/x`. */
  readonly what: string;
  /** Pure; called again with a newer snapshot after another writer changed the ledger. */
  readonly decide: (snapshot: Snapshot) => Decided;
}

interface Outcome {
  readonly answer: Answer;
  readonly isReserved: boolean;
  /** The ledger to store first. */
  readonly next?: Ledger;
}

type Passing = Outcome & { readonly waiting: Waiting };

interface Waiting extends QueuedRequest {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Most requests judged with one snapshot. */
const maxAtOnce = 100;
/** A request with less time left is not processed. */
const leastMs = 20;
/** Longest delay between two attempts after a conflict; it grows with each attempt. */
const pauseMs = 20;

type QueueEnv = Pick<WebhookEnv, 'clock' | 'timers' | 'random'>;

/** The queue of one process and one group. Processes synchronise through the ledger by compare-and-swap. */
export class GroupQueue {
  readonly #env: QueueEnv;
  readonly #guard: Pick<Guard, 'snapshot' | 'store'>;
  readonly #group: GroupIdentity;
  #waiting: Waiting[] = [];
  #isWorking = false;

  constructor(env: QueueEnv, guard: Pick<Guard, 'snapshot' | 'store'>, group: GroupIdentity) {
    this.#env = env;
    this.#guard = guard;
    this.#group = group;
  }

  get isIdle(): boolean {
    return !this.#isWorking && this.#waiting.length === 0;
  }

  /** Returns the answer after its claims are stored. Rejects if no time is left. */
  submit(request: QueuedRequest): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...request, resolve, reject });
      void this.#work();
    });
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    while (this.#waiting.length > 0) await this.#judgeNext();
    this.#isWorking = false;
  }

  async #judgeNext(): Promise<void> {
    let batch = this.#waiting.splice(0, maxAtOnce);
    for (let attempt = 1; batch.length > 0; attempt += 1) {
      batch = this.#inTime(batch);
      if (batch.length === 0) return;
      try {
        batch = await this.#judge(batch);
      } catch (error) {
        for (const { reject } of batch) reject(error);
        return;
      }
      if (batch.length > 0) await sleep(this.#env, this.#env.random() * pauseMs * attempt);
    }
  }

  /** Judges all requests with one snapshot. Returns those to judge again after a conflict. */
  async #judge(batch: readonly Waiting[]): Promise<Waiting[]> {
    const snapshot = await this.#guard.snapshot(this.#group.namespace, [this.#group], this.#timeoutMs(batch));
    // The server already answered late requests, so they must announce nothing.
    const inTime = this.#inTime(batch);
    const base = snapshot.ledgers.find(({ namespace, group }) => namespace === this.#group.namespace && group === this.#group.name);
    const { ledger, passing } = this.#decideInTurn(inTime, snapshot, base);
    if (base === undefined || ledger === undefined || passing.length === 0) return [];
    return await this.#store(base, ledger, passing);
  }

  /** Decides each request by the ledger with the claims of those before it. Answers all requests that need no write. */
  #decideInTurn(
    batch: readonly Waiting[],
    snapshot: Snapshot,
    base: Ledger | undefined,
  ): { readonly ledger: Ledger | undefined; readonly passing: readonly Passing[] } {
    let ledger = base;
    const passing: Passing[] = [];
    for (const waiting of batch) {
      const decided = this.#decide(waiting, ledger === undefined ? snapshot : { ...snapshot, ledgers: [ledger] }, ledger);
      if (decided instanceof Error) waiting.reject(decided);
      else if (decided.next === undefined) waiting.resolve(decided.answer);
      else {
        ledger = decided.next;
        passing.push({ waiting, ...decided });
      }
    }
    return { ledger, passing };
  }

  /** Stores the claims, then answers. Returns the requests to judge again after a conflict. */
  async #store(base: Ledger, ledger: Ledger, passing: readonly Passing[]): Promise<Waiting[]> {
    const reserved = passing.map(({ waiting }) => waiting);
    let isStored: boolean;
    try {
      isStored = await this.#guard.store(this.#group, base, ledger, this.#timeoutMs(reserved));
    } catch (error) {
      // The write may have succeeded. Then it is an unused claim and expires as such.
      for (const { waiting, answer, isReserved } of passing) {
        if (isReserved) waiting.reject(error);
        else waiting.resolve(answer);
      }
      return [];
    }
    if (!isStored) return reserved;
    for (const { waiting, answer } of passing) waiting.resolve(answer);
    return [];
  }

  #decide({ decide, what }: Waiting, snapshot: Snapshot, ledger: Ledger | undefined): Error | Outcome {
    try {
      const { answer, claims, hidesDecrease = false } = decide(snapshot);
      const isReserved = claims.length > 0;
      if (!answer.allowed || (!isReserved && !hidesDecrease)) return { answer, isReserved };
      if (ledger === undefined) {
        return isReserved ? new Undecidable(`the ledger of group ${this.#group.name} cannot be read`) : { answer, isReserved };
      }
      const next = reserve(ledger, claims);
      return next === undefined ? { answer: unknownDenial(what, 'the ledger is full'), isReserved } : { answer, isReserved, next };
    } catch (error) {
      return error instanceof Error ? error : new Error('it could not be judged');
    }
  }

  #inTime(batch: readonly Waiting[]): Waiting[] {
    const nowMs = this.#env.clock.monotonicMs();
    const late = batch.filter(({ call }) => call.signal.aborted || leftMs(call, nowMs) < leastMs);
    for (const { reject } of late)
      reject(new Undecidable('the deadline passed: other writers changed the ledger, or the API server is slow'));
    return batch.filter((waiting) => !late.includes(waiting));
  }

  /** Uses the longest remaining time of the batch: the server answers the others, and their claims expire. */
  #timeoutMs(batch: readonly Waiting[]): number {
    const nowMs = this.#env.clock.monotonicMs();
    return Math.max(leastMs, ...batch.map(({ call }) => leftMs(call, nowMs)));
  }
}
