// When each group has its turn: at once after an event, at the instant that its decision names, or after a pause when a turn failed.
import type { Clock, Timers } from '../cluster/env.ts';

/** The next turn as the last one requests it. */
export interface NextTurn {
  /** Wall clock: look again then. */
  readonly wakeAtMs?: number | undefined;
  /** Look again after this long when no event came before. */
  readonly lookAgainInMs?: number | undefined;
  /** Try again after a pause that grows with every turn in a row that asks for it; `afterMs` is the least pause. */
  readonly retry?: { readonly afterMs?: number | undefined } | undefined;
}

interface LoopOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: () => number;
  /** The first pause after a failed turn, in milliseconds. */
  readonly retryMs: number;
  /** One turn of a group. `askedMs` is on the monotonic clock: when the event came that asked for it. A rejection counts as a failed turn. */
  readonly takeTurn: (key: string, askedMs: number) => Promise<NextTurn>;
}

export interface Loop {
  /** The groups there are; others end. A new one has its turn at once. */
  readonly setGroups: (keys: Iterable<string>) => void;
  /** Asks for a turn of the group; several requests before it begins are one. */
  readonly wake: (key: string) => void;
  readonly wakeAll: () => void;
  /** No turn begins while paused; what was asked for is kept. */
  readonly setPaused: (isPaused: boolean) => void;
  /** Begins no turn any more; resolves when those under way have ended. */
  readonly stop: () => Promise<void>;
}

/** Turns at a time, of different groups. A turn that waits for an answer costs nothing but its place. */
const parallelTurns = 64;
/** A recovered server sends no event, so a group tries again within a minute. A thousand groups then send some twenty requests a second. */
const longestPauseMs = 60_000;
/** The wall clock may jump; so no timer is trusted for longer than this, which costs a look at the clock and no write. */
const longestSleepMs = 180_000;
/** States how often is looked at whether the wall clock was set, and what the two clocks may part by meanwhile without that. */
const clockLookMs = 60_000;
const clockToleranceMs = 1000;

interface GroupState {
  isRunning: boolean;
  /** Monotonic: when the next turn was asked for; absent while none is. */
  askedMs?: number | undefined;
  /** Monotonic: no turn before, however many events come. */
  notBeforeMs: number;
  failures: number;
  wakeAtMs?: number | undefined;
  cancelTimer?: (() => void) | undefined;
}

