// Decides concurrent requests of one group in order for /admission/enforce. Stores the claims of admitted requests in one write.
import { sleep } from '../../cluster/env.ts';
import { reserve } from '../../engine/judge/admission-claims.ts';
import type { Claim, Ledger, Snapshot } from '../../engine/snapshot.ts';
import type { GroupIdentity, Guard, WebhookEnv } from '../env.ts';
import { type Answer, type Call, leftMs } from '../review/review.ts';
import { Undecidable, unknownDenial } from './denial.ts';

export interface Decided {
  readonly answer: Answer;
  /** Claims to store before the answer; empty for a denial. */
  readonly claims: readonly Claim[];
  /** True for a growth: it hides an earlier decrease, which the ledger therefore records before the answer, if possible. */
  readonly hidesDecrease?: boolean;
}

interface QueuedRequest {
  readonly call: Call;
  /** The request in messages, for example `DELETE of pods/a-0`. */
  readonly what: string;
  /** Decides without side effects. Runs again with a newer snapshot after another writer changed the ledger. */
  readonly decide: (snapshot: Snapshot) => Decided;
}

interface Outcome {
  readonly answer: Answer;
  readonly hasClaims: boolean;
  readonly next?: Ledger;
}

type Passing = Outcome & { readonly waiting: Waiting };

interface Waiting extends QueuedRequest {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** The maximum number of requests that are decided with one snapshot. */
const maxAtOnce = 100;
/** The minimum remaining time of a request. A request with less time is rejected. */
const leastMs = 20;
/** The maximum delay after the first conflict. It grows with each attempt. */
const pauseMs = 20;

type QueueEnv = Pick<WebhookEnv, 'clock' | 'timers' | 'random'>;

/** The queue of one group in this process. Processes synchronize through compare-and-swap of the ledger. */
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

  /** Returns the answer after its claims are stored. Rejects if no time is left, or if the snapshot or the ledger fails. */
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

  /** Decides all requests with one snapshot. Returns the requests to decide again after a conflict. */
  async #judge(batch: readonly Waiting[]): Promise<Waiting[]> {
    const snapshot = await this.#guard.snapshot(this.#group.namespace, [this.#group], this.#timeoutMs(batch));
    // Late requests get no claims, because the server answers them or has answered them.
    const inTime = this.#inTime(batch);
    const base = snapshot.ledgers.find(({ namespace, group }) => namespace === this.#group.namespace && group === this.#group.name);
    const { ledger, passing } = this.#decideInTurn(inTime, snapshot, base);
    if (base === undefined || ledger === undefined || passing.length === 0) return [];
    return await this.#store(base, ledger, passing);
  }

  /** Decides each request on a ledger with the claims of earlier requests. Answers the requests that need no write. */
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

  /** Stores the claims, then answers. Returns the requests to decide again after a conflict. */
  async #store(base: Ledger, ledger: Ledger, passing: readonly Passing[]): Promise<Waiting[]> {
    const reserved = passing.map(({ waiting }) => waiting);
    let isStored: boolean;
    try {
      isStored = await this.#guard.store(this.#group, base, ledger, this.#timeoutMs(reserved));
    } catch (error) {
      // The write may have succeeded. Its unused claims expire.
      for (const { waiting, answer, hasClaims } of passing) {
        if (hasClaims) waiting.reject(error);
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
      const hasClaims = claims.length > 0;
      if (!answer.allowed || (!hasClaims && !hidesDecrease)) return { answer, hasClaims };
      if (ledger === undefined) {
        return hasClaims ? new Undecidable(`the ledger of group ${this.#group.name} cannot be read`) : { answer, hasClaims };
      }
      const next = reserve(ledger, claims);
      return next === undefined ? { answer: unknownDenial(what, 'the ledger is full'), hasClaims } : { answer, hasClaims, next };
    } catch (error) {
      return error instanceof Error ? error : new Error('it could not be judged');
    }
  }

  #inTime(batch: readonly Waiting[]): Waiting[] {
    const nowMs = this.#env.clock.monotonicMs();
    const late = batch.filter(({ call }) => call.signal.aborted || leftMs(call, nowMs) < leastMs);
    for (const { reject } of late)
      reject(
        new Undecidable('the deadline passed: other requests were first, other writers changed the ledger, or the API server is slow'),
      );
    return batch.filter((waiting) => !late.includes(waiting));
  }

  /** Returns the longest remaining time of the batch. The server answers requests whose time ends earlier, and their claims expire. */
  #timeoutMs(batch: readonly Waiting[]): number {
    const nowMs = this.#env.clock.monotonicMs();
    return Math.max(leastMs, ...batch.map(({ call }) => leftMs(call, nowMs)));
  }
}
