// Bundles the executables into dist/: ES modules split into chunks, so that each command loads only what it uses.
import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const dist = 'dist';
// The build writes to a temporary folder and moves it at the end, so a failed build keeps the last good one.
const outdir = mkdtempSync(join('node_modules', '.dist-'));
process.on('exit', () => rmSync(outdir, { recursive: true, force: true }));
const executables = {
  'kubectl-rollout_group': 'plugin/main.ts',
  'kubectl_complete-rollout_group': 'plugin/complete.ts',
  'rollout-group-agent': 'agent/process/main.ts',
};
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));

await build({
  entryPoints: Object.entries(executables).map(([out, source]) => ({ in: source, out })),
  outdir,
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  outExtension: { '.js': '.mjs' },
  chunkNames: 'chunks/[name]-[hash]',
  alias: { 'node-fetch': './scripts/node-fetch.mjs' },
  loader: { '.yaml': 'text', '.css': 'text', '.md': 'text' },
  define: { "process.env['ROLLOUT_GROUP_VERSION']": JSON.stringify(version) },
  // CommonJS packages inside an ES module bundle still call `require`.
  banner: {
    js: "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);",
  },
  legalComments: 'linked',
  logLevel: 'error',
});
for (const name of Object.keys(executables)) {
  const bundled = join(outdir, `${name}.mjs`);
  // kubectl looks for a file without an extension. Node reads such a file as an ES module only with a package.json in the same folder.
  writeFileSync(bundled, `#!/usr/bin/env node\n${readFileSync(bundled, 'utf8')}`);
  renameSync(bundled, join(outdir, name));
  chmodSync(join(outdir, name), 0o755);
}
writeFileSync(join(outdir, 'package.json'), `${JSON.stringify({ name: 'kubectl-rollout-group', version, type: 'module' }, null, 2)}\n`);
if (existsSync('LICENSE')) writeFileSync(join(outdir, 'LICENSE'), readFileSync('LICENSE'));
chmodSync(outdir, 0o755);
// The earlier build is deleted after the move: a command that starts during the deletion would otherwise fail.
const earlier = `${outdir}-earlier`;
if (existsSync(dist)) renameSync(dist, earlier);
renameSync(outdir, dist);
rmSync(earlier, { recursive: true, force: true });
if (!process.argv.includes('--quiet')) process.stdout.write(`built ${Object.keys(executables).join(', ')} in ${dist}/\n`);
