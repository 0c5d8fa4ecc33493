// Measures `review` of a repository with 20 groups in each of three environments: a pull request for one group, and one for all groups.
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

/** The changes of a pull request: of the times, and of the images. */
const changes: readonly (readonly [from: RegExp, to: string])[] = [
  [/13h/g, '1h'],
  [/image: grafana.mimir:\S+/g, 'image: grafana/mimir:9.0.0'],
];

/** The longest comment that the forges accept, with a reserve: GitHub accepts 65,536 characters. */
const maxCharacters = 60_000;

/** A scratch repository with the example `mimir-ingester` once for each group and environment, and a branch for each pull request. */
class BenchRepository {
  readonly root: string = mkdtempSync(join(tmpdir(), 'rollout-group-bench-'));

  constructor() {
    this.#git('init', '--quiet', '--initial-branch=main');
    for (const { name, region, opens } of environments) {
      for (let group = 0; group < groupCount; group += 1) this.#writeGroup(name, group, { region, opens });
    }
    const names = environments.map(({ name }) => `  - { name: ${name}, policies: ${name}/policies, manifests: ${name}/manifests }\n`);
    this.#write('rollout-group.yaml', `environments:\n${names.join('')}`);
    this.#commit('main');
    this.#branch('one', ['ingester-7']);
    this.#branch(
      'all',
      Array.from({ length: groupCount }, (_, group) => `ingester-${group}`),
    );
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

  #branch(name: string, groups: readonly string[]): void {
    this.#git('checkout', '--quiet', '-b', name, 'main');
    for (const { name: environment } of environments) {
      for (const group of groups) {
        for (const folder of ['policies', 'manifests'].map((kind) => `${environment}/${kind}/${group}`)) {
          for (const file of readdirSync(join(this.root, folder))) {
            const text = readFileSync(join(this.root, folder, file), 'utf8');
            this.#write(
              `${folder}/${file}`,
              changes.reduce((changed, [from, to]) => changed.replaceAll(from, to), text),
            );
          }
        }
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

/** Measures the built command with a pull request for one group and with one for all groups, in half a minute. */
export function reviewFigures(): readonly Figure[] {
  const repository = new BenchRepository();
  try {
    return Object.entries({ one: 'one group', all: 'every group' }).map(([head, changed]): Figure => {
      const runs = Array.from({ length: 3 }, () => review(repository.root, head));
      const text = runs[0]?.text ?? '';
      const rows = environments.filter(({ name }) => text.includes(`\n| ${name} | `)).length;
      if (rows !== environments.length) throw new Error(`the summary of the review of ${head} has ${rows} rows`);
      if (text.length > maxCharacters) throw new Error(`the comment of the review of ${head} has ${text.length} characters`);
      const what = `review of ${groupCount} groups in ${environments.length} environments, ${changed} changed`;
      const processorMs = median(runs.map((run) => run.processorMs));
      return { what, value: median(runs.map(({ ms }) => ms)), bar: 3000, unit: 'ms', floor: `processor time ${processorMs.toFixed(0)} ms` };
    });
  } finally {
    repository.remove();
  }
}
