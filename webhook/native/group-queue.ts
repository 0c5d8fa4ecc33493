// Decides the concurrent /admission/enforce requests of one group in the order of arrival, and stores their claims in one write.
import { sleep } from '../../cluster/env.ts';
import { reserve } from '../../engine/judge/admission-claims.ts';
import type { Claim, Ledger, Snapshot } from '../../engine/snapshot.ts';
import type { GroupIdentity, Guard, WebhookEnv } from '../env.ts';
import { type Answer, type Call, leftMs } from '../review/review.ts';
import { Undecidable, unknownDenial } from './denial.ts';

export interface QueuedDecision {
  readonly answer: Answer;
  /** Claims to store before the answer; empty for a denial. */
  readonly claims: readonly Claim[];
  /**
   * True for a scale-up. The ledger recognizes an earlier scale-down by the lowered replicas, and the scale-up raises them. So the ledger
   * records that scale-down before the answer, if possible.
   */
  readonly hidesScaleDown?: boolean;
}

interface QueuedRequest {
  readonly call: Call;
  /** The request in messages, for example `DELETE of pods/a-0`. */
  readonly what: string;
  /** Decides without side effects. Runs again with a newer snapshot after another writer changed the ledger. */
  readonly decide: (snapshot: Snapshot) => QueuedDecision;
}

interface Outcome {
  readonly answer: Answer;
  readonly hasClaims: boolean;
  readonly next?: Ledger;
}

type AdmittedRequest = Outcome & { readonly pending: PendingRequest };

interface PendingRequest extends QueuedRequest {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** The maximum number of requests that are decided with one snapshot. */
const maxAtOnce = 100;
/** A request is rejected if less time than this (in milliseconds) remains until its deadline. */
const leastMs = 20;
/** The maximum delay before the second attempt, in milliseconds. The maximum grows with each further attempt. */
const pauseMs = 20;

type QueueEnv = Pick<WebhookEnv, 'clock' | 'timers' | 'random'>;

/** The queue of one group in this process. Processes synchronize through compare-and-swap of the ledger. */
export class GroupQueue {
  readonly #env: QueueEnv;
  readonly #guard: Pick<Guard, 'snapshot' | 'store'>;
  readonly #group: GroupIdentity;
  #pending: PendingRequest[] = [];
  #isWorking = false;

  constructor(env: QueueEnv, guard: Pick<Guard, 'snapshot' | 'store'>, group: GroupIdentity) {
    this.#env = env;
    this.#guard = guard;
    this.#group = group;
  }

  get isIdle(): boolean {
    return !this.#isWorking && this.#pending.length === 0;
  }

  /**
   * Returns the answer after its claims are stored; a denial if the ledger is full. Rejects if no time is left, if the snapshot or the decision
   * fails, or if claims cannot be stored because the ledger cannot be read or the write fails.
   */
  submit(request: QueuedRequest): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ ...request, resolve, reject });
      void this.#work();
    });
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    while (this.#pending.length > 0) await this.#decideNext();
    this.#isWorking = false;
  }

  async #decideNext(): Promise<void> {
    let batch = this.#pending.splice(0, maxAtOnce);
    for (let attempt = 1; batch.length > 0; attempt += 1) {
      batch = this.#inTime(batch);
      if (batch.length === 0) return;
      try {
        batch = await this.#decideBatch(batch);
      } catch (error) {
        for (const { reject } of batch) reject(error);
        return;
      }
      if (batch.length > 0) await sleep(this.#env, this.#env.random() * pauseMs * attempt);
    }
  }

  /** Decides all requests with one snapshot. Returns the requests to decide again after a conflict. */
  async #decideBatch(batch: readonly PendingRequest[]): Promise<PendingRequest[]> {
    const snapshot = await this.#guard.snapshot(this.#group.namespace, [this.#group], this.#timeoutMs(batch));
    // A late request gets no claim, because the webhook server has answered it or is about to answer it.
    const inTime = this.#inTime(batch);
    const base = snapshot.ledgers.find(({ namespace, group }) => namespace === this.#group.namespace && group === this.#group.name);
    const { ledger, admitted } = this.#decideInOrder(inTime, snapshot, base);
    if (base === undefined || ledger === undefined || admitted.length === 0) return [];
    return await this.#store(base, ledger, admitted);
  }

  /** Decides each request on a ledger with the claims of earlier requests. Answers the requests that need no write. */
  #decideInOrder(
    batch: readonly PendingRequest[],
    snapshot: Snapshot,
    base: Ledger | undefined,
  ): { readonly ledger: Ledger | undefined; readonly admitted: readonly AdmittedRequest[] } {
    let ledger = base;
    const admitted: AdmittedRequest[] = [];
    for (const pending of batch) {
      const decided = this.#decide(pending, ledger === undefined ? snapshot : { ...snapshot, ledgers: [ledger] }, ledger);
      if (decided instanceof Error) pending.reject(decided);
      else if (decided.next === undefined) pending.resolve(decided.answer);
      else {
        ledger = decided.next;
        admitted.push({ pending, ...decided });
      }
    }
    return { ledger, admitted };
  }

  /** Stores the claims, then answers. Returns the requests to decide again after a conflict. */
  async #store(base: Ledger, ledger: Ledger, admitted: readonly AdmittedRequest[]): Promise<PendingRequest[]> {
    const reserved = admitted.map(({ pending }) => pending);
    let isStored: boolean;
    try {
      isStored = await this.#guard.store(this.#group, base, ledger, this.#timeoutMs(reserved));
    } catch (error) {
      // The write may have succeeded. Its unused claims expire.
      for (const { pending, answer, hasClaims } of admitted) {
        if (hasClaims) pending.reject(error);
        else pending.resolve(answer);
      }
      return [];
    }
    if (!isStored) return reserved;
    for (const { pending, answer } of admitted) pending.resolve(answer);
    return [];
  }

  #decide({ decide, what }: PendingRequest, snapshot: Snapshot, ledger: Ledger | undefined): Error | Outcome {
    try {
      const { answer, claims, hidesScaleDown = false } = decide(snapshot);
      const hasClaims = claims.length > 0;
      if (!answer.allowed || (!hasClaims && !hidesScaleDown)) return { answer, hasClaims };
      if (ledger === undefined) {
        return hasClaims ? new Undecidable(`the ledger of group ${this.#group.name} cannot be read`) : { answer, hasClaims };
      }
      const next = reserve(ledger, claims);
      return next === undefined ? { answer: unknownDenial(what, 'the ledger is full'), hasClaims } : { answer, hasClaims, next };
    } catch (error) {
      return error instanceof Error ? error : new Error('the request could not be decided');
    }
  }

  #inTime(batch: readonly PendingRequest[]): PendingRequest[] {
    const nowMs = this.#env.clock.monotonicMs();
    const late = batch.filter(({ call }) => call.signal.aborted || leftMs(call, nowMs) < leastMs);
    for (const { reject } of late)
      reject(
        new Undecidable('the deadline passed: other requests were first, other writers changed the ledger, or the API server is slow'),
      );
    return batch.filter((pending) => !late.includes(pending));
  }

  /**
   * Returns the longest remaining time of the batch. If a request of the batch has an earlier deadline, the webhook server answers it at that
   * deadline. If its claim is stored nevertheless, the claim expires.
   */
  #timeoutMs(batch: readonly PendingRequest[]): number {
    const nowMs = this.#env.clock.monotonicMs();
    return Math.max(leastMs, ...batch.map(({ call }) => leftMs(call, nowMs)));
  }
}
