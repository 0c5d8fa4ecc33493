// Defines the ports to time, randomness, the API server, pods and the log. Tests and the simulation replace their implementations.

export interface Clock {
  /** Returns the wall clock in milliseconds since 1970-01-01T00:00:00Z, which may jump in either direction. */
  readonly nowMs: () => number;
  /** Returns the milliseconds since an arbitrary time. They never decrease. */
  readonly monotonicMs: () => number;
}

export interface Timers {
  /** Calls `callback` once after `delayMs` (0 or more, monotonic clock). Returns a function that cancels the call if it is pending. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
}

export interface KubernetesRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The escaped path and query. Starts with `/`. */
  readonly path: string;
  /** The Content-Type of the body; default `application/json`. */
  readonly contentType?: string;
  /** The Accept header; default `application/json`. */
  readonly accept?: string;
  readonly body?: string;
  /** The time until the complete answer, including the wait for the rate limiter. */
  readonly timeoutMs: number;
  /** The call site, such as `act.deletePod`, for logs and for injected faults. */
  readonly site: string;
}

export interface KubernetesResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The body and the headers are those of an error response if the status is not 200. */
export interface KubernetesStream extends KubernetesResponse {
  /** Resolves with the reason when the stream ends; never rejects. */
  readonly ended: Promise<string>;
  /** Ends the stream; no line is delivered afterwards. */
  readonly close: () => void;
}

/** The HTTP interface of the API server with the caller's credentials. It never repeats a write. */
export interface KubernetesHttp {
  /** Resolves with any answer, also 4xx and 5xx. Rejects with TransportFailure if no complete answer arrives. */
  readonly request: (request: KubernetesRequest) => Promise<KubernetesResponse>;
  /** Opens a stream. Resolves when the headers arrive; rejects with TransportFailure if they are late or missing. Passes lines in order. */
  readonly stream: (request: KubernetesRequest, onLine: (line: string) => void) => Promise<KubernetesStream>;
}

export interface PodRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** The address, built from validated parts. */
  readonly url: string;
  readonly timeoutMs: number;
  /** A longer body is a failure. */
  readonly maxBodyBytes: number;
  readonly site: string;
}

export interface PodResponse {
  readonly status: number;
  readonly body: string;
}

/** The HTTP interface of pods. It follows no redirects. */
export interface PodHttp {
  /** Resolves with any answer. If no complete answer arrives, it rejects with an Error that names the problem. */
  readonly call: (request: PodRequest) => Promise<PodResponse>;
}

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** The log. Its messages are constant; variable values are fields. */
export interface Log {
  readonly debug: (message: string, fields?: LogFields) => void;
  readonly info: (message: string, fields?: LogFields) => void;
  readonly warn: (message: string, fields?: LogFields) => void;
  readonly error: (message: string, fields?: LogFields) => void;
}

/** The ports that cluster/ uses. */
export interface ClusterEnv {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Returns a number of at least 0 and less than 1. */
  readonly random: () => number;
  readonly kubernetes: KubernetesHttp;
}

/** Resolves when the work has ended, or after `limitMs`. Rejects if the work rejects within this time. */
export async function within(env: Pick<ClusterEnv, 'timers'>, limitMs: number, work: Promise<unknown>): Promise<void> {
  const timeout = new AbortController();
  try {
    await Promise.race([work, sleep(env, limitMs, timeout.signal)]);
  } finally {
    timeout.abort();
  }
}

/** Resolves after `delayMs`, or when the signal is aborted. */
export async function sleep({ timers }: Pick<ClusterEnv, 'timers'>, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const finish = (): void => {
      cancel();
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const cancel = timers.after(delayMs, finish);
    signal?.addEventListener('abort', finish, { once: true });
  });
}
