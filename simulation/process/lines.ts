// Models the lines of one watch from the server to the process: in order, delayed, and with every fault of a watch.
import type { KubernetesStream } from '../../cluster/env.ts';
import type { WatchFault } from '../faults/fault.ts';
import { type Random, streamOf } from '../random.ts';
import type { ModelWatch, WatchSink } from '../server/request.ts';
import { goneLine } from './answers.ts';
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

export interface Lines {
  readonly sink: WatchSink;
  /** The server opened it. */
  readonly opened: (watch: ModelWatch) => void;
  /** The process knows that it is open. */
  readonly connect: (onLine: (line: string) => void) => KubernetesStream;
  /** The process will never know it, or is over: the server closes it. */
  readonly abandon: () => void;
}

interface Coming {
  readonly kind: 'line' | 'end';
  /** A line, or the reason for the end. */
  readonly text: string;
  readonly dueMs: number;
  /** Its fault is decided. */
  readonly isDecided: boolean;
}

/** Longest wait for the next line of an object before the replaced one is delivered. */
const longestCoalesceMs = 5_000;

export function createLines({ life, site, key, onReconnectToPast, onShowVersion }: LinesOptions): Lines {
  const { scheduler, time, holds } = life;
  const random: Random = streamOf(life.seed, `${key} lines`);
  let coming: Coming[] = [];
  let lastDueMs = 0;
  let server: ModelWatch | undefined;
  let onLine: ((line: string) => void) | undefined;
  let resolveEnded: (reason: string) => void = () => undefined;
  let state: 'opening' | 'open' | 'ended' = 'opening';
  let isServed = true;
  /** A stall, or the wait for the replacing line. */
  let isBlocked = false;
  /** The connection is gone, unknown to both sides. */
  let isDead = false;
  let isPlanned = false;
  const hidden = new Map<string, Hidden>();
  let awaited: { readonly object: string; readonly found: () => void } | undefined;

  const enqueue = (kind: Coming['kind'], text: string): void => {
    if (!isServed || isDead || state === 'ended') return;
    // In the order of sending, under any network fault.
    lastDueMs = Math.max(lastDueMs, scheduler.nowMs() + latencyMs(random()));
    coming.push({ kind, text, dueMs: lastDueMs, isDecided: false });
    if (kind === 'line' && awaited !== undefined && objectOf(text) === awaited.object) awaited.found();
    plan();
  };
  const plan = (): void => {
    const first = coming[0];
    if (first === undefined || isPlanned || isBlocked || state !== 'open') return;
    isPlanned = true;
    scheduler.after(Math.max(0, first.dueMs - scheduler.nowMs()), () => {
      isPlanned = false;
      while (state === 'open' && !isBlocked && coming[0] !== undefined && coming[0].dueMs <= scheduler.nowMs())
        arrive(coming.shift() as Coming);
      plan();
    });
  };
  const arrive = (one: Coming): void => {
    const fault = one.kind === 'end' || one.isDecided ? undefined : life.faults.ofLine(life.places.next('line', site), one.text);
    if (one.kind === 'end') end(one.text);
    else if (isPassedOver(one.text)) return;
    else if (fault === undefined) deliver(one.text);
    else suffer(fault, one);
  };
  const suffer = (fault: WatchFault, one: Coming): void => {
    switch (fault.kind) {
      case 'gone':
        deliver(goneLine);
        end('the server closed the watch');
        break;
      case 'stall':
        block(one, fault.durationMs);
        break;
      case 'dead':
        isBlocked = true;
        isDead = true;
        coming = [];
        life.open.dead += 1;
        break;
      case 'duplicate':
        deliver(one.text);
        deliver(one.text);
        break;
      case 'coalesce':
        coalesce(one);
        break;
      case 'reconnectToPast':
        onReconnectToPast(fault.behindMs);
        end('the connection was closed');
        break;
      case 'hide':
        hide(one.text, fault.lines, fault.forMs);
        break;
      case 'showVersion':
        deliver(one.text);
        onShowVersion(fault.revision, fault.forMs);
        if (fault.restartAfterMs === undefined) end('the connection was closed');
        else life.crash(fault.restartAfterMs);
        break;
      case 'lose':
        break;
      default:
        fault satisfies never;
    }
  };
  /** Delays all lines until this one. Returns a function that continues without it. */
  const block = (one: Coming, durationMs: number): (() => void) => {
    isBlocked = true;
    coming.unshift({ ...one, isDecided: true });
    const goOn = (): void => {
      cancel();
      isBlocked = false;
      awaited = undefined;
      plan();
    };
    const cancel = holds.after(durationMs, goOn);
    return () => {
      coming.shift();
      goOn();
    };
  };
  const coalesce = (one: Coming): void => {
    const object = objectOf(one.text);
    // The next line is under way already, so this one is dropped.
    const isReplaced = coming.some(({ kind, text }) => kind === 'line' && objectOf(text) === object);
    if (object === undefined) deliver(one.text);
    else if (!isReplaced) awaited = { object, found: block(one, longestCoalesceMs) };
  };
  const hide = (text: string, lines: number, forMs: number): void => {
    const object = objectOf(text);
    if (object === undefined) {
      deliver(text);
      return;
    }
    const cancel = holds.after(forMs, () => {
      deliver(goneLine);
      end('the server closed the watch');
    });
    hidden.set(object, { left: lines - 1, cancel });
  };
  const isPassedOver = (text: string): boolean => {
    if (hidden.size === 0) return false;
    const object = objectOf(text);
    const of = object === undefined ? undefined : hidden.get(object);
    if (object === undefined || of === undefined) return false;
    if (of.left > 0) {
      of.left -= 1;
      return true;
    }
    of.cancel();
    hidden.delete(object);
    return false;
  };
  const deliver = (text: string): void =>
    time.take(() => {
      if (state !== 'open') return;
      life.note('line', key, text.length);
      onLine?.(text);
    });
  const closeServer = (): void => {
    if (!isServed) return;
    isServed = false;
    coming = [];
    for (const { cancel } of hidden.values()) cancel();
    hidden.clear();
    life.onEnd.delete(closeServer);
    server?.close();
  };
  const end = (reason: string): void => {
    closeServer();
    time.take(() => finish(reason));
  };
  const finish = (reason: string): void => {
    if (state !== 'open') return;
    state = 'ended';
    life.open.watches -= 1;
    if (isDead) life.open.dead -= 1;
    life.note('ended', key);
    resolveEnded(reason);
  };
  life.onEnd.add(closeServer);

  return {
    sink: { line: (text) => enqueue('line', text), end: (reason) => enqueue('end', reason) },
    opened: (watch) => {
      server = watch;
      if (!isServed) watch.close();
    },
    connect: (listener) => {
      state = 'open';
      life.open.watches += 1;
      onLine = listener;
      const ended = new Promise<string>((resolve) => {
        resolveEnded = resolve;
      });
      plan();
      return {
        status: 200,
        body: '',
        ended,
        close: () => {
          closeServer();
          finish('closed by the client');
        },
      };
    },
    abandon: () => {
      closeServer();
      state = 'ended';
    },
  };
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
