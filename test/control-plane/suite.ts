// Runs a suite on a separate control plane: started before the tests, stopped after them. The logs are kept if a test failed.
import { afterAll, beforeAll, beforeEach, describe, inject } from 'vitest';
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.ts';

/**
 * Describes tests that need the executables, and passes their folder to `tests`. Without executables the tests are skipped under a name
 * that states why, and `tests` gets undefined.
 */
export function describeWithBinaries(name: string, tests: (folder: string | undefined) => void): void {
  const binaries = inject('controlPlaneBinaries');
  if (binaries.kind === 'missing') describe.skip(`SKIPPED: ${name}, for ${binaries.reason}`, () => tests(undefined));
  else describe(name, () => tests(binaries.folder));
}

/**
 * Describes tests that share one control plane. The function passed to `tests` returns it. Without executables the suite is skipped under
 * a name that states why.
 */
export function describeOnControlPlane(
  name: string,
  tests: (controlPlane: () => ControlPlane) => void,
  options: Omit<ControlPlaneOptions, 'binaries'> = {},
): void {
  describeWithBinaries(name, (binaries) => {
    if (binaries === undefined) {
      tests(() => neverStarted());
      return;
    }
    let started: ControlPlane | undefined;
    // Kept until a test begins: after a failure before that, the logs are the only information.
    let hasFailed = true;
    let hasBegun = false;
    let beganAt = 0;
    let startMs = 0;
    beforeAll(async () => {
      beganAt = Date.now();
      started = await startControlPlane({ ...options, binaries });
      startMs = Date.now() - beganAt;
    });
    beforeEach(({ onTestFailed }) => {
      if (!hasBegun) hasFailed = false;
      hasBegun = true;
      onTestFailed(() => {
        hasFailed = true;
      });
    });
    afterAll(async () => {
      const logs = await started?.stop({ keepLogs: hasFailed });
      process.stderr.write(`control plane: "${name}" took ${Date.now() - beganAt} ms, ${startMs} of them to start\n`);
      if (logs !== undefined) process.stderr.write(`control plane: the logs of "${name}" are in ${logs}\n`);
    });
    tests(() => started ?? neverStarted());
  });
}

function neverStarted(): never {
  throw new Error('the control plane is only there while a test runs');
}
