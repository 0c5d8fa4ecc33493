// The executable kubectl-rollout_group: answers at once what needs no parser, loads the rest on demand, and turns every ending into an exit code.
import { version } from './version.ts';

const words = process.argv.slice(2);

// As `exitCodes.notAllowed`, which is not loaded for this.
const unwritable = 11;
let isCutOff = false;
process.stdout.on('error', stopOutput);
process.stderr.on('error', () => undefined);

// The exit code is set and the process left to end by itself: process.exit would cut off what a slow pipe has not taken yet.
const exitCode = await run();
process.exitCode = isCutOff ? unwritable : exitCode;

async function run(): Promise<number> {
  try {
    return await answer();
  } catch (error) {
    const { reportEnding } = await import('./process-exit.ts');
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
    ...(process.stdin.isTTY === true
      ? {
          ask: async (question: string) => (await import('./prompt.ts')).ask(question),
          keyboard: async (onKey: (key: string) => void) => (await import('./live/keyboard.ts')).openKeyboard(process.stdin, onKey),
        }
      : {}),
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

/**
 * A reader that has seen enough (`| head`) closes the pipe: that is no failure, and the verdict stays what it is. A result that a full disk
 * cut off must not pass for a whole one.
 */
function stopOutput({ code }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE' || isCutOff) return;
  isCutOff = true;
  process.exitCode = unwritable;
  process.stderr.write(`error: standard output cannot be written\n  why: ${code}\n`);
}
