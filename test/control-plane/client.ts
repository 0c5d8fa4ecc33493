// A small client of the API server for tests: JSON requests, and waiting by watch. It shares no code with the tested client.
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Identity, Server } from './identities.ts';

/** The fields of every object. Tests declare the other fields that they read in separate interfaces. */
export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation?: number;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

export interface Reply<Body> {
  readonly status: number;
  readonly body: Body;
  /** The header `Warning`, which kubectl prints. */
  readonly warnings: string;
  /** The header `Retry-After`; 0 if it is absent. */
  readonly retryAfterSeconds: number;
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface WatchEvent<Item> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: Item;
}

interface List<Item> {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly Item[];
}

/** The types of PATCH, by their names in kubectl. `apply` is server-side apply. */
const patchTypes = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

/** Texts of the API server about a webhook that received a request, but did not answer within the timeout of its configuration. */
const webhookTimeout = /failed calling webhook .*(?:context deadline exceeded|status code 408)/;

/** Returns whether a webhook timed out. Its failure policy refused the request. A request that no webhook received has another answer. */
export function isTooLate({ status, body }: Pick<Reply<unknown>, 'status' | 'body'>): boolean {
  return status === 500 && webhookTimeout.test(JSON.stringify(body));
}

const requestTimeoutMs = 30_000;
/** As in client-go. */
const mostRetries = 10;

/** Owns the connections of one identity. */
export class ApiClient {
  readonly #url: string;
  readonly #agent: Agent;

