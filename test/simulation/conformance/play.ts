// Plays a sequence on a server and records what comes of it.
import { Memory } from './memory.ts';
import type { FilledRequest, Operation, Outcome, Recording, Sequence, Target, WatchEvent } from './operation.ts';

/** A stream that has not told of the last object by then will not. In milliseconds. */
const streamTimeoutMs = 15_000;

/** The label of the object that ends a sequence: every stream of it shows that object last. */
export const lastLabel = 'last';

/** Rejects only when the server cannot be reached. */
export async function play({ operations }: Sequence, target: Target, namespace: string): Promise<Recording> {
  await target.prepare(namespace);
  const memory = new Memory(namespace);
  const outcomes: (() => Promise<Outcome>)[] = [];
  const streams: Stream[] = [];
  try {
    for (const operation of operations) {
      const request = memory.fill(operation);
      // What a cache may answer is compared as that of a cache that has seen everything.
      if (mayBeCached(operation)) await target.settle(collectionOf(request));
      if (operation.isWatch === true) {
        const stream = new Stream(collectionOf(request));
        streams.push(stream);
        await stream.open(target, request);
        outcomes.push(() => stream.outcome());
      } else {
        const outcome = await answer(target, memory, request);
        outcomes.push(async () => outcome);
      }
    }
    for (const stream of streams) await target.settle(stream.collection);
    return { namespace, outcomes: await Promise.all(outcomes.map((outcome) => outcome())) };
  } finally {
    for (const stream of streams) stream.close();
  }
}

async function answer(target: Target, memory: Memory, request: FilledRequest): Promise<Outcome> {
  const { status, headers, body } = await target.ask(request);
  const parsed = parsedOf(body);
  memory.hear(request.path, parsed);
  const retryAfter = headers['retry-after'];
  return { kind: 'answer', status, ...(retryAfter === undefined ? {} : { retryAfter }), body: parsed };
}

/** Owns one watch until it is closed. */
class Stream {
  readonly collection: string;
  readonly #events: WatchEvent[] = [];
  #refusal: Outcome | undefined;
  #end: 'whole' | 'closed' | undefined;
  #close: () => void = () => undefined;
  #finished: () => void = () => undefined;

  constructor(collection: string) {
    this.collection = collection;
  }

  async open(target: Target, request: FilledRequest): Promise<void> {
    const opened = await target.open(
      request,
      (line) => this.#read(line),
      () => this.#finish('closed'),
    );
    this.#close = opened.close;
    if (opened.refusal === undefined) return;
    this.#refusal = { kind: 'answer', status: opened.refusal.status, body: parsedOf(opened.refusal.body) };
  }

  async outcome(): Promise<Outcome> {
    if (this.#refusal !== undefined) return this.#refusal;
    if (this.#end === undefined) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((settle) => {
        this.#finished = settle;
        timer = setTimeout(settle, streamTimeoutMs);
      });
      clearTimeout(timer);
    }
    return { kind: 'stream', events: this.#events, end: this.#end ?? 'timeout' };
  }

  close(): void {
    this.#finish('closed');
    this.#close();
  }

  /** Bookmarks come when the server likes. */
  #read(line: string): void {
    if (this.#end !== undefined || line === '') return;
    const event = JSON.parse(line) as WatchEvent;
    if (event.type === 'BOOKMARK') return;
    this.#events.push(event);
    const { metadata } = event.object as { readonly metadata?: { readonly labels?: Readonly<Record<string, string>> } };
    if (event.type === 'ADDED' && metadata?.labels?.[lastLabel] !== undefined) this.#finish('whole');
  }

  #finish(end: 'whole' | 'closed'): void {
    this.#end ??= end;
    this.#finished();
  }
}

/** A read that takes any state not older than one, and a watch that begins wherever the cache is. */
function mayBeCached({ method, path, isWatch }: Operation): boolean {
  const query = new URLSearchParams(path.split('?')[1]);
  const version = query.get('resourceVersion') ?? '';
  if (isWatch === true) return version === '' || version === '0';
  return method === 'GET' && version !== '';
}

function collectionOf({ path }: FilledRequest): string {
  return /^.*\/namespaces\/[^/?]+\/[^/?]+/.exec(path)?.[0] ?? path.split('?')[0] ?? path;
}

function parsedOf(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
