// Queries one gate or metric input at its interval for GateReader and MetricReader, and keeps the readings that still count.
import type { GateReading } from '../../engine/snapshot.ts';
import { formatDuration } from '../../policies/duration.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { AgentEnv } from '../env.ts';

export interface GateQueryTime {
  /** The time of the query (wall clock), which is also the time of the reading. */
  readonly atMs: number;
  /** The timeout of the query in milliseconds. */
  readonly timeoutMs: number;
}

/** The client that queries the provider of one gate or metric input. */
export interface GateClient {
  /** The longest timeout of a query in milliseconds. A shorter interval of the gate or input shortens the timeout. */
  readonly longestMs: number;
  /** Sends one query. Rejects with an Error without address and credential, because the status of the group shows the message. */
  readonly query: (time: GateQueryTime) => Promise<GateReading>;
}

/** Records in `open` that a query of `key` is in flight, so that a gate that is forgotten and read again never has two queries at once. */
export function trackQueries(client: GateClient, open: Set<string>, key: string, onEnd: () => void): GateClient {
  return {
    ...client,
    query: async (time) => {
      open.add(key);
      try {
        return await client.query(time);
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
  readonly queryIfDue: () => void;
  /** Sends no further query, and ignores the answer of a query in flight. */
  readonly end: () => void;
}

interface ReadGateOptions {
  readonly env: Pick<AgentEnv, 'clock' | 'timers'>;
  readonly everyMs: number;
  /** Returns the readings to keep. Input and result have the oldest first. */
  readonly counted: (readings: readonly GateReading[]) => readonly GateReading[];
  readonly client: GateClient;
  /** Returns whether a query may be sent now. If the result changes to true, the caller must call `queryIfDue`. */
  readonly mayQuery: () => boolean;
  readonly onReading: () => void;
}

/** The shortest interval between the starts of two queries. */
const shortestPauseMs = 1_000;
/** The longest timer. The wall clock may jump, so the timer checks again after this time whether a query is due. */
const longestSleepMs = 180_000;
const longestMessage = 256;

/** Creates a gate without readings. It sends no query before `readFrom`. */
export function readGate({ env, everyMs, counted, client, mayQuery, onReading }: ReadGateOptions): ReadGate {
  const { clock, timers } = env;
  const periodMs = Math.max(everyMs, shortestPauseMs);
  const timeoutMs = Math.min(periodMs, client.longestMs);
  let fromMs = Number.POSITIVE_INFINITY;
  let readings: readonly GateReading[] = [];
  /** The time of the last query (monotonic). */
  let queriedMs: number | undefined;
  let isQuerying = false;
  let isOver = false;
  let cancelTimer: (() => void) | undefined;
  let cancelLimit = (): void => undefined;

  const dueInMs = (): number => {
    const pauseMs = readings.length > 0 ? periodMs : shortestPauseMs;
    const restMs = queriedMs === undefined ? 0 : queriedMs + pauseMs - clock.monotonicMs();
    return Math.max(0, restMs, fromMs - clock.nowMs());
  };
  const queryIfDue = (): void => {
    cancelTimer?.();
    cancelTimer = undefined;
    if (isOver || isQuerying || fromMs === Number.POSITIVE_INFINITY || !mayQuery()) return;
    const inMs = dueInMs();
    if (inMs === 0) void sendQuery();
    else cancelTimer = timers.after(Math.min(Math.ceil(inMs), longestSleepMs), queryIfDue);
  };
  const sendQuery = async (): Promise<void> => {
    isQuerying = true;
    queriedMs = clock.monotonicMs();
    const atMs = Math.floor(clock.nowMs());
    const reading = await readingAt(atMs);
    isQuerying = false;
    if (isOver) return;
    // A later start may have been set during the query. Then the reading is too early.
    if (atMs >= fromMs) {
      readings = counted([...upTo(readings, atMs), reading]);
      onReading();
    }
    queryIfDue();
  };
  const readingAt = async (atMs: number): Promise<GateReading> => {
    const limit = new Promise<GateReading>((resolve) => {
      const message = `no answer within ${formatDuration(timeoutMs)}`;
      cancelLimit = timers.after(timeoutMs, () => resolve({ atMs, result: 'error', message }));
    });
    const reading = await Promise.race([limit, unlimited(atMs)]);
    cancelLimit();
    return reading;
  };
  const unlimited = async (atMs: number): Promise<GateReading> => {
    try {
      return await client.query({ atMs, timeoutMs });
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
      queryIfDue();
    },
    queryIfDue,
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
