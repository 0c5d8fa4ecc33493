// Starts the threads of `simulate` and `review`. A task is a pure function of plain values, so threads change no result.
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { PlanInput } from '../engine/plan/plan.ts';
import type { Part, ReviewedTests } from '../review/review.ts';
import type { Sides } from '../review/sides.ts';
import { setEngineFlags } from '../simulation/engine-flags.ts';
import type { Scenario } from '../simulation/scenario.ts';

interface ReviewedPolicies {
  readonly sides: Sides;
  readonly nowMs: number;
  readonly tests: ReviewedTests;
  readonly part: Part;
}

/** The code of the tasks by name. A thread loads only the code of the tasks that it receives. */
const code = {
  play: () => import('./simulation/play.ts'),
  plan: () => import('../engine/plan/plan.ts'),
  policies: () => import('../review/review.ts'),
};

const tasks = {
  play: async (scenario: Scenario) => (await code.play()).playOne(scenario),
  plan: async (input: PlanInput) => (await code.plan()).planGroups(input),
  policies: async ({ sides, nowMs, tests, part }: ReviewedPolicies) =>
    (await code.policies()).reviewPolicies(sides, nowMs, { ...tests, part }),
};

type TaskName = keyof typeof code;

/** Loads the code of tasks before the first task arrives. */
export function preload(names: readonly TaskName[]): void {
  for (const name of names) void code[name]();
}

type Tasks = typeof tasks;
type Output<Name extends keyof Tasks> = Promise<Awaited<ReturnType<Tasks[Name]>>>;

/** Computes a task in a thread, or in this thread. */
export type Compute = <Name extends keyof Tasks>(name: Name, input: Parameters<Tasks[Name]>[0]) => Output<Name>;

/** Computes a task in this thread. */
export const computeHere: Compute = (name, input) => (tasks[name] as (one: typeof input) => Output<typeof name>)(input);

/** The code of a thread in the build. The sources have no such file, and compute in the main thread. */
const program = new URL('./thread.mjs', import.meta.url);

/** Each thread needs up to 200 MiB of memory. */
const maxThreads = 8;

/** Starts a thread for each task, up to the number of processors. Returns undefined if one thread is enough. `names` are the expected tasks. */
export function startThreads(taskCount: number, names: readonly TaskName[]): Threads | undefined {
  const count = Math.min(taskCount, availableParallelism(), maxThreads);
  if (count < 2 || !existsSync(program)) return undefined;
  setEngineFlags();
  return new Threads(count, names);
}

export class Threads {
  readonly count: number;
  readonly #workers: readonly Worker[];
  readonly #idle: Worker[];
  readonly #waiting: ((worker: Worker) => void)[] = [];

  constructor(count: number, names: readonly TaskName[]) {
    this.count = count;
    this.#workers = Array.from({ length: count }, () => new Worker(program, { workerData: names }));
    this.#idle = [...this.#workers];
  }

  /** Computes a task in the next idle thread. The promise stays pending if the threads end before. */
  readonly compute: Compute = async (name, input) => {
    const worker = this.#idle.pop() ?? (await new Promise<Worker>((resolve) => this.#waiting.push(resolve)));
    worker.postMessage([name, input]);
    const [output] = await once(worker, 'message');
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(worker);
    else next(worker);
    return output;
  };

  async end(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
