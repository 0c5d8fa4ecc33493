// Finds or builds the executables of the test control plane, and prints their folder. CI and images run it before the suites.
import { findBinaries } from '../test/control-plane/binaries.ts';

const binaries = await findBinaries((line) => process.stderr.write(`${line}\n`));
if (binaries.kind === 'found') process.stdout.write(`${binaries.folder}\n`);
else {
  process.stderr.write(`error: there is no control plane, for ${binaries.reason}\n`);
  process.exitCode = 1;
}
