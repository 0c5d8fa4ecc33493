// Stores one batch of changes in a shared object: reads the object, applies the changes, writes, and determines the outcome.
import { messageOf } from '../../policies/error-message.ts';
import { type ClusterEnv, sleep } from '../env.ts';
import { Backoff } from '../request/backoff.ts';
import { ApiFailure, isStatus, TransportFailure } from '../request/failure.ts';
import type { KubernetesObject } from '../request/resource.ts';

/** The number of conflicts after which the changes are rejected. One writer succeeds in each round, so 30 competing writers all succeed. */
const conflictLimit = 30;
/** The random delay between rounds has an upper limit, which doubles with each round up to `lastPauseMs`. */
const firstPauseMs = 10;
const lastPauseMs = 1000;

export interface Stored<Value> {
  readonly value: Value;
  /** Absent if the object does not exist. */
  readonly resourceVersion?: string;
}

export interface Waiting<Value> {
  readonly change: (value: Value) => Value;
  readonly resolve: (stored: Stored<Value>) => void;
  readonly reject: (error: unknown) => void;
}

interface Seen {
  /** Undefined if the object does not exist. */
  readonly object: KubernetesObject | undefined;
  /** True if the object was read for these changes, false if an earlier batch read or wrote it. */
  readonly isFresh: boolean;
}

/** The result of applying the waiting changes to the object. */
export interface Plan<Value> {
  readonly value: Value;
  /** Absent if nothing is written. */
  readonly body?: KubernetesObject;
  readonly kept: readonly Waiting<Value>[];
  readonly refused: readonly { readonly waiting: Waiting<Value>; readonly error: unknown }[];
}

export interface Steps<Value> {
  readonly env: ClusterEnv;
  /** The object of an earlier write or read, if known. */
  readonly guess: KubernetesObject | undefined;
  readonly decode: (object: KubernetesObject | undefined) => Value;
  readonly retries: number;
  readonly read: () => Promise<KubernetesObject | undefined>;
  readonly plan: (object: KubernetesObject | undefined, batch: readonly Waiting<Value>[]) => Plan<Value>;
  readonly write: (body: KubernetesObject, existing: KubernetesObject | undefined) => Promise<KubernetesObject>;
  /** Reports whether the object contains a write of this batch. */
  readonly hasWritten: (object: KubernetesObject | undefined) => boolean;
}

/** Stores one batch. No change joins a batch later: if a write without an answer was stored, every change of the batch was stored. */
export class Commit<Value> {
  readonly #steps: Steps<Value>;
  readonly #pause: Backoff;
  #open: readonly Waiting<Value>[];
  #seen: Seen | undefined;
  #value: { readonly last: Value } | undefined;
  #result: KubernetesObject | undefined;
  /** For each write with an unknown outcome: the version of the object before the write; an empty text for a creation. */
  readonly #uncertain = new Set<string>();
  #conflicts = 0;
  #failures = 0;

  constructor(batch: readonly Waiting<Value>[], steps: Steps<Value>) {
    this.#open = batch;
    this.#steps = steps;
    this.#seen = steps.guess === undefined ? undefined : { object: steps.guess, isFresh: false };
    this.#pause = new Backoff(steps.env.random, { firstMs: 200, lastMs: 10_000 });
  }

