// What a process keeps in memory, looked at in moments in which it has nothing in hand, and how fast that grows.
import { setTimeout as delay } from 'node:timers/promises';
import { median } from './figure.ts';

export interface MemorySample {
  readonly atMs: number;
  /** What is reachable, in the heap and in buffers. */
  readonly keptMiB: number;
  readonly residentMiB: number;
}

/** What was answered last has been let go of by then. */
const restMs = 50;

/** Looks, at a moment when nothing is in hand. Collects garbage before, where `node --expose-gc` lets it. */
export async function lookAtMemory(): Promise<MemorySample> {
  await delay(restMs);
  // Twice: buffers are freed after what held them.
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { atMs: performance.now(), keptMiB: (heapUsed + external) / 2 ** 20, residentMiB: rss / 2 ** 20 };
}

/** MiB a minute: the median of the slopes between any two samples, so that single ones do not count. NaN of fewer than two. */
export function slopeOf(samples: readonly MemorySample[], of: (sample: MemorySample) => number): number {
  return median(
    samples.flatMap((later, index) =>
      samples.slice(0, index).map((earlier) => ((of(later) - of(earlier)) / (later.atMs - earlier.atMs)) * 60_000),
    ),
  );
}
