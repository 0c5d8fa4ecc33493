// Sends requests to the API server over HTTP/1.1, each with one deadline, and reports whether a failed request may have been applied.

import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import http from 'node:http';
import https from 'node:https';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../../policies/error-message.ts';
import type { Clock, KubernetesHttp, KubernetesRequest, KubernetesResponse, KubernetesStream, Timers } from '../env.ts';
import { TransportFailure } from '../request/failure.ts';
import { type Authorization, type Connection, configurationFailure, type TlsMaterial } from './connection.ts';
import { Deadline, ExchangeFailure, exchange, explain, isDistrust } from './exchange.ts';
import { processClock, processTimers } from './process-env.ts';
import { type RateLimit, RateLimiter } from './rate-limit.ts';
import { headersOf, type Lines, readBody, readLines } from './response-body.ts';

export interface Answered {
  readonly method: KubernetesRequest['method'];
  readonly path: string;
  /** The HTTP status code; `error` if no complete answer arrived. */
  readonly status: number | 'error';
  /** The duration without the wait for the rate limiter. */
  readonly durationMs: number;
}

export interface TransportOptions {
  readonly userAgent: string;
  /** The limit of this client; no limit if absent. */
  readonly rateLimit?: RateLimit;
  readonly extraHeaders?: Readonly<Record<string, string>>;
  /** True if answers may be compressed, for slow networks; default false. */
  readonly isCompressed?: boolean;
  /** Runs after each request; for a watch, after its opening. */
  readonly onAnswer?: (answered: Answered) => void;
  /** Runs for each request that the rate limiter rejected. */
  readonly onThrottled?: (apiGroup: string) => void;
  readonly clock?: Clock;
  readonly timers?: Timers;
}

/** Reads the answer after its headers have arrived. */
type Receive<Result> = (response: IncomingMessage, sent: ClientRequest) => Promise<Result>;

interface Attempt {
  readonly request: KubernetesRequest;
  readonly deadline: Deadline;
  readonly isCompressed: boolean;
}

interface Attempted<Result> {
  readonly result: Result;
  readonly authorization: Authorization;
}

/** Returns a client of the API server. It follows no redirects. It repeats only GETs, after a closed connection or rejected credentials. */
export class KubernetesTransport implements KubernetesHttp {
  readonly #connection: Connection;
  readonly #options: TransportOptions;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #pool: AgentPool;
  readonly #limiter: RateLimiter | undefined;
  readonly #server: URL;
  readonly #underWay = new Set<ClientRequest>();
  readonly #open = new Set<Lines>();
  #isClosed = false;

  constructor(connection: Connection, options: TransportOptions) {
    const { clock = processClock, timers = processTimers, rateLimit, onThrottled } = options;
    this.#connection = connection;
    this.#options = options;
    this.#clock = clock;
    this.#timers = timers;
    this.#pool = new AgentPool(connection);
    this.#server = new URL(connection.server);
    this.#limiter = rateLimit && new RateLimiter({ ...rateLimit, clock, timers, ...(onThrottled && { onThrottled }) });
  }

