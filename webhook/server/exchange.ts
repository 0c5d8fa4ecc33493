// Handles one HTTP request to the webhook server: checks headers, sets the deadline, reads the body, and sends an answer or a refusal.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type PlainAnswer, pathOf, wrongCluster } from '../../cluster/connection/http-server.ts';
import type { Clock, LogFields, Timers } from '../../cluster/env.ts';
import { defined } from '../../policies/values/defined.ts';
import type { WebhookConfig } from '../config.ts';
import { routeLabel, type WebhookEnv, type WebhookObserver } from '../env.ts';
import { clientGone, type Decided, decide } from '../review/decide.ts';
import { readReview } from '../review/read-review.ts';
import { boundedText, type Call, type Endpoint, type Review } from '../review/review.ts';
import type { Load, Slots } from './load.ts';

export interface ServedEndpoint extends Endpoint {
  /** Limit of the time in milliseconds. The configured request timeout applies too. */
  readonly withinMs?: number;
}

interface ExchangeOptions {
  readonly config: WebhookConfig;
  readonly env: Pick<WebhookEnv, 'clock' | 'timers' | 'log'>;
  readonly observer: WebhookObserver;
  readonly load: Load;
  readonly bigBodies: Slots;
  /** Returns whether each connection closes after its next answer. */
  readonly isClosing: () => boolean;
}

interface Exchange extends ExchangeOptions {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Label of metrics and logs. */
  readonly route: string;
  readonly call: RunningCall;
  /** Bytes of the bodies so far. */
  readonly bytes: { request: number; response: number };
}

/** Answers the request with `endpoint`, or with 404 if its path has no endpoint. Never rejects. */
export async function answerExchange(
  options: ExchangeOptions,
  request: IncomingMessage,
  response: ServerResponse,
  endpoint: ServedEndpoint | undefined,
): Promise<void> {
  const { config, env, observer } = options;
  const startedMs = env.clock.monotonicMs();
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
      durationMs: env.clock.monotonicMs() - startedMs,
      requestBytes: bytes.request,
      responseBytes: bytes.response,
    });
  });
  // A broken connection also emits `close`. An `error` event without a listener would end the process.
  request.on('error', () => undefined);
  response.on('error', () => undefined);
  const configuredMs = config.requestTimeoutMs * 0.9;
  const call = startCall(env, response, allowedMs(request.url ?? '/', { configuredMs, endpointMs: endpoint?.withinMs }));
  const exchange = { ...options, request, response, route, call, bytes };
  try {
    const refused =
      endpoint === undefined ? (refuseOtherCluster(exchange, '<unknown-route>') ?? notFound) : await review(exchange, endpoint);
    if (refused !== undefined) refuse(exchange, refused);
  } catch (error) {
    env.log.error('an admission request could not be answered', {
      route,
      error: boundedText(String(error), 1024),
    });
    // Without a valid answer, the API server applies the failure policy of the webhook.
    if (response.headersSent) response.destroy();
    else refuse(exchange, plainText(500, 'internal error'));
  } finally {
    call.end();
  }
}

const notFound = plainText(404, '404 page not found');

/** Sends an AdmissionReview. Returns an answer without AdmissionReview if the request must be refused. */
async function review(exchange: Exchange, endpoint: ServedEndpoint): Promise<PlainAnswer | undefined> {
  const { config, env, observer, load, bigBodies, request, response, route, call, bytes } = exchange;
  const wrong = refuseOtherCluster(exchange, route) ?? wrongHeaders(request);
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
    const decided = await decide(read.review, { endpoint, call, isOverloaded: end === undefined, log: env.log }).finally(end);
    const durationMs = env.clock.monotonicMs() - startedMs;
    const { answer, failure, text } = decided;
    observer.decided({ route, allowed: answer.allowed, durationMs, ...defined({ failure }) });
    const fields = reviewFields(endpoint.path, read.review, decided, durationMs);
    if (failure === undefined) env.log.info('admission request', fields);
    else env.log.warn('admission request', fields);
    response.end(writeHead(exchange, { status: 200, contentType: 'application/json', body: text }, exchange.isClosing()));
    return undefined;
  } finally {
    body.release();
  }
}

