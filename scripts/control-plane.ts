// Finds or builds the executables of the test control plane and Helm, and prints where they are. CI runs it before the suites.
import { findBinaries, findHelm } from '../test/control-plane/binaries.ts';

const say = (line: string) => process.stderr.write(`${line}\n`);
const binaries = await findBinaries(say);
if (binaries.kind === 'found') process.stdout.write(`${binaries.folder}\n${await findHelm(say)}\n`);
else {
  process.stderr.write(`error: there is no control plane: ${binaries.reason}\n`);
  process.exitCode = 1;
}
