// Paces the patches of one webhook configuration: retries failures, and slows down if another tool keeps reverting the patches.
import { Backoff } from '../../cluster/request/backoff.ts';
import { askedPauseMs, isStatus } from '../../cluster/request/failure.ts';
import type { Resource } from '../../cluster/request/resource.ts';
import { messageOf } from '../../policies/error-message.ts';

/** Delays until the next attempt after a failure. A missing permission is retried as often: the person who grants it expects an effect. */
const retry = { firstMs: 1000, lastMs: 60_000 };
/** If a patch lasts this long, no other tool is in conflict with us. */
const calmMs = 600_000;

/** All instants are of the monotonic clock. */
export class PatchPace {
  readonly #backoff: Backoff;
  readonly #freePatches: number;
  #patchedFrom = '';
  #patchedMs = Number.NEGATIVE_INFINITY;
  #patchCount = 0;
  #dueMs = Number.NEGATIVE_INFINITY;

  /** `freePatches`: the number of patches that may follow each other within 10 minutes without a delay. */
  constructor(random: () => number, freePatches: number) {
    this.#backoff = new Backoff(random, retry);
    this.#freePatches = freePatches;
  }

  /** The earliest time of the next patch. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** Reports whether the last patch was based on this version. Then its result has not been seen yet. */
  isPatched(resourceVersion: string): boolean {
    return this.#patchedFrom === resourceVersion;
  }

  failed(error: unknown, nowMs: number): void {
    this.#dueMs = nowMs + Math.max(this.#backoff.nextMs(), askedPauseMs(error) ?? 0);
  }

  /** Notes a patch that was based on this version. Returns the number of patches that did not last, including this one. */
  succeeded(resourceVersion: string, nowMs: number): number {
    if (nowMs - this.#patchedMs >= calmMs) this.#patchCount = 0;
    if (this.#patchCount <= this.#freePatches) this.#backoff.reset();
    this.#patchCount += 1;
    this.#patchedMs = nowMs;
    this.#patchedFrom = resourceVersion;
    this.#dueMs = this.#patchCount <= this.#freePatches ? nowMs : nowMs + this.#backoff.nextMs();
    return this.#patchCount;
  }
}

/** Reports whether another writer was faster. The watch delivers the result. */
export function isOvertaken(error: unknown): boolean {
  return isStatus(error, 404, 409, 422);
}

/** Returns why a patch failed, with the missing right. */
export function patchProblem(error: unknown, { plural }: Resource): string {
  return `${messageOf(error)}${isStatus(error, 403) ? `; grant patch on ${plural}` : ''}`;
}