function writeHead({ response, bytes }: Exchange, { status, contentType, body: text }: PlainAnswer, isLast: boolean): Buffer {
  const body = Buffer.from(text);
  bytes.response = body.length;
  response.writeHead(status, {
    'Content-Type': contentType,
    'Content-Length': body.length,
    'X-Content-Type-Options': 'nosniff',
    ...(isLast ? { Connection: 'close' } : {}),
  });
  return body;
}

/** Returns a refusal unless the headers are those of API servers: the exact content type, and no encoding except chunked. */
function wrongHeaders({ headers }: IncomingMessage): PlainAnswer | undefined {
  if (headers['content-type'] !== 'application/json') return plainText(400, 'the Content-Type must be application/json');
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') return plainText(415, 'the body must not have a Content-Encoding');
  const transfer = headers['transfer-encoding'] ?? 'chunked';
  return transfer === 'chunked' ? undefined : plainText(415, 'the only allowed Transfer-Encoding is chunked');
}

/** Reports a request with a wrong `X-Cluster` value. Returns the refusal, unless such requests are only reported (`isSoft`). */
function refuseOtherCluster({ config, observer, env, request }: Exchange, route: string): PlainAnswer | undefined {
  const wrong = wrongCluster(config.clusterValidation, request, route);
  if (wrong === undefined) return undefined;
  const { wanted, given, refusal } = wrong;
  observer.wrongCluster({ route, wanted, given });
  const isRefused = refusal !== undefined;
  env.log.warn('a request has a wrong X-Cluster value', { route, wanted, given: boundedText(given, 256), isRefused });
  return refusal;
}

/** The maximum of `timeoutSeconds` in webhook configurations. A longer `?timeout=` does not come from an API server. */
const longestTimeoutSeconds = 30;

interface AllowedTime {
  /** Nine tenths of `-server-tls.request-timeout`. */
  readonly configuredMs: number;
  readonly endpointMs?: number | undefined;
}

/**
 * Returns the milliseconds until the deadline: the smallest of both limits and the timeout of the API server (`?timeout=10s`). Reserves a
 * fifth of that timeout, but at most one second.
 */
export function allowedMs(url: string, { configuredMs, endpointMs = configuredMs }: AllowedTime): number {
  const seconds = Number(/[?&]timeout=(\d{1,3})s(?:&|$)/.exec(url)?.[1] ?? Number.NaN);
  const isValid = seconds > 0 && seconds <= longestTimeoutSeconds;
  const clientMs = isValid ? seconds * 1000 - Math.min(1000, seconds * 200) : configuredMs;
  return Math.min(configuredMs, endpointMs, clientMs);
}

interface RunningCall extends Call {
  /** Stops the timer and the listener; the signal keeps its state. */
  readonly end: () => void;
}

/** Starts a call. Aborts the call after `forMs`, or if the connection closes before the answer is sent. */
function startCall(
  { clock, timers }: { readonly clock: Pick<Clock, 'monotonicMs'>; readonly timers: Timers },
  response: ServerResponse,
  forMs: number,
): RunningCall {
  const controller = new AbortController();
  const gone = (): void => controller.abort(clientGone);
  response.once('close', gone);
  const cancel = timers.after(forMs, () => controller.abort('the deadline has passed'));
  return {
    deadlineMs: clock.monotonicMs() + forMs,
    signal: controller.signal,
    end: () => {
      cancel();
      response.off('close', gone);
    },
  };
}

interface ReadBodyOptions {
  readonly maxBodyBytes: number;
  /** A longer body needs a slot of `bigBodies`. */
  readonly bigBodyBytes: number;
  readonly bigBodies: Slots;
  readonly signal: AbortSignal;
}

type ReadBody =
  | {
      readonly bytes: Buffer;
      /** Frees the slot of the body, when no data of the body is needed any more. */
      readonly release: () => void;
    }
  | { readonly refused: 413 | 408 | 429; readonly message: string }
  /** The client disconnected before the end of the body. */
  | { readonly gone: true };

