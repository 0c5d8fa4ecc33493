// Manages the processes of one control plane: each has a log, and all end together, even if their parent is killed.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Command {
  readonly name: string;
  readonly executable: string;
  readonly args: readonly string[];
}

interface Running {
  readonly name: string;
  readonly child: ChildProcess;
  readonly log: string;
  readonly ended: Promise<void>;
}

/**
 * A shell that reads process ids from its standard input. The kernel closes this pipe when the test process ends for any reason. Then
 * the shell kills these processes and removes the folder. Only the shell removes the folder, so a stop that a second signal interrupts
 * leaves nothing behind.
 */
const reaper = `
ids=
while read -r id isEnded; do
  if [ "$id" = ended ]; then ids=
  elif [ -n "$isEnded" ]; then ids=$(printf '%s\\n' $ids | grep -vx "$id")
  else ids="$ids $id"; fi
done
if [ -n "$ids" ]; then kill -KILL $ids; fi
for attempt in 1 2 3 4 5; do rm -rf "$1" && break; sleep 1; done
`;

/** Owns the processes of one folder, and their logs in its folder `logs`. */
export class Processes {
  readonly #folder: string;
  readonly #reaper: ChildProcess;
  readonly #running: Running[] = [];
  #isStopping = false;
  #unexpectedEnd: Error | undefined;
  readonly #failure: Promise<never>;
  #fail: (error: Error) => void = () => {};

  constructor(folder: string) {
    this.#folder = folder;
    this.#reaper = spawn('sh', ['-c', reaper, 'reaper', folder], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    this.#reaper.unref();
    this.#failure = new Promise((_, reject) => {
      this.#fail = reject;
    });
    // Between two waits nothing handles the rejection; `unexpectedEnd` stores it.
    this.#failure.catch(() => {});
  }

  /**
   * Starts a process in the folder. It is not in the process group of the terminal, so Ctrl-C reaches only the process that stops it in
   * order.
   */
  start({ name, executable, args }: Command): void {
    const log = join(this.#folder, 'logs', `${name}.log`);
    const output = openSync(log, 'a');
    // No proxy variables and no home: the configuration of the machine does not reach a control plane.
    const env = { PATH: process.env['PATH'], HOME: this.#folder, TMPDIR: this.#folder };
    const child = spawn(executable, args, { cwd: this.#folder, env, stdio: ['ignore', output, output], detached: true });
    closeSync(output);
    if (child.pid !== undefined) this.reap(child.pid);
    const ended = new Promise<string>((settle) => {
      child.on('error', (error) => settle(`could not start: ${error.message}`));
      child.on('exit', (code, signal) =>
        settle(`ended by itself with ${signal ?? `code ${code}`}; the end of its log:\n${lastLines(log)}`),
      );
    }).then((how) => {
      if (this.#isStopping) return;
      this.#unexpectedEnd ??= new Error(`${name} ${how}`);
      this.#fail(this.#unexpectedEnd);
    });
    this.#running.push({ name, child, log, ended });
  }

  /** Kills another process too if this process ends for any reason. Returns the function to call when that process has ended. */
  reap(processId: number): () => void {
    this.#reaper.stdin?.write(`${processId}\n`);
    return () => void this.#reaper.stdin?.write(`${processId} ended\n`);
  }

  /** Waits for a condition. Rejects as soon as a process ends, or after the timeout, with the ends of all logs. */
  async during<Value>(what: string, waiting: Promise<Value>, timeoutMs: number): Promise<Value> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const logs = this.#running.map(({ name, log }) => `--- ${name}\n${lastLines(log)}`).join('\n');
        reject(new Error(`${what} took more than ${timeoutMs / 1000} s; the ends of the logs:\n${logs}`));
      }, timeoutMs);
    });
    try {
      return await Promise.race([waiting, this.#failure, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** The first process that ended unexpectedly, with the last lines of its log. */
  get unexpectedEnd(): Error | undefined {
    return this.#unexpectedEnd;
  }

  /** Returns the resident memory in MiB by process, if /proc shows it. */
  memoryMiB(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      this.#running.flatMap(({ name, child }) => {
        const status = `/proc/${child.pid}/status`;
        if (!existsSync(status)) return [];
        return [[name, Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(status, 'utf8'))?.[1] ?? 0) / 1024)]];
      }),
    );
  }

  ids(): readonly number[] {
    return this.#running.flatMap(({ child }) => (child.pid === undefined ? [] : [child.pid]));
  }

  /**
   * Kills every process and waits until all have ended. They get no time to stop in order, because their data is discarded: an API server
   * would take seconds.
   */
  async end(): Promise<void> {
    this.#isStopping = true;
    for (const { child } of this.#running) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await Promise.all(this.#running.map(({ ended }) => ended));
    this.#reaper.stdin?.write('ended\n');
  }

  /** Removes the folder. Called last, after the suite has moved the files that it keeps. */
  async removeFolder(): Promise<void> {
    // A process may end while the folder is removed, which must not fail.
    this.#reaper.ref();
    const removed = new Promise((settle) => this.#reaper.once('exit', settle));
    this.#reaper.stdin?.end();
    await removed;
  }
}

function lastLines(log: string): string {
  return readFileSync(log, 'utf8').trimEnd().split('\n').slice(-15).join('\n');
}
