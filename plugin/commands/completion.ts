// The verb completion: prints completion scripts, and installs the executable that kubectl calls for completion.
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, notFoundFailure, unwritable, usageFailure } from '../failure.ts';

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

type Shell = 'bash' | 'zsh' | 'fish' | 'powershell';

const note = `# Completion of the executable kubectl-rollout_group.
# For "kubectl rollout-group" load the completion of kubectl and run: kubectl rollout-group completion install
`;

const bash = `${note}
_kubectl_rollout_group() {
  local line candidates=() directive=4
  local words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  while IFS= read -r line; do
    case "$line" in
      :*) directive="\${line#:}" ;;
      *) candidates+=("\${line%%$'\\t'*}") ;;
    esac
  done < <(kubectl-rollout_group __complete "\${words[@]}" 2>/dev/null)
  COMPREPLY=("\${candidates[@]}")
  if [ "\${#candidates[@]}" -eq 0 ]; then
    case "$directive" in
      0) compopt -o default ;;
      16) compopt -o dirnames ;;
    esac
  fi
}
complete -F _kubectl_rollout_group kubectl-rollout_group
`;

const zsh = `#compdef kubectl-rollout_group
${note}
_kubectl_rollout_group() {
  local line directive=4
  local -a candidates
  while IFS= read -r line; do
    case "$line" in
      :*) directive="\${line#:}" ;;
      *) candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
    esac
  done < <(kubectl-rollout_group __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#candidates} )); then
    _describe 'rollout-group' candidates
  elif [[ "$directive" == 0 ]]; then
    _files
  elif [[ "$directive" == 16 ]]; then
    _files -/
  fi
}
compdef _kubectl_rollout_group kubectl-rollout_group
`;

const fish = `${note}
function __kubectl_rollout_group
    set -l words (commandline -opc)[2..]
    set -l current (commandline -ct)
    set -l lines (kubectl-rollout_group __complete $words "$current" 2>/dev/null)
    set -l candidates (string match -v -r '^:\\d+$' -- $lines)
    if test (count $candidates) -gt 0
        printf '%s\\n' $candidates
    else if contains -- ':0' $lines
        __fish_complete_path "$current"
    else if contains -- ':16' $lines
        __fish_complete_directories "$current"
    end
end
complete -c kubectl-rollout_group -f -a '(__kubectl_rollout_group)'
`;

const powershell = `${note}
Register-ArgumentCompleter -Native -CommandName 'kubectl-rollout_group' -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @($commandAst.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { "$_" })
  kubectl-rollout_group __complete @words "$wordToComplete" 2>$null | Where-Object { $_ -notmatch '^:\\d+$' } | ForEach-Object {
    $value, $description = $_ -split "\`t", 2
    if (-not $description) { $description = $value }
    [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $description)
  }
}
`;

const completionScripts: Readonly<Record<Shell, string>> = { bash, zsh, fish, powershell };
