// One HTTP exchange with a server that is not the API server: a whole-request deadline, a bounded body, no redirects, and the proxy that the environment names.
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { headersOf } from '../../cluster/connection/response-body.ts';
import { environmentProxy } from '../../cluster/kubeconfig/proxy.ts';
import { messageOf } from '../../policies/error-message.ts';

interface ExchangeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: string;
  /** Headers in addition to Host and Content-Length. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** PEM of the authorities that are trusted, in place of the usual ones. */
  readonly ca?: string;
  /** Until the whole answer is there. */
  readonly timeoutMs: number;
  /** A longer body is a failure. */
  readonly maxBodyBytes: number;
}

interface ExchangeAnswer {
  readonly status: number;
  readonly body: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Exchanges {
  /**
   * Resolves with any answer, also a redirect. Rejects with an Error that says why no whole answer came; one that has a `cause` repeats what the
   * system said, which may hold an address.
   */
  readonly exchange: (request: ExchangeRequest) => Promise<ExchangeAnswer>;
  readonly close: () => void;
}

interface ExchangesOptions {
  /** Environment of the process: HTTP_PROXY, HTTPS_PROXY and NO_PROXY in either case, as Go reads them. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** To one server at once. */
  readonly mostSockets: number;
}

/** Every exchange opens a new connection: servers are called rarely, and a replaced server must not be called over an old connection. */
export function createExchanges({ env, mostSockets }: ExchangesOptions): Exchanges {
  const agents = { http: new HttpAgent({ maxSockets: mostSockets }), https: new HttpsAgent({ maxSockets: mostSockets }) };
  return {
    exchange: (request) => exchange(request, { env, agents }),
    close: () => {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

interface Ways {
  readonly env: ExchangesOptions['env'];
  readonly agents: { readonly http: HttpAgent; readonly https: HttpsAgent };
}

function exchange(request: ExchangeRequest, ways: Ways): Promise<ExchangeAnswer> {
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
    send(request, ways, deadline.signal).then(
      (response) =>
        collect(response, request.maxBodyBytes, fail, (body) => {
          end();
          resolve({ status: response.statusCode ?? 0, body, headers: headersOf(response) });
        }),
      (error: unknown) => fail(messageOf(error), error),
    );
  });
}

/** Reads the body as text, or gives up as soon as it is too long. */
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

async function send(request: ExchangeRequest, { env, agents }: Ways, signal: AbortSignal): Promise<IncomingMessage> {
  const url = new URL(request.url);
  const { body = '', ca } = request;
  const headers = { ...request.headers, 'Content-Length': String(Buffer.byteLength(body)) };
  // Without the trailing dot, as Go names the host in the header and to the certificate's check.
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
    // An absolute address in the request line is what makes it a request to a proxy.
    return answerOf(
      proxyRequest(via, { ...to, path: request.url, headers: { ...headers, Host: url.host, ...proxyHeaders(via) } }),
      body,
      signal,
    );
  }
  const socket = await tunnel(via, `${url.hostname}:${url.port || '443'}`, signal);
  return answerOf(
    httpRequest({
      ...to,
      path: url.pathname + url.search,
      createConnection: () => connectTls({ socket, host, ...tls }),
    }),
    body,
    signal,
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
 * The option `signal` of Node.js destroys with an error. The socket of a complete response reports that error only to the process
 * (measured with Node.js 20.20), so a response over the size limit would end the process.
 */
function endedBy(signal: AbortSignal, sent: ReturnType<typeof httpRequest>): void {
  if (signal.aborted) sent.destroy();
  else signal.addEventListener('abort', () => sent.destroy(), { once: true });
}
