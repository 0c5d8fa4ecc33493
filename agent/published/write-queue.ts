// Queues writes apart from the turns: one at a time, the latest write of each key, with a minimum interval and retries.
import type { ClusterEnv } from '../../cluster/env.ts';
import { ApiFailure, isStatus } from '../../cluster/request/failure.ts';

interface WriteQueueOptions {
  readonly env: Pick<ClusterEnv, 'clock' | 'timers' | 'random'>;
  /** Between two writes of one key, in milliseconds. */
  readonly everyMs: number;
  /** Writes what is wanted of the key now. `unchanged`: nothing had to be written. A rejection is tried again. */
  readonly write: (key: string) => Promise<'written' | 'unchanged'>;
  readonly onWritten?: (key: string) => void;
  readonly onFailure: (key: string, error: unknown) => void;
}

interface Wanted {
  isWanted: boolean;
  /** Monotonic. */
  notBeforeMs: number;
  failures: number;
}

/** At most a minute after the server is available again, all writes are done. */
const pauses = { firstMs: 1000, longestMs: 60_000 };
/** Granted permissions and installed kinds cause no event. They are retried after half a minute, later every five minutes. */
const forbiddenPauses = { firstMs: 30_000, longestMs: 300_000 };

/** Holds the keys with a pending write. The callers limit the number of keys. */
export class WriteQueue {
  readonly #options: WriteQueueOptions;
  readonly #keys = new Map<string, Wanted>();
  #cancelTimer = (): void => undefined;
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: WriteQueueOptions) {
    this.#options = options;
  }

  /** Queues a write of the key. */
  queueWrite(key: string): void {
    if (this.#isClosed) return;
    const known = this.#keys.get(key) ?? { isWanted: false, notBeforeMs: 0, failures: 0 };
    known.isWanted = true;
    this.#keys.set(key, known);
    this.#plan();
  }

  /** Drops the pending write of the key. */
  forget(key: string): void {
    this.#keys.delete(key);
  }

  clear(): void {
    this.#keys.clear();
  }

  /** Writes what is wanted without waiting for its time, each key once, and takes nothing more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer();
    await this.#running;
    for (const [key, wanted] of [...this.#keys]) if (wanted.isWanted) await this.#write(key, wanted);
    this.#keys.clear();
  }

  #plan(): void {
    if (this.#running !== undefined || this.#isClosed) return;
    this.#cancelTimer();
    const nowMs = this.#options.env.clock.monotonicMs();
    let due = Number.POSITIVE_INFINITY;
    for (const [key, one] of this.#keys) {
      if (one.isWanted) due = Math.min(due, one.notBeforeMs);
      // Keys may be names of things that are written once.
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
    for (const [key, wanted] of [...this.#keys]) {
      if (this.#isClosed) return;
      if (wanted.isWanted && wanted.notBeforeMs <= this.#options.env.clock.monotonicMs()) await this.#write(key, wanted);
    }
  }

  async #write(key: string, wanted: Wanted): Promise<void> {
    const { env, everyMs, write, onWritten, onFailure } = this.#options;
    wanted.isWanted = false;
    try {
      const done = await write(key);
      wanted.failures = 0;
      if (done === 'unchanged') return;
      wanted.notBeforeMs = env.clock.monotonicMs() + everyMs;
      onWritten?.(key);
    } catch (error) {
      wanted.isWanted = true;
      wanted.failures += 1;
      wanted.notBeforeMs = env.clock.monotonicMs() + this.#pauseAfter(error, wanted.failures);
      onFailure(key, error);
    }
  }

  #pauseAfter(error: unknown, failures: number): number {
    const { firstMs, longestMs } = isStatus(error, 401, 403, 404) ? forbiddenPauses : pauses;
    const grown = Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 20));
    const asked = error instanceof ApiFailure ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(asked, grown * (0.5 + this.#options.env.random() / 2));
  }
}
