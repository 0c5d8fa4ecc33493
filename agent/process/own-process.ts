// Limits the memory of the process of the executable, and names the process.
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/**
 * Keeps V8's young generation at 1 MiB, and lets the old one grow by a fifth between two collections. If the young generation grows to
 * 48 MiB, an agent with 2,100 pods needs 117 MiB of memory instead of 87 MiB. Must be called before the modules of the agent are loaded,
 * because loading them already lets it grow. The code of the baseline compiler takes 4 MiB. Without it, code that runs often is still
 * compiled by the optimizing compiler.
 */
export function keepMemorySmall(): void {
  // V8 reads these flags each time a space would grow, so they work in a running process. It reads --max-semi-space-size only at the start.
  for (const flag of ['--semi-space-growth-factor=1', '--heap-growing-percent=20', '--no-sparkplug']) setFlagsFromString(flag);
}

/** Returns the host name (the name of the pod) and a random suffix, because a restarted container is another process. */
export function processIdentity(): string {
  return `${hostname()}_${randomBytes(4).toString('hex')}`;
}
