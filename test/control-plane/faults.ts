// Defines the rules that the fault proxy follows, and the record of requests that it keeps.
import type { KubernetesObject } from './client.ts';

/** The effect of the proxy on a request that it does not forward unchanged. */
export type Fault =
  /** The connection ends before the request reaches the server. */
  | { readonly kind: 'dropRequest' }
  /** The server carries out the request. The connection ends before the response is forwarded. */
  | { readonly kind: 'dropReply' }
  /** The request is delayed (`request`), or its response is (`reply`). */
  | { readonly kind: 'delay'; readonly what: 'request' | 'reply'; readonly ms: number }
  /** The request does not reach the server. The client gets this response. */
  | { readonly kind: 'answer'; readonly status: number; readonly reason?: string; readonly retryAfterSeconds?: number }
  /** A watch ends without an error after this many events. */
  | { readonly kind: 'cutWatch'; readonly afterEvents: number }
  /** A watch stays open after this many events, but sends no further one. */
  | { readonly kind: 'freezeWatch'; readonly afterEvents: number }
  /** After this many events a watch ends with the event ERROR 410: its revision is no longer kept. */
  | { readonly kind: 'expireWatch'; readonly afterEvents: number }
  /** The first response to the same GET is repeated, as from a stale server. The first GET passes. */
  | { readonly kind: 'oldAnswer' }
  /** Only the first bytes of the response body arrive, then the connection ends. */
  | { readonly kind: 'truncate'; readonly bytes: number }
  /**
   * The client process dies: before the request reaches the server, or after the server carried it out and before or after the response.
   */
  | { readonly kind: 'die'; readonly moment: 'beforeApply' | 'afterApply' | 'afterReply'; readonly die: () => Promise<unknown> }
  /** A list without a version is answered as of that revision of the server. */
  | { readonly kind: 'listAsOf'; readonly revision: string }
  /** A watch is open and sends nothing until then, and then all its events. */
  | { readonly kind: 'holdWatch'; readonly until: Promise<unknown> }
  /** Called for every line of a watch in their order. A line is sent if the result is true. */
  | { readonly kind: 'filterWatch'; readonly passes: (line: WatchLine) => boolean };

export interface WatchLine {
  readonly type: string;
  readonly object: KubernetesObject;
}

export interface ProxiedRequest {
  /** User name of the client. */
  readonly user: string;
  readonly method: string;
  /** The path with the query. */
  readonly path: string;
  readonly isWatch: boolean;
  /** The body as sent; empty without one. */
  readonly body: string;
  /** Wall clock in milliseconds. */
  readonly atMs: number;
  /** The status that the client received; absent if the connection ended before. */
  readonly status?: number;
  /** The status of the server; absent if the request did not reach the server. */
  readonly serverStatus?: number;
  /** The rule that applied. */
  readonly rule?: string;
}

export interface FaultRule {
  /** The name in the record and in messages of tests. */
  readonly name: string;
  /** All given parts must match. */
  readonly match: {
    readonly method?: string;
    readonly path?: RegExp;
    readonly user?: string;
    readonly body?: RegExp;
    readonly isWatch?: boolean;
  };
  /** Which of the matching requests the rule applies to, counted from 1; default: the first. */
  readonly which?: (count: number) => boolean;
  readonly fault: Fault;
}

/** A value for `which`. */
export const always = (): boolean => true;
export const nth =
  (wanted: number) =>
  (count: number): boolean =>
    count === wanted;
export const every =
  (period: number) =>
  (count: number): boolean =>
    count % period === 0;

/** Every n-th request, up to a limit: with an endless fault, reads that belong together would never all succeed. */
export const sometimes =
  (period: number, times: number) =>
  (count: number): boolean =>
    count % period === 0 && count <= period * times;

/** A rule in use. */
export interface Injection {
  /** Number of times that the rule applied. */
  readonly hits: () => number;
  readonly remove: () => void;
}

/** The rules in use, checked in the order in which they were added. */
export class Faults {
  readonly #rules: { readonly rule: FaultRule; count: number; hits: number }[] = [];

  inject(rule: FaultRule): Injection {
    const entry = { rule, count: 0, hits: 0 };
    this.#rules.push(entry);
    return {
      hits: () => entry.hits,
      remove: () => {
        const index = this.#rules.indexOf(entry);
        if (index >= 0) this.#rules.splice(index, 1);
      },
    };
  }

  /** Returns the first rule that applies now. Every matching rule counts the request. */
  choose(request: Pick<ProxiedRequest, 'user' | 'method' | 'path' | 'body' | 'isWatch'>): FaultRule | undefined {
    let chosen: FaultRule | undefined;
    for (const entry of this.#rules) {
      if (!isMatch(entry.rule.match, request)) continue;
      entry.count += 1;
      if (chosen !== undefined || !(entry.rule.which ?? nth(1))(entry.count)) continue;
      entry.hits += 1;
      chosen = entry.rule;
    }
    return chosen;
  }
}

function isMatch(match: FaultRule['match'], request: Pick<ProxiedRequest, 'user' | 'method' | 'path' | 'body' | 'isWatch'>): boolean {
  return (
    (match.method === undefined || match.method === request.method) &&
    (match.path?.test(request.path) ?? true) &&
    (match.user === undefined || match.user === request.user) &&
    (match.body?.test(request.body) ?? true) &&
    (match.isWatch === undefined || match.isWatch === request.isWatch)
  );
}