/** A loop without groups. Groups do not wait for one another, except when 64 turns are under way. */
export function startLoop({ clock, timers, random, retryMs, takeTurn }: LoopOptions): Loop {
  const groups = new Map<string, GroupState>();
  /** Turns of groups that are no more: one that comes back waits for its turn to end. */
  const leaving = new Map<string, GroupState>();
  const waiting = new Set<string>();
  const idle: (() => void)[] = [];
  let running = 0;
  let isPaused = false;
  let isStopped = false;

  /** Begins turns in the next microtask, so that a burst of events causes one turn. */
  const begin = (): void => void Promise.resolve().then(beginNow);

  const beginNow = (): void => {
    if (isPaused || isStopped) return;
    for (const key of waiting) {
      if (running >= parallelTurns) return;
      const group = groups.get(key);
      if (group?.isRunning) continue;
      waiting.delete(key);
      if (group !== undefined) void run(key, group);
    }
  };

  const run = async (key: string, group: GroupState): Promise<void> => {
    const askedMs = group.askedMs ?? clock.monotonicMs();
    group.askedMs = undefined;
    group.wakeAtMs = undefined;
    group.cancelTimer?.();
    group.isRunning = true;
    running += 1;
    let next: NextTurn;
    try {
      next = await takeTurn(key, askedMs);
    } catch {
      next = { retry: {} };
    }
    group.isRunning = false;
    running -= 1;
    if (leaving.get(key) === group) leaving.delete(key);
    if (!isStopped && groups.get(key) === group) schedule(key, group, next);
    if (isStopped && running === 0) for (const resolve of idle.splice(0)) resolve();
    begin();
  };

  const schedule = (key: string, group: GroupState, { wakeAtMs, lookAgainInMs, retry }: NextTurn): void => {
    group.failures = retry === undefined ? 0 : group.failures + 1;
    group.wakeAtMs = wakeAtMs;
    // Events alone do not retry a failed turn at once, but an event shortens a pause that has grown.
    if (retry !== undefined) {
      const grown = Math.min(longestPauseMs, retryMs * 2 ** Math.min(group.failures - 1, 20));
      const pauseMs = Math.max(retry.afterMs ?? 0, grown * (0.5 + random() / 2));
      group.notBeforeMs = clock.monotonicMs() + Math.max(retry.afterMs ?? 0, Math.min(retryMs, pauseMs));
      arm(key, group, clock.monotonicMs() + pauseMs);
    } else arm(key, group, clock.monotonicMs() + (lookAgainInMs ?? Number.POSITIVE_INFINITY));
    if (group.askedMs !== undefined) request(key, group);
  };

  /** Sleeps until the pause is over or the instant of the wall clock has come, and looks at the clocks at least every few minutes. */
  const arm = (key: string, group: GroupState, retryAtMs: number): void => {
    group.cancelTimer?.();
    const wakeInMs = group.wakeAtMs === undefined ? Number.POSITIVE_INFINITY : group.wakeAtMs - clock.nowMs();
    const dueInMs = Math.min(wakeInMs, retryAtMs - clock.monotonicMs());
    if (dueInMs === Number.POSITIVE_INFINITY) return;
    group.cancelTimer = timers.after(Math.max(0, Math.min(dueInMs, longestSleepMs)), () => {
      group.cancelTimer = undefined;
      const isDue = clock.monotonicMs() >= retryAtMs || (group.wakeAtMs !== undefined && clock.nowMs() >= group.wakeAtMs);
      if (isDue) ask(key, group);
      else arm(key, group, retryAtMs);
    });
  };

  const ask = (key: string, group: GroupState): void => {
    group.askedMs ??= clock.monotonicMs();
    if (!group.isRunning) request(key, group);
  };

  const request = (key: string, group: GroupState): void => {
    const pauseMs = group.notBeforeMs - clock.monotonicMs();
    if (pauseMs > 0) {
      group.cancelTimer?.();
      group.cancelTimer = timers.after(pauseMs, () => request(key, group));
      return;
    }
    waiting.add(key);
    begin();
  };

  /** A clock that was set has made instants of what was decided come nearer, or move far away, and no event tells of that. */
  const lookAtClocks = (): void => {
    const apartMs = clock.nowMs() - clock.monotonicMs();
    const wasSet = Math.abs(apartMs - clocksApartMs) > clockToleranceMs;
    clocksApartMs = apartMs;
    cancelClockLook = timers.after(clockLookMs, lookAtClocks);
    if (wasSet) for (const [key, group] of groups) ask(key, group);
  };
  let clocksApartMs = clock.nowMs() - clock.monotonicMs();
  let cancelClockLook = timers.after(clockLookMs, lookAtClocks);

  return {
    setGroups: (keys) => {
      const wanted = new Set(keys);
      for (const [key, group] of groups) {
        if (wanted.has(key)) continue;
        group.cancelTimer?.();
        groups.delete(key);
        waiting.delete(key);
        if (group.isRunning) leaving.set(key, group);
      }
      for (const key of wanted) {
        if (groups.has(key)) continue;
        const group: GroupState = leaving.get(key) ?? { isRunning: false, notBeforeMs: 0, failures: 0 };
        leaving.delete(key);
        groups.set(key, group);
        ask(key, group);
      }
    },
    wake: (key) => {
      const group = groups.get(key);
      if (group !== undefined) ask(key, group);
    },
    wakeAll: () => {
      for (const [key, group] of groups) ask(key, group);
    },
    setPaused: (value) => {
      isPaused = value;
      begin();
    },
    stop: async () => {
      isStopped = true;
      cancelClockLook();
      for (const group of groups.values()) group.cancelTimer?.();
      if (running > 0) await new Promise<void>((resolve) => idle.push(resolve));
    },
  };
}
