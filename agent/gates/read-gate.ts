// Queries one gate or metric input at its interval for the readers, and keeps the readings that still count.
import type { GateReading } from '../../engine/snapshot.ts';
import { formatDuration } from '../../policies/duration.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { AgentEnv } from '../env.ts';

export interface AskedGate {
  /** The time of the query (wall clock), which is also the time of the reading. */
  readonly atMs: number;
  /** The timeout of the query in milliseconds. */
  readonly timeoutMs: number;
}

/** The query of one gate to its provider. */
export interface GateAsker {
  /** The longest timeout of a query in milliseconds. The interval of the gate may shorten the timeout. */
  readonly longestMs: number;
  /** Sends one query. Rejects with an Error that contains no address and no credential, because the status of the group shows it. */
  readonly ask: (asked: AskedGate) => Promise<GateReading>;
}

/** Records in `open` that a query of `key` is in flight, so that a gate that is forgotten and read again never has two. */
export function trackQueries(asker: GateAsker, open: Set<string>, key: string, onEnd: () => void): GateAsker {
  return {
    ...asker,
    ask: async (asked) => {
      open.add(key);
      try {
        return await asker.ask(asked);
      } finally {
        open.delete(key);
        onEnd();
      }
    },
  };
}

export interface ReadGate {
  /** Returns the readings that count, oldest first. */
  readonly readings: () => readonly GateReading[];
  /** Queries at the interval from this time on (wall clock), and drops all earlier readings. */
  readonly readFrom: (fromMs: number) => void;
  /** Sends a query if one is due. */
  readonly askIfDue: () => void;
  /** Sends no further query, and ignores the answer of a query in flight. */
  readonly end: () => void;
}

interface ReadGateOptions {
  readonly env: Pick<AgentEnv, 'clock' | 'timers'>;
  readonly everyMs: number;
  /** Returns the readings to keep. Input and result have the oldest first. */
  readonly counted: (readings: readonly GateReading[]) => readonly GateReading[];
  readonly asker: GateAsker;
  /** Returns whether a query may be sent now. If the result changes to true, the caller must call `askIfDue`. */
  readonly mayAsk: () => boolean;
  readonly onReading: () => void;
}

/** The shortest pause between two queries. */
const shortestPauseMs = 1_000;
/** The longest timer. The wall clock may jump, so the timer checks again after this time whether a query is due. */
const longestSleepMs = 180_000;
const longestMessage = 256;

/** Creates a gate without readings. It sends no query before `readFrom`. */
export function readGate({ env, everyMs, counted, asker, mayAsk, onReading }: ReadGateOptions): ReadGate {
  const { clock, timers } = env;
  const periodMs = Math.max(everyMs, shortestPauseMs);
  const timeoutMs = Math.min(periodMs, asker.longestMs);
  let fromMs = Number.POSITIVE_INFINITY;
  let readings: readonly GateReading[] = [];
  /** The time of the last query (monotonic). */
  let askedMs: number | undefined;
  let isAsking = false;
  let isOver = false;
  let cancelTimer: (() => void) | undefined;
  let cancelLimit = (): void => undefined;

  const dueInMs = (): number => {
    const pauseMs = readings.length > 0 ? periodMs : shortestPauseMs;
    const restMs = askedMs === undefined ? 0 : askedMs + pauseMs - clock.monotonicMs();
    return Math.max(0, restMs, fromMs - clock.nowMs());
  };
  const askIfDue = (): void => {
    cancelTimer?.();
    cancelTimer = undefined;
    if (isOver || isAsking || fromMs === Number.POSITIVE_INFINITY || !mayAsk()) return;
    const inMs = dueInMs();
    if (inMs === 0) void question();
    else cancelTimer = timers.after(Math.min(Math.ceil(inMs), longestSleepMs), askIfDue);
  };
  const question = async (): Promise<void> => {
    isAsking = true;
    askedMs = clock.monotonicMs();
    const atMs = Math.floor(clock.nowMs());
    const reading = await answered(atMs);
    isAsking = false;
    if (isOver) return;
    // A later start may have been set during the query. Then the reading is too early.
    if (atMs >= fromMs) {
      readings = counted([...upTo(readings, atMs), reading]);
      onReading();
    }
    askIfDue();
  };
  const answered = async (atMs: number): Promise<GateReading> => {
    const limit = new Promise<GateReading>((resolve) => {
      const message = `no answer within ${formatDuration(timeoutMs)}`;
      cancelLimit = timers.after(timeoutMs, () => resolve({ atMs, result: 'error', message }));
    });
    const reading = await Promise.race([limit, asked(atMs)]);
    cancelLimit();
    return reading;
  };
  const asked = async (atMs: number): Promise<GateReading> => {
    try {
      return await asker.ask({ atMs, timeoutMs });
    } catch (error) {
      const message = messageOf(error).slice(0, longestMessage);
      return { atMs, result: 'error', message };
    }
  };

  return {
    // Readings with a future time are left out: the wall clock was set back after they were made.
    readings: () => upTo(readings, clock.nowMs()),
    readFrom: (instant) => {
      fromMs = instant;
      readings = readings.filter(({ atMs }) => atMs >= instant);
      askIfDue();
    },
    askIfDue,
    end: () => {
      isOver = true;
      cancelTimer?.();
      cancelLimit();
    },
  };
}

function upTo(readings: readonly GateReading[], nowMs: number): readonly GateReading[] {
  return readings.filter(({ atMs }) => atMs <= nowMs);
}
