// The ports through which time, chance, the API server, pods and the log are reached. The real ones are in connection/ and in processes; tests and simulation bring their own.

export interface Clock {
  /** Wall clock in milliseconds since 1970-01-01T00:00:00Z. May jump in either direction. */
  readonly nowMs: () => number;
  /** Milliseconds since an arbitrary instant. Never goes back. */
  readonly monotonicMs: () => number;
}

export interface Timers {
  /** Calls back once, `delayMs` (0 or more) from now on the monotonic clock. The answer cancels; cancelling twice does nothing. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
}

export interface KubernetesRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query, beginning with `/`, every part already escaped. */
  readonly path: string;
  /** Content-Type of the body; `application/json` by default. */
  readonly contentType?: string;
  /** Accept header; `application/json` by default. */
  readonly accept?: string;
  /** JSON text. */
  readonly body?: string;
  /** Until the whole answer is there, waiting for a free slot included. */
  readonly timeoutMs: number;
  /** The place in the code that asks, such as `act.deletePod`: faults are injected by it, and logs name it. */
  readonly site: string;
}

export interface KubernetesResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An open watch. */
export interface KubernetesStream {
  readonly status: number;
  /** The body of an error response if status is not 200. */
  readonly body: string;
  /** Resolves with the reason when the stream ends; never rejects. */
  readonly ended: Promise<string>;
  /** Ends the stream; no line is delivered afterwards. */
  readonly close: () => void;
}

/** The API server's HTTP interface with the caller's credentials: bytes in, bytes out, no retries. */
export interface KubernetesHttp {
  /** Resolves with any answer, also 4xx and 5xx. Rejects with TransportFailure when no whole answer came. */
  readonly request: (request: KubernetesRequest) => Promise<KubernetesResponse>;
  /**
   * Opens a stream of lines and resolves when its headers are there; `timeoutMs` is the time until then. Lines are delivered in order, one call
   * each, never after `close`. Rejects with TransportFailure.
   */
  readonly stream: (request: KubernetesRequest, onLine: (line: string) => void) => Promise<KubernetesStream>;
}

export interface PodRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Built from validated parts. */
  readonly url: string;
  /** Until the whole answer is there. */
  readonly timeoutMs: number;
  /** A longer body is a failure. */
  readonly maxBodyBytes: number;
  /** The place in the code that asks. */
  readonly site: string;
}

export interface PodResponse {
  readonly status: number;
  readonly body: string;
}

/** Calls to pods. Redirects are not followed. */
export interface PodHttp {
  /** Resolves with any answer. Rejects with an Error that says what happened when no whole answer came. */
  readonly call: (request: PodRequest) => Promise<PodResponse>;
}

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Structured log: a constant message with fields. */
export interface Log {
  readonly debug: (message: string, fields?: LogFields) => void;
  readonly info: (message: string, fields?: LogFields) => void;
  readonly warn: (message: string, fields?: LogFields) => void;
  readonly error: (message: string, fields?: LogFields) => void;
}

/** Everything that the cluster layer reaches outside of itself. */
export interface ClusterEnv {
  readonly clock: Clock;
  readonly timers: Timers;
  /** A number of at least 0 and less than 1. */
  readonly random: () => number;
  readonly kubernetes: KubernetesHttp;
}

/** Resolves after `delayMs`, or at once when the signal is aborted. */
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
