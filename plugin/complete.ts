// Prints candidates for the last typed word. kubectl runs this executable, kubectl_complete-rollout_group, with the words typed so far.
import { printCompletion } from './candidates.ts';

await printCompletion(process.argv.slice(2));
