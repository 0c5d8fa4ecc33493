// The threads of a soak: each plays one seed at a time and keeps nothing of it but what it reports.
import { setFlagsFromString } from 'node:v8';
import { parentPort, Worker } from 'node:worker_threads';
import { messageOf } from '../../policies/error-message.ts';
import { scenarioOf } from '../../simulation/search/draw/draw.ts';
import { type Checks, type Failure, judge } from '../../simulation/search/judge.ts';

interface SeedTask extends Checks {
  readonly seed: number;
}

export interface SeedReport {
  readonly seed: number;
  /** Without a scenario when the run never came back. */
  readonly failure?: Omit<Failure, 'scenario'> & Partial<Pick<Failure, 'scenario'>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly crashes: Readonly<Record<string, number>>;
  readonly writes: Readonly<Record<string, number>>;
  readonly runs: number;
  readonly events: number;
  readonly virtualMs: number;
  readonly thread: number;
  /** Of the thread, after the seed. */
  readonly heapBytes: number;
}

interface SoakWork {
  readonly workers: number;
  /** The next seed; undefined when there is none any more. */
  readonly next: () => SeedTask | undefined;
  readonly onReport: (report: SeedReport) => void;
}

/** A seed that takes longer than this goes round in circles without virtual time passing. */
const longestSeedMs = 180_000;

/** Enough for one run many times over: what grows beyond it is kept by mistake. */
const heapMiB = 768;

/**
 * A run does a little of very much code. With its usual settings the engine keeps compiling it, optimized, for an eighth of the time, and once more what it has
 * thrown away because a minute went by without it.
 */
const engineFlags: readonly string[] = ['--interrupt-budget=1000000', '--no-flush-bytecode'];

/** Hands out seeds until there are none left, and every report is in. */
export async function runWorkers(work: SoakWork): Promise<void> {
  for (const flag of engineFlags) setFlagsFromString(flag);
  await Promise.all(Array.from({ length: work.workers }, (_, index) => runWorker(work, index + 1)));
}

/** One thread after the other in this place: one that dies or hangs fails its seed and is replaced. */
async function runWorker(work: SoakWork, thread: number): Promise<void> {
  for (let task = work.next(); task !== undefined; task = work.next()) {
    const worker = new Worker(new URL(import.meta.url), { resourceLimits: { maxOldGenerationSizeMb: heapMiB } });
    let current: SeedTask | undefined = task;
    while (current !== undefined) {
      const answer = await played(worker, current);
      if (typeof answer === 'string') {
        work.onReport({ ...nothing, seed: current.seed, thread, failure: { id: 'stuck', atMs: 0, message: answer } });
        break;
      }
      work.onReport({ ...answer, thread });
      current = work.next();
    }
    await worker.terminate();
    if (current === undefined) return;
  }
}

const nothing = { faults: {}, crashes: {}, writes: {}, runs: 1, events: 0, virtualMs: 0, heapBytes: 0 };

/** What the thread reports of the seed, or how it ended without a report. */
function played(worker: Worker, task: SeedTask): Promise<SeedReport | string> {
  return new Promise((resolve) => {
    const finish = (answer: SeedReport | string): void => {
      clearTimeout(limit);
      // One by one: the thread has listeners of its own, without which nothing more would be heard of it.
      worker.off('message', finish);
      worker.off('error', onError);
      worker.off('exit', onExit);
      resolve(answer);
    };
    const onError = (error: unknown): void => finish(`the thread ended: ${messageOf(error)}`);
    const onExit = (code: number): void => finish(`the thread ended with code ${code}`);
    const limit = setTimeout(() => finish(`no answer within ${longestSeedMs / 1000} s`), longestSeedMs);
    worker.on('message', finish);
    worker.on('error', onError);
    worker.on('exit', onExit);
    worker.postMessage(task);
  });
}

/** The other end: plays what it is told to, until the thread is ended. */
export function serveSeeds(): void {
  const port = parentPort;
  if (port === null) throw new Error('this is no thread of a soak');
  port.on('message', (task: SeedTask) => {
    void playSeed(task).then((report) => port.postMessage(report));
  });
}

async function playSeed(task: SeedTask): Promise<SeedReport> {
  const { result, failure, runs } = await judge(scenarioOf(task.seed), task);
  return {
    seed: task.seed,
    ...(failure === undefined ? {} : { failure }),
    faults: result.faults as Readonly<Record<string, number>>,
    crashes: result.crashes,
    writes: result.writes,
    runs,
    events: result.events,
    virtualMs: result.endMs,
    thread: 0,
    heapBytes: process.memoryUsage().heapUsed,
  };
}
