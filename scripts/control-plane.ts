// Finds or builds the executables of the test control plane, and prints their folder. CI runs it before the suites.
import { findBinaries } from '../test/control-plane/binaries.ts';

const binaries = await findBinaries((line) => process.stderr.write(`${line}\n`));
if (binaries.kind === 'found') process.stdout.write(`${binaries.folder}\n`);
else {
  process.stderr.write(`error: there is no control plane: ${binaries.reason}\n`);
  process.exitCode = 1;
}
