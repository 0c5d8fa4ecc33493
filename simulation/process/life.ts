// Defines one life of a process, from its start to its end, and models the calls of the process with latency and faults.
import type { Faults, Point, RequestFault } from '../faults/fault.ts';
import { draw } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Holds, ProcessTime } from './clock.ts';

export interface Life {
  /** The name, for example `a1` for the first life of `a`. */
  readonly name: string;
  readonly seed: number;
  readonly scheduler: Scheduler;
  readonly time: ProcessTime;
  readonly holds: Holds;
  readonly faults: Faults;
  /** The places of faults that this life has reached. */
  readonly places: Places;
  /** Ends this life at once. The next life begins after these milliseconds. */
  readonly crash: (restartAfterMs: number) => void;
  /** Receives each request, answer and delivered line, for the trace. */
  readonly note: (...parts: readonly (string | number)[]) => void;
  /** Counters of open requests and watches. `begun` counts all requests so far, `dead` the watches that deliver nothing. */
  readonly open: { requests: number; watches: number; begun: number; dead: number };
  /** The callbacks at the end of the life, which close its connections. */
  readonly onEnd: Set<() => void>;
}

interface Places {
  readonly next: (port: 'request' | 'line' | 'pod', site: string) => Point;
}

/** Creates the counters of how often the process has reached each site. */
export function createPlaces(name: string, scheduler: Pick<Scheduler, 'nowMs'>): Places {
  const counts = new Map<string, number>();
  return {
    next: (port, site) => {
      const place = `${port} ${site}`;
      const count = (counts.get(place) ?? 0) + 1;
      counts.set(place, count);
      return { key: `${name}/${site}#${count}`, process: name, site, atMs: scheduler.nowMs() };
    },
  };
}

export const slowestWayMs = 3_000;

/** Returns the latency in one direction: 1 to 30 ms, rarely up to 3 s. `lot` is at least 0 and less than 1. */
export function latencyMs(lot: number): number {
  const isSlow = lot < slowShare;
  return Math.round(isSlow ? 100 + (lot / slowShare) * (slowestWayMs - 100) : 1 + ((lot - slowShare) / (1 - slowShare)) * 29);
}

const slowShare = 0.004;

interface Call<Answer> {
  readonly site: string;
  /** A verb as in Answered, `watch`, or podVerb. */
  readonly verb: string;
  readonly timeoutMs: number;
  readonly timedOut: () => Error;
  /** Sends the call. Passes a result to `replied` or `failed`, which add the latency of the answer. Without a result the call times out. */
  readonly send: (sending: Sending<Answer>) => void;
  /** Called if the answer arrives after the caller stopped waiting. */
  readonly answerLost?: (answer: Answer) => void;
}

export interface Sending<Answer> {
  readonly point: Point;
  readonly fault: RequestFault | undefined;
  readonly replied: (answer: Answer) => void;
  readonly failed: (error: Error) => void;
  /** Returns whether the process is dead and needs no answer. Must be called when the request was applied: the process may crash then. */
  readonly hasDied: () => boolean;
}

/** Models one call from sending to its result, with crashes and suspensions of the process. Never settles if the process ends first. */
export function makeCall<Answer>(life: Life, call: Call<Answer>): Promise<Answer> {
  const { time, places, faults } = life;
  return new Promise((resolve, reject) => {
    if (!time.isAlive()) return;
    const dies = (at: RequestFault | undefined, moment: Moment): boolean => {
      if (at?.kind !== 'crash' || at.moment !== moment) return false;
      life.crash(at.restartAfterMs);
      return true;
    };
    const point = places.next('request', call.site);
    const fault = faults.ofRequest(point, call.verb);
    if (dies(fault, 'beforeSend')) return;
    let isOver = false;
    let mayPause = true;
    life.open.requests += 1;
    life.open.begun += 1;
    life.note('sent', point.key);
    const settle = (outcome: string, finish: () => void, drop: () => void): void => {
      if (isOver || dies(fault, 'afterReply')) {
        drop();
        return;
      }
      if (fault?.kind === 'pause' && mayPause) {
        mayPause = false;
        time.pause(fault.durationMs, () => settle(outcome, finish, drop));
        return;
      }
      isOver = true;
      cancelTimeout();
      life.open.requests -= 1;
      life.note('settled', point.key, outcome);
      finish();
    };
    const nothing = (): void => undefined;
    const cancelTimeout = time.timers.after(call.timeoutMs, () => settle('timeout', () => reject(call.timedOut()), nothing));
    const arrives = (outcome: string, finish: () => void, drop: () => void): void => {
      const lot = draw(life.seed, `${point.key} from`);
      life.scheduler.after(latencyMs(lot), () => (time.isAlive() ? time.take(() => settle(outcome, finish, drop)) : drop()));
    };
    call.send({
      point,
      fault,
      replied: (answer) =>
        arrives(
          'answer',
          () => resolve(answer),
          () => call.answerLost?.(answer),
        ),
      failed: (error) => arrives('failure', () => reject(error), nothing),
      hasDied: () => !time.isAlive() || dies(fault, 'afterApply'),
    });
  });
}

type Moment = Extract<RequestFault, { readonly kind: 'crash' }>['moment'];

/** Returns the latency of a request on its way to the server. */
export function sendingLatencyMs(life: Life, point: Point): number {
  return latencyMs(draw(life.seed, `${point.key} to`));
}
