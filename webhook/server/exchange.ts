// Handles one HTTP exchange from headers to answer.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { WebhookConfig } from '../config.ts';
import type { WebhookEnv } from '../env.ts';
import { boundedText } from '../review/bounded-text.ts';
import { type Decided, decide } from '../review/decide.ts';
import { readReview } from '../review/read-review.ts';
import type { Endpoint } from '../review/review.ts';
import { readBody } from './body.ts';
import { allowedMs, type RunningCall, startCall } from './call.ts';
import { wrongClusterBody, wrongClusterOf } from './cluster-validation.ts';
import type { Load } from './load.ts';
import { routeLabel, type WebhookObserver } from './observer.ts';
import { type PlainAnswer, plainText, refuse } from './refuse.ts';
import { reviewFields } from './request-log.ts';
import type { Slots } from './slots.ts';

/** An endpoint with its time limit. */
export interface ServedEndpoint extends Endpoint {
  /** Longest time in milliseconds; the configured request timeout applies too. */
  readonly withinMs?: number;
}

interface ExchangeOptions {
  readonly config: WebhookConfig;
  readonly env: Pick<WebhookEnv, 'clock' | 'timers' | 'log'>;
  readonly observer: WebhookObserver;
  readonly load: Load;
  readonly bigBodies: Slots;
  /** Returns whether connections end with their next answer. */
  readonly isClosing: () => boolean;
}

/** Answers the request by the endpoint of its path, or with 404. Never rejects. */
export async function answerExchange(
  options: ExchangeOptions,
  request: IncomingMessage,
  response: ServerResponse,
  endpoint: ServedEndpoint | undefined,
): Promise<void> {
  const { config, env, observer } = options;
  const { clock } = env;
  const startedMs = clock.monotonicMs();
  const method = request.method ?? 'GET';
  const route = endpoint === undefined ? 'other' : routeLabel(endpoint.path);
  const bytes = { request: 0, response: 0 };
  observer.inflight(method, route, 1);
  response.once('close', () => {
    observer.inflight(method, route, -1);
    observer.answered({
      method,
      route,
      status: response.headersSent ? response.statusCode : 0,
      durationMs: clock.monotonicMs() - startedMs,
      requestBytes: bytes.request,
      responseBytes: bytes.response,
    });
  });
  // `close` reports a broken connection; without a listener its error would end the process.
  request.on('error', () => undefined);
  response.on('error', () => undefined);
  const configuredMs = config.requestTimeoutMs * 0.9;
  const { withinMs: endpointMs } = endpoint ?? {};
  const call = startCall(
    env,
    response,
    allowedMs(request.url ?? '/', { configuredMs, ...(endpointMs === undefined ? {} : { endpointMs }) }),
  );
  try {
    const refused =
      endpoint === undefined
        ? (wrongCluster(options, request, '<unknown-route>') ?? notFound)
        : await review(options, request, response, { endpoint, route, call, bytes });
    if (refused !== undefined) turnAway(options, { request, response }, refused, bytes);
  } catch (error) {
    env.log.error('an admission request could not be answered', {
      route,
      error: boundedText(error instanceof Error ? `${error.name}: ${error.message}` : String(error), 1024),
    });
    // The failure policy of the webhook decides then.
    if (response.headersSent) response.destroy();
    else turnAway(options, { request, response }, plainText(500, 'internal error'), bytes);
  } finally {
    call.end();
  }
}

interface Reviewing {
  readonly endpoint: ServedEndpoint;
  readonly route: string;
  readonly call: RunningCall;
  readonly bytes: { request: number; response: number };
}

const notFound = plainText(404, '404 page not found');

/** Answers with an AdmissionReview, or returns how to refuse the request. */
async function review(
  options: ExchangeOptions,
  request: IncomingMessage,
  response: ServerResponse,
  { endpoint, route, call, bytes }: Reviewing,
): Promise<PlainAnswer | undefined> {
  const { config, env, observer, load, bigBodies } = options;
  const wrong = wrongCluster(options, request, route) ?? wrongHeaders(request);
  if (wrong !== undefined) return wrong;
  const body = await readBody(request, { ...config.limits, bigBodies, signal: call.signal });
  if ('gone' in body) {
    env.log.debug('a client disconnected before its request was complete', { path: endpoint.path });
    response.destroy();
    return undefined;
  }
  if ('refused' in body) return plainText(body.refused, body.message);
  bytes.request = body.bytes.length;
  try {
    const read = readReview(body.bytes, config.limits);
    if ('refused' in read) return plainText(read.refused.status, read.refused.message);
    const startedMs = env.clock.monotonicMs();
    const end = load.begin();
    let decided: Decided;
    try {
      decided = await decide(read.review, { endpoint, call, isOverloaded: end === undefined, log: env.log });
    } finally {
      end?.();
    }
    const durationMs = env.clock.monotonicMs() - startedMs;
    const { answer, failure, text } = decided;
    observer.decided({
      route,
      allowed: answer.allowed,
      durationMs,
      ...(answer.code === undefined ? {} : { code: answer.code }),
      ...(failure === undefined ? {} : { failure }),
    });
    const fields = reviewFields(endpoint.path, read.review, decided, durationMs);
    if (failure === undefined) env.log.info('admission request', fields);
    else env.log.warn('admission request', fields);
    bytes.response = send(response, text, options.isClosing());
    return undefined;
  } finally {
    body.release();
  }
}

/** Returns the size of the answer in bytes. */
function send(response: ServerResponse, text: string, isClosing: boolean): number {
  const body = Buffer.from(text);
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': body.length,
    'X-Content-Type-Options': 'nosniff',
    ...(isClosing ? { Connection: 'close' } : {}),
  });
  response.end(body);
  return body.length;
}

function turnAway(
  { config, env, isClosing }: ExchangeOptions,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  answer: PlainAnswer,
  bytes: { response: number },
): void {
  const path = boundedText(pathOf(request), 256);
  env.log.info('request refused', { path, status: answer.status, why: boundedText(answer.body.trim(), 256) });
  bytes.response = Buffer.byteLength(answer.body);
  refuse(request, response, { answer, isClosing: isClosing(), lingerMs: config.limits.lingerMs, timers: env.timers });
}

/** Returns the problem of the headers: the content type must be exactly that of API servers, without an encoding. */
function wrongHeaders({ headers }: IncomingMessage): PlainAnswer | undefined {
  if (headers['content-type'] !== 'application/json') return plainText(400, 'the Content-Type must be application/json');
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') return plainText(415, 'the body must not have a Content-Encoding');
  const transfer = headers['transfer-encoding'] ?? 'chunked';
  return transfer === 'chunked' ? undefined : plainText(415, 'the only allowed Transfer-Encoding is chunked');
}

function wrongCluster({ config, observer, env }: ExchangeOptions, request: IncomingMessage, route: string): PlainAnswer | undefined {
  const { clusterValidation } = config;
  if (clusterValidation === undefined) return undefined;
  const wrong = wrongClusterOf(clusterValidation, request, pathOf(request));
  if (wrong === undefined) return undefined;
  const isRefused = !clusterValidation.isSoft;
  observer.wrongCluster({ route, ...wrong });
  env.log.warn('a request has another X-Cluster value', {
    route,
    wanted: wrong.wanted,
    given: boundedText(wrong.given, 256),
    isRefused,
  });
  return isRefused ? { status: 511, contentType: 'application/json', body: wrongClusterBody(wrong, route) } : undefined;
}

/** Returns the path without the query. */
function pathOf({ url = '/' }: IncomingMessage): string {
  return url.replace(/[?#][\s\S]*$/, '');
}
