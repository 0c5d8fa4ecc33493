// The directory in which the commands of a page run: what a reader has after a clone, and a Git repository with manifests and policies.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { builtFolder } from '../plugin/process.ts';
import { differences, exactly, type Mask, type Page, type Ran, readPage, rewritten, runSession, type Session } from './page.ts';

/** Pages without commands of a reader: lists that are generated, whose examples test/plugin/help.test.ts parses. */
const generated = ['docs/command-line.md', 'docs/agent.md', 'docs/findings.md'];

/** Returns every page with commands, and its text. */
export function readPages(): ReadonlyMap<string, Page> {
  const inside = ['docs', 'examples'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  );
  const names = ['README.md', ...inside.filter((name) => name.endsWith('.md') && !generated.includes(name)).sort()];
  return new Map(names.map((name) => [name, readPage(readFileSync(name, 'utf8'))]));
}

export interface Scratch {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly remove: () => void;
}

/**
 * Creates the directory: `examples/`, `deploy/` and `dist/` of the repository, and next to them `manifests/`, `next/` and `policies/` of
 * the example mimir-store-gateway in a Git repository. The branch `main`, which `origin/main` names too, has the manifests. The branch
 * `change`, which is checked out, has those of `next/`. `clusters` are the folders of the first cluster of a page and of the second one.
 */
export function createScratch(clusters: readonly string[] = []): Scratch {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-page-'));
  for (const name of ['examples', 'deploy']) symlinkSync(resolve(name), join(folder, name));
  // Next to clusters of other suites, a cluster has another number.
  for (const [index, cluster] of clusters.entries()) symlinkSync(cluster, join(folder, ['.cluster', '.cluster-2'][index] ?? ''));
  symlinkSync(builtFolder(), join(folder, 'dist'));
  mkdirSync(join(folder, 'home'));
  const prometheus = [process.env['PROMETHEUS_BINARY'] ?? []].flat().map((binary) => dirname(binary));
  const env = {
    PATH: [builtFolder(), ...prometheus, process.env['PATH'] ?? ''].join(delimiter),
    HOME: join(folder, 'home'),
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    KUBECONFIG: join(folder, 'home', 'no-kubeconfig'),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_COUNT: '2',
    GIT_CONFIG_KEY_0: 'user.name',
    GIT_CONFIG_VALUE_0: 'Anna',
    GIT_CONFIG_KEY_1: 'user.email',
    GIT_CONFIG_VALUE_1: 'anna@example.com',
  };
  const git = (...words: readonly string[]): void => void execFileSync('git', words, { cwd: folder, env });
  const copy = (from: string, to: string): void =>
    cpSync(join('examples/mimir-store-gateway', from), join(folder, to), { recursive: true });
  copy('manifests', 'manifests');
  copy('manifests-next', 'next');
  copy('policies', 'policies');
  // The second PolicyTest of the file is about the policies of a later change.
  const [first = ''] = readFileSync('examples/mimir-store-gateway/tests/store-gateway.yaml', 'utf8').split('---\n');
  mkdirSync(join(folder, 'tests'));
  writeFileSync(join(folder, 'tests/store-gateway.yaml'), first);
  writeFileSync(join(folder, '.gitignore'), '/*\n!/manifests\n!/next\n!/policies\n!/tests\n');
  git('init', '--quiet', '--initial-branch', 'main');
  git('add', '.');
  git('commit', '--quiet', '--message', 'Run store-gateways in three zones');
  git('update-ref', 'refs/remotes/origin/main', 'main');
  git('switch', '--quiet', '--create', 'change');
  copy('manifests-next', 'manifests');
  git('commit', '--quiet', '--all', '--message', 'Update the store-gateways');
  return { folder, env, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export interface CheckOptions {
  readonly mask?: Mask;
  /** The folders of the running clusters, in the order in which the page starts them. */
  readonly clusters?: readonly string[];
  /** Replaces variables of the environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** For all commands of a session. */
const timeoutSeconds = 500;

/**
 * Runs the meant sessions of a page in a new directory. Returns what differs from the page. With `UPDATE=1` it writes the outputs into the page, and
 * returns only wrong exit codes.
 */
export async function checkPage(name: string, isMeant: (session: Session) => boolean, options: CheckOptions = {}): Promise<string> {
  const { mask = exactly, env = {}, clusters } = options;
  // Another test may have written the page.
  const sessions = readPage(readFileSync(name, 'utf8')).sessions.filter(isMeant);
  const { folder, env: basic, remove } = createScratch(clusters);
  const ran: Ran[] = [];
  try {
    for (const session of sessions) ran.push(...(await runSession(session, { cwd: folder, env: { ...basic, ...env }, timeoutSeconds })));
  } finally {
    remove();
  }
  if (process.env['UPDATE'] !== '1') return differences(ran, mask).join('\n');
  const markdown = readFileSync(name, 'utf8');
  const next = rewritten(markdown, ran, mask);
  if (next !== markdown) writeFileSync(name, next);
  return differences(ran, () => '').join('\n');
}
