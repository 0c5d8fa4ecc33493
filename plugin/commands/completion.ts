// The verb completion: scripts for shells, and the second executable that kubectl asks.
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { completionScripts, type Shell } from '../output/completion-scripts.ts';

export interface CompletionOptions {
  readonly shell: Shell | 'install';
  readonly dir?: string;
}

const executable = process.platform === 'win32' ? 'kubectl_complete-rollout_group.cmd' : 'kubectl_complete-rollout_group';
const shim =
  process.platform === 'win32'
    ? '@rem completion of kubectl rollout-group\r\n@kubectl-rollout_group __complete %*\r\n'
    : '#!/bin/sh\n# completion of kubectl rollout-group\nexec kubectl-rollout_group __complete "$@"\n';

export async function run(context: CommandContext, { shell, dir }: CompletionOptions): Promise<ExitCode> {
  if (shell === 'install') install(context, resolve(context.cwd, dir ?? dirname(process.argv[1] ?? '.')));
  else context.stdout.write(completionScripts[shell]);
  return exitCodes.done;
}

/** kubectl finds the second executable on the PATH, like the plugin itself; package managers link only the plugin. */
function install({ stdout, stderr, env }: CommandContext, directory: string): void {
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Failure({
      exitCode: exitCodes.notFound,
      what: `${directory} is no directory`,
      todo: 'name a directory on the PATH with --dir',
    });
  }
  const path = join(directory, executable);
  const present = readIfPresent(path);
  if (present !== undefined && !isOurs(present)) {
    throw new Failure({
      exitCode: exitCodes.usage,
      what: `${path} exists and was not written by this program`,
      todo: 'remove it, or name another directory on the PATH with --dir',
    });
  }
  if (present === undefined) write(path);
  stdout.write(`${path} ${present === undefined ? 'written' : 'is there already'}; kubectl completes rollout-group from now on\n`);
  if (!(env['PATH'] ?? '').split(delimiter).includes(directory))
    stderr.write(`warning: ${directory} is not on the PATH, so that kubectl will not find it\n`);
}

function isOurs(text: string): boolean {
  return text === shim || /^#!\/usr\/bin\/env node\n/.test(text);
}

function readIfPresent(path: string): string | undefined {
  return statSync(path, { throwIfNoEntry: false }) === undefined ? undefined : readFileSync(path, 'utf8');
}

function write(path: string): void {
  try {
    writeFileSync(path, shim);
    chmodSync(path, 0o755);
  } catch (error) {
    throw new Failure({
      exitCode: exitCodes.notAllowed,
      what: `${path} cannot be written`,
      why: (error as NodeJS.ErrnoException).code ?? String(error),
      todo: 'name a directory that you may write to with --dir',
    });
  }
}