  constructor(server: Server, identity: Identity) {
    this.#url = server.url;
    this.#agent = new Agent({
      keepAlive: true,
      ca: server.authority.certificate,
      cert: identity.certificate,
      key: identity.privateKey,
    });
  }

  /** Sends one request and returns the response of the server, also an error. Rejects only without a response. */
  async ask<Body = KubernetesObject>(method: Method, path: string, body?: unknown, type = 'application/json'): Promise<Reply<Body>> {
    const reply = await this.#open(method, path, { body, type, signal: AbortSignal.timeout(requestTimeoutMs) });
    const text = await readText(reply);
    const isJson = reply.headers['content-type']?.includes('json') ?? false;
    const warnings = String(reply.headers['warning'] ?? '');
    const retryAfterSeconds = Number(reply.headers['retry-after'] ?? 0);
    return { status: reply.statusCode ?? 0, warnings, retryAfterSeconds, body: (isJson ? JSON.parse(text) : text) as Body };
  }

  /**
   * Sends a request, and again while no webhook judges it: after 429 with a time to wait, as client-go does, and after the timeout of a
   * webhook on a busy machine. Returns the last answer after 10 further attempts.
   */
  async askUntilJudged<Body = KubernetesObject>(...request: Parameters<ApiClient['ask']>): Promise<Reply<Body>> {
    for (let attempt = 0; ; attempt += 1) {
      const reply = await this.ask<Body>(...request);
      const waitSeconds = reply.status === 429 ? reply.retryAfterSeconds : isTooLate(reply) ? 1 : 0;
      if (waitSeconds === 0 || attempt === mostRetries) return reply;
      await delay(waitSeconds * 1000);
    }
  }

  get<Body = KubernetesObject>(path: string): Promise<Body> {
    return this.#expect<Body>('GET', path);
  }

  async list<Item extends KubernetesObject>(collection: string): Promise<readonly Item[]> {
    return (await this.get<List<Item>>(collection)).items;
  }

  create<Body = KubernetesObject>(collection: string, object: unknown): Promise<Body> {
    return this.#expect<Body>('POST', collection, object);
  }

  patch<Body = KubernetesObject>(path: string, type: keyof typeof patchTypes, patch: unknown): Promise<Body> {
    return this.#expect<Body>('PATCH', path, patch, patchTypes[type]);
  }

  delete<Body = KubernetesObject>(path: string, options?: unknown): Promise<Body> {
    return this.#expect<Body>('DELETE', path, options);
  }

  /** Returns the events of a collection after a revision, until the server ends the watch or the signal is given. */
  async *watch<Item>(collection: string, resourceVersion: string, signal: AbortSignal): AsyncGenerator<WatchEvent<Item>> {
    const path = withQuery(collection, `watch=1&allowWatchBookmarks=true&resourceVersion=${resourceVersion}`);
    const reply = await this.#open('GET', path, { signal });
    if (reply.statusCode !== 200) throw new Error(`GET ${path} is answered with ${reply.statusCode}`);
    for await (const line of lines(reply)) yield JSON.parse(line) as WatchEvent<Item>;
  }

  /**
   * Waits until the objects of a collection meet a condition, which is checked after every event. Returns the objects in order of their
   * names. Rejects after `timeoutMs` (default: 60 s) with `what` was expected and the last objects.
   */
  async until<Item extends KubernetesObject>(
    collection: string,
    what: string,
    isSo: (items: readonly Item[]) => boolean,
    timeoutMs = 60_000,
  ): Promise<readonly Item[]> {
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(), timeoutMs);
    let seen: readonly Item[] = [];
    try {
      for await (const items of this.#follow<Item>(collection, ending.signal)) {
        seen = items;
        if (isSo(items)) return items;
      }
    } catch (error) {
      if (!ending.signal.aborted) throw error;
    } finally {
      clearTimeout(timer);
      ending.abort();
    }
    throw new Error(`${what} was not seen in ${timeoutMs / 1000} s at ${collection}: ${JSON.stringify(seen, undefined, 1).slice(0, 6000)}`);
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Returns the collection, and again after each event. If the server ends the watch, it starts again with a list. */
  async *#follow<Item extends KubernetesObject>(collection: string, signal: AbortSignal): AsyncGenerator<readonly Item[]> {
    while (!signal.aborted) {
      const list = await this.get<List<Item>>(collection);
      const items = new Map(list.items.map((item) => [keyOf(item), item]));
      const sorted = () => [...items.keys()].sort().flatMap((key) => items.get(key) ?? []);
      yield sorted();
      for await (const { type, object } of this.watch<Item>(collection, list.metadata.resourceVersion, signal)) {
        if (type === 'ERROR') break;
        if (type === 'BOOKMARK') continue;
        if (type === 'DELETED') items.delete(keyOf(object));
        else items.set(keyOf(object), object);
        yield sorted();
      }
    }
  }

  /** Returns the body of a success; rejects with any other answer. */
  async #expect<Body>(...[method, path, ...sent]: Parameters<ApiClient['ask']>): Promise<Body> {
    const { status, body } = await this.askUntilJudged<Body>(method, path, ...sent);
    if (status >= 200 && status < 300) return body;
    throw new Error(`${method} ${path} is answered with ${status}: ${JSON.stringify(body).slice(0, 2000)}`);
  }

  #open(
    method: Method,
    path: string,
    { body, type = 'application/json', signal }: { readonly body?: unknown; readonly type?: string; readonly signal: AbortSignal },
  ): Promise<IncomingMessage> {
    return new Promise((settle, reject) => {
      const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
      // The length is set explicitly: Node.js would send the body of a DELETE without one, and the server would read it as the next
      // request.
      const described = content === undefined ? {} : { 'content-type': type, 'content-length': content.length };
      const headers = { accept: 'application/json', ...described };
      const sent = request(`${this.#url}${path}`, { method, headers, agent: this.#agent, signal }, settle);
      sent.on('error', reject);
      sent.end(content);
    });
  }
}

/** Reads the stream directly: with readline the error of an aborted response would be unhandled. */
async function* lines(reply: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of reply.setEncoding('utf8')) {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
}

function keyOf({ metadata }: KubernetesObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

function withQuery(path: string, query: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}${query}`;
}
