// Defines the faults that a simulation can inject: each kind with its parameters, and the places of injection.

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

/** A fault of one request of an agent. */
export type RequestFault =
  /** The request never arrives. The connection is refused at once, or, if `isSilent`, no answer comes until the timeout. */
  | { readonly class: 'F1'; readonly kind: 'lost'; readonly isSilent: boolean }
  /** The request is applied, but its answer is lost. */
  | { readonly class: 'F2'; readonly kind: 'replyLost'; readonly isSilent: boolean }
  /** The request is applied after a delay, even if the sender no longer waits or has crashed. */
  | { readonly class: 'F3'; readonly kind: 'held'; readonly delayMs: number }
  /** Another writer changes the object just before the request arrives. */
  | { readonly class: 'F4'; readonly kind: 'foreignWrite' }
  /** An error answer. If `isApplied`, the request was applied nevertheless (never with 429). */
  | {
      readonly class: 'F5';
      readonly kind: 'answer';
      readonly what: 429 | 500 | 502 | 503 | 504 | 'malformed' | 'truncated' | 'tls';
      readonly isApplied: boolean;
      readonly retryAfterSeconds?: number;
    }
  /** The continue token of a list expired, or the API server does not have the requested resource version yet. */
  | { readonly class: 'F6'; readonly kind: 'expired' | 'tooLarge' }
  /** The process crashes at this moment, and a new process starts. */
  | {
      readonly class: 'F11';
      readonly kind: 'crash';
      readonly moment: 'beforeSend' | 'afterApply' | 'afterReply';
      readonly restartAfterMs: number;
    }
  /** The process is suspended before it reads the answer. */
  | { readonly class: 'F12'; readonly kind: 'pause'; readonly durationMs: number };

/** A fault of a watch of an agent before a line is delivered. */
export type WatchFault =
  | { readonly class: 'F6'; readonly kind: 'gone' }
  /** The watch delivers nothing for `durationMs`, without an error, and then all held lines. */
  | { readonly class: 'F7'; readonly kind: 'stall'; readonly durationMs: number }
  /** The watch delivers nothing, without an error and also after faults end, until the process closes the connection. */
  | { readonly class: 'F7'; readonly kind: 'dead' }
  | { readonly class: 'F8'; readonly kind: 'duplicate' }
  /** The next line of the same object replaces this one. */
  | { readonly class: 'F8'; readonly kind: 'coalesce' }
  /** The stream ends, and a server with an older state serves the next stream. */
  | { readonly class: 'F8'; readonly kind: 'reconnectToPast'; readonly behindMs: number }
  /** Drops `lines` events of the object and delivers the next event. Without a next event within `forMs` the watch ends with 410. */
  | { readonly class: 'F8'; readonly kind: 'hide'; readonly lines: number; readonly forMs: number }
  /** After this event the API servers serve that older revision for `forMs`. The stream ends, or the process restarts with that state. */
  | {
      readonly class: 'F10';
      readonly kind: 'showVersion';
      readonly revision: number;
      readonly forMs: number;
      readonly restartAfterMs?: number;
    }
  | { readonly class: 'F9'; readonly kind: 'lose' };

/** A fault of one call to a pod. */
export type PodFault = {
  readonly class: 'F21';
  readonly kind: 'refuse' | 'hang' | 'replyLost' | 'error' | 'redirect' | 'hugeBody' | 'lie' | 'noTimestamp';
  /** The milliseconds that `lie` adds to the timestamp that the pod reports. */
  readonly byMs?: number;
};

/** A fault of one reading of a gate. */
export type GateFault = { readonly class: 'F22'; readonly kind: 'empty' | 'nan' | 'stale' | 'partial' | 'flip' | 'unauthorized' | 'hang' };

/** A place for a fault. Its key `PROCESS/SITE#N` means the N-th time, from 1, that the process reaches the site. */
export interface Point {
  readonly key: string;
  readonly process: string;
  readonly site: string;
  readonly atMs: number;
}

/** A source of faults. It is called once per place. */
export interface Faults {
  /** Returns the fault of a request, or undefined. `verb` has the values of `Answered.verb`. */
  readonly ofRequest: (point: Point, verb: string) => RequestFault | undefined;
  /** Returns the fault of a watch at this place, or undefined. `line` is the line to deliver, if there is one. */
  readonly ofLine: (point: Point, line?: string) => WatchFault | undefined;
  readonly ofPodCall: (point: Point) => PodFault | undefined;
  readonly ofGate: (point: Point) => GateFault | undefined;
  /** Reports that the last fault of the class had no effect and does not count. */
  readonly missed?: (kind: FaultClass) => void;
}

/** A fault with its place, as in plans and records. */
export type PlacedFault =
  | { readonly at: string; readonly port: 'request'; readonly fault: RequestFault }
  | { readonly at: string; readonly port: 'line'; readonly fault: WatchFault }
  | { readonly at: string; readonly port: 'pod'; readonly fault: PodFault }
  | { readonly at: string; readonly port: 'gate'; readonly fault: GateFault };
