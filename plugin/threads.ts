// Starts the threads of `simulate` and `review`. A task is a pure function of plain values, so threads change no result.
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers/promises';
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

/**
 * Starts a thread for each task, up to the number of processors. Returns undefined if one thread is enough. `names` are the expected tasks.
 * `own`: 1 if the caller calls `help`, so that this thread is one of them. Each other thread loads and optimizes all code again.
 */
export function startThreads(taskCount: number, names: readonly TaskName[], own: 0 | 1 = 0): Threads | undefined {
  const count = Math.min(taskCount, availableParallelism(), maxThreads);
  if (count < 2 || !existsSync(program)) return undefined;
  setEngineFlags();
  return new Threads(count - own, names);
}

interface Waiting {
  readonly task: Parameters<Compute>;
  readonly resolve: (output: never) => void;
  readonly reject: (error: Error) => void;
}

/** A thread has its next task before it ends the current one, so it does not wait while this thread computes. */
const tasksOfThread = 2;

export class Threads {
  readonly count: number;
  /** The threads with the tasks that they compute, the current one first. */
  readonly #threads: ReadonlyMap<Worker, Waiting[]>;
  readonly #waiting: Waiting[] = [];

  constructor(count: number, names: readonly TaskName[]) {
    this.count = count;
    this.#threads = new Map(Array.from({ length: count }, () => [new Worker(program, { workerData: names }), []]));
    for (const [thread, tasks] of this.#threads) {
      thread.on('message', (output) => {
        tasks.shift()?.resolve(output as never);
        this.#send();
      });
      thread.on('error', (error) => {
        for (const { reject } of tasks) reject(error);
      });
    }
  }

  /** Computes a task in a thread. The promise stays pending if the threads end before. */
  readonly compute: Compute = (name, input) =>
    new Promise((resolve, reject) => {
      this.#waiting.push({ task: [name, input], resolve, reject });
      this.#send();
    });

  /** Computes tasks in this thread, the last ones first, until no task waits for a thread. */
  async help(): Promise<void> {
    for (let last = this.#waiting.pop(); last !== undefined; last = this.#waiting.pop()) {
      await computeHere(...last.task).then(last.resolve as (output: unknown) => void, last.reject);
      // The threads get further tasks when this thread reads their results.
      await setImmediate();
    }
  }

  /** Sends the first tasks to the threads with the fewest tasks. */
  #send(): void {
    for (let length = 0; length < tasksOfThread; length += 1) {
      for (const [thread, tasks] of this.#threads) {
        const next = tasks.length === length ? this.#waiting.shift() : undefined;
        if (next === undefined) continue;
        tasks.push(next);
        thread.postMessage(next.task);
      }
    }
  }

  async end(): Promise<void> {
    await Promise.all([...this.#threads.keys()].map((thread) => thread.terminate()));
  }
}
