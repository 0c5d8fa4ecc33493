// The executable kubectl-rollout_group: answers the version at once, loads the rest on demand, and turns every ending into an exit code.
import type { Failure } from './failure.ts';
import { version } from './version.ts';

const words = process.argv.slice(2);

// A reader that has seen enough (`| head`) closes the pipe. That is no failure, and the verdict stays what it is.
process.stdout.on('error', ignoreClosedPipe);
process.stderr.on('error', ignoreClosedPipe);

if (words.length === 1 && (words[0] === 'version' || words[0] === '--version')) {
  process.stdout.write(`kubectl rollout-group ${version}\n`);
} else if (words[0] === '__complete') {
  const { completionsFor, completionText } = await import('./candidates.ts');
  process.stdout.write(completionText(await completionsFor(words.slice(1))));
} else {
  // The exit code is set and the process left to end by itself: process.exit would cut off what a slow pipe has not taken yet.
  process.exitCode = await run();
}

async function run(): Promise<number> {
  try {
    const [{ runProgram }, { readStandardInput }] = await Promise.all([import('./program.ts'), import('./source/stdin.ts')]);
    return await runProgram(words, {
      stdout: process.stdout,
      stderr: process.stderr,
      readStdin: readStandardInput(process.stdin),
      env: process.env,
      cwd: process.cwd(),
      nowMs: Date.now,
    });
  } catch (error) {
    const { reportEnding } = await import('./ending.ts');
    return reportEnding(error as Failure | Error, { words, stderr: process.stderr, env: process.env });
  }
}

function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}