  readonly request = (request: KubernetesRequest): Promise<KubernetesResponse> => {
    const isCompressed = this.#options.isCompressed === true && request.method === 'GET';
    return this.#ask(request, isCompressed, async (response) => ({
      status: response.statusCode ?? 0,
      headers: headersOf(response),
      body: await readBody(response),
    }));
  };

  readonly stream = (request: KubernetesRequest, onLine: (line: string) => void): Promise<KubernetesStream> => {
    return this.#ask(request, false, async (response, sent) => {
      const status = response.statusCode ?? 0;
      if (status !== 200) {
        const answer = { status, headers: headersOf(response), body: await readBody(response) };
        return { ...answer, ended: Promise.resolve(`the server answered ${status}`), close: () => undefined };
      }
      const lines = readLines(response, onLine);
      this.#open.add(lines);
      const ended = lines.ended.finally(() => {
        this.#open.delete(lines);
        sent.destroy();
      });
      return { status, headers: {}, body: '', ended, close: lines.close };
    });
  };

  /** Closes every connection; current and later requests fail. */
  readonly close = (): void => {
    this.#isClosed = true;
    for (const sent of this.#underWay) sent.destroy(new Error('the client was closed'));
    for (const lines of this.#open) lines.close();
    this.#pool.close();
  };

  /** Waits for the rate limiter, sends the request and reads the answer within one deadline. */
  async #ask<Result extends Pick<KubernetesResponse, 'status'>>(
    request: KubernetesRequest,
    isCompressed: boolean,
    receive: Receive<Result>,
  ): Promise<Result> {
    const { requestTimeoutMs = Number.POSITIVE_INFINITY } = this.#connection;
    const deadline = new Deadline(this.#timers, Math.min(request.timeoutMs, requestTimeoutMs));
    const attempt: Attempt = { request, deadline, isCompressed };
    try {
      await this.#turn(attempt);
      const { result, authorization } = await this.#attempt(attempt, receive);
      const isRenewable = result.status === 401 && this.#connection.forget(authorization);
      return isRenewable && request.method === 'GET' ? (await this.#attempt(attempt, receive)).result : result;
    } catch (error) {
      throw error instanceof TransportFailure ? error : this.#failure(error, attempt);
    } finally {
      deadline.cancel();
    }
  }

  async #turn({ request, deadline }: Attempt): Promise<void> {
    const turn = this.#limiter?.turn(request.path, deadline.timeoutMs);
    if (turn !== undefined) await deadline.during(turn);
  }

  async #attempt<Result extends Pick<KubernetesResponse, 'status'>>(
    attempt: Attempt,
    receive: Receive<Result>,
  ): Promise<Attempted<Result>> {
    const { request, deadline } = attempt;
    const authorization = await deadline.during(this.#connection.authorize());
    const agent = await deadline.during(this.#pool.agentFor(authorization.tls)).catch((error: unknown) => {
      // Certificate and key do not match if one file was replaced between the two reads.
      this.#connection.forget(authorization);
      throw error;
    });
    const headers = this.#headers(attempt, authorization);
    const send = (): Promise<Result> => {
      if (this.#isClosed) throw new Error('the client was closed');
      return this.#measured(
        request,
        exchange({ server: this.#server, agent, request, headers, deadline, underWay: this.#underWay }, receive),
      );
    };
    try {
      return { result: await send(), authorization };
    } catch (error) {
      // The server may have a certificate of a new CA. The files may already contain the new CA certificate.
      if (isDistrust(error)) this.#connection.forget(authorization);
      if (!(error instanceof ExchangeFailure && error.isStale) || request.method !== 'GET') throw error;
      // The other idle connections are probably closed too.
      this.#pool.closeIdle();
      return { result: await send(), authorization };
    }
  }

  async #measured<Result extends Pick<KubernetesResponse, 'status'>>(
    { method, path }: KubernetesRequest,
    answered: Promise<Result>,
  ): Promise<Result> {
    const { onAnswer } = this.#options;
    const startMs = this.#clock.monotonicMs();
    let status: number | 'error' = 'error';
    try {
      const result = await answered;
      status = result.status;
      return result;
    } finally {
      onAnswer?.({ method, path, status, durationMs: this.#clock.monotonicMs() - startMs });
    }
  }

  #headers({ request, isCompressed }: Attempt, { headers }: Authorization): OutgoingHttpHeaders {
    const { userAgent, extraHeaders } = this.#options;
    const { accept = 'application/json', contentType = 'application/json', body } = request;
    return {
      Accept: accept,
      'User-Agent': userAgent,
      ...(isCompressed && { 'Accept-Encoding': 'gzip' }),
      ...(body !== undefined && { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) }),
      ...extraHeaders,
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : [...value]])),
    };
  }

  #failure(error: unknown, { request, deadline }: Attempt): TransportFailure {
    const mayBeApplied = error instanceof ExchangeFailure && error.hasLeft;
    const { message, cause } = explain(error, { connection: this.#connection, timeoutMs: deadline.timeoutMs, mayBeApplied });
    return new TransportFailure(message, { site: request.site, mayBeApplied, cause });
  }
}

/** The time after which an idle connection is closed: before an API server (90 s) or a load balancer (60 s) closes it during a write. */
const idleMs = 30_000;

const maxIdleCount = 16;

/** The HTTP agent of one connection, with its open sockets. */
class AgentPool {
  readonly #connection: Connection;
  #tls: TlsMaterial | undefined;
  #pendingAgent: Promise<http.Agent> | undefined;
  #agent: http.Agent | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Returns the agent for these TLS settings. Rejects with ConnectionFailure if a certificate or a key cannot be used. */
  agentFor(tls: TlsMaterial): Promise<http.Agent> {
    if (this.#pendingAgent !== undefined && this.#tls === tls) return this.#pendingAgent;
    this.#retire();
    this.#tls = tls;
    // Concurrent requests wait for the same agent.
    this.#pendingAgent = this.#create(tls).then((agent) => {
      if (this.#tls === tls) this.#agent = agent;
      return agent;
    });
    return this.#pendingAgent;
  }

  /** Closes idle connections. If the server closed one connection, it probably closed the others too. */
  closeIdle(): void {
    for (const sockets of Object.values(this.#agent?.freeSockets ?? {})) for (const socket of sockets ?? []) socket.destroy();
  }

  close(): void {
    this.#agent?.destroy();
    this.#agent = undefined;
    this.#pendingAgent = undefined;
    this.#tls = undefined;
  }

  /** Stops the reuse of connections. Requests in flight finish. */
  #retire(): void {
    this.closeIdle();
    if (this.#agent !== undefined) this.#agent.maxFreeSockets = 0;
    this.#agent = undefined;
  }

  async #create(tls: TlsMaterial): Promise<http.Agent> {
    const { server, createProxyAgent } = this.#connection;
    const kept = { keepAlive: true, timeout: idleMs, maxFreeSockets: maxIdleCount };
    const isTls = server.startsWith('https:');
    const options = isTls ? { ...kept, ...this.#tlsOptions(tls) } : kept;
    if (createProxyAgent !== undefined) return createProxyAgent(options);
    return isTls ? new https.Agent(options) : new http.Agent(options);
  }

  /** Creates the secure context once. Otherwise Node.js parses the certificates for each connection and compares them for each request. */
  #tlsOptions({ ca, cert, key, serverName, isVerified }: TlsMaterial): https.AgentOptions {
    try {
      return {
        secureContext: createSecureContext({ ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }), minVersion: 'TLSv1.2' }),
        rejectUnauthorized: isVerified,
        ...(serverName !== undefined && { servername: serverName }),
      };
    } catch (error) {
      throw configurationFailure(`a certificate or key of ${this.#connection.origin} cannot be used: ${messageOf(error)}`, error);
    }
  }
}
