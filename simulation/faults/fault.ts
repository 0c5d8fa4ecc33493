// Defines the faults: each kind with its parameters, and the places where it can be injected.

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

/** Faults of one request of an agent. */
export type RequestFault =
  /** The request never arrives: refused at once, or silence until the timeout. */
  | { readonly class: 'F1'; readonly kind: 'lost'; readonly isSilent: boolean }
  /** The request is applied, and its answer is lost. */
  | { readonly class: 'F2'; readonly kind: 'replyLost'; readonly isSilent: boolean }
  /** The request is delayed and applied then, even if the sender no longer waits or lives. */
  | { readonly class: 'F3'; readonly kind: 'held'; readonly delayMs: number }
  /** Another writer changes the object just before the request arrives. */
  | { readonly class: 'F4'; readonly kind: 'foreignWrite' }
  /** An invalid answer. `isApplied`: the request was carried out nevertheless (never with 429). */
  | {
      readonly class: 'F5';
      readonly kind: 'answer';
      readonly what: 429 | 500 | 502 | 503 | 504 | 'malformed' | 'truncated' | 'tls';
      readonly isApplied: boolean;
      readonly retryAfterSeconds?: number;
    }
  /** For a list: its continue token expired, or the server lags behind. */
  | { readonly class: 'F6'; readonly kind: 'expired' | 'tooLarge' }
  /** The process dies there, and a new one starts. */
  | {
      readonly class: 'F11';
      readonly kind: 'crash';
      readonly moment: 'beforeSend' | 'afterApply' | 'afterReply';
      readonly restartAfterMs: number;
    }
  /** The process stands still when it would read the answer. */
  | { readonly class: 'F12'; readonly kind: 'pause'; readonly durationMs: number };

/** Faults of a watch of an agent when a line would be delivered. */
export type WatchFault =
  | { readonly class: 'F6'; readonly kind: 'gone' }
  /** Delivers nothing, silently, for `durationMs`; then everything. */
  | { readonly class: 'F7'; readonly kind: 'stall'; readonly durationMs: number }
  /** Delivers nothing, silently and even after faults end, until the process gives up the connection. */
  | { readonly class: 'F7'; readonly kind: 'dead' }
  | { readonly class: 'F8'; readonly kind: 'duplicate' }
  /** The next line of the same object replaces this one. */
  | { readonly class: 'F8'; readonly kind: 'coalesce' }
  /** The stream ends, and a server of the past serves the next one. */
  | { readonly class: 'F8'; readonly kind: 'reconnectToPast'; readonly behindMs: number }
  /** Drops `lines` events of the object and delivers the next one; without one within `forMs` the watch ends with 410. */
  | { readonly class: 'F8'; readonly kind: 'hide'; readonly lines: number; readonly forMs: number }
  /** After this event the API servers show that revision for a while; the stream ends, or the process restarts with that state. */
  | {
      readonly class: 'F10';
      readonly kind: 'showVersion';
      readonly revision: number;
      readonly forMs: number;
      readonly restartAfterMs?: number;
    }
  | { readonly class: 'F9'; readonly kind: 'lose' };

/** Faults of one call of a pod. */
export type PodFault = {
  readonly class: 'F21';
  readonly kind: 'refuse' | 'hang' | 'replyLost' | 'error' | 'redirect' | 'hugeBody' | 'lie' | 'noTimestamp';
  /** For `lie`: added to the timestamp that the pod reports. */
  readonly byMs?: number;
};

/** Faults of one reading of a gate. */
export type GateFault = { readonly class: 'F22'; readonly kind: 'empty' | 'nan' | 'stale' | 'partial' | 'flip' | 'unauthorized' | 'hang' };

/** A place for faults, `PROCESS/SITE#N`: the N-th time, from 1, that the process reaches it, independent of other faults. */
export interface Point {
  readonly key: string;
  readonly process: string;
  readonly site: string;
  readonly atMs: number;
}

/** Decides the fault at each place. Called once per place. */
export interface Faults {
  /** `verb` as in Answered. */
  readonly ofRequest: (point: Point, verb: string) => RequestFault | undefined;
  /** `line` is the line to deliver, if needed. */
  readonly ofLine: (point: Point, line?: string) => WatchFault | undefined;
  readonly ofPodCall: (point: Point) => PodFault | undefined;
  readonly ofGate: (point: Point) => GateFault | undefined;
  /** The last fault of the class had nothing to change and does not count. */
  readonly missed?: (kind: FaultClass) => void;
}

/** A fault with its place, as in plans and records. */
export type PlacedFault =
  | { readonly at: string; readonly port: 'request'; readonly fault: RequestFault }
  | { readonly at: string; readonly port: 'line'; readonly fault: WatchFault }
  | { readonly at: string; readonly port: 'pod'; readonly fault: PodFault }
  | { readonly at: string; readonly port: 'gate'; readonly fault: GateFault };
