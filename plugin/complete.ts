// The executable kubectl_complete-rollout_group: kubectl asks it for completions.

process.stdout.write(':4\n');
