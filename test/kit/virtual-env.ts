// A ClusterEnv in virtual time: time advances only when a test says so, randomness has a seed, and a function plays the API server.
import type { ClusterEnv, KubernetesRequest, KubernetesResponse, KubernetesStream } from '../../cluster/env.ts';
import { TransportFailure } from '../../cluster/request/failure.ts';

/** A request as the playing function sees it. */
export interface ServedRequest extends KubernetesRequest {
  readonly isStream: boolean;
  /** The path without the query. */
  readonly pathname: string;
  readonly query: URLSearchParams;
  /** The body as parsed JSON; undefined without one. */
  readonly json: unknown;
  /** Time of the request on the virtual monotonic clock. */
  readonly sentAtMs: number;
}

export type Served =
  | {
      readonly status: number;
      /** The response body: text as it is, other values as JSON. Default: `{}`. */
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
      /** Delay of the response. Its content is the current state, not the state after the delay. */
      readonly delayMs?: number;
    }
  /** No response: at once, after `delayMs`, or (`forever`) not before the caller's timeout. */
  | { readonly lost: 'before-apply' | 'reply'; readonly delayMs?: number; readonly forever?: boolean }
  /** A watch opens after `delayMs`. Lines are sent through it. */
  | { readonly watch: VirtualWatch; readonly delayMs?: number };

/** Plays the server. If it waits with `env.timers` before it reads its state, the request takes effect late. */
export type Serve = (request: ServedRequest) => Served | Promise<Served>;

/** The server side of a watch. */
export class VirtualWatch {
  readonly #waiting: string[] = [];
  #deliver: ((line: string) => void) | undefined;
  #end: ((reason: string) => void) | undefined;
  #endedBy: string | undefined;
  readonly #listeners: (() => void)[] = [];

  get isOpen(): boolean {
    return this.#endedBy === undefined;
  }

