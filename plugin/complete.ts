// Prints candidates for the last typed word. kubectl runs this executable, kubectl_complete-rollout_group, with the words typed so far.
void import('./candidates.ts').then(({ printCompletion }) => printCompletion(process.argv.slice(2)));
