// One life of a process as its ports see it: its name, its time, its faults, and what is open at the moment.
import type { Faults, Point, RequestFault } from '../faults/fault.ts';
import { draw } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { ProcessTime } from './clock.ts';
import type { Holds } from './holds.ts';

export interface Life {
  /** Such as `a1`: the first life of `a`. */
  readonly name: string;
  readonly seed: number;
  readonly scheduler: Scheduler;
  readonly time: ProcessTime;
  readonly holds: Holds;
  readonly faults: Faults;
  /** Of this life only; names places. */
  readonly places: Places;
  /** Ends this life at once; the next one begins after so many milliseconds. */
  readonly crash: (restartAfterMs: number) => void;
  /** Told of everything that is sent, answered and delivered, for the trace of the run. */
  readonly note: (...parts: readonly (string | number)[]) => void;
  /** `begun`: how many requests there were until now, those that are over with them. `dead`: of the watches, those by which nothing can come any more. */
  readonly open: { requests: number; watches: number; begun: number; dead: number };
  /** What the rest of the world notices when the process is gone: its connections close. */
  readonly onEnd: Set<() => void>;
}

interface Places {
  readonly next: (port: 'request' | 'line' | 'pod', site: string) => Point;
}

/** Counts how often a process comes to each of its places. */
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

/** How long one way through the network takes at most. */
export const slowestWayMs = 3_000;

/** How long one way through the network takes: 1 to 30 ms, and now and then up to 3 s. `lot` is at least 0 and less than 1. */
export function latencyMs(lot: number): number {
  const isSlow = lot < slowShare;
  return Math.round(isSlow ? 100 + (lot / slowShare) * (slowestWayMs - 100) : 1 + ((lot - slowShare) / (1 - slowShare)) * 29);
}

const slowShare = 0.004;

interface Call<Answer> {
  readonly site: string;
  /** As in Answered, `watch`, or podVerb. */
  readonly verb: string;
  readonly timeoutMs: number;
  /** What the caller gets when its time is over. */
  readonly timedOut: () => Error;
  /** Sends it, unless the process died before. What comes of it is told by `replied` or `failed`, both on their way for a while yet. */
  readonly send: (sending: Sending<Answer>) => void;
  /** The answer came when nobody waited any more. */
  readonly unheard?: (answer: Answer) => void;
}

export interface Sending<Answer> {
  readonly point: Point;
  readonly fault: RequestFault | undefined;
  readonly replied: (answer: Answer) => void;
  readonly failed: (error: Error) => void;
  /** To be called when it has been applied: the process may die just then, and then no answer is of use. */
  readonly hasDied: () => boolean;
}

/**
 * One call of a process, from its sending to the moment at which the process learns how it ended, with everything that can happen to the process
 * meanwhile. Never settles when the process is over before.
 */
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
    const comesIn = (outcome: string, finish: () => void, drop: () => void): void => {
      const lot = draw(life.seed, `${point.key} from`);
      life.scheduler.after(latencyMs(lot), () => (time.isAlive() ? time.take(() => settle(outcome, finish, drop)) : drop()));
    };
    call.send({
      point,
      fault,
      replied: (answer) =>
        comesIn(
          'answer',
          () => resolve(answer),
          () => call.unheard?.(answer),
        ),
      failed: (error) => comesIn('failure', () => reject(error), nothing),
      hasDied: () => !time.isAlive() || dies(fault, 'afterApply'),
    });
  });
}

type Moment = Extract<RequestFault, { readonly kind: 'crash' }>['moment'];

/** Of a request on its way to whom it is meant for. */
export function sendingLatencyMs(life: Life, point: Point): number {
  return latencyMs(draw(life.seed, `${point.key} to`));
}
