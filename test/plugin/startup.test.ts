// The start-up budget as structure: what is not loaded cannot take time, on any machine.
import { existsSync, readFileSync } from 'node:fs';
import { normalize } from 'node:path';
import { describe, expect, it } from 'vitest';

interface Output {
  readonly bytes: number;
  readonly imports: readonly { readonly path: string; readonly kind: string }[];
  readonly inputs: Readonly<Record<string, unknown>>;
}

/** The files of `dist/` by their path, as the bundler reported them. */
function outputs(): Readonly<Record<string, Output>> {
  if (!existsSync('node_modules/.dist.json')) throw new Error('dist/ is missing: run npm run build, or the tests through npm test');
  return JSON.parse(readFileSync('node_modules/.dist.json', 'utf8'));
}

const built = outputs();

/** The files that loading this one loads at once, itself included. */
function loadedWith(file: string, seen: Set<string> = new Set()): ReadonlySet<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const { path, kind } of imports(file)) if (kind === 'import-statement') loadedWith(path, seen);
  return seen;
}

function imports(file: string): Output['imports'] {
  const found = built[file]?.imports.map(({ path, kind }) => ({ path: normalize(path), kind })) ?? [];
  return found.filter(({ path }) => path in built);
}

/** The chunks that a file loads on demand under this name. */
function chunks(file: string, name: string): readonly string[] {
  const pattern = new RegExp(`^chunks/${name}(?:-[A-Z0-9]+)?\\.mjs$`);
  return imports(file).flatMap(({ path, kind }) => (kind === 'dynamic-import' && pattern.test(path) ? [path] : []));
}

function chunk(file: string, name: string): string {
  const [path] = chunks(file, name);
  if (path === undefined) throw new Error(`${file} does not load ${name}`);
  return path;
}

function sourcesOf(files: ReadonlySet<string>): readonly string[] {
  return [...files].flatMap((file) => Object.keys(built[file]?.inputs ?? {}));
}

/** The packages whose code the files contain. */
function packagesIn(files: ReadonlySet<string>): readonly (string | undefined)[] {
  const found = sourcesOf(files).flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  return [...new Set(found)];
}

describe('start-up', () => {
  const main = 'kubectl-rollout_group.js';
  const complete = 'kubectl_complete-rollout_group.js';

  it('version and --help load one script with the texts of the help, and no verb and no package', () => {
    expect([...loadedWith(main)]).toEqual([main]);
    expect(built[main]?.bytes).toBeLessThan(120_000);
    expect(sourcesOf(loadedWith(main)).filter((path) => path.startsWith('plugin/verbs/'))).toEqual([]);
    expect(packagesIn(loadedWith(main))).toEqual([]);
  });

  it('-version of the agent loads one script with the flags, and no package', () => {
    const agent = 'rollout-group-agent.js';
    expect([...loadedWith(agent)]).toEqual([agent]);
    expect(built[agent]?.bytes).toBeLessThan(30_000);
    expect(packagesIn(loadedWith(agent))).toEqual([]);
  });

  it('the agent with webhooks loads no package for unused parts of express and prom-client', () => {
    const start = 'chunks/start.mjs';
    const packages = [start, chunk(start, 'serve-webhook')].flatMap((file) => packagesIn(loadedWith(file)));
    expect(packages).toEqual(expect.arrayContaining(['express', 'prom-client']));
    expect(packages.filter((name) => ['iconv-lite', 'mime-db', '@opentelemetry/api'].includes(name ?? ''))).toEqual([]);
  });

  it('completion of verbs and flags loads no package', () => {
    expect(packagesIn(loadedWith(chunk(complete, 'candidates')))).toEqual([]);
  });

  it('completion from the cluster loads no engine, and only the package that reads a kubeconfig', () => {
    const candidates = loadedWith(chunk(complete, 'candidates'));
    const cluster = [...candidates].flatMap((file) => chunks(file, 'cluster-candidates'))[0] ?? '';
    const names = chunk(cluster, 'cluster-names');
    const loaded = [...loadedWith(names)].flatMap((file) => [
      file,
      ...chunks(file, '(?:kubeconfig|transport|read-only|connection-failure)'),
    ]);
    const files = new Set(loaded.flatMap((file) => [...loadedWith(file)]));
    expect(packagesIn(files)).toEqual(['yaml']);
    expect(sourcesOf(files).filter((path) => path.startsWith('engine/decide/'))).toEqual([]);
  });

  it('parsing the command line loads commander and no other package', () => {
    expect(packagesIn(loadedWith(chunk(chunk(main, 'run'), 'program')))).toEqual(['commander']);
  });
});
