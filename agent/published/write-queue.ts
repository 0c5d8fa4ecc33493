// Queues writes so that turns do not wait for them: one write at a time, at a minimum interval for each key, with retries.
import type { ClusterEnv } from '../../cluster/env.ts';
import { pauseAfter } from '../../cluster/request/backoff.ts';
import { ApiFailure, isStatus } from '../../cluster/request/failure.ts';

interface WriteQueueOptions {
  readonly env: Pick<ClusterEnv, 'clock' | 'timers' | 'random'>;
  /** The minimum time between two writes of one key, in milliseconds. */
  readonly everyMs: number;
  /** Writes the current value of the key. `unchanged`: no write was needed. A rejection is retried. */
  readonly write: (key: string) => Promise<'written' | 'unchanged'>;
  /**
   * Returns whether this process may write now. A process that can no longer renew its Lease may not, because the next leader may have written
   * already. `close` does not ask.
   */
  readonly mayWrite: () => boolean;
  readonly onWritten?: (key: string) => void;
  readonly onFailure: (key: string, error: unknown) => void;
}

interface KeyState {
  isQueued: boolean;
  /** The earliest time of the next write (monotonic). */
  notBeforeMs: number;
  failures: number;
}

/** The pauses between retries. Each failed write is retried within a minute after the server is available again. */
const pauses = { firstMs: 500, lastMs: 60_000 };
/** The time after which the queue checks again whether this process may send a write. */
const heldMs = 1_000;
/** The pauses after a missing permission or kind. They are longer, because such a problem lasts until a person solves it. */
const forbiddenPauses = { firstMs: 15_000, lastMs: 300_000 };

/** The queue of keys with a pending write. The callers limit the number of keys. */
export class WriteQueue {
  readonly #options: WriteQueueOptions;
  readonly #keys = new Map<string, KeyState>();
  #cancelTimer = (): void => undefined;
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: WriteQueueOptions) {
    this.#options = options;
  }

  queueWrite(key: string): void {
    if (this.#isClosed) return;
    const known = this.#keys.get(key) ?? { isQueued: false, notBeforeMs: 0, failures: 0 };
    known.isQueued = true;
    this.#keys.set(key, known);
    this.#plan();
  }

  forget(key: string): void {
    this.#keys.delete(key);
  }

  clear(): void {
    this.#keys.clear();
  }

  /** Writes each queued key once without waiting for its interval, and accepts no further keys. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer();
    await this.#running;
    for (const [key, state] of [...this.#keys]) if (state.isQueued) await this.#write(key, state);
    this.#keys.clear();
  }

  #plan(): void {
    if (this.#running !== undefined || this.#isClosed) return;
    this.#cancelTimer();
    const nowMs = this.#options.env.clock.monotonicMs();
    let due = Number.POSITIVE_INFINITY;
    for (const [key, one] of this.#keys) {
      if (one.isQueued) due = Math.min(due, one.notBeforeMs);
      // Forgets keys without a pending write, because many keys name objects that are written only once.
      else if (one.notBeforeMs <= nowMs) this.#keys.delete(key);
    }
    if (due === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer = this.#options.env.timers.after(Math.max(0, due - nowMs), () => {
      this.#running = this.#writeDue().finally(() => {
        this.#running = undefined;
        this.#plan();
      });
    });
  }

  async #writeDue(): Promise<void> {
    const { env, mayWrite } = this.#options;
    for (const [key, state] of [...this.#keys]) {
      if (this.#isClosed) return;
      const nowMs = env.clock.monotonicMs();
      if (!state.isQueued || state.notBeforeMs > nowMs) continue;
      if (mayWrite()) await this.#write(key, state);
      else state.notBeforeMs = nowMs + heldMs;
    }
  }

  async #write(key: string, state: KeyState): Promise<void> {
    const { env, everyMs, write, onWritten, onFailure } = this.#options;
    state.isQueued = false;
    try {
      const done = await write(key);
      state.failures = 0;
      if (done === 'unchanged') return;
      state.notBeforeMs = env.clock.monotonicMs() + everyMs;
      onWritten?.(key);
    } catch (error) {
      state.isQueued = true;
      state.failures += 1;
      state.notBeforeMs = env.clock.monotonicMs() + this.#pauseAfter(error, state.failures);
      onFailure(key, error);
    }
  }

  #pauseAfter(error: unknown, failures: number): number {
    const limits = isStatus(error, 401, 403, 404) ? forbiddenPauses : pauses;
    const serverPauseMs = error instanceof ApiFailure ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(serverPauseMs, pauseAfter(failures, limits, this.#options.env.random()));
  }
}
