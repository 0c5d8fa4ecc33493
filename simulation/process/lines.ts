// Models the connection of one watch: it delivers lines from the server to the process in order, with latency and with faults.
import type { KubernetesStream } from '../../cluster/env.ts';
import type { WatchFault } from '../faults/fault.ts';
import { field, parsed, textAt } from '../objects.ts';
import { type Random, streamOf } from '../random.ts';
import type { ModelWatch, WatchSink } from '../server/request.ts';
import { type Life, latencyMs } from './life.ts';

interface LinesOptions {
  readonly life: Life;
  /** The call site in the code of the agent that opened the watch. */
  readonly site: string;
  readonly key: string;
  /** Makes a lagging server serve the next watch of this call site. */
  readonly onReconnectToPast: (behindMs: number) => void;
  /** Makes all servers show the state of that revision for a time. */
  readonly onShowVersion: (revision: number, forMs: number) => void;
}

interface PendingLine {
  readonly kind: 'line' | 'end';
  readonly text: string;
  readonly dueMs: number;
  /** True if the fault of the line was already decided. */
  readonly isDecided: boolean;
}

/** The last line of a watch whose resource version is too old. */
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

/** The longest wait for the next line of the object, after which `coalesce` delivers the held line. */
const longestCoalesceMs = 5_000;

/** Delivers the lines of one watch in order, with the latency and the faults of its connection. */
export class Lines {
  readonly sink: WatchSink = { line: (text) => this.#enqueue('line', text), end: (reason) => this.#enqueue('end', reason) };
  readonly #options: LinesOptions;
  readonly #life: Life;
  readonly #random: Random;
  #pending: PendingLine[] = [];
  #lastDueMs = 0;
  #server: ModelWatch | undefined;
  #onLine: ((line: string) => void) | undefined;
  #resolveEnded: (reason: string) => void = () => undefined;
  #state: 'opening' | 'open' | 'ended' = 'opening';
  #isServed = true;
  /** True if the watch is stalled, is dead, or waits for the next line of an object. */
  #isBlocked = false;
  /** True if the connection is dead and neither side knows it. */
  #isDead = false;
  #isPlanned = false;
  /** The number of lines that are still to be dropped, by object. */
  readonly #hidden = new Map<string, { left: number; readonly cancel: () => void }>();
  #awaited: { readonly object: string; readonly found: () => void } | undefined;

  constructor(options: LinesOptions) {
    this.#options = options;
    this.#life = options.life;
    this.#random = streamOf(this.#life.seed, `${options.key} lines`);
    this.#life.onEnd.add(this.#closeServer);
  }

  /** Stores the watch that the server has opened. */
  opened(watch: ModelWatch): void {
    this.#server = watch;
    if (!this.#isServed) watch.close();
  }

  /** Delivers lines from now on, because the process knows that the watch is open. */
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
      headers: {},
      body: '',
      ended,
      close: () => {
        this.#closeServer();
        this.#finish('closed by the client');
      },
    };
  }

  /** Closes the watch at the server, because the process ended or will never learn that the watch is open. */
  abandon(): void {
    this.#closeServer();
    this.#state = 'ended';
  }

  #enqueue(kind: PendingLine['kind'], text: string): void {
    if (!this.#isServed || this.#isDead || this.#state === 'ended') return;
    // Lines arrive in the order of sending, because a watch is one TCP stream.
    this.#lastDueMs = Math.max(this.#lastDueMs, this.#life.scheduler.nowMs() + latencyMs(this.#random()));
    this.#pending.push({ kind, text, dueMs: this.#lastDueMs, isDecided: false });
    if (kind === 'line' && this.#awaited !== undefined && objectOf(text) === this.#awaited.object) this.#awaited.found();
    this.#plan();
  }

  #plan(): void {
    const first = this.#pending[0];
    if (first === undefined || this.#isPlanned || this.#isBlocked || this.#state !== 'open') return;
    this.#isPlanned = true;
    this.#life.scheduler.after(Math.max(0, first.dueMs - this.#life.scheduler.nowMs()), () => {
      this.#isPlanned = false;
      while (
        this.#state === 'open' &&
        !this.#isBlocked &&
        this.#pending[0] !== undefined &&
        this.#pending[0].dueMs <= this.#life.scheduler.nowMs()
      )
        this.#arrive(this.#pending.shift() as PendingLine);
      this.#plan();
    });
  }

  #arrive(one: PendingLine): void {
    const fault =
      one.kind === 'end' || one.isDecided
        ? undefined
        : this.#life.faults.ofLine(this.#life.places.next('line', this.#options.site), one.text);
    if (one.kind === 'end') this.#end(one.text);
    else if (this.#isHidden(one.text)) return;
    else if (fault === undefined) this.#deliver(one.text);
    else this.#applyFault(fault, one);
  }

  #applyFault(fault: WatchFault, one: PendingLine): void {
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
        this.#pending = [];
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

  /** Holds this line and all later lines. Returns a function that drops this line and continues. */
  #block(one: PendingLine, durationMs: number): () => void {
    this.#isBlocked = true;
    this.#pending.unshift({ ...one, isDecided: true });
    const goOn = (): void => {
      cancel();
      this.#isBlocked = false;
      this.#awaited = undefined;
      this.#plan();
    };
    const cancel = this.#life.holds.after(durationMs, goOn);
    return () => {
      this.#pending.shift();
      goOn();
    };
  }

  #coalesce(one: PendingLine): void {
    const object = objectOf(one.text);
    // If the next line of the object is already in flight, this line is dropped.
    const isReplaced = this.#pending.some(({ kind, text }) => kind === 'line' && objectOf(text) === object);
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

  #isHidden(text: string): boolean {
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
    this.#pending = [];
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
  const event = parsed(line);
  const name = textAt(event, 'object', 'metadata', 'name');
  const isObject = name !== undefined && field(event, 'type') !== 'BOOKMARK';
  return isObject ? `${textAt(event, 'object', 'metadata', 'namespace') ?? ''}/${name}` : undefined;
}
