// Sends requests to the API of a forge: with bounded retries, bounded waits for rate limits, and without sending the token to another host.
import { setTimeout as sleep } from 'node:timers/promises';
import { createExchanges, type HttpRequest, type HttpResponse, publicMessage } from '../../cluster/connection/http-exchange.ts';
import { isLoopback } from '../../policies/integrations/channel.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import { type ExitCode, exitCodes, Failure, usageFailure } from '../failure.ts';
import { visible } from '../output/text.ts';
import { version } from '../version.ts';
import { pauseMs, type Repeating, rateLimitMs } from './retry.ts';

interface ForgeHttpOptions {
  readonly name: 'GitHub' | 'GitLab';
  /** The address of the API, without a slash at its end. */
  readonly api: string;
  /** The token, which no output may contain. */
  readonly token: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly nowMs: () => number;
  /** The advice if the token lacks a permission. */
  readonly permissionHint: string;
  /** Receives a note before a wait of seconds. */
  readonly note: (text: string) => void;
  /** Receives a line about each answer: method, path, status and duration. */
  readonly trace?: (text: string) => void;
}

interface ForgeRequest {
  readonly method: HttpRequest['method'];
  /** The path below the address of the API, built from encoded parts. */
  readonly path: string;
  readonly body?: object;
  /** The intent, for messages: `update the comment of production on pull request 7`. */
  readonly intent: string;
  /** Statuses other than 2xx that the caller handles. */
  readonly accepts?: readonly number[];
  /** True if a second request has no second effect. Default: true for every method except POST. */
  readonly isRepeatable?: boolean;
}

interface ForgeAnswer {
  readonly status: number;
  /** The parsed body; undefined without a body. */
  readonly value: unknown;
  /** The path of the next page; undefined on the last page. */
  readonly next: string | undefined;
}

export interface ForgeHttp {
  /** Rejects with a Failure, or with UnknownOutcome if a request that is not repeatable may have had its effect. */
  readonly send: (request: ForgeRequest) => Promise<ForgeAnswer>;
  /** Returns the items of all pages. */
  readonly list: (request: Pick<ForgeRequest, 'path' | 'intent'>) => Promise<readonly unknown[]>;
  readonly close: () => void;
}

/** A request that may or may not have had its effect. The caller reads the state and decides. */
export class UnknownOutcome extends Failure {}

const timeoutMs = 30_000;
const maxBodyBytes = 32 * 1024 * 1024;
/** The most attempts at one request, and the most redirects. */
const maxAttempts = 4;
/** GitHub allows 2,500 comments on a pull request. */
const maxPages = 100;

export function createForgeHttp(options: ForgeHttpOptions): ForgeHttp {
  const { exchange, close } = createExchanges({ env: options.env, maxSockets: 1 });
  const api = apiAddress(options.api);
  const sendTo = async (first: string, request: ForgeRequest): Promise<ForgeAnswer> => {
    let url = first;
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt === maxAttempts;
      const startedMs = options.nowMs();
      const response = await exchange(httpRequest(options, request, url)).catch((error: unknown) => {
        if (repeatingOf(request).isRepeatable && !isLast) return undefined;
        throw noAnswer(options, request, publicMessage(error));
      });
      const result = response?.status ?? 'no answer';
      options.trace?.(`${request.method} ${new URL(url).pathname} ${result} ${Math.round(options.nowMs() - startedMs)}ms`);
      const nextUrl = redirectOf(options, response, url);
      const waitMs = nextUrl === undefined ? pauseMs(response, repeatingOf(request), options.nowMs(), attempt) : 0;
      if (response !== undefined && (isLast || waitMs === undefined)) return answerOf(options, request, response);
      await pause(options, waitMs ?? 0);
      url = nextUrl ?? url;
    }
  };
  return {
    send: (request) => sendTo(`${api}${request.path}`, request),
    list: async ({ path, intent }) => {
      const items: unknown[] = [];
      let url: string | undefined = `${api}${path}`;
      for (let page = 1; url !== undefined && page <= maxPages; page += 1) {
        const { value, next }: ForgeAnswer = await sendTo(url, { method: 'GET', path, intent });
        if (!Array.isArray(value)) throw notJson(options, intent);
        items.push(...value);
        url = next;
      }
      return items;
    },
    close,
  };
}

/** Returns the address of the API without a slash at its end. Throws a Failure, which never contains credentials of the address. */
function apiAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    url === undefined ||
    url.username !== '' ||
    url.password !== '' ||
    `${url.search}${url.hash}` !== '' ||
    !/^https?:$/.test(url.protocol)
  )
    throw usageFailure('the address of the API is not an https URL without user, password, query and fragment', 'check --api');
  if (url.protocol === 'http:' && !isLoopback(text))
    throw usageFailure(`${url.origin} has no TLS, so the token is not sent to it`, 'use the https address of the API: --api');
  return text.replace(/\/+$/, '');
}

function httpRequest({ token, headers }: ForgeHttpOptions, { method, body }: ForgeRequest, url: string): HttpRequest {
  const type = body === undefined ? {} : { 'Content-Type': 'application/json' };
  const sent = { 'User-Agent': `kubectl-rollout-group/${version}`, Accept: 'application/json', ...headers, ...type };
  if (!/^[\x21-\x7e]+$/.test(token))
    throw usageFailure('the token has a space, a line break or a character outside of ASCII', 'set the token again');
  return { method, url, headers: sent, timeoutMs, maxBodyBytes, ...(body !== undefined && { body: JSON.stringify(body) }) };
}

