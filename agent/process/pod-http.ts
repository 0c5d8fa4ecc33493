// HTTP to pods: a whole-request deadline, a bounded body, no redirects, and the proxy that the environment names.
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { environmentProxy } from '../../cluster/connection/kubeconfig-proxy.ts';
import type { Clock } from '../../cluster/env.ts';
import type { PodHttp, PodRequest, PodResponse } from '../env.ts';

export interface PodHttpOptions {
  /** Of the process: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in capitals or not, as Go reads them. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly userAgent: string;
  /** Value of the header X-Cluster, which other installations refuse. */
  readonly cluster: string;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Once for each exchange; `path` without its query. */
  readonly onAnswer?: (answered: { method: string; path: string; status: number | 'error'; durationMs: number }) => void;
  /** A pod says that the request was meant for another installation. */
  readonly onWrongCluster?: (route: string) => void;
}

export interface PodHttpClient extends PodHttp {
  readonly close: () => void;
}

/** As many pods are asked at once, and a few of another group. */
const mostSockets = 64;

/** Every request has a connection of its own: pods are asked rarely, and one that was replaced must not be asked over an old connection. */
export function createPodHttp(options: PodHttpOptions): PodHttpClient {
  const agents = { http: new HttpAgent({ maxSockets: mostSockets }), https: new HttpsAgent({ maxSockets: mostSockets }) };
  return {
    call: async (request) => {
      const startedMs = options.clock.monotonicMs();
      const { pathname: path } = new URL(request.url);
      const answered = (status: number | 'error') =>
        options.onAnswer?.({ method: request.method, path, status, durationMs: options.clock.monotonicMs() - startedMs });
      try {
        const response = await exchange(request, options, agents);
        answered(response.status);
        if (response.status === 511) options.onWrongCluster?.(routeOf(response.body));
        return response;
      } catch (error) {
        answered('error');
        throw error;
      }
    },
    close: () => {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

interface Agents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

function exchange(request: PodRequest, options: PodHttpOptions, agents: Agents): Promise<PodResponse> {
  return new Promise((resolve, reject) => {
    const deadline = new AbortController();
    const timer = setTimeout(() => fail(`no whole answer within ${request.timeoutMs} ms`), request.timeoutMs);
    const end = (): void => {
      clearTimeout(timer);
      // Ends whatever is still open: a socket that drips, a tunnel that is being made.
      deadline.abort();
    };
    const fail = (message: string): void => {
      end();
      reject(new Error(message));
    };
    send(request, options, agents, deadline.signal).then(
      (response) =>
        collect(response, request.maxBodyBytes, fail, (body) => {
          end();
          resolve({ status: response.statusCode ?? 0, body });
        }),
      (error: unknown) => fail(error instanceof Error ? error.message : String(error)),
    );
  });
}

/** Reads the body as text, or gives up as soon as it is too long. */
function collect(response: IncomingMessage, maxBodyBytes: number, fail: (message: string) => void, done: (body: string) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) fail(`the answer is longer than ${maxBodyBytes} bytes`);
    else chunks.push(chunk);
  });
  response.on('end', () => done(Buffer.concat(chunks).toString('utf8')));
  response.on('aborted', () => fail('the connection was closed in the middle of the answer'));
  response.on('error', ({ message }) => fail(message));
}

async function send(request: PodRequest, options: PodHttpOptions, agents: Agents, signal: AbortSignal): Promise<IncomingMessage> {
  const url = new URL(request.url);
  const headers = { 'User-Agent': options.userAgent, 'X-Cluster': options.cluster, 'Content-Length': '0', Accept: 'application/json' };
  // Without the trailing dot, as Go names the host in the header and to the certificate's check.
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const to: RequestOptions = { method: request.method, headers: { ...headers, Host: url.host }, signal };
  const proxy = environmentProxy(url.origin, options.env);
  if (proxy === undefined) {
    const direct = { ...to, host, port: url.port, path: url.pathname + url.search };
    if (url.protocol === 'http:') return answerOf(httpRequest({ ...direct, agent: agents.http }));
    return answerOf(httpsRequest({ ...direct, agent: agents.https, servername: host.replace(/\.$/, '') }));
  }
  const via = new URL(proxy);
  if (url.protocol === 'http:') {
    // An absolute address in the request line is what makes it a request to a proxy.
    return answerOf(proxyRequest(via, { ...to, path: request.url, headers: { ...headers, Host: url.host, ...proxyHeaders(via) } }));
  }
  const socket = await tunnel(via, `${url.hostname}:${url.port || '443'}`, signal);
  return answerOf(
    httpRequest({
      ...to,
      path: url.pathname + url.search,
      createConnection: () => connectTls({ socket, servername: host.replace(/\.$/, '') }),
    }),
  );
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
  const sent = proxyRequest(proxy, { method: 'CONNECT', path: target, headers: { Host: target, ...proxyHeaders(proxy) }, signal });
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

function answerOf(sent: ReturnType<typeof httpRequest>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once('response', resolve);
    sent.on('error', reject);
    sent.end();
  });
}

function routeOf(body: string): string {
  try {
    const value: unknown = JSON.parse(body);
    const route = typeof value === 'object' && value !== null && 'route' in value ? value.route : undefined;
    return typeof route === 'string' ? route : '<unknown-route>';
  } catch {
    return '<unknown-route>';
  }
}
