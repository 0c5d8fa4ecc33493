// Sets flags of V8 for the threads that play simulations.
import { setFlagsFromString } from 'node:v8';

/**
 * A run executes a lot of code, each part of it rarely. With default settings V8 would spend a quarter of the time of the processor on
 * optimising code, and compile code again that it discarded after a minute without use.
 */
const engineFlags: readonly string[] = ['--interrupt-budget=1000000', '--no-flush-bytecode'];

/** Sets the flags for the whole process. Call this function before the threads start. */
export function setEngineFlags(): void {
  for (const flag of engineFlags) setFlagsFromString(flag);
}
