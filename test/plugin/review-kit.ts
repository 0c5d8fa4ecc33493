// A scratch Git repository with the example mimir-ingester, and one branch for each pull request.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const environment = {
  PATH: process.env['PATH'],
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'dev',
  GIT_AUTHOR_EMAIL: 'dev@example.com',
  GIT_COMMITTER_NAME: 'dev',
  GIT_COMMITTER_EMAIL: 'dev@example.com',
};

export class ScratchRepository {
  readonly root: string = mkdtempSync(join(tmpdir(), 'review-'));

  constructor(example = 'mimir-ingester') {
    this.git('init', '--quiet', '--initial-branch=main');
    cpSync(`examples/${example}`, this.root, { recursive: true });
    this.commit('the example');
  }

  git(...args: readonly string[]): string {
    return execFileSync('git', args, { cwd: this.root, env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text);
  }

  replace(path: string, from: string | RegExp, to: string): void {
    this.write(path, readFileSync(join(this.root, path), 'utf8').replaceAll(from, to));
  }

  commit(message: string): void {
    this.git('add', '--all');
    this.git('commit', '--quiet', '--message', message);
  }

  /** Creates a branch from main with one commit, and returns to main. */
  branch(name: string, change: () => void): void {
    this.git('checkout', '--quiet', '-b', name, 'main');
    change();
    this.commit(name);
    this.git('checkout', '--quiet', 'main');
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
