// Starts the threads of `simulate`, which play runs at the same time. A run has its own clock, so threads change no result.
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { setEngineFlags } from '../../simulation/engine-flags.ts';
import type { Scenario } from '../../simulation/scenario.ts';
import type { Played } from './play.ts';

/** The code of a thread in the build. The sources have no such file, and play in the main thread. */
const program = new URL('./simulation-thread.mjs', import.meta.url);

/** Each thread needs up to 200 MiB of memory. */
const maxThreads = 8;

/** Starts a thread for each run, up to the number of processors. Returns undefined if one thread is enough. */
export function startThreads(runs: number) {
  const count = Math.min(runs, availableParallelism(), maxThreads);
  if (count < 2 || !existsSync(program)) return undefined;
  setEngineFlags();
  const workers = Array.from({ length: count }, () => new Worker(program));
  return {
    players: workers.map((worker) => async (scenario: Scenario): Promise<Played> => {
      worker.postMessage(scenario);
      const [played] = await once(worker, 'message');
      return played;
    }),
    end: () => Promise.all(workers.map((worker) => worker.terminate())),
  };
}
