// A suite on a control plane of its own: started before the tests, stopped after them, its logs kept when one has failed.
import { afterAll, beforeAll, beforeEach, describe, inject } from 'vitest';
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.ts';

/**
 * Describes tests that share one control plane, which they get by calling the function that `tests` is given.
 * Where no executables are to be had, the suite is skipped under a name that says why.
 */
export function describeOnControlPlane(
  name: string,
  tests: (controlPlane: () => ControlPlane) => void,
  options: Omit<ControlPlaneOptions, 'binaries'> = {},
): void {
  const binaries = inject('controlPlaneBinaries');
  if (binaries.kind === 'missing') {
    describe.skip(`SKIPPED: ${name}, for ${binaries.reason}`, () => tests(() => neverStarted()));
    return;
  }
  describe(name, () => {
    let started: ControlPlane | undefined;
    let hasFailed = false;
    beforeAll(async () => {
      started = await startControlPlane({ ...options, binaries: binaries.folder });
    });
    beforeEach(({ onTestFailed }) => {
      onTestFailed(() => {
        hasFailed = true;
      });
    });
    afterAll(async () => {
      const logs = await started?.stop({ keepLogs: hasFailed });
      if (logs !== undefined) process.stderr.write(`control plane: the logs of "${name}" are in ${logs}\n`);
    });
    tests(() => started ?? neverStarted());
  });
}

function neverStarted(): never {
  throw new Error('the control plane is only there while a test runs');
}
