// Finds or builds the executables once, before any suite, and says loudly when there are none.
import type { TestProject } from 'vitest/node';
import { type Binaries, findBinaries } from './binaries.ts';

declare module 'vitest' {
  interface ProvidedContext {
    readonly controlPlaneBinaries: Binaries;
  }
}

/** In CI a suite that is not run is a failure; elsewhere it is the last thing that a person reads. */
export async function setup(project: TestProject): Promise<() => void> {
  const say = (line: string) => process.stderr.write(`control plane: ${line}\n`);
  const binaries = await findBinaries(say);
  if (binaries.kind === 'missing' && process.env['CI']) throw new Error(`the cluster suites cannot run: ${binaries.reason}`);
  project.provide('controlPlaneBinaries', binaries);
  return () => {
    if (binaries.kind === 'missing') say(`SKIPPED every suite test/**/*.cluster.ts, for ${binaries.reason}`);
  };
}
