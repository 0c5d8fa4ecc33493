// Runs one watch for the reflector from its opening to its end, and parses its lines.

import type { ClusterEnv, KubernetesStream } from '../env.ts';
import { ApiFailure } from '../request/failure.ts';
import { isJsonObject, type JsonObject, parseJson } from '../request/json.ts';
import { named } from '../request/read.ts';
import type { KubernetesObject, Resource } from '../request/resource.ts';
import { isText } from '../request/write.ts';

interface WatchOptions<Verdict> {
  readonly env: ClusterEnv;
  readonly path: string;
  readonly site: string;
  /** The longest time until the headers of the stream arrive. */
  readonly openTimeoutMs: number;
  /** The longest silence. A dead connection may look open. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
  readonly onOpen: () => void;
  /** Runs for each line. A value other than undefined ends the watch. */
  readonly onLine: (line: string) => Verdict | undefined;
}

export type WatchEnd<Verdict> =
  /** The server, the network or the signal ended the watch. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'stalled' }
  /** The watch did not open. The error is an ApiFailure or a TransportFailure. */
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'verdict'; readonly verdict: Verdict };

/** Resolves after the end of the watch. Never rejects. */
export async function watchOnce<Verdict>(options: WatchOptions<Verdict>): Promise<WatchEnd<Verdict>> {
  const { env, signal } = options;
  let end: WatchEnd<Verdict> | undefined;
  let conclude: () => void = () => undefined;
  const concluded = new Promise<void>((resolve) => {
    conclude = resolve;
  });
  const finish = (reason: WatchEnd<Verdict>): void => {
    end ??= reason;
    conclude();
  };
  const abort = (): void => finish({ kind: 'closed' });
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();

  let heardMs = env.clock.monotonicMs();
  let cancelIdle: () => void = () => undefined;
  // One timer checks the time of the last line, instead of one timer per line.
  const watchIdle = (delayMs: number): void => {
    cancelIdle = env.timers.after(delayMs, () => {
      const silentMs = env.clock.monotonicMs() - heardMs;
      if (silentMs >= options.idleMs) finish({ kind: 'stalled' });
      else watchIdle(options.idleMs - silentMs);
    });
  };
  const onLine = (line: string): void => {
    if (end !== undefined || signal.aborted) return;
    heardMs = env.clock.monotonicMs();
    const verdict = options.onLine(line);
    if (verdict !== undefined) finish({ kind: 'verdict', verdict });
  };

  const open = async (): Promise<KubernetesStream | undefined> => {
    const { path, site, openTimeoutMs: timeoutMs } = options;
    const stream = await env.kubernetes.stream({ method: 'GET', path, timeoutMs, site }, onLine);
    if (stream.status !== 200) {
      finish({ kind: 'failed', error: new ApiFailure(stream, site) });
    } else if (end === undefined) {
      options.onOpen();
      watchIdle(options.idleMs);
      void stream.ended.then(() => finish({ kind: 'closed' }));
    }
    return stream;
  };

  const opening = open().catch((error: unknown) => {
    finish({ kind: 'failed', error });
    return undefined;
  });
  // A stream that opens after the end is closed at once.
  void opening.then((stream) => concluded.then(() => stream?.close()));
  await concluded;
  cancelIdle();
  signal.removeEventListener('abort', abort);
  return end ?? { kind: 'closed' };
}

export type WatchLine =
  /** The object exists in this state. */
  | { readonly kind: 'present'; readonly object: KubernetesObject; readonly resourceVersion: string }
  /** The object was deleted, or no longer matches the selector. */
  | { readonly kind: 'gone'; readonly object: KubernetesObject; readonly resourceVersion: string }
  /** All events up to this version were sent. */
  | { readonly kind: 'bookmark'; readonly resourceVersion: string }
  | { readonly kind: 'error'; readonly error: ApiFailure }
  | { readonly kind: 'unparsable' };

const unparsable: WatchLine = { kind: 'unparsable' };

/** Parses a line; never throws. ADDED and MODIFIED have the same result, because a server may send either for an object. */
export function parseWatchLine(text: string, resource: Resource, site: string): WatchLine {
  try {
    return read(parseJson(text), resource, site);
  } catch {
    return unparsable;
  }
}

function read(event: unknown, resource: Resource, site: string): WatchLine {
  if (!isJsonObject(event) || !isJsonObject(event['object'])) return unparsable;
  const { type, object } = event;
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED': {
      const typed = named(object, resource, site);
      const { resourceVersion } = typed.metadata;
      if (!isText(resourceVersion)) return unparsable;
      return { kind: type === 'DELETED' ? 'gone' : 'present', object: typed, resourceVersion };
    }
    case 'BOOKMARK': {
      const resourceVersion = isJsonObject(object['metadata']) ? object['metadata']['resourceVersion'] : undefined;
      return isText(resourceVersion) ? { kind: 'bookmark', resourceVersion } : unparsable;
    }
    case 'ERROR':
      return { kind: 'error', error: failureOf(object, site) };
    default:
      return unparsable;
  }
}

/** Returns the failure of an ERROR event, whose object is a Status. A Status without a code counts as an internal error. */
function failureOf(object: JsonObject, site: string): ApiFailure {
  const { code, reason, details } = object;
  const isExpired = reason === 'Expired' || reason === 'Gone';
  const seconds = isJsonObject(details) ? details['retryAfterSeconds'] : undefined;
  return new ApiFailure(
    {
      status: isExpired ? 410 : typeof code === 'number' ? code : 500,
      headers: typeof seconds === 'number' ? { 'retry-after': String(seconds) } : {},
      body: JSON.stringify(object),
    },
    site,
  );
}