  /** Sends one line: text as it is, other values as JSON. */
  send(line: unknown): void {
    const text = typeof line === 'string' ? line : JSON.stringify(line);
    if (!this.isOpen) return;
    if (this.#deliver === undefined) this.#waiting.push(text);
    else this.#deliver(text);
  }

  added(object: unknown): void {
    this.send({ type: 'ADDED', object });
  }

  modified(object: unknown): void {
    this.send({ type: 'MODIFIED', object });
  }

  deleted(object: unknown): void {
    this.send({ type: 'DELETED', object });
  }

  bookmark(resourceVersion: string): void {
    this.send({ type: 'BOOKMARK', object: { metadata: { resourceVersion } } });
  }

  /** Ends the stream, as the server or the network does. */
  end(reason = 'the server closed the watch'): void {
    if (this.#endedBy !== undefined) return;
    this.#endedBy = reason;
    this.#end?.(reason);
    for (const listener of this.#listeners.splice(0)) listener();
  }

  /** Calls back once when the stream ends, on either side. */
  onOver(listener: () => void): void {
    if (this.isOpen) this.#listeners.push(listener);
    else listener();
  }

  /** Used by the virtual transport only. */
  connect(onLine: (line: string) => void): KubernetesStream {
    const ended = new Promise<string>((resolve) => {
      if (this.#endedBy === undefined) this.#end = resolve;
      else resolve(this.#endedBy);
    });
    this.#deliver = onLine;
    for (const line of this.#waiting.splice(0)) onLine(line);
    return { status: 200, headers: {}, body: '', ended, close: () => this.end('closed by the client') };
  }
}

interface VirtualEnvOptions {
  /** Seed; default: 1. */
  readonly seed?: number;
  /** Wall clock at the start in milliseconds since 1970; default: 2026-01-15T12:00:00Z. */
  readonly startMs?: number;
  /** Answers every request; default: 404. */
  readonly serve?: Serve;
}

export interface VirtualEnv extends ClusterEnv {
  /** Advances the time: calls every due timer in order, and completes its consequences before the next. */
  readonly advance: (durationMs: number) => Promise<void>;
  /** Advances from timer to timer until the condition is met. Rejects after `withinMs` (default: 10 minutes), or if no timer is left. */
  readonly until: (isSo: () => boolean, withinMs?: number) => Promise<void>;
  /** Completes all work that needs no time. */
  readonly settle: () => Promise<void>;
  /** Completes `work`, and advances the time while it waits. */
  readonly finish: <Value>(work: Promise<Value>, withinMs?: number) => Promise<Value>;
  /** Sets the wall clock. The monotonic clock is unchanged. */
  readonly jumpWallClock: (byMs: number) => void;
  /** Suspends the process: the clocks advance, but due timers are called only afterwards. */
  readonly stall: (durationMs: number) => Promise<void>;
  readonly replaceServer: (serve: Serve) => void;
  /** All requests so far, including those that got lost. */
  readonly requests: readonly ServedRequest[];
  readonly timerCount: () => number;
  readonly openRequestCount: () => number;
  readonly openWatchCount: () => number;
}

interface Timer {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Resolution of the clocks, as for `performance.now()`. */
const clockStepMs = 0.001;

/** Returns numbers in [0, 1), the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Number of timers between two turns of the real event loop. */
const firedPerTurn = 64;

export function virtualEnv(options: VirtualEnvOptions = {}): VirtualEnv {
  const { seed = 1, startMs = Date.UTC(2026, 0, 15, 12), serve = () => ({ status: 404 }) } = options;
  let monotonicMs = 1_000_000;
  let wallMinusMonotonicMs = startMs - monotonicMs;
  let order = 0;
  let fired = 0;
  const pending = new Set<Timer>();

  const after = (delayMs: number, callback: () => void): (() => void) => {
    // A very short delay must not be lost in rounding: a caller that waits for the rest of a duration would never advance.
    const dueMs = monotonicMs + (delayMs > 0 ? Math.max(delayMs, clockStepMs) : 0);
    const timer = { dueMs, order: order++, callback };
    pending.add(timer);
    return () => pending.delete(timer);
  };
  const next = (): Timer | undefined => {
    let first: Timer | undefined;
    for (const timer of pending) {
      if (first === undefined || timer.dueMs < first.dueMs || (timer.dueMs === first.dueMs && timer.order < first.order)) first = timer;
    }
    return first;
  };
  // All work here is promises, so one turn of the real event loop completes it.
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const fire = async (timer: Timer): Promise<void> => {
    pending.delete(timer);
    monotonicMs = Math.max(monotonicMs, timer.dueMs);
    timer.callback();
    fired += 1;
    // A next tick runs after all settled promises and costs far less; some turns of the event loop let real work finish.
    await (fired % firedPerTurn === 0 ? settle() : new Promise<void>((resolve) => process.nextTick(resolve)));
  };
  const advance = async (durationMs: number): Promise<void> => {
    const endMs = monotonicMs + durationMs;
    await settle();
    for (let timer = next(); timer !== undefined && timer.dueMs <= endMs; timer = next()) await fire(timer);
    monotonicMs = Math.max(monotonicMs, endMs);
  };
  const until = async (isSo: () => boolean, withinMs = 600_000): Promise<void> => {
    const endMs = monotonicMs + withinMs;
    await settle();
    while (!isSo()) {
      const timer = next();
      if (timer === undefined) throw new Error('it never becomes so: no timer is left');
      if (timer.dueMs > endMs) throw new Error(`it did not become so within ${withinMs} ms`);
      await fire(timer);
    }
  };
  const finish = async <Value>(work: Promise<Value>, withinMs?: number): Promise<Value> => {
    let isOver = false;
    const over = (): void => {
      isOver = true;
    };
    work.then(over, over);
    await until(() => isOver, withinMs);
    return work;
  };

  const server = virtualServer(serve, () => monotonicMs, after);
  return {
    clock: { nowMs: () => monotonicMs + wallMinusMonotonicMs, monotonicMs: () => monotonicMs },
    timers: { after },
    random: seededRandom(seed),
    kubernetes: { request: server.request, stream: server.stream },
    advance,
    until,
    settle,
    finish,
    jumpWallClock: (byMs) => {
      wallMinusMonotonicMs += byMs;
    },
    stall: async (durationMs) => {
      monotonicMs += durationMs;
      await advance(0);
    },
    replaceServer: server.replace,
    requests: server.requests,
    timerCount: () => pending.size,
    openRequestCount: () => server.open.requests,
    openWatchCount: () => server.open.watches,
  };
}

function virtualServer(first: Serve, nowMs: () => number, after: (delayMs: number, callback: () => void) => () => void) {
  let serve = first;
  const requests: ServedRequest[] = [];
  const open = { requests: 0, watches: 0 };

  /** Returns the response of the function, or a failure if the caller's timeout ends first. */
  const ask = (request: KubernetesRequest, isStream: boolean): Promise<Served> => {
    const [pathname = '', query = ''] = request.path.split('?');
    const served: ServedRequest = {
      ...request,
      isStream,
      pathname,
      sentAtMs: nowMs(),
      // Parsed only on access, because most servers parse the body themselves.
      get query(): URLSearchParams {
        return new URLSearchParams(query);
      },
      get json(): unknown {
        return request.body === undefined ? undefined : JSON.parse(request.body);
      },
    };
    requests.push(served);
    open.requests++;
    return new Promise<Served>((resolve, reject) => {
      const fail = (message: string, mayBeApplied: boolean) => reject(new TransportFailure(message, { site: request.site, mayBeApplied }));
      const cancel = after(request.timeoutMs, () => fail(`no answer within ${request.timeoutMs} ms`, true));
      const arrive = (answer: Served): void => {
        const isLost = 'lost' in answer;
        if (isLost && answer.forever) return;
        const finish = (): void => {
          cancel();
          if (isLost) fail('the connection was reset', answer.lost === 'reply');
          else resolve(answer);
        };
        if (answer.delayMs === undefined) finish();
        else if (answer.delayMs < request.timeoutMs) after(answer.delayMs, finish);
      };
      Promise.resolve()
        .then(() => serve(served))
        .then(arrive)
        .catch((error: unknown) => {
          cancel();
          reject(error);
        });
    }).finally(() => {
      open.requests--;
    });
  };

  return {
    requests,
    open,
    replace: (another: Serve) => {
      serve = another;
    },
    request: async (request: KubernetesRequest): Promise<KubernetesResponse> => {
      const answer = await ask(request, false);
      if (!('status' in answer)) throw new Error(`${request.path} was answered with a watch`);
      return { status: answer.status, headers: answer.headers ?? {}, body: textOf(answer.body) };
    },
    stream: async (request: KubernetesRequest, onLine: (line: string) => void): Promise<KubernetesStream> => {
      const answer = await ask(request, true);
      if ('status' in answer) {
        const response = { status: answer.status, headers: answer.headers ?? {}, body: textOf(answer.body) };
        return { ...response, ended: Promise.resolve('refused'), close: () => undefined };
      }
      if (!('watch' in answer)) throw new Error('a lost answer arrived');
      open.watches++;
      answer.watch.onOver(() => {
        open.watches--;
      });
      return answer.watch.connect(onLine);
    },
  };
}

function textOf(body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body ?? {});
}

/** Returns an error response with a Status, like the API server. */
export function status(code: number, reason: string, message = reason, details: Readonly<Record<string, unknown>> = {}): Served {
  return { status: code, body: { apiVersion: 'v1', kind: 'Status', status: 'Failure', code, reason, message, details } };
}

/** Returns a response with a whole list or one page of it. */
export function list(kind: string, resourceVersion: string, items: readonly unknown[], next = ''): Served {
  return {
    status: 200,
    body: { apiVersion: 'v1', kind, metadata: { resourceVersion, ...(next === '' ? {} : { continue: next }) }, items },
  };
}
