// Runs the executable kubectl-rollout_group: answers --version, completion and help without the parser, and sets the exit code.
import { version } from './version.ts';

const words = process.argv.slice(2);

// The value of `exitCodes.notAllowed`, whose module is not loaded here to save time.
const unwritable = 11;
let isCutOff = false;
process.stdout.on('error', stopOutput);
process.stderr.on('error', () => undefined);

// Sets the exit code and lets the process end by itself: process.exit would cut off output that a slow pipe has not read yet.
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
    await (await import('./candidates.ts')).printCompletion(words.slice(1));
    return 0;
  }
  if (words.length < 3 && (await hasShownHelp())) return 0;
  const [{ runProgram }, { readStandardInput }] = await Promise.all([import('./program.ts'), import('./source/input.ts')]);
  return runProgram(words, {
    stdout: process.stdout,
    stderr: process.stderr,
    readStdin: readStandardInput(process.stdin),
    ...(process.stdin.isTTY === true
      ? {
          ask,
          keyboard: async (onKey: (key: string) => void) => (await import('./live/keyboard.ts')).openKeyboard(process.stdin, onKey),
        }
      : {}),
    env: process.env,
    cwd: process.cwd(),
    nowMs: Date.now,
  });
}

/** Asks on standard error, because standard output is for the result. Returns the typed line; empty at the end of input. */
async function ask(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: true });
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
  }
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
 * Handles an error of standard output. If a reader such as `| head` closes the pipe early, the exit code stays. A full disk is a failure,
 * because the result is cut off.
 */
function stopOutput({ code }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE' || isCutOff) return;
  isCutOff = true;
  process.exitCode = unwritable;
  process.stderr.write(`error: standard output cannot be written\n  why: ${code}\n`);
}
