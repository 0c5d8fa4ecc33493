// Prints candidates for the last typed word. kubectl runs this executable, kubectl_complete-rollout_group, with the words typed so far.
import { completionsFor, completionText } from './candidates.ts';

try {
  process.stdout.write(completionText(await completionsFor(process.argv.slice(2))));
} catch {
  // A message would appear in the line that the user types.
  process.stdout.write(':4\n');
}
