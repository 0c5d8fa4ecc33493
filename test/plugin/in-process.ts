// Runs the plugin inside the test's process, with streams that remember: for suites in which a process for each command would cost too much.
import { PassThrough } from 'node:stream';
import { reportEnding } from '../../plugin/process-exit.ts';
import { runProgram } from '../../plugin/program.ts';
import { beginRunAt } from '../../simulation/process/clock.ts';
import { checkOutput } from './output-schema.ts';

export interface InProcess {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What the person at the terminal answers; nobody is there without it. */
  readonly answer?: string | (() => Promise<string>);
  /** The time, or a clock. Absent: the time of the machine. */
  readonly nowMs?: number | (() => number);
  readonly stdin?: string;
  /** True if stderr is a terminal, so that the plugin suggests the next command there. */
  readonly isErrTerminal?: boolean;
}

export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `kubectl-rollout_group` with these arguments. */
export async function runInProcess(
  words: readonly string[],
  { cwd = process.cwd(), env = {}, stdin = '', answer, nowMs, isErrTerminal = false }: InProcess = {},
): Promise<Ended> {
  const [stdout, stderr] = [recorder(), recorder(isErrTerminal)];
  const environment = { PATH: process.env['PATH'], LANG: 'C.UTF-8', ...env };
  let status: number;
  try {
    status = await runProgram(words, {
      stdout: stdout.stream,
      stderr: stderr.stream,
      readStdin: async () => stdin,
      ...(answer === undefined ? {} : { ask: async () => (typeof answer === 'string' ? answer : answer()) }),
      env: environment,
      cwd,
      nowMs: typeof nowMs === 'function' ? nowMs : () => nowMs ?? Date.now(),
    });
  } catch (error) {
    status = reportEnding(error, { words, stderr: stderr.stream, env: environment });
  }
  // The verb simulate sets the start of simulations, and later tests of this process expect the default.
  beginRunAt();
  checkOutput(stdout.text());
  return { status, stdout: stdout.text(), stderr: stderr.text() };
}

function recorder(isTTY = false): { readonly stream: NodeJS.WriteStream; readonly text: () => string } {
  const chunks: Buffer[] = [];
  const stream = new PassThrough();
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  // Of a stream of the process only `write` and `isTTY` are used.
  return {
    stream: Object.assign(stream, isTTY ? { isTTY } : {}) as unknown as NodeJS.WriteStream,
    text: () => Buffer.concat(chunks).toString('utf8'),
  };
}

/** Returns the output without ages, times and the address of the API server: these differ between two runs of a verb. */
export function timeless({ status, stdout, stderr }: { readonly status: number | null; readonly stdout: string; readonly stderr: string }) {
  const masked = (text: string): string =>
    text
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replace(/\b\d+(?:ms|s|m|h|d)(?:\d+[smh])?\b/g, 'AGE')
      .replace(/"server": ".*"/, '"server"')
      .replace(/ +/g, ' ');
  return { status, stdout: masked(stdout), stderr: masked(stderr) };
}
