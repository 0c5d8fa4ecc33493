// Decides when each group has its turn: at once after an event, at the time that its decision named, or after a pause if a turn failed.
import type { Clock, Timers } from '../cluster/env.ts';
import { pauseAfter } from '../cluster/request/backoff.ts';

/** The time of the next turn, as requested by the turn before it. */
export interface NextTurn {
  /** The time of the next turn (wall clock). */
  readonly wakeAtMs?: number | undefined;
  /** The time until the next turn if no event comes earlier, in milliseconds. */
  readonly nextTurnInMs?: number | undefined;
  /** Present if the turn failed. The pause before the next turn grows with the failed turns in a row and is at least `afterMs`. */
  readonly retry?: { readonly afterMs?: number | undefined } | undefined;
  /** True if the turn neither failed nor succeeded: the count of failures stays, and so does the time of a turn that is due earlier. */
  readonly isInconclusive?: boolean | undefined;
}

interface LoopOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: () => number;
  /** The longest first pause after a failed turn, in milliseconds. The first pause is random and at least half as long. */
  readonly retryMs: number;
  /** Takes one turn of a group. `askedMs` (monotonic) is the time of the event that caused it. A rejection counts as a failed turn. */
  readonly takeTurn: (key: string, askedMs: number) => Promise<NextTurn>;
}

const parallelTurns = 64;
/** The longest pause between failed turns. With it, a thousand failing groups take about 20 turns a second. */
const longestPauseMs = 60_000;
/** The longest timer. The wall clock may jump, so the timer checks again after this time whether the turn is due. */
const longestSleepMs = 180_000;
/** The interval at which the wall clock is compared with the monotonic clock, and the largest deviation that is no jump. */
const clockCheckMs = 60_000;
const clockToleranceMs = 1000;

const never = Number.POSITIVE_INFINITY;

interface GroupState {
  isRunning: boolean;
  /** The time at which the next turn was requested (monotonic); absent if no turn is requested. */
  askedMs?: number | undefined;
  /** The earliest time of the next turn, even if an event requests an earlier turn (monotonic). */
  notBeforeMs: number;
  failures: number;
  /** The time of the next turn: the earlier of a time of the wall clock and a monotonic time. Infinity: only an event starts the turn. */
  wakeAtMs: number;
  dueAtMs: number;
  cancelTimer?: (() => void) | undefined;
}

/** The loop of turns. Groups do not wait for one another, except when 64 turns are running. */
export class TurnLoop {
  readonly #options: LoopOptions;
  readonly #groups = new Map<string, GroupState>();
  /** Removed groups whose turn is still running. If such a group is added again, its next turn waits until that turn ends. */
  readonly #leaving = new Map<string, GroupState>();
  readonly #waiting = new Set<string>();
  readonly #idle: (() => void)[] = [];
  #running = 0;
  #isPaused = false;
  #isStopped = false;
  #clocksApartMs: number;
  #cancelClockCheck: () => void;

  constructor(options: LoopOptions) {
    this.#options = options;
    this.#clocksApartMs = this.#options.clock.nowMs() - this.#options.clock.monotonicMs();
    this.#cancelClockCheck = this.#options.timers.after(clockCheckMs, () => this.#checkClocks());
  }

  /** Sets the groups and drops all others. A new group has its turn at once. */
  setGroups(keys: Iterable<string>): void {
    const wanted = new Set(keys);
    for (const [key, group] of this.#groups) {
      if (wanted.has(key)) continue;
      group.cancelTimer?.();
      this.#groups.delete(key);
      this.#waiting.delete(key);
      if (group.isRunning) this.#leaving.set(key, group);
    }
    for (const key of wanted) {
      if (this.#groups.has(key)) continue;
      const group: GroupState = this.#leaving.get(key) ?? {
        isRunning: false,
        notBeforeMs: 0,
        failures: 0,
        wakeAtMs: never,
        dueAtMs: never,
      };
      this.#leaving.delete(key);
      this.#groups.set(key, group);
      this.#ask(key, group);
    }
  }

  /** Requests a turn of the group. Several requests before the turn begins cause one turn. */
  wake(key: string): void {
    const group = this.#groups.get(key);
    if (group !== undefined) this.#ask(key, group);
  }

