// Finds or builds the executables before the first suite, and prints a clear message if there are none.
import type { TestProject } from 'vitest/node';
import { type Binaries, findBinaries } from './binaries.ts';

declare module 'vitest' {
  interface ProvidedContext {
    readonly controlPlaneBinaries: Binaries;
  }
}

/** In CI a suite without executables fails. Elsewhere the message is the last line of the output. */
export async function setup(project: TestProject): Promise<() => void> {
  const say = (line: string) => process.stderr.write(`control plane: ${line}\n`);
  const binaries = await findBinaries(say);
  if (binaries.kind === 'missing' && process.env['CI']) throw new Error(`the cluster suites cannot run: ${binaries.reason}`);
  project.provide('controlPlaneBinaries', binaries);
  return () => {
    if (binaries.kind === 'missing') say(`SKIPPED every suite test/**/*.cluster.ts, for ${binaries.reason}`);
  };
}
