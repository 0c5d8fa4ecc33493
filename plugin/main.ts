// Runs the executable kubectl-rollout_group: answers version and help without the parser, and sets the exit code.
import { fstatSync, writeSync } from 'node:fs';
import { outputStream, pipePaint } from './output/terminal.ts';
import { helpText } from './output/text.ts';
import { version } from './version.ts';

const words = process.argv.slice(2);

// The value of `exitCodes.notAllowed`, whose module is not loaded here to save time.
const unwritable = 11;
let isCutOff = false;

// The value of `exitCodes.internal`: a process that ends before its answer has a defect.
process.exitCode = 70;
// Sets the exit code and lets the process end by itself: process.exit would cut off output that a slow pipe has not read yet.
void answer().then((exitCode) => {
  process.exitCode = isCutOff ? unwritable : exitCode;
});

/** The build makes this file a CommonJS script, because the loader of ES modules takes 15 ms. The import of `run.ts` starts that loader. */
async function answer(): Promise<number> {
  const text = isVersionAsked() ? `kubectl rollout-group ${version}\n` : await help();
  if (text === undefined) {
    watchOutput();
    return (await import('./run.ts')).run(words);
  }
  write(text);
  return 0;
}

function isVersionAsked(): boolean {
  const [first, second] = words;
  return first === '--version' || (first === 'version' && words.length === 2 && second === '--client');
}

async function help(): Promise<string | undefined> {
  const subject = askedHelp();
  const sections = subject === undefined ? undefined : (await import('./help.ts')).helpSections(subject);
  if (sections === undefined) return undefined;
  const { env } = process;
  return helpText(sections, mayBeTerminal() ? outputStream(process.stdout, { env }) : { columns: undefined, paint: pipePaint(env) });
}

/** Returns the program or the verb that the words ask the help of, and undefined if the parser is needed. */
function askedHelp(): string | undefined {
  const [first = '--help', second] = words;
  const isFlag = (word: string | undefined) => word === '--help' || word === '-h';
  if (words.length < 2) return isFlag(first) ? 'kubectl rollout-group' : undefined;
  return words.length === 2 && isFlag(second) ? first : undefined;
}

/** Reports whether the output may be a terminal. If its kind cannot be read, process.stdout finds it out. */
function mayBeTerminal(): boolean {
  try {
    return fstatSync(1).isCharacterDevice();
  } catch {
    return true;
  }
}

/** Writes a short text without process.stdout, whose creation takes 2 ms. */
function write(text: string): void {
  const bytes = Buffer.from(text);
  let count = 0;
  try {
    while (count < bytes.length) count += writeSync(1, bytes, count);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EAGAIN') {
      // Another process made the pipe non-blocking, and the pipe is full.
      watchOutput();
      process.stdout.write(bytes.subarray(count));
    } else stopOutput({ code });
  }
}

function watchOutput(): void {
  process.stdout.on('error', stopOutput);
  process.stderr.on('error', () => undefined);
}

/**
 * Handles an error of standard output. If a reader such as `| head` closes the pipe early, the exit code stays. A full disk is a failure,
 * because the result is cut off.
 */
function stopOutput({ code }: Pick<NodeJS.ErrnoException, 'code'>): void {
  if (code === 'EPIPE' || isCutOff) return;
  isCutOff = true;
  process.exitCode = unwritable;
  process.stderr.write(`error: standard output cannot be written\n  why: ${code}\n`);
}
