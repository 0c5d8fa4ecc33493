// Runs git once: with fixed arguments, no shell, a safe environment and a time limit.
import { spawn } from 'node:child_process';
import { exitCodes, Failure } from '../failure.ts';
import type { InputAccess } from './input.ts';
import { maxTotalBytes } from './limits.ts';

interface GitResult {
  readonly status: number;
  readonly stdout: Buffer;
  /** The standard error of Git on one line, without its `fatal:`. */
  readonly message: string;
}

const timeoutMs = 60_000;

/** Disables the network, hooks and replaced objects. */
const hardening = [
  '--no-pager',
  '--no-replace-objects',
  '--literal-pathspecs',
  ...['-c', 'protocol.allow=never'],
  ...['-c', 'core.hooksPath=/dev/null'],
  ...['-c', 'core.fsmonitor=false'],
];

/**
 * Environment variables that are kept: the place of the repository (server hooks set them, also for quarantined objects) and of the
 * configuration, since safe.directory is read only there. Other variables can name programs to run.
 */
const kept = new Set([
  'GIT_DIR',
  'GIT_COMMON_DIR',
  'GIT_OBJECT_DIRECTORY',
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_CEILING_DIRECTORIES',
  'GIT_DISCOVERY_ACROSS_FILESYSTEM',
  'GIT_CONFIG_GLOBAL',
  'GIT_CONFIG_SYSTEM',
  'GIT_CONFIG_NOSYSTEM',
]);

/** Runs git with `input` on its standard input. */
export async function runGit(args: readonly string[], { cwd, env }: Pick<InputAccess, 'cwd' | 'env'>, input = ''): Promise<GitResult> {
  const child = spawn('git', [...hardening, ...args], { cwd, env: gitEnvironment(env), timeout: timeoutMs, stdio: 'pipe' });
  // Git may end before it has read all input; its exit code then tells the cause.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const chunks: Buffer[] = [];
  let bytes = 0;
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > 2 * maxTotalBytes) child.kill();
    else chunks.push(chunk);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (said.length < 4096) said += text;
  });
  const status = await new Promise<number>((resolve, reject) => {
    child.on('error', (error: NodeJS.ErrnoException) => reject(error.code === 'ENOENT' ? gitMissing() : error));
    child.on('close', (code, signal) => (signal === null ? resolve(code ?? 1) : reject(gitStopped(args[0] ?? ''))));
  });
  const [message = ''] = said.trim().split('\n');
  return { status, stdout: Buffer.concat(chunks), message: message.replace(/^(?:fatal|error): /, '') };
}

function gitEnvironment(env: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  const inherited = Object.entries(env).filter(([name]) => !name.startsWith('GIT_') || kept.has(name));
  return {
    ...Object.fromEntries(inherited),
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_OPTIONAL_LOCKS: '0',
  };
}

function gitMissing(): Failure {
  return new Failure({
    exitCode: exitCodes.notFound,
    what: 'git is not installed, but a source starts with git:',
    todo: 'install git, or name a file or directory',
  });
}

function gitStopped(command: string): Failure {
  return new Failure({
    exitCode: exitCodes.notFound,
    what: `git ${command} was stopped`,
    why: `it ran longer than ${timeoutMs / 1000} seconds or answered more than ${(2 * maxTotalBytes) / 1_048_576} MiB`,
    todo: 'name a narrower path, as in git:main:policies',
  });
}
