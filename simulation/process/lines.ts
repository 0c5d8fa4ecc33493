// Models the lines of one watch from the server to the process: in order, delayed, and with every fault of a watch.
import type { KubernetesStream } from '../../cluster/env.ts';
import type { WatchFault } from '../faults/fault.ts';
import { type Random, streamOf } from '../random.ts';
import type { ModelWatch, WatchSink } from '../server/request.ts';
import { type Life, latencyMs } from './life.ts';

interface LinesOptions {
  readonly life: Life;
  readonly site: string;
  /** Key of the request that opened it. */
  readonly key: string;
  /** A lagging server serves the next watch of this site. */
  readonly onReconnectToPast: (behindMs: number) => void;
  /** Servers show the state of that revision from now on for a while. */
  readonly onShowVersion: (revision: number, forMs: number) => void;
}

/** Skipped lines of one object. */
interface Hidden {
  left: number;
  readonly cancel: () => void;
}

interface Coming {
  readonly kind: 'line' | 'end';
  /** A line, or the reason for the end. */
  readonly text: string;
  readonly dueMs: number;
  /** Its fault is decided. */
  readonly isDecided: boolean;
}

/** The last line of a watch whose version is gone. */
const goneLine = JSON.stringify({
  type: 'ERROR',
  object: {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'too old resource version: 1 (2)',
    reason: 'Expired',
    code: 410,
  },
});

/** Longest wait for the next line of an object before the replaced one is delivered. */
const longestCoalesceMs = 5_000;

/** Delivers the lines of one watch in order, with the latency and the faults of its connection. */
export class Lines {
  readonly sink: WatchSink = { line: (text) => this.#enqueue('line', text), end: (reason) => this.#enqueue('end', reason) };
  readonly #options: LinesOptions;
  readonly #life: Life;
  readonly #random: Random;
  #coming: Coming[] = [];
  #lastDueMs = 0;
  #server: ModelWatch | undefined;
  #onLine: ((line: string) => void) | undefined;
  #resolveEnded: (reason: string) => void = () => undefined;
  #state: 'opening' | 'open' | 'ended' = 'opening';
  #isServed = true;
  /** A stall, or the wait for the replacing line. */
  #isBlocked = false;
  /** The connection is gone, unknown to both sides. */
  #isDead = false;
  #isPlanned = false;
  readonly #hidden = new Map<string, Hidden>();
  #awaited: { readonly object: string; readonly found: () => void } | undefined;

  constructor(options: LinesOptions) {
    this.#options = options;
    this.#life = options.life;
    this.#random = streamOf(this.#life.seed, `${options.key} lines`);
    this.#life.onEnd.add(this.#closeServer);
  }

  /** Called when the server has opened the watch. */
  opened(watch: ModelWatch): void {
    this.#server = watch;
    if (!this.#isServed) watch.close();
  }

  /** Called when the process knows that the watch is open. */
  connect(listener: (line: string) => void): KubernetesStream {
    this.#state = 'open';
    this.#life.open.watches += 1;
    this.#onLine = listener;
    const ended = new Promise<string>((resolve) => {
      this.#resolveEnded = resolve;
    });
    this.#plan();
    return {
      status: 200,
      body: '',
      ended,
      close: () => {
        this.#closeServer();
        this.#finish('closed by the client');
      },
    };
  }

  /** Called when the process will never know of the watch, or has ended. The server closes the watch. */
  abandon(): void {
    this.#closeServer();
    this.#state = 'ended';
  }

  #enqueue(kind: Coming['kind'], text: string): void {
    if (!this.#isServed || this.#isDead || this.#state === 'ended') return;
    // In the order of sending, under any network fault.
    this.#lastDueMs = Math.max(this.#lastDueMs, this.#life.scheduler.nowMs() + latencyMs(this.#random()));
    this.#coming.push({ kind, text, dueMs: this.#lastDueMs, isDecided: false });
    if (kind === 'line' && this.#awaited !== undefined && objectOf(text) === this.#awaited.object) this.#awaited.found();
    this.#plan();
  }

  #plan(): void {
    const first = this.#coming[0];
    if (first === undefined || this.#isPlanned || this.#isBlocked || this.#state !== 'open') return;
    this.#isPlanned = true;
    this.#life.scheduler.after(Math.max(0, first.dueMs - this.#life.scheduler.nowMs()), () => {
      this.#isPlanned = false;
      while (
        this.#state === 'open' &&
        !this.#isBlocked &&
        this.#coming[0] !== undefined &&
        this.#coming[0].dueMs <= this.#life.scheduler.nowMs()
      )
        this.#arrive(this.#coming.shift() as Coming);
      this.#plan();
    });
  }

  #arrive(one: Coming): void {
    const fault =
      one.kind === 'end' || one.isDecided
        ? undefined
        : this.#life.faults.ofLine(this.#life.places.next('line', this.#options.site), one.text);
    if (one.kind === 'end') this.#end(one.text);
    else if (this.#isPassedOver(one.text)) return;
    else if (fault === undefined) this.#deliver(one.text);
    else this.#suffer(fault, one);
  }

  #suffer(fault: WatchFault, one: Coming): void {
    switch (fault.kind) {
      case 'gone':
        this.#deliver(goneLine);
        this.#end('the server closed the watch');
        break;
      case 'stall':
        this.#block(one, fault.durationMs);
        break;
      case 'dead':
        this.#isBlocked = true;
        this.#isDead = true;
        this.#coming = [];
        this.#life.open.dead += 1;
        break;
      case 'duplicate':
        this.#deliver(one.text);
        this.#deliver(one.text);
        break;
      case 'coalesce':
        this.#coalesce(one);
        break;
      case 'reconnectToPast':
        this.#options.onReconnectToPast(fault.behindMs);
        this.#end('the connection was closed');
        break;
      case 'hide':
        this.#hide(one.text, fault.lines, fault.forMs);
        break;
      case 'showVersion':
        this.#deliver(one.text);
        this.#options.onShowVersion(fault.revision, fault.forMs);
        if (fault.restartAfterMs === undefined) this.#end('the connection was closed');
        else this.#life.crash(fault.restartAfterMs);
        break;
      case 'lose':
        break;
      default:
        fault satisfies never;
    }
  }

