// The processes of one control plane: started with a log each, watched, and ended together, even when their parent is killed.
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
 * A shell that reads the ids of processes from its standard input. The kernel closes that pipe when this process ends, however it ends;
 * then the shell kills what it was told of and removes the folder. It is the only one who removes it, so a stop that is cut short by a
 * second signal leaves nothing either.
 */
const reaper = `
ids=
while read -r id; do
  if [ "$id" = ended ]; then ids=; else ids="$ids $id"; fi
done
if [ -n "$ids" ]; then kill -KILL $ids; fi
for attempt in 1 2 3 4 5; do rm -rf "$1" && break; sleep 1; done
`;

/** Owns the processes that run in one folder, and their logs in its folder `logs`. */
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
    // Between two waits nobody listens; unexpectedEnd remembers.
    this.#failure.catch(() => {});
  }

  /** Starts a process in the folder, apart from the terminal's group, so that Ctrl-C reaches only whoever will stop it in order. */
  start({ name, executable, args }: Command): void {
    const log = join(this.#folder, 'logs', `${name}.log`);
    const output = openSync(log, 'a');
    // No proxy variables, no home: nothing of the machine's configuration reaches a control plane.
    const env = { PATH: process.env['PATH'], HOME: this.#folder, TMPDIR: this.#folder };
    const child = spawn(executable, args, { cwd: this.#folder, env, stdio: ['ignore', output, output], detached: true });
    closeSync(output);
    if (child.pid !== undefined) this.#reaper.stdin?.write(`${child.pid}\n`);
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

  /** Waits for something of these processes; rejects as soon as one of them ends, or after the given time with the ends of all logs. */
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

  /** The first process that ended without being asked, with the last lines of its log. */
  get unexpectedEnd(): Error | undefined {
    return this.#unexpectedEnd;
  }

  /** Resident memory in MiB by process, where /proc tells it. */
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
   * Kills every process and waits until all have ended. What they hold is thrown away, so nobody is asked to leave: an API server that is
   * asked drains for seconds.
   */
  async end(): Promise<void> {
    this.#isStopping = true;
    for (const { child } of this.#running) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await Promise.all(this.#running.map(({ ended }) => ended));
    this.#reaper.stdin?.write('ended\n');
  }

  /** Removes the folder. Comes last: what a suite wants to keep has been moved away. */
  async removeFolder(): Promise<void> {
    // Nothing else may be left to wait for, and then a process ends in the middle of this.
    this.#reaper.ref();
    const removed = new Promise((settle) => this.#reaper.once('exit', settle));
    this.#reaper.stdin?.end();
    await removed;
  }
}

function lastLines(log: string): string {
  return readFileSync(log, 'utf8').trimEnd().split('\n').slice(-15).join('\n');
}
