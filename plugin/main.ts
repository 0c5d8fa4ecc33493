// Runs the executable kubectl-rollout_group: answers version and help without the parser, and sets the exit code.
import { askedHelp, helpText } from './help.ts';
import { outputStream } from './output/terminal.ts';
import { version } from './version.ts';

const words = process.argv.slice(2);

// The value of `exitCodes.notAllowed`, whose module is not loaded here to save time.
const unwritable = 11;
let isCutOff = false;
process.stdout.on('error', stopOutput);
process.stderr.on('error', () => undefined);

// The value of `exitCodes.internal`: a process that ends before its answer has a defect.
process.exitCode = 70;
// Sets the exit code and lets the process end by itself: process.exit would cut off output that a slow pipe has not read yet.
void answer().then((exitCode) => {
  process.exitCode = isCutOff ? unwritable : exitCode;
});

/** The build makes this file a CommonJS script, because the loader of ES modules takes 15 ms. The import of `run.ts` starts that loader. */
async function answer(): Promise<number> {
  const text = ownAnswer();
  if (text === undefined) return (await import('./run.ts')).run(words);
  process.stdout.write(text);
  return 0;
}

/** Returns the version or the help if the words ask only for it. */
function ownAnswer(): string | undefined {
  const [first, second] = words;
  if (first === '--version' || (first === 'version' && (words.length === 1 || (words.length === 2 && second === '--client')))) {
    return `kubectl rollout-group ${version}\n`;
  }
  const subject = words.length < 3 ? askedHelp(words) : undefined;
  return subject === undefined ? undefined : helpText(subject, outputStream(process.stdout, { env: process.env }));
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
