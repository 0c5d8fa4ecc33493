// Computes the time of the next patch to a webhook configuration. Delays grow after failures, and if another tool reverts our patches.
import { Backoff } from '../../cluster/request/backoff.ts';
import { askedPauseMs, isStatus } from '../../cluster/request/failure.ts';
import type { Resource } from '../../cluster/request/resource.ts';
import { messageOf } from '../../policies/error-message.ts';

/** Delays after a failure. They also apply to a missing permission, so that a new grant takes effect within a minute. */
const retry = { firstMs: 1000, lastMs: 60_000 };
/** A patch that lasts this long shows that no other tool is in conflict with us. */
const calmMs = 600_000;

/** The pace of the patches to one configuration. All times are on the monotonic clock. */
export class PatchPace {
  readonly #backoff: Backoff;
  readonly #freePatches: number;
  #patchedFrom = '';
  #patchedMs = Number.NEGATIVE_INFINITY;
  #patchCount = 0;
  #dueMs = Number.NEGATIVE_INFINITY;

  /** `freePatches`: the number of patches in a row that are not followed by a delay. */
  constructor(random: () => number, freePatches: number) {
    this.#backoff = new Backoff(random, retry);
    this.#freePatches = freePatches;
  }

  /** The earliest time of the next patch. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** Returns whether the last patch was based on this version. Then the watch has not delivered the result of the patch yet. */
  isPatched(resourceVersion: string): boolean {
    return this.#patchedFrom === resourceVersion;
  }

  /** After another writer was faster, delays do not grow: the next patch is based on the new state. */
  failed(error: unknown, nowMs: number): void {
    const delayMs = isOvertaken(error) ? retry.firstMs : this.#backoff.nextMs();
    this.#dueMs = nowMs + Math.max(delayMs, askedPauseMs(error) ?? 0);
  }

  /** Notes a patch that was based on this version. Returns the number of patches in a row, with less than 10 minutes between them. */
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

/** Returns whether another writer changed or deleted the object before us. The watch delivers the new state. */
export function isOvertaken(error: unknown): boolean {
  return isStatus(error, 404, 409, 422);
}

/** Returns why a patch failed. After a 403, the text also names the missing permission. */
export function patchProblem(error: unknown, { plural }: Resource): string {
  return `${messageOf(error)}${isStatus(error, 403) ? `; grant patch on ${plural}` : ''}`;
}
