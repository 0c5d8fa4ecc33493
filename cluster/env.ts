// Defines the ports to time, randomness, the API server, pods and the log. Tests and the simulation replace the real ones.

export interface Clock {
  /** Wall clock in milliseconds since 1970-01-01T00:00:00Z. May jump in either direction. */
  readonly nowMs: () => number;
  /** Milliseconds since an arbitrary instant. Never goes back. */
  readonly monotonicMs: () => number;
}

export interface Timers {
  /** Calls back once after `delayMs` (0 or more) on the monotonic clock. Returns a function that cancels it, also repeatedly. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
}

export interface KubernetesRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query, escaped, with the first `/`. */
  readonly path: string;
  /** Content-Type of the body; `application/json` by default. */
  readonly contentType?: string;
  /** Accept header; `application/json` by default. */
  readonly accept?: string;
  /** JSON text. */
  readonly body?: string;
  /** Time until the complete answer, including the wait for the rate limiter. */
  readonly timeoutMs: number;
  /** The place in the code, such as `act.deletePod`, for logs and for injected faults. */
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

/** The HTTP interface of the API server with the caller's credentials, without retries. */
export interface KubernetesHttp {
  /** Resolves with any answer, also 4xx and 5xx. Rejects with TransportFailure without a complete answer. */
  readonly request: (request: KubernetesRequest) => Promise<KubernetesResponse>;
  /** Opens a stream and resolves after its headers, within `timeoutMs`. Delivers lines in order until `close`. Rejects with TransportFailure. */
  readonly stream: (request: KubernetesRequest, onLine: (line: string) => void) => Promise<KubernetesStream>;
}

export interface PodRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Built from validated parts. */
  readonly url: string;
  /** Time until the complete answer. */
  readonly timeoutMs: number;
  /** A longer body is a failure. */
  readonly maxBodyBytes: number;
  /** The place in the code. */
  readonly site: string;
}

export interface PodResponse {
  readonly status: number;
  readonly body: string;
}

/** Calls to pods. Redirects are not followed. */
export interface PodHttp {
  /** Resolves with any answer. Rejects with an Error that names the problem without a complete answer. */
  readonly call: (request: PodRequest) => Promise<PodResponse>;
}

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Writes constant messages with fields. */
export interface Log {
  readonly debug: (message: string, fields?: LogFields) => void;
  readonly info: (message: string, fields?: LogFields) => void;
  readonly warn: (message: string, fields?: LogFields) => void;
  readonly error: (message: string, fields?: LogFields) => void;
}

/** Everything outside of the cluster layer. */
export interface ClusterEnv {
  readonly clock: Clock;
  readonly timers: Timers;
  /** A number of at least 0 and less than 1. */
  readonly random: () => number;
  readonly kubernetes: KubernetesHttp;
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