  wakeAll(): void {
    for (const [key, group] of this.#groups) this.#ask(key, group);
  }

  /** Pauses or resumes the loop. A paused loop starts no turn and keeps the requested turns. */
  setPaused(value: boolean): void {
    this.#isPaused = value;
    this.#begin();
  }

  /** Starts no further turn. Resolves when the running turns have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelClockCheck();
    for (const group of this.#groups.values()) group.cancelTimer?.();
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Begins turns in the next microtask, so that a burst of events causes one turn. */
  #begin(): void {
    void Promise.resolve().then(() => this.#beginNow());
  }

  #beginNow(): void {
    if (this.#isPaused || this.#isStopped) return;
    for (const key of this.#waiting) {
      if (this.#running >= parallelTurns) return;
      const group = this.#groups.get(key);
      if (group?.isRunning) continue;
      this.#waiting.delete(key);
      if (group !== undefined) void this.#run(key, group);
    }
  }

  async #run(key: string, group: GroupState): Promise<void> {
    const askedMs = group.askedMs ?? this.#options.clock.monotonicMs();
    group.askedMs = undefined;
    group.cancelTimer?.();
    group.isRunning = true;
    this.#running += 1;
    let next: NextTurn;
    try {
      next = await this.#options.takeTurn(key, askedMs);
    } catch {
      next = { retry: {} };
    }
    group.isRunning = false;
    this.#running -= 1;
    if (this.#leaving.get(key) === group) this.#leaving.delete(key);
    if (!this.#isStopped && this.#groups.get(key) === group) this.#schedule(key, group, next);
    if (this.#isStopped && this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
    this.#begin();
  }

  #schedule(key: string, group: GroupState, { wakeAtMs = never, nextTurnInMs = never, retry, isInconclusive = false }: NextTurn): void {
    const { clock, retryMs, random } = this.#options;
    const nowMs = clock.monotonicMs();
    if (retry === undefined) {
      if (!isInconclusive) group.failures = 0;
      group.wakeAtMs = Math.min(wakeAtMs, isInconclusive ? ifAfter(clock.nowMs(), group.wakeAtMs) : never);
      group.dueAtMs = Math.min(nowMs + nextTurnInMs, isInconclusive ? ifAfter(nowMs, group.dueAtMs) : never);
    } else {
      // After a failed turn an event does not start the next turn at once, but it shortens a grown pause to the first pause.
      group.failures += 1;
      const grownMs = pauseAfter(group.failures, { firstMs: retryMs / 2, lastMs: longestPauseMs }, random());
      const pauseMs = Math.max(retry.afterMs ?? 0, grownMs);
      group.notBeforeMs = nowMs + Math.max(retry.afterMs ?? 0, Math.min(retryMs, pauseMs));
      group.wakeAtMs = wakeAtMs;
      group.dueAtMs = nowMs + pauseMs;
    }
    this.#arm(key, group);
    if (group.askedMs !== undefined) this.#request(key, group);
  }

  /** Schedules the next turn at the earlier of `dueAtMs` and `wakeAtMs` of the group. */
  #arm(key: string, group: GroupState): void {
    group.cancelTimer?.();
    const { clock, timers } = this.#options;
    const dueInMs = Math.min(group.wakeAtMs - clock.nowMs(), group.dueAtMs - clock.monotonicMs());
    if (dueInMs === never) return;
    group.cancelTimer = timers.after(Math.max(0, Math.min(dueInMs, longestSleepMs)), () => {
      group.cancelTimer = undefined;
      if (clock.monotonicMs() >= group.dueAtMs || clock.nowMs() >= group.wakeAtMs) this.#ask(key, group);
      else this.#arm(key, group);
    });
  }

  #ask(key: string, group: GroupState): void {
    group.askedMs ??= this.#options.clock.monotonicMs();
    if (!group.isRunning) this.#request(key, group);
  }

  #request(key: string, group: GroupState): void {
    const pauseMs = group.notBeforeMs - this.#options.clock.monotonicMs();
    if (pauseMs > 0) {
      group.cancelTimer?.();
      group.cancelTimer = this.#options.timers.after(pauseMs, () => this.#request(key, group));
      return;
    }
    this.#waiting.add(key);
    this.#begin();
  }

  /** Wakes all groups after a jump of the wall clock, because the jump changes the time until each `wakeAtMs` and causes no event. */
  #checkClocks(): void {
    const apartMs = this.#options.clock.nowMs() - this.#options.clock.monotonicMs();
    const hasJumped = Math.abs(apartMs - this.#clocksApartMs) > clockToleranceMs;
    this.#clocksApartMs = apartMs;
    this.#cancelClockCheck = this.#options.timers.after(clockCheckMs, () => this.#checkClocks());
    if (hasJumped) this.wakeAll();
  }
}

function ifAfter(nowMs: number, atMs: number): number {
  return atMs > nowMs ? atMs : never;
}
