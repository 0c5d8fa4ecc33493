// Sends HTTP requests to servers other than the API server, with a deadline, a body limit and without redirects.

import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { messageOf } from '../../policies/error-message.ts';
import type { PodRequest, PodResponse } from '../env.ts';
import { environmentProxy } from '../kubeconfig/kubeconfig.ts';
import { codeOf } from './exchange.ts';
import { headersOf } from './response-body.ts';

/** One request to a server other than the API server. */
export interface HttpRequest extends Pick<PodRequest, 'url' | 'timeoutMs' | 'maxBodyBytes'> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Headers in addition to Host and Content-Length. May contain credentials: never log them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The trusted CA certificates as PEM; if absent, the CA certificates of Node.js. */
  readonly ca?: string;
}

export interface HttpResponse extends PodResponse {
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Exchanges {
  /** Resolves with any complete answer, also a redirect. Rejects with an Error. With a `cause`, its message may contain an address. */
  readonly exchange: (request: HttpRequest) => Promise<HttpResponse>;
  readonly close: () => void;
}

interface ExchangesOptions {
  /** Environment of the process: HTTP_PROXY, HTTPS_PROXY and NO_PROXY in upper or lower case, as Go reads them. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly maxSockets: number;
}

/** Opens a new connection for every exchange: calls are rare, and an old connection must not reach a replaced server. */
export function createExchanges({ env, maxSockets }: ExchangesOptions): Exchanges {
  const agents = { http: new HttpAgent({ maxSockets: maxSockets }), https: new HttpsAgent({ maxSockets: maxSockets }) };
  return {
    exchange: (request) => exchange(request, { env, agents }),
    close: () => {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

interface ConnectionOptions {
  readonly env: ExchangesOptions['env'];
  readonly agents: { readonly http: HttpAgent; readonly https: HttpsAgent };
}

function exchange(request: HttpRequest, options: ConnectionOptions): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const deadline = new AbortController();
    const timer = setTimeout(() => fail(`no complete answer within ${request.timeoutMs} ms`), request.timeoutMs);
    const end = (): void => {
      clearTimeout(timer);
      // Also ends open sockets and tunnels.
      deadline.abort();
    };
    const fail = (message: string, cause?: unknown): void => {
      end();
      reject(new Error(message, cause === undefined ? {} : { cause }));
    };
    send(request, options, deadline.signal).then(
      (response) =>
        collect(response, request.maxBodyBytes, fail, (body) => {
          end();
          resolve({ status: response.statusCode ?? 0, body, headers: headersOf(response) });
        }),
      (error: unknown) => fail(messageOf(error), error),
    );
  });
}

function collect(
  response: IncomingMessage,
  maxBodyBytes: number,
  fail: (message: string, cause?: unknown) => void,
  done: (body: string) => void,
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) fail(`the answer is longer than ${maxBodyBytes} bytes`);
    else chunks.push(chunk);
  });
  response.on('end', () => done(Buffer.concat(chunks).toString('utf8')));
  response.on('aborted', () => fail('the connection closed before the answer ended'));
  response.on('error', (error) => fail(error.message, error));
}

async function send(request: HttpRequest, { env, agents }: ConnectionOptions, signal: AbortSignal): Promise<IncomingMessage> {
  const url = new URL(request.url);
  const { body = '', ca } = request;
  const headers = { ...request.headers, 'Content-Length': String(Buffer.byteLength(body)) };
  // The host has no brackets around an IPv6 address. The TLS server name also has no trailing dot, as in Go.
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const to: RequestOptions = { method: request.method, headers: { ...headers, Host: url.host } };
  const tls = { ...(isIP(host) === 0 ? { servername: host.replace(/\.$/, '') } : {}), ...(ca === undefined ? {} : { ca }) };
  const proxy = environmentProxy(url.origin, env);
  if (proxy === undefined) {
    const direct = { ...to, host, port: url.port, path: url.pathname + url.search };
    if (url.protocol === 'http:') return answerOf(httpRequest({ ...direct, agent: agents.http }), body, signal);
    return answerOf(httpsRequest({ ...direct, ...tls, agent: agents.https }), body, signal);
  }
  const via = new URL(proxy);
  if (url.protocol === 'http:') {
    // In a request to a proxy, the request line contains the absolute address.
    const toProxy = { ...to, path: request.url, headers: { ...headers, Host: url.host, ...proxyHeaders(via) } };
    return answerOf(proxyRequest(via, toProxy), body, signal);
  }
  const socket = await tunnel(via, `${url.hostname}:${url.port || '443'}`, signal);
  const createConnection = () => connectTls({ socket, host, ...tls });
  return answerOf(httpRequest({ ...to, path: url.pathname + url.search, createConnection }), body, signal);
}

function proxyRequest(proxy: URL, options: RequestOptions): ReturnType<typeof httpRequest> {
  const send = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
  return send({
    ...options,
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port || (proxy.protocol === 'https:' ? '443' : '80'),
    agent: false,
  });
}

function proxyHeaders({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '') return {};
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'Proxy-Authorization': `Basic ${Buffer.from(credentials).toString('base64')}` };
}

async function tunnel(proxy: URL, target: string, signal: AbortSignal): Promise<Socket> {
  const sent = proxyRequest(proxy, { method: 'CONNECT', path: target, headers: { Host: target, ...proxyHeaders(proxy) } });
  endedBy(signal, sent);
  return new Promise((resolve, reject) => {
    sent.once('connect', ({ statusCode = 0 }, socket) => {
      if (statusCode === 200 && socket instanceof Socket) return resolve(socket);
      socket.destroy();
      reject(new Error(`the proxy answered ${statusCode} to CONNECT`));
    });
    sent.once('error', reject);
    sent.end();
  });
}

function answerOf(sent: ReturnType<typeof httpRequest>, body: string, signal: AbortSignal): Promise<IncomingMessage> {
  endedBy(signal, sent);
  return new Promise((resolve, reject) => {
    sent.once('response', resolve);
    sent.on('error', reject);
    sent.end(body);
  });
}

/**
 * Ends the request when the signal aborts. The option `signal` of Node.js would destroy the request with an error. If the whole response
 * has arrived, that error can end the process (measured with Node.js 20.20).
 */
function endedBy(signal: AbortSignal, sent: ReturnType<typeof httpRequest>): void {
  if (signal.aborted) sent.destroy();
  else signal.addEventListener('abort', () => sent.destroy(), { once: true });
}

/** Returns a message without addresses. A message of the system may contain an address, so only its error code is used. */
export function publicMessage(error: unknown): string {
  if (!(error instanceof Error)) return 'no answer';
  if (error.cause === undefined) return error.message;
  const code = codeOf(error.cause);
  return /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? `no answer (${code})` : 'no answer';
}
