// Computes the deadline of a request, and tells the handler when no client waits any more.
import type { ServerResponse } from 'node:http';
import type { Clock, Timers } from '../../cluster/env.ts';
import { clientGone } from '../review/decide.ts';
import type { Call } from '../review/review.ts';

/** API servers use `timeoutSeconds` up to 30; a longer `?timeout=` is not theirs. */
const longestTimeoutSeconds = 30;

interface AllowedTime {
  /** Nine tenths of `-server-tls.request-timeout`. */
  readonly configuredMs: number;
  /** The limit of the endpoint itself. */
  readonly endpointMs?: number;
}

/**
 * Returns the milliseconds from the start of a request to its deadline. API servers send their timeout in the query (`?timeout=10s`): the
 * answer is due one second earlier, or after four fifths of a short timeout.
 */
export function allowedMs(url: string, { configuredMs, endpointMs = configuredMs }: AllowedTime): number {
  const seconds = Number(/[?&]timeout=(\d{1,3})s(?:&|$)/.exec(url)?.[1] ?? Number.NaN);
  const isSaid = seconds > 0 && seconds <= longestTimeoutSeconds;
  const clientMs = isSaid ? seconds * 1000 - Math.min(1000, seconds * 200) : configuredMs;
  return Math.min(configuredMs, endpointMs, clientMs);
}

export interface RunningCall extends Call {
  /** Stops the timer and the listener; the signal keeps its state. */
  readonly end: () => void;
}

/** Starts a call that is aborted after `forMs`, and if the connection closes before the answer is sent. */
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
