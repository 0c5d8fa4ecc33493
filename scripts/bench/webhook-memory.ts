// Measures the memory of a process while it has no open requests, and how fast the memory grows.
import { setTimeout as delay } from 'node:timers/promises';
import { median } from './figure.ts';

export interface MemorySample {
  readonly atMs: number;
  /** Reachable memory, in the heap and in buffers. */
  readonly keptMiB: number;
  readonly residentMiB: number;
}

/** Pause before a measurement, in which answered requests are released. */
const restMs = 50;

/** Measures the memory while no request is open. Collects garbage first if `node --expose-gc` permits it. */
export async function lookAtMemory(): Promise<MemorySample> {
  await delay(restMs);
  // Twice, because buffers are freed only after the objects that hold them.
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { atMs: performance.now(), keptMiB: (heapUsed + external) / 2 ** 20, residentMiB: rss / 2 ** 20 };
}

/**
 * Returns the growth in MiB per minute: the median of the slopes between any two samples, so that single samples matter less. NaN with
 * fewer than two.
 */
export function slopeOf(samples: readonly MemorySample[], of: (sample: MemorySample) => number): number {
  return median(
    samples.flatMap((later, index) =>
      samples.slice(0, index).map((earlier) => ((of(later) - of(earlier)) / (later.atMs - earlier.atMs)) * 60_000),
    ),
  );
}
