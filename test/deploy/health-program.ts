// Builds and asks the program with the libraries of Flux and Argo CD.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { hashText } from '../../policies/values/hash.ts';

const module = resolve('test/deploy/health');

interface Health {
  readonly status: string;
  readonly message: string;
}

/** The same object in the cluster and in Git, without the differences that Argo CD ignores. */
interface Compared {
  readonly live: Readonly<Record<string, unknown>>;
  readonly target: Readonly<Record<string, unknown>>;
}

export interface HealthQuestion {
  readonly object: object;
  readonly lua?: string;
  readonly cel?: string;
  /** The object of Git, and the field managers whose fields Argo CD ignores. */
  readonly target?: object;
  readonly managers?: readonly string[];
}

export interface HealthAnswer {
  readonly kstatus: Health;
  readonly argoCd: Health;
  readonly cel?: boolean;
  readonly compared?: Compared;
}

/** Builds the program into the cache, where the first build takes minutes. Throws without Go or its modules. */
export function healthProgram(): string {
  const content = ['main.go', 'go.sum'].map((file) => readFileSync(join(module, file), 'utf8')).join();
  const folder = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'rollout-group', 'health');
  const file = join(folder, hashText(content));
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  const env = { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' };
  const { status, stderr, error } = spawnSync('go', ['build', '-buildvcs=false', '-o', `${file}.${process.pid}`, '.'], {
    cwd: module,
    env,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`the program that computes health cannot be built: ${error?.message ?? stderr.slice(-500)}`);
  renameSync(`${file}.${process.pid}`, file);
  return file;
}

export function askHealth(executable: string, questions: readonly HealthQuestion[]): readonly HealthAnswer[] {
  const input = questions.map((one) => `${JSON.stringify(one)}\n`).join('');
  const { status, stdout, stderr } = spawnSync(executable, { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** The script in deploy/argo-cd for this kind. */
export function luaOf(kind: string): string {
  return readFileSync(join('deploy/argo-cd/health', `${kind}.lua`), 'utf8');
}
