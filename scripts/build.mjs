// Bundles the executables into dist/: small scripts, and ES modules split into chunks, so that each command loads only what it uses.
// `--into FOLDER` and `--version VERSION` build a release. FOLDER must be in the file system of the repository.
import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { build } from 'esbuild';

const option = (name, usual) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : usual);
const dist = option('--into', 'dist');
// The build writes to a temporary folder and moves it at the end, so a failed build keeps the last good one.
const outdir = mkdtempSync(join('node_modules', '.dist-'));
process.on('exit', () => rmSync(outdir, { recursive: true, force: true }));
// Executables are CommonJS scripts: the loader of ES modules takes 15 ms, which version and help need not wait for.
const executables = {
  'kubectl-rollout_group': 'plugin/main.ts',
  'kubectl_complete-rollout_group': 'plugin/complete.ts',
  'rollout-group-agent': 'agent/process/main.ts',
};
/** The ES modules that the executables import when they need them. */
const modules = {
  run: 'plugin/run.ts',
  candidates: 'plugin/candidates.ts',
  start: 'agent/process/start.ts',
  thread: 'plugin/thread.ts',
};
const version = option('--version', JSON.parse(readFileSync('package.json', 'utf8')).version);

/**
 * Packages that others load for parts that the agent does not use. Express only matches the paths of the webhooks: the tables of encodings
 * and media types (the latter four times) of its body parsers and its file server would be 1.1 MB of source text and 4 MB of objects.
 * prom-client needs `@opentelemetry/api` only for the exemplars of its default metrics.
 */
const unusedPackages = {
  name: 'unused-packages',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^(iconv-lite|mime-db|@opentelemetry\/api)$/ }, ({ path }) => ({ path, namespace: 'unused' }));
    onLoad({ filter: /./, namespace: 'unused' }, () => ({ contents: 'module.exports = {};' }));
  },
};

const shared = {
  outdir,
  bundle: true,
  platform: 'node',
  target: 'node20',
  // Node.js keeps the source text in memory. Names stay, because stack traces show them.
  minifyWhitespace: true,
  minifySyntax: true,
  metafile: true,
  alias: {
    'node-fetch': './scripts/node-fetch.mjs',
    // The build of yaml for Node.js reads an environment variable for each token, which takes as long as much of the parsing.
    yaml: './node_modules/yaml/browser/index.js',
  },
  loader: { '.yaml': 'text', '.css': 'text', '.md': 'text' },
  define: { "process.env['ROLLOUT_GROUP_VERSION']": JSON.stringify(version) },
  legalComments: 'linked',
  logLevel: 'error',
};

/** Returns a module that does the same as plugin/help.ts. */
async function helpModule() {
  const outfile = join(outdir, 'help.mjs');
  const entry = `export { verbs } from './plugin/verbs/all.ts';
    export { programName } from './plugin/verbs/verb.ts';
    export { helpSections } from './plugin/help.ts';`;
  await build({
    ...shared,
    outdir: undefined,
    outfile,
    format: 'esm',
    metafile: false,
    legalComments: 'none',
    stdin: { contents: entry, resolveDir: '.' },
  });
  const { helpSections, programName, verbs } = await import(resolve(outfile));
  rmSync(outfile);
  const texts = [programName, ...verbs.map(({ name }) => name)].map((name) => [name, JSON.stringify(helpSections(name))]);
  return `const texts = ${JSON.stringify(Object.fromEntries(texts))};
    export const helpSections = (subject) => (Object.hasOwn(texts, subject) ? JSON.parse(texts[subject]) : undefined);`;
}

const built = await build({
  ...shared,
  plugins: [unusedPackages],
  entryPoints: Object.entries(modules).map(([name, source]) => ({ in: source, out: `chunks/${name}` })),
  splitting: true,
  format: 'esm',
  outExtension: { '.js': '.mjs' },
  chunkNames: 'chunks/[name]-[hash]',
  // CommonJS packages inside an ES module bundle still call `require`.
  banner: {
    js: "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);",
  },
});
const started = await build({
  ...shared,
  entryPoints: Object.entries(executables).map(([out, source]) => ({ in: source, out })),
  format: 'cjs',
  plugins: [
    {
      name: 'modules',
      // The executables import modules when they need them.
      setup: ({ onResolve }) =>
        onResolve({ filter: /\.ts$/ }, ({ path, kind }) => {
          if (kind !== 'dynamic-import') return undefined;
          return path === './help.ts' ? { path, namespace: 'help' } : { path: `./chunks/${basename(path, '.ts')}.mjs`, external: true };
        }),
    },
    {
      name: 'help',
      // The help becomes texts in the executable: the descriptions of all verbs take 3 ms to load.
      setup: ({ onLoad }) => onLoad({ filter: /./, namespace: 'help' }, async () => ({ contents: await helpModule() })),
    },
  ],
});
// test/plugin/startup.test.ts and the release read which files load which.
writeFileSync(
  dist === 'dist' ? join('node_modules', '.dist.json') : `${dist}.json`,
  JSON.stringify({ ...built.metafile.outputs, ...started.metafile.outputs }).replaceAll(`${outdir}/`, ''),
);
for (const name of Object.keys(executables)) {
  const bundled = join(outdir, `${name}.js`);
  // kubectl looks for a file without an extension.
  writeFileSync(bundled, `#!/usr/bin/env node\n${readFileSync(bundled, 'utf8')}`);
  renameSync(bundled, join(outdir, name));
  chmodSync(join(outdir, name), 0o755);
}
writeFileSync(join(outdir, 'package.json'), `${JSON.stringify({ name: 'kubectl-rollout-group', version, type: 'commonjs' }, null, 2)}\n`);
if (existsSync('LICENSE')) writeFileSync(join(outdir, 'LICENSE'), readFileSync('LICENSE'));
chmodSync(outdir, 0o755);
// The earlier build is deleted after the move: a command that starts during the deletion would otherwise fail.
const earlier = `${outdir}-earlier`;
if (existsSync(dist)) renameSync(dist, earlier);
renameSync(outdir, dist);
rmSync(earlier, { recursive: true, force: true });
if (!process.argv.includes('--quiet')) process.stdout.write(`built ${Object.keys(executables).join(', ')} in ${dist}/\n`);
