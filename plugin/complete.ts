// The executable kubectl_complete-rollout_group. kubectl runs it with the words typed so far; the last word is to be completed.
import { completionsFor, completionText } from './candidates.ts';

try {
  process.stdout.write(completionText(await completionsFor(process.argv.slice(2))));
} catch {
  // A message would appear in the line that the user types.
  process.stdout.write(':4\n');
}
