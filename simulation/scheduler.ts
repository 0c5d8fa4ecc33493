// Virtual time: one queue of events, ordered by their instant and, at the same instant, by chance that the seed determines.
import { draw } from './random.ts';

interface Event {
  readonly atMs: number;
  /** Decides among events of one instant. */
  readonly lot: number;
  readonly order: number;
  readonly callback: () => void;
  isCancelled: boolean;
}

/** The one clock that is right. Processes see it through clocks of their own (process/). */
export interface Scheduler {
  /** Milliseconds since the run began. */
  readonly nowMs: () => number;
  /** Calls back once, `delayMs` (0 or more) from now. The answer cancels; cancelling twice does nothing. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
  /** Calls back everything that is due up to that instant, in its order; what follows from one event is done before the next. */
  readonly runUntil: (endMs: number, isOver?: () => boolean) => Promise<void>;
  /** Events that are still to come. */
  readonly pendingCount: () => number;
  /** Events that have happened. */
  readonly eventCount: () => number;
}

/** A scheduler at instant 0. */
export function createScheduler(seed: number): Scheduler {
  const heap = new Heap();
  let nowMs = 0;
  let order = 0;
  let events = 0;
  let pending = 0;

  const after = (delayMs: number, callback: () => void): (() => void) => {
    const event: Event = { atMs: nowMs + Math.max(0, delayMs), lot: draw(seed, `lot ${order}`), order, callback, isCancelled: false };
    order += 1;
    pending += 1;
    heap.push(event);
    return () => {
      if (event.isCancelled) return;
      event.isCancelled = true;
      pending -= 1;
    };
  };
  const runUntil = async (endMs: number, isOver: () => boolean = () => false): Promise<void> => {
    // Whatever was begun before the first event has to be under way.
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
  return { nowMs: () => nowMs, after, runUntil, pendingCount: () => pending, eventCount: () => events };
}

/** So often the real loop has its turn: signals and messages from other threads are not kept waiting for a whole run. */
const eventsOfOneTurn = 512;

/**
 * Resolves when nothing is left to do at this instant. Everything in a run is promises, and Node calls back a next tick when all promises that can be
 * settled are, however long their chains: a turn of the real loop does the same, and costs a system call.
 */
function settled(events: number): Promise<void> {
  return new Promise((resolve) => {
    if (events % eventsOfOneTurn === 0) setImmediate(resolve);
    else process.nextTick(resolve);
  });
}

class Heap {
  readonly #events: Event[] = [];

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
      if (isBefore(parent, event)) break;
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
      if (right !== undefined && isBefore(right, events[childIndex] as Event)) childIndex += 1;
      const child = events[childIndex];
      if (child === undefined || isBefore(last, child)) break;
      events[index] = child;
      index = childIndex;
    }
    events[index] = last;
  }
}

function isBefore(one: Event, other: Event): boolean {
  if (one.atMs !== other.atMs) return one.atMs < other.atMs;
  return one.lot === other.lot ? one.order < other.order : one.lot < other.lot;
}
