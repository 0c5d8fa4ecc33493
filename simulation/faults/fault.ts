// Defines the faults that a simulation can inject: each kind with its parameters, and the places of injection.
import * as z from 'zod';

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
  'F19',
  'F20',
  'F21',
  'F22',
  'F23',
  'F24',
  'F25',
] as const;
export type FaultClass = (typeof faultClasses)[number];

export type Data<Schema extends z.ZodType> = Immutable<z.infer<Schema>>;

type Immutable<Value> = Value extends object ? { readonly [Key in keyof Value]: Immutable<Value[Key]> } : Value;

/** A whole number of milliseconds. */
export const ms: z.ZodNumber = z.number().int().min(0);

/** The wrong answers of an API server. */
export const wrongAnswers = [429, 500, 502, 503, 504, 'malformed', 'truncated', 'tls'] as const;

const requestFault = z.discriminatedUnion('kind', [
  /** The request never arrives. The connection is refused at once, or, if `isSilent`, no answer comes until the timeout. */
  z.strictObject({ class: z.literal('F1'), kind: z.literal('lost'), isSilent: z.boolean() }),
  z.strictObject({ class: z.literal('F2'), kind: z.literal('replyLost'), isSilent: z.boolean() }),
  /** The request is applied after a delay, even if the sender no longer waits or has crashed. */
  z.strictObject({ class: z.literal('F3'), kind: z.literal('held'), delayMs: ms }),
  /** Another writer changes the object just before the request arrives. */
  z.strictObject({ class: z.literal('F4'), kind: z.literal('foreignWrite') }),
  /** An error answer. If `isApplied`, the request was applied nevertheless (never with 429). */
  z.strictObject({
    class: z.literal('F5'),
    kind: z.literal('answer'),
    what: z.literal(wrongAnswers),
    isApplied: z.boolean(),
    retryAfterSeconds: z.number().min(0).exactOptional(),
  }),
  /** The continue token of a list expired, or the API server does not have the requested resource version yet. */
  z.strictObject({ class: z.literal('F6'), kind: z.enum(['expired', 'tooLarge']) }),
  /** The API server denies the request: the token expired (401), or the right was revoked (403). */
  z.strictObject({ class: z.literal('F25'), kind: z.literal('denied'), status: z.literal([401, 403]) }),
  /** The process crashes at this moment, and a new process starts. */
  z.strictObject({
    class: z.literal('F11'),
    kind: z.literal('crash'),
    moment: z.enum(['beforeSend', 'afterApply', 'afterReply']),
    restartAfterMs: ms,
  }),
  /** The process is suspended before it reads the answer. */
  z.strictObject({ class: z.literal('F12'), kind: z.literal('pause'), durationMs: ms }),
]);

const watchFault = z.discriminatedUnion('kind', [
  z.strictObject({ class: z.literal('F6'), kind: z.literal('gone') }),
  /** The watch delivers nothing for `durationMs`, without an error, and then all held lines. */
  z.strictObject({ class: z.literal('F7'), kind: z.literal('stall'), durationMs: ms }),
  /** The watch delivers nothing, without an error and also after faults end, until the process closes the connection. */
  z.strictObject({ class: z.literal('F7'), kind: z.literal('dead') }),
  z.strictObject({ class: z.literal('F8'), kind: z.literal('duplicate') }),
  /** The next line of the same object replaces this one. */
  z.strictObject({ class: z.literal('F8'), kind: z.literal('coalesce') }),
  /** The stream ends, and a server that shows no new state for `behindMs` serves the next stream. */
  z.strictObject({ class: z.literal('F8'), kind: z.literal('reconnectToPast'), behindMs: ms }),
  /** Drops `lines` events of the object and delivers the next event. Without a next event within `forMs` the watch ends with 410. */
  z.strictObject({ class: z.literal('F8'), kind: z.literal('hide'), lines: z.number().int().min(1), forMs: ms }),
  /** After this event all API servers serve the older `revision` for `forMs`. The stream ends, or the process crashes and restarts. */
  z.strictObject({
    class: z.literal('F10'),
    kind: z.literal('showVersion'),
    revision: z.number().int().min(0),
    forMs: ms,
    restartAfterMs: ms.exactOptional(),
  }),
  z.strictObject({ class: z.literal('F9'), kind: z.literal('lose') }),
]);

export const podFault = z.strictObject({
  class: z.literal('F21'),
  kind: z.enum(['refuse', 'hang', 'replyLost', 'error', 'redirect', 'hugeBody', 'lie', 'noTimestamp']),
  /** The milliseconds that `lie` adds to the timestamp that the pod reports. */
  byMs: z.number().int().exactOptional(),
});

export const gateFault = z.strictObject({
  class: z.literal('F22'),
  kind: z.enum(['empty', 'nan', 'stale', 'partial', 'flip', 'unauthorized', 'hang']),
});

const at = z.string().regex(/^[a-z]\d+\/.+#\d+$/, 'expected PROCESS/SITE#N, such as a1/act.deletePod#2');

/** The schema of a fault with its place, as in plans and records. */
export const placedFault = z.discriminatedUnion('port', [
  z.strictObject({ at, port: z.literal('request'), fault: requestFault }),
  z.strictObject({ at, port: z.literal('line'), fault: watchFault }),
  z.strictObject({ at, port: z.literal('pod'), fault: podFault }),
  z.strictObject({ at, port: z.literal('gate'), fault: gateFault }),
]);

export type RequestFault = Data<typeof requestFault>;
export type WatchFault = Data<typeof watchFault>;
export type PodFault = Data<typeof podFault>;
export type GateFault = Data<typeof gateFault>;
export type PlacedFault = Data<typeof placedFault>;

/** A place for a fault. Its key `PROCESS/SITE#N` means the N-th time, from 1, that the process reaches the site. */
export interface Point {
  readonly key: string;
  readonly process: string;
  readonly site: string;
  readonly atMs: number;
}

/** A source of faults. It is called once per place. */
export interface Faults {
  /** Returns the fault of a request, or undefined. `verb` is a verb as in Answered, `watch`, or podVerb. */
  readonly ofRequest: (point: Point, verb: string) => RequestFault | undefined;
  /** Returns the fault of a watch at this place, or undefined. `line` is the line to deliver, if there is one. */
  readonly ofLine: (point: Point, line?: string) => WatchFault | undefined;
  readonly ofPodCall: (point: Point) => PodFault | undefined;
  readonly ofGate: (point: Point) => GateFault | undefined;
  /** Reports that the last fault of the class had no effect and does not count. */
  readonly missed?: (kind: FaultClass) => void;
}
