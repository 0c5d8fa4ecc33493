// What can go wrong in a run: each kind of fault with its parameters, and the places where it can be injected.

/** The classes of the fault catalogue (docs/simulation.md). */
export const faultClasses = [
  'F1',
  'F2',
  'F3',
  'F4',
  'F5',
  'F6',
  'F7',
  'F8',
  'F9',
  'F10',
  'F11',
  'F12',
  'F13',
  'F14',
  'F15',
  'F16',
  'F17',
  'F18',
  'F20',
  'F21',
  'F22',
] as const;
export type FaultClass = (typeof faultClasses)[number];

/** What happens to one request of an agent. */
export type RequestFault =
  /** It never arrives: refused at once, or silence until the caller's time is over. */
  | { readonly class: 'F1'; readonly kind: 'lost'; readonly isSilent: boolean }
  /** It is applied, and its answer never arrives. */
  | { readonly class: 'F2'; readonly kind: 'replyLost'; readonly isSilent: boolean }
  /** It stays on the way for so long and is applied then, whether or not the sender still waits, or lives. */
  | { readonly class: 'F3'; readonly kind: 'held'; readonly delayMs: number }
  /** Somebody else changes the object just before it arrives. */
  | { readonly class: 'F4'; readonly kind: 'foreignWrite' }
  /** An answer that is none. `isApplied`: what was asked for happened all the same (never with 429). */
  | {
      readonly class: 'F5';
      readonly kind: 'answer';
      readonly what: 429 | 500 | 502 | 503 | 504 | 'malformed' | 'truncated' | 'tls';
      readonly isApplied: boolean;
      readonly retryAfterSeconds?: number;
    }
  /** Of a list: its continue token has expired, or the server has not come so far yet. */
  | { readonly class: 'F6'; readonly kind: 'expired' | 'tooLarge' }
  /** The process dies there, and another one begins in its place. */
  | {
      readonly class: 'F11';
      readonly kind: 'crash';
      readonly moment: 'beforeSend' | 'afterApply' | 'afterReply';
      readonly restartAfterMs: number;
    }
  /** The process stands still from the moment at which the answer would be taken in. */
  | { readonly class: 'F12'; readonly kind: 'pause'; readonly durationMs: number };

/** What happens to a watch of an agent when a line would be delivered. */
export type WatchFault =
  | { readonly class: 'F6'; readonly kind: 'gone' }
  /** Nothing is delivered any more, and nobody says so, until `durationMs` are over; then all of it. */
  | { readonly class: 'F7'; readonly kind: 'stall'; readonly durationMs: number }
  /** Nothing is delivered any more, and nobody says so, also when faults are over: until the process gives the connection up. */
  | { readonly class: 'F7'; readonly kind: 'dead' }
  | { readonly class: 'F8'; readonly kind: 'duplicate' }
  /** The next line for the same object replaces this one. */
  | { readonly class: 'F8'; readonly kind: 'coalesce' }
  /** The stream ends, and the next one is served by a server of the past. */
  | { readonly class: 'F8'; readonly kind: 'reconnectToPast'; readonly behindMs: number }
  /**
   * This line and those that follow for the same object are passed over, `lines` in all; the one after them is delivered. When it does not come
   * within `forMs`, the watch ends with 410, and a list tells: what is hidden is the way there, not where it leads.
   */
  | { readonly class: 'F8'; readonly kind: 'hide'; readonly lines: number; readonly forMs: number }
  /**
   * After this line the API servers show the world as of that revision, for so long: their watches, and lists of caches that begin anew. The stream
   * ends, or (`restartAfterMs`) the process dies, and another one begins in its place with the world of then.
   */
  | {
      readonly class: 'F10';
      readonly kind: 'showVersion';
      readonly revision: number;
      readonly forMs: number;
      readonly restartAfterMs?: number;
    }
  | { readonly class: 'F9'; readonly kind: 'lose' };

/** What happens to one call of a pod. */
export type PodFault = {
  readonly class: 'F21';
  readonly kind: 'refuse' | 'hang' | 'replyLost' | 'error' | 'redirect' | 'hugeBody' | 'lie' | 'noTimestamp';
  /** Of `lie`: what is added to the timestamp that the pod reports. */
  readonly byMs?: number;
};

/** What happens to one reading of a gate. */
export type GateFault = { readonly class: 'F22'; readonly kind: 'empty' | 'nan' | 'stale' | 'partial' | 'flip' | 'unauthorized' | 'hang' };

/**
 * Where a fault can be injected. Its key is `PROCESS/SITE#N`: the N-th time, from 1, that the process (`a1`: the first life of `a`) comes to
 * that place; so the same fault finds the same place again when other faults are left out.
 */
export interface Point {
  readonly key: string;
  readonly process: string;
  readonly site: string;
  readonly atMs: number;
}

/** Says what happens at each place. Asked once for each. */
export interface Faults {
  /** `verb` as in Answered. */
  readonly ofRequest: (point: Point, verb: string) => RequestFault | undefined;
  /** `line` is what would be delivered, where somebody wants to know. */
  readonly ofLine: (point: Point, line?: string) => WatchFault | undefined;
  readonly ofPodCall: (point: Point) => PodFault | undefined;
  readonly ofGate: (point: Point) => GateFault | undefined;
  /** What was injected last of the class has changed nothing, for there was nothing to change. */
  readonly missed?: (kind: FaultClass) => void;
}

/** A fault with its place: what a plan consists of, and what a run has recorded. */
export type PlacedFault =
  | { readonly at: string; readonly port: 'request'; readonly fault: RequestFault }
  | { readonly at: string; readonly port: 'line'; readonly fault: WatchFault }
  | { readonly at: string; readonly port: 'pod'; readonly fault: PodFault }
  | { readonly at: string; readonly port: 'gate'; readonly fault: GateFault };