/** Reads a body of at most `maxBodyBytes`. Stops reading a big body until it has a slot. Never rejects. */
function readBody(request: IncomingMessage, options: ReadBodyOptions): Promise<ReadBody> {
  const { maxBodyBytes, bigBodyBytes, bigBodies, signal } = options;
  const tooLong = { refused: 413, message: `the body is longer than ${maxBodyBytes} bytes` } as const;
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return Promise.resolve(tooLong);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isOver = false;
    let slot: { readonly release: () => void } | 'asked for' | undefined;
    const release = (): void => {
      if (typeof slot === 'object') slot.release();
    };
    const finish = (result: ReadBody): void => {
      if (isOver) return;
      isOver = true;
      request.off('data', take).off('end', end).off('close', lost);
      signal.removeEventListener('abort', stop);
      request.pause();
      if (!('bytes' in result)) release();
      resolve(result);
    };
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      chunks.push(chunk);
      if (length > maxBodyBytes) finish(tooLong);
      else if (length > bigBodyBytes && slot === undefined) void askForSlot();
    };
    const askForSlot = async (): Promise<void> => {
      slot = 'asked for';
      request.pause();
      const given = await bigBodies.take(signal);
      if (given === undefined) return finish({ refused: 429, message: 'too many big bodies at once; retry later' });
      slot = { release: given };
      if (isOver) given();
      else request.resume();
    };
    const end = (): void => finish({ bytes: Buffer.concat(chunks, length), release });
    const lost = (): void => finish({ gone: true });
    const stop = (): void => finish(stopped(signal));
    if (signal.aborted) return finish(stopped(signal));
    signal.addEventListener('abort', stop, { once: true });
    request.on('data', take).once('end', end).once('close', lost);
  });
}

function stopped({ reason }: AbortSignal): ReadBody {
  return reason === clientGone ? { gone: true } : { refused: 408, message: 'the body did not arrive in time' };
}

function plainText(status: number, sentence: string): PlainAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${sentence}\n` };
}

/** If the Content-Length of a refused request is at most this, the server reads the rest and keeps the connection. */
const shortRestBytes = 64 * 1024;
/** Limit of the bytes that are read from a longer request before the connection closes. */
const maxLingerBytes = 8 * 1024 * 1024;

/** Sends the refusal. Reads on for at most `lingerMs`, because a client that still sends may lose the answer if the connection closes. */
function refuse(exchange: Exchange, answer: PlainAnswer): void {
  const { config, env, isClosing, request, response } = exchange;
  const path = boundedText(pathOf(request.url ?? '/'), 256);
  env.log.info('request refused', { path, status: answer.status, why: boundedText(answer.body.trim(), 256) });
  const { 'transfer-encoding': transferEncoding, 'content-length': length = '0' } = request.headers;
  const isRestShort = request.complete || (transferEncoding === undefined && Number(length) <= shortRestBytes);
  const body = writeHead(exchange, answer, !isRestShort || isClosing());
  if (isRestShort) {
    response.end(body);
    request.resume();
    return;
  }
  response.write(body);
  let discardedBytes = 0;
  const end = (): void => {
    cancel();
    request.off('data', discard).off('end', end).off('close', end);
    response.end();
  };
  const discard = (chunk: Buffer): void => {
    discardedBytes += chunk.length;
    if (discardedBytes > maxLingerBytes) end();
  };
  const cancel = env.timers.after(config.limits.lingerMs, end);
  request.on('data', discard).once('end', end).once('close', end);
  request.resume();
}

/** Limit of a logged field. Kubernetes names are shorter; forged names may be longer. */
const maxFieldBytes = 256;

/** Returns the fields of the log line of a review. Bodies are never logged, because objects contain secrets. */
function reviewFields(path: string, review: Review, { answer, failure }: Decided, durationMs: number): LogFields {
  const { group, version, resource } = review.resource;
  const kind = [group, version, resource, review.subresource].filter((part) => part !== '').join('/');
  return {
    path,
    uid: bounded(review.uid),
    operation: bounded(review.operation),
    resource: bounded(kind),
    object: bounded(review.namespace === '' ? review.name : `${review.namespace}/${review.name}`),
    user: bounded(review.user.name),
    dryRun: review.dryRun,
    allowed: answer.allowed,
    ...defined({ code: answer.code, failure }),
    ms: Math.round(durationMs * 10) / 10,
  };
}

function bounded(text: string): string {
  return boundedText(text, maxFieldBytes);
}
