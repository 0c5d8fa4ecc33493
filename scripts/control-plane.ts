// Finds or builds the executables of the test control plane, Helm, Kustomize and crane, and prints where they are. CI runs it before the suites.
import { findBinaries, findTool } from '../test/control-plane/binaries.ts';

const say = (line: string) => process.stderr.write(`${line}\n`);
const binaries = await findBinaries(say);
if (binaries.kind === 'found')
  for (const path of [binaries.folder, await findTool('helm', say), await findTool('kustomize', say), await findTool('crane', say)])
    process.stdout.write(`${path}\n`);
else {
  process.stderr.write(`error: there is no control plane: ${binaries.reason}\n`);
  process.exitCode = 1;
}
