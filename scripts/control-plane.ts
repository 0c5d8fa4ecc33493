// Finds the executables of the test control plane, or builds them, and prints their folder: what CI and images do ahead of the suites.
import { findBinaries } from '../test/control-plane/binaries.ts';

const binaries = await findBinaries((line) => process.stderr.write(`${line}\n`));
if (binaries.kind === 'found') process.stdout.write(`${binaries.folder}\n`);
else {
  process.stderr.write(`error: there is no control plane, for ${binaries.reason}\n`);
  process.exitCode = 1;
}
