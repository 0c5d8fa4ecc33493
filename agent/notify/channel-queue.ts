// Sends the notifications for one channel: one request at a time, events before edits of earlier messages, with pauses after failures.
import { type ClusterEnv, sleep } from '../../cluster/env.ts';
import { pauseAfter } from '../../cluster/request/backoff.ts';

export type Step =
  /** There was nothing to do for this group. */
  | { readonly kind: 'idle' }
  /** The step is finished, and the group is queued for its next step. `isSent` is true if a request was sent to the service. */
  | { readonly kind: 'done'; readonly isSent: boolean }
  /** The step is retried later. Until then this group waits, or every group of the channel. */
  | { readonly kind: 'later'; readonly who: 'group' | 'channel'; readonly afterMs?: number };

interface ChannelQueueOptions {
  readonly env: Pick<ClusterEnv, 'clock' | 'timers' | 'random'>;
  /** The pause after a step that sent a request to the service, in milliseconds. */
  readonly paceMs: number;
  /** Sends the next notification of this group. Must not reject. */
  readonly step: (group: string) => Promise<Step>;
  /** Returns whether the group has an unreported event for the channel, not only an edit of an earlier message. */
  readonly isUrgent: (group: string) => boolean;
}

const pauses = { firstMs: 1_000, lastMs: 300_000 };

/** The queue of groups with notifications for one channel. It sends one notification after the other. */
export class ChannelQueue {
  readonly #options: ChannelQueueOptions;
  /** For each group the earliest time of its next step (monotonic), and its failures in a row. */
  readonly #groups = new Map<string, { notBeforeMs: number; failures: number }>();
  #pausedUntilMs = 0;
  #failures = 0;
  #running: Promise<void> | undefined;
  #wake = new AbortController();
  #isClosed = false;

  constructor(options: ChannelQueueOptions) {
    this.#options = options;
  }

  /** Queues the group, because it may have a notification to send. */
  queueGroup(group: string): void {
    if (this.#isClosed) return;
    if (!this.#groups.has(group)) this.#groups.set(group, { notBeforeMs: 0, failures: 0 });
    this.#wake.abort();
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#groups.size > 0 && !this.#isClosed) this.queueGroup([...this.#groups.keys()][0] ?? '');
    });
  }

  forget(group: string): void {
    this.#groups.delete(group);
  }

  clear(): void {
    this.#groups.clear();
    this.#pausedUntilMs = 0;
    this.#failures = 0;
    this.#wake.abort();
  }

  /** Starts no further step. Resolves when the running step has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.clear();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#groups.size > 0 && !this.#isClosed) {
      this.#wake = new AbortController();
      const due = this.#next();
      if (typeof due === 'number') {
        await sleep(this.#options.env, due, this.#wake.signal);
        continue;
      }
      await this.#runStep(due);
    }
  }

  /** Returns the group whose step is next, or the milliseconds until a group is due. */
  #next(): string | number {
    const nowMs = this.#options.env.clock.monotonicMs();
    if (nowMs < this.#pausedUntilMs) return this.#pausedUntilMs - nowMs;
    const ready = [...this.#groups].filter(([, { notBeforeMs }]) => notBeforeMs <= nowMs).map(([group]) => group);
    const first = ready.find((group) => this.#options.isUrgent(group)) ?? ready[0];
    return first ?? Math.min(...[...this.#groups.values()].map(({ notBeforeMs }) => notBeforeMs)) - nowMs;
  }

  async #runStep(group: string): Promise<void> {
    const { env, paceMs, step } = this.#options;
    const known = this.#groups.get(group) ?? { notBeforeMs: 0, failures: 0 };
    // A call of `queueGroup` during the step queues the group again, behind the other groups.
    this.#groups.delete(group);
    const result = await step(group);
    const nowMs = env.clock.monotonicMs();
    if (result.kind === 'later') {
      const failures = known.failures + 1;
      const pauseMs = Math.max(result.afterMs ?? 0, pauseAfter(failures, pauses, env.random()));
      this.#groups.set(group, { notBeforeMs: nowMs + pauseMs, failures });
      if (result.who === 'group') return;
      // When the channel is retried, other groups come first, because perhaps only this notification cannot be sent.
      this.#failures += 1;
      this.#pausedUntilMs = nowMs + Math.max(result.afterMs ?? 0, pauseAfter(this.#failures, pauses, env.random()));
      return;
    }
    if (result.kind === 'idle') return;
    this.#groups.set(group, { notBeforeMs: 0, failures: 0 });
    if (!result.isSent) return;
    this.#failures = 0;
    this.#pausedUntilMs = nowMs + paceMs;
  }
}
