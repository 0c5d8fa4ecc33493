// Measures `review` of a repository with 20 groups in each of three environments: for one image, for a policy of all groups, and for everything.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type Figure, median, timed } from './figure.ts';
import { endedChildrenMs } from './process.ts';

const groupCount = 20;

/** The environments, with the texts of the example that differ in them. No environment has a file of another one. */
const environments: readonly { readonly name: string; readonly region: string; readonly opens: string }[] = [
  { name: 'staging', region: 'eu-north-1', opens: '0 8' },
  { name: 'europe', region: 'eu-west-1', opens: '0 9' },
  { name: 'america', region: 'us-east-1', opens: '0 10' },
];

interface File {
  readonly environment: string;
  /** The path below the environment. */
  readonly path: string;
  readonly text: string;
}

const withImage = (text: string): string => text.replaceAll(/image: grafana.mimir:\S+/g, 'image: grafana/mimir:9.0.0');

/** The pull requests by their branch, each with the new text of a file. */
const pullRequests: Readonly<Record<string, { readonly what: string; readonly change: (file: File) => string }>> = {
  image: {
    what: 'one image changed',
    change: ({ environment, path, text }) => (environment === 'europe' && path.includes('/ingester-7/') ? withImage(text) : text),
  },
  policy: {
    what: 'a policy of every group changed',
    change: ({ path, text }) => (path === 'policies/limits.yaml' ? text.replace('minInterval: 1m', 'minInterval: 5m') : text),
  },
  all: {
    what: 'every file changed',
    change: ({ text }) => `${withImage(text).replaceAll('13h', '1h').replace('minInterval: 1m', 'minInterval: 5m')}# reviewed\n`,
  },
};

const limits = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: limits, namespace: mimir }
spec:
  targets: { all: true }
  limits:
    minInterval: 1m
`;

/** The longest comment that the forges accept, with a reserve: GitHub accepts 65,536 characters. */
const maxCharacters = 60_000;

/** A scratch repository with the example `mimir-ingester` once for each group and environment, and a branch for each pull request. */
class BenchRepository {
  readonly root: string = mkdtempSync(join(tmpdir(), 'rollout-group-bench-'));

  constructor() {
    this.#git('init', '--quiet', '--initial-branch=main');
    for (const { name, region, opens } of environments) {
      this.#write(`${name}/policies/limits.yaml`, limits);
      for (let group = 0; group < groupCount; group += 1) this.#writeGroup(name, group, { region, opens });
    }
    const names = environments.map(({ name }) => `  - { name: ${name}, policies: ${name}/policies, manifests: ${name}/manifests }\n`);
    this.#write('rollout-group.yaml', `environments:\n${names.join('')}`);
    this.#commit('main');
    for (const [name, { change }] of Object.entries(pullRequests)) this.#branch(name, change);
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  #writeGroup(environment: string, group: number, { region, opens }: { readonly region: string; readonly opens: string }): void {
    for (const folder of ['policies', 'manifests']) {
      for (const file of readdirSync(`examples/mimir-ingester/${folder}`)) {
        const text = readFileSync(`examples/mimir-ingester/${folder}/${file}`, 'utf8')
          .replaceAll('ingester', `ingester-${group}`)
          .replaceAll('name: calendar', `name: calendar-${group}`)
          .replaceAll('eu-west-1', region)
          .replaceAll('cron: 0 9', `cron: ${opens}`);
        this.#write(`${environment}/${folder}/ingester-${group}/${file}`, text);
      }
    }
  }

  #branch(name: string, change: (file: File) => string): void {
    this.#git('checkout', '--quiet', '-b', name, 'main');
    for (const { name: environment } of environments) {
      const files = readdirSync(join(this.root, environment), { recursive: true, encoding: 'utf8' });
      for (const path of files.filter((file) => file.endsWith('.yaml'))) {
        const text = readFileSync(join(this.root, environment, path), 'utf8');
        this.#write(`${environment}/${path}`, change({ environment, path, text }));
      }
    }
    this.#commit(name);
  }

  #write(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text);
  }

  #commit(message: string): void {
    this.#git('add', '--all');
    this.#git('commit', '--quiet', '--message', message);
  }

  #git(...args: readonly string[]): void {
    const identity = ['-c', 'user.name=bench', '-c', 'user.email=bench@example.com', '-c', 'commit.gpgsign=false'];
    execFileSync('git', [...identity, ...args], { cwd: this.root, stdio: ['ignore', 'ignore', 'inherit'] });
  }
}

interface Reviewed {
  readonly ms: number;
  readonly processorMs: number;
  readonly text: string;
}

function review(cwd: string, head: string): Reviewed {
  const words = ['review', '--base', 'main', '--head', head, '--at', '2026-11-26T10:00:00Z', '-o', 'markdown'];
  const usedMs = endedChildrenMs();
  let text = '';
  const ms = timed(() => {
    const executable = resolve('dist/kubectl-rollout_group');
    const run = spawnSync(process.execPath, [executable, ...words], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
    if (run.status !== 0) throw new Error(`the review of ${head} ended with ${run.status}`);
    text = run.stdout;
    return run;
  });
  return { ms, processorMs: endedChildrenMs() - usedMs, text };
}

/** Measures the built command with each pull request, in half a minute. */
export function reviewFigures(): readonly Figure[] {
  const repository = new BenchRepository();
  try {
    return Object.entries(pullRequests).map(([head, { what: changed }]): Figure => {
      const runs = Array.from({ length: 3 }, () => review(repository.root, head));
      const text = runs[0]?.text ?? '';
      const rows = environments.filter(({ name }) => text.includes(`\n| ${name} | `)).length;
      if (rows !== environments.length) throw new Error(`the summary of the review of ${head} has ${rows} rows`);
      if (text.length > maxCharacters) throw new Error(`the comment of the review of ${head} has ${text.length} characters`);
      const what = `review of ${groupCount} groups in ${environments.length} environments, ${changed}`;
      const processorMs = median(runs.map((run) => run.processorMs));
      return { what, value: median(runs.map(({ ms }) => ms)), bar: 3000, unit: 'ms', floor: `processor time ${processorMs.toFixed(0)} ms` };
    });
  } finally {
    repository.remove();
  }
}
