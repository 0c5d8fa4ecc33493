// Which request goes wrong and how: rules that the fault proxy follows, and the book it keeps of what was asked.
import type { KubernetesObject } from './client.ts';

/** What the proxy does to a request instead of passing it on. */
export type Fault =
  /** The connection ends before the request reaches the server. */
  | { readonly kind: 'dropRequest' }
  /** The server carries the request out; the connection ends before its answer is sent on. */
  | { readonly kind: 'dropReply' }
  /** The request waits before it is sent on (`request`), or its answer does (`reply`). */
  | { readonly kind: 'delay'; readonly what: 'request' | 'reply'; readonly ms: number }
  /** The request does not reach the server; this is the answer. */
  | { readonly kind: 'answer'; readonly status: number; readonly reason?: string; readonly retryAfterSeconds?: number }
  /** A watch ends without a word after this many events. */
  | { readonly kind: 'cutWatch'; readonly afterEvents: number }
  /** A watch stays open after this many events, and nothing comes any more. */
  | { readonly kind: 'freezeWatch'; readonly afterEvents: number }
  /** A watch ends after this many events with the event ERROR 410: its revision is no longer kept. */
  | { readonly kind: 'expireWatch'; readonly afterEvents: number }
  /** The first answer to the same GET comes again, as from a server that lags behind. Without one the request passes. */
  | { readonly kind: 'oldAnswer' }
  /** Only the first bytes of the answer's body come, then the connection ends. */
  | { readonly kind: 'truncate'; readonly bytes: number }
  /** Whoever asks dies: before the request reaches the server, or when that has carried it out, before its answer is sent on or right after. */
  | { readonly kind: 'die'; readonly moment: 'beforeApply' | 'afterApply' | 'afterReply'; readonly die: () => Promise<unknown> }
  /** A list is answered as it was at that revision of the server, which was asked for any. */
  | { readonly kind: 'listAsOf'; readonly revision: string }
  /** A watch is open, and nothing comes before that; then all of it. */
  | { readonly kind: 'holdWatch'; readonly until: Promise<unknown> }
  /** Asked of every line of a watch, in their order: it comes when the answer is true. */
  | { readonly kind: 'filterWatch'; readonly passes: (line: WatchLine) => boolean };

export interface WatchLine {
  readonly type: string;
  readonly object: KubernetesObject;
}

export interface ProxiedRequest {
  /** Name of the identity that asked. */
  readonly user: string;
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly isWatch: boolean;
  /** As sent; empty when there was none. */
  readonly body: string;
  /** Wall clock, milliseconds. */
  readonly atMs: number;
  /** What the client was answered; absent when its connection ended first. */
  readonly status?: number;
  /** What the server answered; absent when it was not asked. */
  readonly serverStatus?: number;
  /** The rule that applied. */
  readonly rule?: string;
}

export interface FaultRule {
  /** For the book, and for messages of tests. */
  readonly name: string;
  /** Every part that is there must match. */
  readonly match: {
    readonly method?: string;
    readonly path?: RegExp;
    readonly user?: string;
    readonly body?: RegExp;
    readonly isWatch?: boolean;
  };
  /** Which of the requests that match, counted from 1; only the first when absent. */
  readonly which?: (count: number) => boolean;
  readonly fault: Fault;
}

/** For `which`. */
export const always = (): boolean => true;
export const nth =
  (wanted: number) =>
  (count: number): boolean =>
    count === wanted;
export const every =
  (period: number) =>
  (count: number): boolean =>
    count % period === 0;

/** Every so often, but no more than so many times: reads that belong together would never all succeed under a fault that always returns. */
export const sometimes =
  (period: number, times: number) =>
  (count: number): boolean =>
    count % period === 0 && count <= period * times;

/** A rule at work. */
export interface Injection {
  /** How often the fault was done. */
  readonly hits: () => number;
  readonly remove: () => void;
}

/** The rules at work, asked in the order in which they were added. */
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

  /** The first rule whose turn it is; every rule that matches counts the request. */
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
