// Runs the virtual time of a simulation: one queue of events, ordered by time and then by a random number of the seed.
import { draw } from './random.ts';

interface Event {
  readonly atMs: number;
  readonly order: number;
  /** The random number that decides the order of events at one time. It is drawn when two events have the same time. */
  lot: number | undefined;
  readonly callback: () => void;
  isCancelled: boolean;
}

/** The true clock of a simulation. Each process reads its own, possibly wrong clock (process/clock.ts). */
export type Scheduler = ReturnType<typeof createScheduler>;

/** Creates a scheduler at time 0. */
export function createScheduler(seed: number) {
  const heap = new Heap(seed);
  let nowMs = 0;
  let order = 0;
  let events = 0;
  let pending = 0;

  /** Calls back once, after `delayMs` (0 or more). Returns a function that cancels the call. */
  const after = (delayMs: number, callback: () => void): (() => void) => {
    const event: Event = { atMs: nowMs + Math.max(0, delayMs), order, lot: undefined, callback, isCancelled: false };
    order += 1;
    pending += 1;
    heap.push(event);
    return () => {
      if (event.isCancelled) return;
      event.isCancelled = true;
      pending -= 1;
    };
  };
  /** Runs all events up to that time in order. The consequences of one event finish before the next event. */
  const runUntil = async (endMs: number, isOver: () => boolean = () => false): Promise<void> => {
    // Work that was started before the first event must run first.
    await settled(0);
    for (let event = heap.peek(); event !== undefined && event.atMs <= endMs && !isOver(); event = heap.peek()) {
      heap.pop();
      if (event.isCancelled) continue;
      event.isCancelled = true;
      pending -= 1;
      events += 1;
      nowMs = event.atMs;
      event.callback();
      await settled(events);
    }
    if (!isOver()) nowMs = Math.max(nowMs, endMs);
  };
  return {
    /** Returns the milliseconds since the simulation began. */
    nowMs: () => nowMs,
    after,
    runUntil,
    pendingCount: () => pending,
    eventCount: () => events,
  };
}

/** The number of events between two real turns of the event loop, which handle signals and messages of other threads. */
const eventsOfOneTurn = 512;

/** Resolves when all pending promise callbacks have run. A next tick needs no system call; `setImmediate` needs one. */
function settled(events: number): Promise<void> {
  return new Promise((resolve) => {
    if (events % eventsOfOneTurn === 0) setImmediate(resolve);
    else process.nextTick(resolve);
  });
}

class Heap {
  readonly #seed: number;
  readonly #events: Event[] = [];

  constructor(seed: number) {
    this.#seed = seed;
  }

  peek(): Event | undefined {
    return this.#events[0];
  }

  push(event: Event): void {
    const events = this.#events;
    let index = events.length;
    events.push(event);
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = events[parentIndex] as Event;
      if (this.#isBefore(parent, event)) break;
      events[index] = parent;
      index = parentIndex;
    }
    events[index] = event;
  }

  pop(): void {
    const events = this.#events;
    const last = events.pop();
    if (last === undefined || events.length === 0) return;
    let index = 0;
    for (;;) {
      let childIndex = 2 * index + 1;
      const right = events[childIndex + 1];
      if (right !== undefined && this.#isBefore(right, events[childIndex] as Event)) childIndex += 1;
      const child = events[childIndex];
      if (child === undefined || this.#isBefore(last, child)) break;
      events[index] = child;
      index = childIndex;
    }
    events[index] = last;
  }

  #isBefore(one: Event, other: Event): boolean {
    if (one.atMs !== other.atMs) return one.atMs < other.atMs;
    one.lot ??= draw(this.#seed, `lot ${one.order}`);
    other.lot ??= draw(this.#seed, `lot ${other.order}`);
    return one.lot === other.lot ? one.order < other.order : one.lot < other.lot;
  }
}
