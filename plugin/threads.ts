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

/** A task as a thread gets it. The first thread that sets `begun` computes the task. */
export interface SentTask {
  readonly task: Parameters<Compute>;
  readonly begun: Int32Array;
}

/** Marks a task as begun. Returns false if another thread began it. */
export function begin(begun: Int32Array): boolean {
  return Atomics.compareExchange(begun, 0, 0, 1) === 0;
}

interface Pending extends SentTask {
  readonly resolve: (output: never) => void;
  readonly reject: (error: Error) => void;
}

/** A thread has its next tasks before it ends the current one, so it does not wait while this thread computes a long one. */
const tasksOfThread = 4;

export class Threads {
  readonly count: number;
  /** The threads that run, with the tasks that they got, the current one first. */
  readonly #threads: Map<Worker, Pending[]>;
  readonly #waiting: Pending[] = [];

  constructor(count: number, names: readonly TaskName[]) {
    this.count = count;
    this.#threads = new Map(Array.from({ length: count }, () => [new Worker(program, { workerData: names }), []]));
    for (const [thread, tasks] of this.#threads) {
      thread.on('message', (output) => {
        tasks.shift()?.resolve(output as never);
        this.#send();
      });
      thread.on('error', (error) => {
        this.#threads.delete(thread);
        for (const { reject } of tasks) reject(error);
        if (this.#threads.size === 0) for (const { reject } of this.#waiting.splice(0)) reject(error);
      });
    }
  }

  /** Computes a task in a thread. The promise stays pending if the threads end before. */
  readonly compute: Compute = (name, input) =>
    new Promise((resolve, reject) => {
      this.#waiting.push({ task: [name, input], begun: new Int32Array(new SharedArrayBuffer(4)), resolve, reject });
      this.#send();
    });

  /** Computes tasks in this thread, the last ones first, until every task has begun. */
  async help(): Promise<void> {
    for (let last = this.#take(); last !== undefined; last = this.#take()) {
      await computeHere(...last.task).then(last.resolve as (output: unknown) => void, last.reject);
      // The threads get further tasks when this thread reads their results.
      await setImmediate();
    }
  }

  /** Begins the last task that no thread got, or else the last one that a thread got and did not begin. */
  #take(): Pending | undefined {
    const last = this.#waiting.pop();
    if (last !== undefined) return last;
    for (const tasks of this.#threads.values()) {
      const index = tasks.findLastIndex(({ begun }) => begin(begun));
      if (index >= 0) return tasks.splice(index, 1)[0];
    }
    return undefined;
  }

  /** Sends the first tasks to the threads with the fewest tasks. */
  #send(): void {
    for (let length = 0; length < tasksOfThread; length += 1) {
      for (const [thread, tasks] of this.#threads) {
        const next = tasks.length === length ? this.#waiting.shift() : undefined;
        if (next === undefined) continue;
        tasks.push(next);
        const { task, begun } = next;
        thread.postMessage({ task, begun } satisfies SentTask);
      }
    }
  }

  async end(): Promise<void> {
    await Promise.all([...this.#threads.keys()].map((thread) => thread.terminate()));
  }
}