  /** Delays all lines until this one. Returns a function that continues without it. */
  #block(one: Coming, durationMs: number): () => void {
    this.#isBlocked = true;
    this.#coming.unshift({ ...one, isDecided: true });
    const goOn = (): void => {
      cancel();
      this.#isBlocked = false;
      this.#awaited = undefined;
      this.#plan();
    };
    const cancel = this.#life.holds.after(durationMs, goOn);
    return () => {
      this.#coming.shift();
      goOn();
    };
  }

  #coalesce(one: Coming): void {
    const object = objectOf(one.text);
    // The next line is under way already, so this one is dropped.
    const isReplaced = this.#coming.some(({ kind, text }) => kind === 'line' && objectOf(text) === object);
    if (object === undefined) this.#deliver(one.text);
    else if (!isReplaced) this.#awaited = { object, found: this.#block(one, longestCoalesceMs) };
  }

  #hide(text: string, lines: number, forMs: number): void {
    const object = objectOf(text);
    if (object === undefined) {
      this.#deliver(text);
      return;
    }
    const cancel = this.#life.holds.after(forMs, () => {
      this.#deliver(goneLine);
      this.#end('the server closed the watch');
    });
    this.#hidden.set(object, { left: lines - 1, cancel });
  }

  #isPassedOver(text: string): boolean {
    if (this.#hidden.size === 0) return false;
    const object = objectOf(text);
    const of = object === undefined ? undefined : this.#hidden.get(object);
    if (object === undefined || of === undefined) return false;
    if (of.left > 0) {
      of.left -= 1;
      return true;
    }
    of.cancel();
    this.#hidden.delete(object);
    return false;
  }

  #deliver(text: string): void {
    this.#life.time.take(() => {
      if (this.#state !== 'open') return;
      this.#life.note('line', this.#options.key, text.length);
      this.#onLine?.(text);
    });
  }

  readonly #closeServer = (): void => {
    if (!this.#isServed) return;
    this.#isServed = false;
    this.#coming = [];
    for (const { cancel } of this.#hidden.values()) cancel();
    this.#hidden.clear();
    this.#life.onEnd.delete(this.#closeServer);
    this.#server?.close();
  };

  #end(reason: string): void {
    this.#closeServer();
    this.#life.time.take(() => this.#finish(reason));
  }

  #finish(reason: string): void {
    if (this.#state !== 'open') return;
    this.#state = 'ended';
    this.#life.open.watches -= 1;
    if (this.#isDead) this.#life.open.dead -= 1;
    this.#life.note('ended', this.#options.key);
    this.#resolveEnded(reason);
  }
}

/** Returns the object of a line; undefined for a bookmark. */
function objectOf(line: string): string | undefined {
  try {
    const { type, object } = JSON.parse(line) as {
      readonly type?: unknown;
      readonly object?: { readonly metadata?: Record<string, unknown> };
    };
    const { namespace = '', name } = object?.metadata ?? {};
    return type === 'BOOKMARK' || typeof name !== 'string' ? undefined : `${String(namespace)}/${name}`;
  } catch {
    return undefined;
  }
}
