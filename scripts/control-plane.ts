// Finds or builds the executables of the test control plane, Helm and Kustomize, and prints where they are. CI runs it before the suites.
import { findBinaries, findRenderer } from '../test/control-plane/binaries.ts';

const say = (line: string) => process.stderr.write(`${line}\n`);
const binaries = await findBinaries(say);
if (binaries.kind === 'found')
  process.stdout.write(`${[binaries.folder, await findRenderer('helm', say), await findRenderer('kustomize', say)].join('\n')}\n`);
else {
  process.stderr.write(`error: there is no control plane: ${binaries.reason}\n`);
  process.exitCode = 1;
}