  /** Resolves or rejects every change. Returns the object with the changes; undefined if it is unknown or does not exist. */
  async run(): Promise<KubernetesObject | undefined> {
    while (this.#open.length > 0) {
      try {
        await this.#attempt();
      } catch (error) {
        if (!(await this.#mayRetry(error))) this.#giveUp(error);
      }
    }
    return this.#result;
  }

  /** Resolves or rejects every change, or leaves all changes open if the object must be read first. Throws if a request fails. */
  async #attempt(): Promise<void> {
    this.#seen ??= { object: await this.#steps.read(), isFresh: true };
    const { object, isFresh } = this.#seen;
    if (isFresh && this.#isStored(object)) return this.#resolve(this.#decoded(object), object);
    const plan = this.#planned(object, isFresh);
    if (plan === undefined) return;
    this.#value = { last: plan.value };
    for (const { waiting, error } of plan.refused) waiting.reject(error);
    this.#open = plan.kept;
    if (plan.body === undefined) return this.#resolve(plan.value, object);
    this.#resolve(plan.value, await this.#send(plan.body, object));
  }

  /** Plans the write. Returns undefined if the object must be read first: only a fresh object proves a write refused or unnecessary. */
  #planned(object: KubernetesObject | undefined, isFresh: boolean): Plan<Value> | undefined {
    try {
      const plan = this.#steps.plan(object, this.#open);
      if (isFresh || (plan.body !== undefined && plan.refused.length === 0)) return plan;
    } catch (error) {
      if (isFresh) throw error;
    }
    this.#seen = undefined;
    return undefined;
  }

  async #send(body: KubernetesObject, existing: KubernetesObject | undefined): Promise<KubernetesObject> {
    try {
      return await this.#steps.write(body, existing);
    } catch (error) {
      // The server may have stored the object although the request failed.
      const mayBeApplied = error instanceof TransportFailure ? error.mayBeApplied : error instanceof ApiFailure && error.status >= 500;
      if (mayBeApplied) this.#uncertain.add(versionOf(existing));
      this.#seen = undefined;
      throw error;
    }
  }

  /** Reports whether an earlier write was stored. Once the object has a new version, a write missing from it can never be stored. */
  #isStored(object: KubernetesObject | undefined): boolean {
    if (this.#uncertain.size === 0) return false;
    if (this.#steps.hasWritten(object)) return true;
    if (!this.#uncertain.has(versionOf(object))) this.#uncertain.clear();
    return false;
  }

  /** Waits before the next attempt. Returns false if the error is final. */
  async #mayRetry(error: unknown): Promise<boolean> {
    const isConflict = isStatus(error, 409) || (isStatus(error, 404) && error.site.endsWith('.replace'));
    if (isConflict) {
      this.#conflicts++;
      // The first retry is immediate. Later retries are delayed at random, so that the writers do not collide again.
      const limitMs = this.#conflicts === 1 ? 0 : Math.min(lastPauseMs, firstPauseMs * 2 ** this.#conflicts);
      await sleep(this.#steps.env, limitMs * this.#steps.env.random());
      return this.#conflicts < conflictLimit;
    }
    const isTemporary = error instanceof TransportFailure || (error instanceof ApiFailure && (error.status === 429 || error.status >= 500));
    if (!isTemporary || ++this.#failures > this.#steps.retries) return false;
    const askedMs = error instanceof ApiFailure ? (error.retryAfterMs ?? 0) : 0;
    await sleep(this.#steps.env, Math.max(askedMs, this.#pause.nextMs()));
    return true;
  }

  #decoded(object: KubernetesObject | undefined): Value {
    try {
      return this.#steps.decode(object);
    } catch (error) {
      // Another writer made the object unreadable after our write. The object still contains the changes.
      if (this.#value === undefined) throw error;
      return this.#value.last;
    }
  }

  #resolve(value: Value, object: KubernetesObject | undefined): void {
    this.#result = object;
    for (const { resolve } of this.#open) resolve(stored(value, object));
    this.#open = [];
  }

  #giveUp(error: unknown): void {
    for (const { reject } of this.#open) reject(this.#withOutcome(error));
    this.#open = [];
  }

  /** Returns an error that says whether the changes may be stored. */
  #withOutcome(error: unknown): unknown {
    const mayBeApplied = this.#uncertain.size > 0;
    if (error instanceof TransportFailure ? error.mayBeApplied === mayBeApplied : !mayBeApplied) return error;
    const site = error instanceof TransportFailure || error instanceof ApiFailure ? error.site : '';
    return new TransportFailure(messageOf(error), { site, mayBeApplied, cause: error });
  }
}

function versionOf(object: KubernetesObject | undefined): string {
  return object?.metadata.resourceVersion ?? '';
}

export function stored<Value>(value: Value, object: KubernetesObject | undefined): Stored<Value> {
  const resourceVersion = object?.metadata.resourceVersion;
  return resourceVersion === undefined ? { value } : { value, resourceVersion };
}
