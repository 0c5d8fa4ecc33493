// The executable kubectl-rollout_group.
import { version } from './version.ts';

process.stdout.write(`kubectl rollout-group ${version}\n`);
