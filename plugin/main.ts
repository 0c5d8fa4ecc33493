// The executable kubectl-rollout_group: answers at once what needs no parser, loads the rest on demand, and turns every ending into an exit code.
import { version } from './version.ts';

const words = process.argv.slice(2);

// A reader that has seen enough (`| head`) closes the pipe. That is no failure, and the verdict stays what it is.
process.stdout.on('error', ignoreClosedPipe);
process.stderr.on('error', ignoreClosedPipe);

// The exit code is set and the process left to end by itself: process.exit would cut off what a slow pipe has not taken yet.
process.exitCode = await run();

async function run(): Promise<number> {
  try {
    return await answer();
  } catch (error) {
    const { reportEnding } = await import('./ending.ts');
    return reportEnding(error, { words, stderr: process.stderr, env: process.env });
  }
}

async function answer(): Promise<number> {
  const [first] = words;
  if (first === '--version' || (first === 'version' && words.length === 1)) {
    process.stdout.write(`kubectl rollout-group ${version}\n`);
    return 0;
  }
  if (first === '__complete') {
    const { completionsFor, completionText } = await import('./candidates.ts');
    process.stdout.write(completionText(await completionsFor(words.slice(1))));
    return 0;
  }
  if (words.length < 3 && (await hasShownHelp())) return 0;
  const [{ runProgram }, { readStandardInput }] = await Promise.all([import('./program.ts'), import('./source/stdin.ts')]);
  return runProgram(words, {
    stdout: process.stdout,
    stderr: process.stderr,
    readStdin: readStandardInput(process.stdin),
    env: process.env,
    cwd: process.cwd(),
    nowMs: Date.now,
  });
}

async function hasShownHelp(): Promise<boolean> {
  const [{ askedHelp, helpText }, { outputStream }] = await Promise.all([import('./help.ts'), import('./output/terminal.ts')]);
  const subject = askedHelp(words);
  if (subject === undefined) return false;
  const stdout = outputStream(process.stdout, { env: process.env });
  stdout.write(helpText(subject, stdout));
  return true;
}

function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}
