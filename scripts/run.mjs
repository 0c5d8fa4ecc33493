// Runs a TypeScript script of this repository: Node 20 cannot read TypeScript nor import texts, so the script is bundled first.
import { spawnSync } from 'node:child_process';
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
  process.exitCode = spawnSync(process.execPath, [outfile, ...args], { stdio: 'inherit' }).status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
