// The verb completion: prints completion scripts, and installs the executable that kubectl calls for completion.
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, notFoundFailure, unwritable, usageFailure } from '../failure.ts';
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
  if (shell === 'install') install(context, resolve(context.cwd, dir ?? commandFolder(context.env)));
  else context.stdout.write(completionScripts[shell]);
  return exitCodes.done;
}

/**
 * Returns the folder where kubectl finds this program. The folder of the running script is another one if krew started the program
 * through a link.
 */
function commandFolder(env: CommandContext['env']): string {
  const names =
    process.platform === 'win32' ? ['.exe', '.cmd'].map((extension) => `kubectl-rollout_group${extension}`) : ['kubectl-rollout_group'];
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.find((folder) => names.some((name) => existsSync(join(folder, name)))) ?? dirname(process.argv[1] ?? '.');
}

/** Writes the executable for completion, which kubectl finds on the PATH. Krew puts only the plugin itself on the PATH. */
function install({ stdout, stderr, env }: CommandContext, directory: string): void {
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
    throw notFoundFailure(`${directory} is not a directory`, { todo: 'choose a directory on the PATH with --dir' });
  }
  const path = join(directory, executable);
  const present = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  if (present !== undefined && !isOurs(present)) {
    throw usageFailure(
      `${path} exists and was not written by this program`,
      'remove the file, or choose another directory on the PATH with --dir',
    );
  }
  if (present === undefined) write(path);
  stdout.write(`${path} ${present === undefined ? 'written' : 'already exists'}; kubectl now completes rollout-group\n`);
  if (!(env['PATH'] ?? '').split(delimiter).includes(directory))
    stderr.write(`warning: ${directory} is not on the PATH, so kubectl does not find the file\n`);
}

function isOurs(text: string): boolean {
  return text === shim || /^#!\/usr\/bin\/env node\n/.test(text);
}

function write(path: string): void {
  try {
    writeFileSync(path, shim);
    chmodSync(path, 0o755);
  } catch (error) {
    throw unwritable(path, error, 'choose a writable directory with --dir');
  }
}
