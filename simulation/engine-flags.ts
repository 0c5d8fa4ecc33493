// Sets flags of V8 for simulations and reviews.
import { setFlagsFromString } from 'node:v8';

/**
 * A simulation or a review executes a lot of code, each part of it rarely. With default settings V8 would spend a quarter of the time of the
 * processor on optimizing code, and compile code again that it discarded after a minute without use.
 */
const engineFlags: readonly string[] = ['--no-flush-bytecode'];

/** V8 of Node.js 20 (version 11) has also this flag. V8 reports an unknown flag on standard error. */
const earlierFlags: readonly string[] = ['--interrupt-budget=1000000'];

/** Sets the flags for the whole process. Call this function before the threads start. */
export function setEngineFlags(): void {
  const isEarlier = Number.parseInt(process.versions.v8, 10) < 12;
  for (const flag of [...engineFlags, ...(isEarlier ? earlierFlags : [])]) setFlagsFromString(flag);
}
