// One gate or input that is being read: when it is asked next, and which of its readings still count.
import type { GateReading } from '../../engine/snapshot.ts';
import { formatDuration } from '../../policies/duration.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { AgentEnv } from '../env.ts';

export interface AskedGate {
  /** When the question is asked (wall clock); the reading's own instant. */
  readonly atMs: number;
  /** Until the reading is there. */
  readonly timeoutMs: number;
}

/** A gate with its provider. */
export interface GateAsker {
  /** Limits each query in milliseconds, for every period of the gate. */
  readonly longestMs: number;
  /** Rejects with an Error whose message groups may see: without addresses and credentials. */
  readonly ask: (asked: AskedGate) => Promise<GateReading>;
}

/** Notes open questions by key, also those of forgotten gates: no source is asked twice at a time for one gate. */
export function trackQuestions(asker: GateAsker, open: Set<string>, key: string, onEnd: () => void): GateAsker {
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
  /** Those that count, oldest first. */
  readonly readings: () => readonly GateReading[];
  /** Readings count from this instant on (wall clock), and are asked for every period from then on. */
  readonly readFrom: (fromMs: number) => void;
  /** Asks, if that is due. */
  readonly askIfDue: () => void;
  /** Asks nothing any more, and takes nothing in. */
  readonly end: () => void;
}

interface ReadGateOptions {
  readonly env: Pick<AgentEnv, 'clock' | 'timers'>;
  readonly everyMs: number;
  /** Those of the readings, oldest first, that are worth keeping. */
  readonly counted: (readings: readonly GateReading[]) => readonly GateReading[];
  readonly asker: GateAsker;
  /** Reports whether a query may be sent now. If this changes to true, the caller must call `askIfDue`. */
  readonly mayAsk: () => boolean;
  readonly onReading: () => void;
}

/** Shortest pause between two queries, for every period and also after a restart of the readings. */
const shortestPauseMs = 1_000;
/** The wall clock may jump; so no timer that waits for it is trusted for longer than this. */
const longestSleepMs = 180_000;
const longestMessage = 256;

/** Creates a gate without readings. It sends no query before `readFrom`. */
export function readGate({ env, everyMs, counted, asker, mayAsk, onReading }: ReadGateOptions): ReadGate {
  const { clock, timers } = env;
  const periodMs = Math.max(everyMs, shortestPauseMs);
  const timeoutMs = Math.min(periodMs, asker.longestMs);
  let fromMs = Number.POSITIVE_INFINITY;
  let readings: readonly GateReading[] = [];
  /** Monotonic: when the last question was asked. */
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
    // A query from before the restart of the readings does not count.
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
    // The wall clock went back: they were made earlier than they say.
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
