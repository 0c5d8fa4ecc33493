// The threads of a soak. Each plays one seed at a time and keeps only its report.
import { parentPort, Worker } from 'node:worker_threads';
import { messageOf } from '../../policies/error-message.ts';
import { setEngineFlags } from '../../simulation/engine-flags.ts';
import type { Failure } from '../../simulation/run.ts';
import { scenarioOf } from './search/draw.ts';
import { featuresOf } from './search/features.ts';
import { type Checks, judge } from './search/judge.ts';

interface SeedTask extends Checks {
  readonly seed: number;
}

export interface SeedReport {
  readonly seed: number;
  /** The features and requests of the scenario. */
  readonly features: readonly string[];
  /** Absent if the seed passed. Without a scenario if the run did not end. */
  readonly failure?: Omit<Failure, 'scenario'> & Partial<Pick<Failure, 'scenario'>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly crashes: Readonly<Record<string, number>>;
  readonly writes: Readonly<Record<string, number>>;
  readonly runs: number;
  readonly events: number;
  readonly virtualMs: number;
  readonly thread: number;
  /** Heap of the thread after the seed. */
  readonly heapBytes: number;
}

interface SoakWork {
  readonly workers: number;
  /** Returns the next seed; undefined after the last one. */
  readonly next: () => SeedTask | undefined;
  readonly onReport: (report: SeedReport) => void;
}

/** A seed that takes longer loops without progress of the virtual time. */
const longestSeedMs = 180_000;

/** Enough memory for many runs. A thread that needs more keeps objects by mistake. */
const heapMiB = 768;

/** Gives seeds to the threads until the last seed. Resolves when every report has arrived. */
export async function runWorkers(work: SoakWork): Promise<void> {
  setEngineFlags();
  await Promise.all(Array.from({ length: work.workers }, (_, index) => runWorker(work, index + 1)));
}

/** Runs one thread, and replaces it if it dies or hangs. The seed of that thread fails. */
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

const nothing = { features: [], faults: {}, crashes: {}, writes: {}, runs: 1, events: 0, virtualMs: 0, heapBytes: 0 };

/** Returns the report of the thread on the seed, or how the thread ended without a report. */
function played(worker: Worker, task: SeedTask): Promise<SeedReport | string> {
  return new Promise((resolve) => {
    const finish = (answer: SeedReport | string): void => {
      clearTimeout(limit);
      // Removes the listeners one by one: the thread has internal listeners that must stay.
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

/** Runs in the thread: plays the seeds that it receives, until the thread is ended. */
export function serveSeeds(): void {
  const port = parentPort;
  if (port === null) throw new Error('this is no thread of a soak');
  port.on('message', (task: SeedTask) => {
    void playSeed(task).then((report) => port.postMessage(report));
  });
}

async function playSeed(task: SeedTask): Promise<SeedReport> {
  const scenario = scenarioOf(task.seed);
  const { result, failure, runs } = await judge(scenario, task);
  return {
    seed: task.seed,
    features: featuresOf(scenario),
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
