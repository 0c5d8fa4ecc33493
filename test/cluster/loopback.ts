// Real servers on the loopback address for tests of connections: they count what they were sent, and by whom.
import { createServer as createHttpServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { Authorization, Connection, TlsMaterial } from '../../cluster/connection/connection.ts';
import { KubernetesTransport, type TransportOptions } from '../../cluster/connection/transport.ts';
import type { KubernetesRequest, Timers } from '../../cluster/env.ts';
import { TransportFailure } from '../../cluster/request/failure.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../control-plane/certificates.ts';

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Common name of the client's certificate. */
  readonly user?: string;
  /** Which connection it came over, counted from 1. */
  readonly connection: number;
}

interface Loopback {
  readonly url: string;
  readonly port: number;
  readonly seen: readonly Seen[];
  readonly connectionCount: () => number;
  readonly close: () => void;
}

let sharedAuthority: CertificateAuthority | undefined;

/** One authority serves all tests of a process. */
export function authority(): CertificateAuthority {
  sharedAuthority ??= createCertificateAuthority('loopback');
  return sharedAuthority;
}

export function serveHttp(answer: RequestListener): Promise<Loopback> {
  return serve(createHttpServer(), 'http', answer);
}

/** Asks clients for certificates, but serves those without one too. */
export function serveHttps(answer: RequestListener, of: CertificateAuthority = authority(), names?: readonly string[]): Promise<Loopback> {
  const { certificate, privateKey } = of.issueForServer(names);
  const tls = { cert: certificate, key: privateKey, ca: of.certificate, requestCert: true, rejectUnauthorized: false };
  return serve(createHttpsServer(tls), 'https', answer);
}

async function serve(server: Server, scheme: 'http' | 'https', answer: RequestListener): Promise<Loopback> {
  const seen: Seen[] = [];
  const connections = new Map<Socket, number>();
  server.on(scheme === 'https' ? 'secureConnection' : 'connection', (socket: Socket) => connections.set(socket, connections.size + 1));
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const user = scheme === 'https' ? (request.socket as TLSSocket).getPeerCertificate().subject?.CN : undefined;
    const { method = '', url: path = '', headers } = request;
    seen.push({ method, path, headers, connection: connections.get(request.socket) ?? 0, ...(typeof user === 'string' && { user }) });
    answer(request, response);
  });
  const { port, close } = await listen(server);
  return { url: `${scheme}://127.0.0.1:${port}`, port, seen, connectionCount: () => connections.size, close };
}

/** Accepts connections and leaves the rest to the test. */
export async function serveTcp(onSocket: (socket: Socket) => void): Promise<{ readonly port: number; readonly close: () => void }> {
  return listen(createTcpServer(onSocket));
}

/** Closed, with every connection, when the test is over. */
async function listen(server: Server | ReturnType<typeof createTcpServer>): Promise<{ readonly port: number; readonly close: () => void }> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(close);
  return { port: (server.address() as AddressInfo).port, close };
}

/** A connection as loadConnection would make it, with nothing that can be renewed unless the test says so. */
export function connectionTo(server: string, changes: Partial<Connection> & { readonly tls?: Partial<TlsMaterial> } = {}): Connection {
  const { tls, ...rest } = changes;
  const authorization: Authorization = { headers: {}, tls: { ca: Buffer.from(authority().certificate), isVerified: true, ...tls } };
  return { server, namespace: 'default', origin: 'a test', authorize: async () => authorization, forget: () => false, ...rest };
}

/** Closed when the test is over. */
export function transportTo(connection: Connection, options: Partial<TransportOptions> = {}): KubernetesTransport {
  const transport = new KubernetesTransport(connection, { userAgent: 'test/1', ...options });
  onTestFinished(() => transport.close());
  return transport;
}

/** A request with what a test does not care about. */
export function ask(path: string, changes: Partial<KubernetesRequest> = {}): KubernetesRequest {
  return { method: 'GET', path, timeoutMs: 30_000, site: 'test.ask', ...changes };
}

/** How a request failed. */
export async function failure(asked: Promise<unknown>): Promise<TransportFailure> {
  const error = await asked.then(
    (answer) => new Error(`answered: ${JSON.stringify(answer)}`),
    (rejected: unknown) => rejected,
  );
  if (error instanceof TransportFailure) return error;
  throw error;
}

/** Timers that go off when the test says so. */
export class ManualTimers implements Timers {
  readonly #waiting = new Map<() => void, number>();

  readonly after = (delayMs: number, callback: () => void): (() => void) => {
    this.#waiting.set(callback, delayMs);
    return () => this.#waiting.delete(callback);
  };

  get delaysMs(): readonly number[] {
    return [...this.#waiting.values()];
  }

  fire(): void {
    const callbacks = [...this.#waiting.keys()];
    this.#waiting.clear();
    for (const callback of callbacks) callback();
  }
}
