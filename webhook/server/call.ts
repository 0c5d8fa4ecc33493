// How long a request may take, and how its handler learns that nobody waits for it any more.
import type { ServerResponse } from 'node:http';
import type { Clock, Timers } from '../../cluster/env.ts';
import { clientGone } from '../review/decide.ts';
import type { Call } from '../review/review.ts';

/** Beyond what API servers take as `timeoutSeconds` (30), a `?timeout=` is not theirs. */
const longestTimeoutSeconds = 30;

interface AllowedTime {
  /** Nine tenths of `-server-tls.request-timeout`. */
  readonly configuredMs: number;
  /** What the endpoint itself asks to be done within. */
  readonly endpointMs?: number;
}

/**
 * Milliseconds from the start of a request to its deadline. API servers say in the query for how long they wait (`?timeout=10s`): the answer is to be
 * there one second earlier, or after four fifths of a time so short that a second would be too much of it.
 */
export function allowedMs(url: string, { configuredMs, endpointMs = configuredMs }: AllowedTime): number {
  const seconds = Number(/[?&]timeout=(\d{1,3})s(?:&|$)/.exec(url)?.[1] ?? Number.NaN);
  const isSaid = seconds > 0 && seconds <= longestTimeoutSeconds;
  const clientMs = isSaid ? seconds * 1000 - Math.min(1000, seconds * 200) : configuredMs;
  return Math.min(configuredMs, endpointMs, clientMs);
}

export interface RunningCall extends Call {
  /** Ends the timer and no longer listens to the client; the signal then stays as it is. */
  readonly end: () => void;
}

/** A call that is aborted after `forMs`, and when the connection closes before the answer is out. */
export function startCall(
  { clock, timers }: { readonly clock: Pick<Clock, 'monotonicMs'>; readonly timers: Timers },
  response: ServerResponse,
  forMs: number,
): RunningCall {
  const controller = new AbortController();
  const gone = (): void => controller.abort(clientGone);
  response.once('close', gone);
  const cancel = timers.after(forMs, () => controller.abort('the deadline has passed'));
  return {
    deadlineMs: clock.monotonicMs() + forMs,
    signal: controller.signal,
    end: () => {
      cancel();
      response.off('close', gone);
    },
  };
}
