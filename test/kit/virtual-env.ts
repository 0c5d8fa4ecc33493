// A ClusterEnv without a real clock: time stands still until a test lets it pass, chance has a seed, and a function plays the API server.
import type { ClusterEnv, KubernetesRequest, KubernetesResponse, KubernetesStream } from '../../cluster/env.ts';
import { TransportFailure } from '../../cluster/request/failure.ts';

/** A request as the function that plays the server sees it. */
export interface ServedRequest extends KubernetesRequest {
  readonly isStream: boolean;
  /** Without the query. */
  readonly pathname: string;
  readonly query: URLSearchParams;
  /** The body as JSON; undefined without one. */
  readonly json: unknown;
  /** Virtual, on the monotonic clock. */
  readonly sentAtMs: number;
}

export type Served =
  | {
      readonly status: number;
      /** Sent as it is when it is text, as JSON otherwise; `{}` when left out. */
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
      /** Until the answer arrives. The state that it tells is that of now. */
      readonly delayMs?: number;
    }
  /** No answer comes: at once, after `delayMs`, or (`forever`) when the caller's time is over. */
  | { readonly lost: 'before-apply' | 'reply'; readonly delayMs?: number; readonly forever?: boolean }
  /** A watch is opened, after `delayMs`; lines are sent through it. */
  | { readonly watch: VirtualWatch; readonly delayMs?: number };

/** Plays the server. It may wait with `env.timers` before it looks at its state: then the request takes effect late. */
export type Serve = (request: ServedRequest) => Served | Promise<Served>;

/** The server's end of a watch. */
export class VirtualWatch {
  readonly #waiting: string[] = [];
  #deliver: ((line: string) => void) | undefined;
  #end: ((reason: string) => void) | undefined;
  #endedBy: string | undefined;
  readonly #listeners: (() => void)[] = [];

  get isOpen(): boolean {
    return this.#endedBy === undefined;
  }

  /** Sends one line: text as it is, anything else as JSON. */
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

  /** The server, or the network, ends the stream. */
  end(reason = 'the server closed the watch'): void {
    if (this.#endedBy !== undefined) return;
    this.#endedBy = reason;
    this.#end?.(reason);
    for (const listener of this.#listeners.splice(0)) listener();
  }

  /** Calls back once when the stream is over, whoever ended it. */
  onOver(listener: () => void): void {
    if (this.isOpen) this.#listeners.push(listener);
    else listener();
  }

  /** For the virtual transport only. */
  connect(onLine: (line: string) => void): KubernetesStream {
    const ended = new Promise<string>((resolve) => {
      if (this.#endedBy === undefined) this.#end = resolve;
      else resolve(this.#endedBy);
    });
    this.#deliver = onLine;
    for (const line of this.#waiting.splice(0)) onLine(line);
    return { status: 200, body: '', ended, close: () => this.end('closed by the client') };
  }
}

interface VirtualEnvOptions {
  /** 1 when left out. */
  readonly seed?: number;
  /** The wall clock at the start, in milliseconds since 1970; 2026-01-15T12:00:00Z when left out. */
  readonly startMs?: number;
  /** Answers every request; 404 to all of them when left out. */
  readonly serve?: Serve;
}

export interface VirtualEnv extends ClusterEnv {
  /** Lets that much time pass: every timer due by then is called in its turn, and what follows from each is done before the next. */
  readonly advance: (durationMs: number) => Promise<void>;
  /** Lets time pass from timer to timer until it is so. Rejects after `withinMs` (10 minutes when left out), or when no timer is left. */
  readonly until: (isSo: () => boolean, withinMs?: number) => Promise<void>;
  /** Does what can be done without time passing. */
  readonly settle: () => Promise<void>;
  /** Runs `work` to its end, letting time pass while it waits. */
  readonly finish: <Value>(work: Promise<Value>, withinMs?: number) => Promise<Value>;
  /** The wall clock is set; the monotonic one runs on. */
  readonly jumpWallClock: (byMs: number) => void;
  /** The process stands still: both clocks go on, no timer is called until it is over, and then all that are due. */
  readonly stall: (durationMs: number) => Promise<void>;
  readonly replaceServer: (serve: Serve) => void;
  /** Every request so far, also those that are lost. */
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

/** Resolution of the clocks, as of `performance.now()`. */
const clockStepMs = 0.001;

/** A number of at least 0 and less than 1 for each call, the same ones for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function virtualEnv(options: VirtualEnvOptions = {}): VirtualEnv {
  const { seed = 1, startMs = Date.UTC(2026, 0, 15, 12), serve = () => ({ status: 404 }) } = options;
  let monotonicMs = 1_000_000;
  let wallMinusMonotonicMs = startMs - monotonicMs;
  let order = 0;
  const pending = new Set<Timer>();

  const after = (delayMs: number, callback: () => void): (() => void) => {
    // A tiny delay must not vanish in rounding: a caller that waits for the rest of a duration would wait without end at one moment.
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
  // Everything here is promises: one turn of the real loop drains them all.
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const fire = async (timer: Timer): Promise<void> => {
    pending.delete(timer);
    monotonicMs = Math.max(monotonicMs, timer.dueMs);
    timer.callback();
    await settle();
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

  /** What the function says, or a failure when the caller's time is over before. */
  const ask = (request: KubernetesRequest, isStream: boolean): Promise<Served> => {
    const [pathname = '', query = ''] = request.path.split('?');
    const served: ServedRequest = {
      ...request,
      isStream,
      pathname,
      sentAtMs: nowMs(),
      // Parsed only if looked at: most servers parse for themselves.
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
        return { status: answer.status, body: textOf(answer.body), ended: Promise.resolve('refused'), close: () => undefined };
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

/** An answer with a Status, as the API server gives one for an error. */
export function status(code: number, reason: string, message = reason, details: Readonly<Record<string, unknown>> = {}): Served {
  return { status: code, body: { apiVersion: 'v1', kind: 'Status', status: 'Failure', code, reason, message, details } };
}

/** An answer with a whole list, or with a page of it. */
export function list(kind: string, resourceVersion: string, items: readonly unknown[], next = ''): Served {
  return {
    status: 200,
    body: { apiVersion: 'v1', kind, metadata: { resourceVersion, ...(next === '' ? {} : { continue: next }) }, items },
  };
}
