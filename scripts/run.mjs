// Runs a TypeScript script of this repository: Node 20 cannot read TypeScript, so the script is bundled first.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const [script, ...args] = process.argv.slice(2);
const folder = mkdtempSync(join(process.cwd(), 'node_modules', '.run-'));
try {
  const outfile = join(folder, 'script.mjs');
  await build({
    entryPoints: [script],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    loader: { '.yaml': 'text', '.css': 'text', '.md': 'text' },
    logLevel: 'error',
  });
  const child = spawn(process.execPath, [outfile, ...args], { stdio: 'inherit' });
  // The script may have to clean up. A terminal sends Ctrl-C to the whole process group, so the script gets it anyway; other signals are
  // forwarded.
  process.on('SIGINT', () => {});
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  const [code] = await once(child, 'exit');
  process.exitCode = code ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
