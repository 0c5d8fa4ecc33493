// The executable kubectl_complete-rollout_group: kubectl runs it with the words typed so far, the last one being completed.
import { completionsFor, completionText } from './candidates.ts';

try {
  process.stdout.write(completionText(await completionsFor(process.argv.slice(2))));
} catch {
  // A message would land in the middle of the line that the person is typing.
  process.stdout.write(':4\n');
}
