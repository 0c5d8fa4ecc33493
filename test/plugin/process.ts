// Runs the built executables as processes, the way kubectl does.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import { checkOutput } from './output-schema.ts';

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Circumstances {
  readonly cwd?: string;
  readonly stdin?: string;
  /** Added to a small environment without colour, CI or locale settings of the machine that runs the tests. */
  readonly env?: Readonly<Record<string, string>>;
  /** The folder of the executables; `dist` otherwise. */
  readonly dist?: string;
}

/** Runs `kubectl-rollout_group` with these arguments. */
export function runPlugin(args: readonly string[], circumstances: Circumstances = {}): Ended {
  return runExecutable('kubectl-rollout_group', args, circumstances);
}

export function runExecutable(
  name: string,
  args: readonly string[],
  { cwd, stdin = '', env = {}, dist = builtFolder() }: Circumstances = {},
): Ended {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(dist, name), ...args], {
    cwd,
    input: stdin,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: tmpdir(), LANG: 'C.UTF-8', ...env },
    maxBuffer: 256 * 1_048_576,
  });
  checkOutput(stdout);
  return { status, stdout, stderr };
}

/** The folder of the executables, or a sentence that says how to make it. */
export function builtFolder(): string {
  if (!existsSync('dist/kubectl-rollout_group')) throw new Error('dist/ is missing: run npm run build, or the tests through npm test');
  return resolve('dist');
}

/** A folder with these files, removed after the test. */
export function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}
