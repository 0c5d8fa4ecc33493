// A webhook server on loopback with a certificate of its own, and clients that trust it.
import { Agent, type RequestOptions, request } from 'node:https';
import { connect, type TLSSocket } from 'node:tls';
import type { AnsweredRequest } from '../../../cluster/connection/http-server.ts';
import { processClock, processTimers } from '../../../cluster/connection/process-env.ts';
import type { LogFields, Timers } from '../../../cluster/env.ts';
import type { TlsMaterial, TlsSource } from '../../../webhook/certificates/source.ts';
import { defaultConfig, type WebhookConfig, type WebhookLimits } from '../../../webhook/config.ts';
import type { DecidedReview } from '../../../webhook/env.ts';
import type { Answer, Review } from '../../../webhook/review/review.ts';
import type { ServedEndpoint } from '../../../webhook/server/exchange.ts';
import { startWebhook, type Webhook } from '../../../webhook/webhook.ts';
import { createCertificateAuthority } from '../../control-plane/certificates.ts';
import { reviewText } from '../review/reviews.ts';

export const authority = createCertificateAuthority('webhook test');

/** A new certificate for 127.0.0.1. */
export function newMaterial(): TlsMaterial {
  const { certificate, privateKey } = authority.issueForServer();
  return { cert: certificate, key: privateKey, ca: authority.certificate };
}

/** A source that a test changes. */
export function changingSource(
  first: TlsMaterial | undefined,
): TlsSource & { readonly change: (next: TlsMaterial) => void; readonly listenerCount: () => number } {
  let material = first;
  const listeners = new Set<() => void>();
  return {
    current: () => material,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    change: (next) => {
      material = next;
      for (const listener of listeners) listener();
    },
    listenerCount: () => listeners.size,
  };
}

interface Observed {
  readonly inflight: string[];
  readonly answered: AnsweredRequest[];
  readonly decided: DecidedReview[];
  readonly wrongCluster: unknown[];
  readonly refusedConnections: string[];
  /** The first line says that the certificate is served, if there is one. */
  readonly lines: { readonly level: string; readonly message: string; readonly fields: LogFields }[];
}

export interface Served extends Observed {
  readonly webhook: Webhook;
  readonly port: number;
}

export interface ServeOptions {
  readonly endpoints?: readonly ServedEndpoint[];
  readonly config?: Partial<WebhookConfig>;
  readonly limits?: Partial<WebhookLimits>;
  readonly tls?: TlsSource;
  readonly timers?: Timers;
}

/** What an endpoint does when a test cares only for the transport. */
export function endpoint(handle: ServedEndpoint['handle'], more: Partial<ServedEndpoint> = {}): ServedEndpoint {
  const onFailure = (_: Review, problem: string): Answer => ({ allowed: false, code: 500, message: problem });
  return { path: '/admission/test', handle, onFailure, ...more };
}

/** Allows, and repeats the name in a warning. */
export const allowing: ServedEndpoint = endpoint(async ({ name }) => ({ allowed: true, warnings: [name] }));

const open: Webhook[] = [];

/** To be called after each test: a server that is left open keeps the process alive. */
export async function closeAll(): Promise<void> {
  await Promise.all(open.splice(0).map((webhook) => webhook.close()));
}

export async function serve({
  timers = processTimers,
  endpoints = [allowing],
  config = {},
  limits = {},
  tls = changingSource(newMaterial()),
}: ServeOptions = {}): Promise<Served> {
  const observed: Observed = {
    inflight: [],
    answered: [],
    decided: [],
    wrongCluster: [],
    refusedConnections: [],
    lines: [],
  };
  const log =
    (level: string) =>
    (message: string, fields: LogFields = {}) =>
      void observed.lines.push({ level, message, fields });
  const webhook = await startWebhook({
    config: {
      ...defaultConfig,
      port: 0,
      address: '127.0.0.1',
      drainMs: 0,
      ...config,
      // How busy the machine of a test is must not matter.
      limits: { ...defaultConfig.limits, lingerMs: 200, maxLoopDelayMs: 600_000, ...limits },
    },
    endpoints,
    tls,
    observer: {
      inflight: (method, route, change) => observed.inflight.push(`${method} ${route} ${change}`),
      answered: (one) => observed.answered.push(one),
      decided: (one) => observed.decided.push(one),
      wrongCluster: (one) => observed.wrongCluster.push(one),
      refusedConnection: (why) => observed.refusedConnections.push(why),
    },
    env: {
      clock: processClock,
      timers,
      log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
    },
  });
  open.push(webhook);
  return { ...observed, webhook, port: webhook.port };
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface Asking extends RequestOptions {
  readonly body?: string | Buffer | readonly (string | Buffer)[];
}

/** Sends one request, by default a review to `/admission/test` on a connection of its own. A body in parts is sent chunked. */
export function ask(port: number, { body = reviewText(), ...options }: Asking = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const isWhole = typeof body === 'string' || Buffer.isBuffer(body);
    const length = isWhole ? { 'Content-Length': Buffer.byteLength(body) } : { 'Transfer-Encoding': 'chunked' };
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        path: '/admission/test',
        method: 'POST',
        ca: authority.certificate,
        agent: false,
        ...options,
        headers: { 'Content-Type': 'application/json', ...length, ...options.headers },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
        response.on('error', reject);
      },
    );
    sent.on('error', reject);
    if (isWhole) sent.end(body);
    else {
      for (const part of body) sent.write(part);
      sent.end();
    }
  });
}

/** The `response` of an AdmissionReview. */
export function responseOf({ status, body }: Reply): Record<string, unknown> {
  if (status !== 200) throw new Error(`answered with ${status}: ${body}`);
  return (JSON.parse(body) as { response: Record<string, unknown> }).response;
}

/** A client that keeps its connections, at most `count` of them. */
export function keepAliveAgent(count: number): Agent {
  return new Agent({ keepAlive: true, maxSockets: count, ca: authority.certificate });
}

/** A TLS connection to write HTTP by hand; `text` is what has come back so far. */
export async function rawConnection(
  port: number,
): Promise<{ readonly socket: TLSSocket; readonly text: () => string; readonly closed: Promise<void> }> {
  let text = '';
  const socket = connect({ host: '127.0.0.1', port, ca: authority.certificate });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => (text += chunk));
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });
  socket.on('error', () => undefined);
  return { socket, text: () => text, closed };
}

/** Resolves when it is so; the test's own time limit bounds the wait. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** A promise that a test settles. */
export function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

/** Settings with which a server serves on, after its readiness has dropped, until the test has it end. */
export function drainUntil(passed: Promise<void>): { readonly config: { readonly drainMs: number }; readonly timers: Timers } {
  const drainMs = 987_654;
  const after: Timers['after'] = (delayMs, callback) => {
    if (delayMs !== drainMs) return processTimers.after(delayMs, callback);
    void passed.then(callback);
    return () => undefined;
  };
  return { config: { drainMs }, timers: { after } };
}