function repeatingOf({ method, accepts = [], isRepeatable = method !== 'POST' }: ForgeRequest): Repeating {
  return { isRepeatable, accepts };
}

/** Returns the address of a redirect; undefined for any other answer. Throws a Failure if the address is of another host. */
function redirectOf({ name, api }: ForgeHttpOptions, response: HttpResponse | undefined, from: string): string | undefined {
  const { location = '' } = response?.headers ?? {};
  if (response === undefined || response.status < 300 || response.status >= 400 || location === '') return undefined;
  const url = URL.canParse(location, from) ? new URL(location, from) : undefined;
  if (url?.origin === new URL(api).origin) return url.href;
  const what = `${name} redirects to another host, to which the token is not sent: ${visible(url?.origin ?? '?')}`;
  throw new Failure({ exitCode: exitCodes.unreachable, what, todo: 'check the address of the API: --api' });
}

async function pause({ name, note }: ForgeHttpOptions, waitMs: number): Promise<void> {
  if (waitMs >= 5_000) note(`${name} limits the rate of requests; waiting ${Math.ceil(waitMs / 1000)}s`);
  await sleep(waitMs);
}

function answerOf(options: ForgeHttpOptions, request: ForgeRequest, response: HttpResponse): ForgeAnswer {
  const { status, body, headers } = response;
  const isAccepted = (status >= 200 && status < 300) || request.accepts?.includes(status) === true;
  if (!isAccepted) throw answerFailure(options, request, response);
  const value = tryParseJson(body);
  if (value === undefined && body !== '' && status < 300) throw notJson(options, request.intent);
  // Only the path and the query of the link count, so that the token stays with this host also if the forge does not know its address.
  const link = /<([^<>]*)>\s*;[^,]*\brel="?next"?/.exec(headers['link'] ?? '')?.[1];
  const next = link === undefined || !URL.canParse(link, options.api) ? undefined : new URL(link, options.api);
  return { status, value, next: next && `${new URL(options.api).origin}${next.pathname}${next.search}` };
}

function notJson({ name, api }: ForgeHttpOptions, intent: string): Failure {
  const what = `cannot ${intent}: ${new URL(api).origin} answers with text that is not the JSON of ${name}`;
  return new Failure({ exitCode: exitCodes.unreachable, what, todo: 'check the address of the API (--api) and the proxy settings' });
}

function noAnswer({ name, api }: ForgeHttpOptions, request: ForgeRequest, why: string): Failure {
  const details = {
    exitCode: exitCodes.unreachable,
    what: `cannot ${request.intent}: ${name} at ${new URL(api).origin} gave no answer`,
    why,
    todo: 'check the address of the API (--api), the network and the proxy settings, and run the command again',
  };
  return repeatingOf(request).isRepeatable ? new Failure(details) : new UnknownOutcome(details);
}

/** The maximum number of characters of a message of the forge. */
const longestMessage = 200;

function answerFailure(options: ForgeHttpOptions, request: ForgeRequest, response: HttpResponse): Failure {
  const { name, token, nowMs, permissionHint } = options;
  const { status } = response;
  const [exitCode, cause, todo] = meaningOf(options, response, rateLimitMs(response, nowMs()));
  const said = messageOf(response).replaceAll(token, '***').slice(0, longestMessage);
  const details = {
    exitCode,
    what: `cannot ${request.intent}: ${cause}`,
    why: `${name} answered ${status}${said === '' ? '' : `: ${visible(said)}`}`,
    todo: todo ?? permissionHint,
  };
  return status >= 500 && !repeatingOf(request).isRepeatable ? new UnknownOutcome(details) : new Failure(details);
}

function meaningOf(
  { name, nowMs }: ForgeHttpOptions,
  { status }: HttpResponse,
  limitMs: number | undefined,
): readonly [ExitCode, string, string?] {
  if (limitMs !== undefined) {
    const end = new Date(nowMs() + limitMs).toISOString().replace(/\.\d+Z$/, 'Z');
    return [exitCodes.unreachable, 'the rate limit is reached', `run the command again${limitMs === 0 ? ' later' : ` after ${end}`}`];
  }
  if (status === 401) return [exitCodes.notAllowed, 'the token is not valid', 'set a token that has not expired'];
  if (status === 403) return [exitCodes.notAllowed, 'the token lacks a permission'];
  if (status === 404) return [exitCodes.notFound, 'it does not exist, or the token may not read it'];
  if (status === 409) return [exitCodes.stale, 'it changed at the same time', 'run the command again'];
  if (status >= 500) return [exitCodes.unreachable, `${name} has a problem`, 'run the command again later'];
  return [exitCodes.refused, `${name} does not accept the request`, 'check the flags and the version of the forge'];
}

/** Returns the message of a JSON error of GitHub or GitLab, with its details; empty if the body is another text. */
function messageOf({ body }: HttpResponse): string {
  const value = tryParseJson(body);
  const {
    message = '',
    error = '',
    errors = [],
  } = (isRecord(value) ? value : {}) as { message?: unknown; error?: unknown; errors?: unknown };
  // GitHub names the rejected field only in `errors`.
  const parts = [message === '' ? error : message, ...(Array.isArray(errors) ? errors.map(detailOf) : [])];
  return parts
    .map((part) => (typeof part === 'string' ? part : JSON.stringify(part)))
    .filter((part) => part !== '')
    .join(': ');
}

function detailOf(error: unknown): unknown {
  return isRecord(error) && typeof error['message'] === 'string' ? error['message'] : error;
}
