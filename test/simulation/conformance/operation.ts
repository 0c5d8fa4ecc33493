// What a sequence of requests to an API server consists of, as plain data that any server can be given, and what comes of playing it.
import type { Json } from '../../../simulation/server/request.ts';

/**
 * One request. Its path and body may hold what is only known while it is played, in angle brackets (memory.ts): `<ns>`, `<uid pods/a>`,
 * `<rv pods/a>`, `<rv pods/a first>`, `<rv list>`, `<continue>`.
 */
export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  /** `application/json` when left out. */
  readonly contentType?: string;
  /** A text is sent as it is. */
  readonly body?: Json | string | readonly unknown[];
  /** The answer is a stream that stays open until the sequence is over. */
  readonly isWatch?: boolean;
  /** Part of every sequence of its kind: shrinking leaves it in. */
  readonly isFixed?: boolean;
}

/** Requests to one namespace, sent one after the other. */
export interface Sequence {
  /** What it is about, such as `pods`. */
  readonly theme: string;
  readonly operations: readonly Operation[];
}

/** What a server says to one request. */
export interface Reply {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A stream that is being read. */
interface OpenStream {
  /** What the server said instead of a stream, when its status is not 200. */
  readonly refusal?: Reply;
  readonly close: () => void;
}

/** A server that can be asked: the real one or the model. */
export interface Target {
  readonly ask: (request: FilledRequest) => Promise<Reply>;
  /** Resolves when the stream has begun, or was refused. */
  readonly open: (request: FilledRequest, onLine: (line: string) => void, onEnd: () => void) => Promise<OpenStream>;
  /** Resolves when the caches of the collection have seen every write that was answered, and its streams have said what they have to say. */
  readonly settle: (collection: string) => Promise<void>;
  /** Makes the namespace, with whatever it takes to create pods in it. */
  readonly prepare: (namespace: string) => Promise<void>;
}

/** A request with everything filled in. */
export interface FilledRequest {
  readonly method: Operation['method'];
  readonly path: string;
  readonly contentType?: string;
  readonly body?: string;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: unknown;
}

/** What one operation came to. */
export type Outcome =
  | { readonly kind: 'answer'; readonly status: number; readonly retryAfter?: string; readonly body: unknown }
  /** `end`: how the stream came to its end: the last object of the sequence was seen, the server closed it, or neither within the time. */
  | { readonly kind: 'stream'; readonly events: readonly WatchEvent[]; readonly end: 'whole' | 'closed' | 'timeout' };

export interface Recording {
  readonly namespace: string;
  /** One for each operation. */
  readonly outcomes: readonly Outcome[];
}
