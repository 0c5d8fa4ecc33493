// Contains the completion scripts for the executable kubectl-rollout_group. `kubectl rollout-group` uses the completion of kubectl instead.

export type Shell = 'bash' | 'zsh' | 'fish' | 'powershell';

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

export const completionScripts: Readonly<Record<Shell, string>> = { bash, zsh, fish, powershell };
