// Reuses connections for later requests of the transport until the certificates change.
import http from 'node:http';
import https from 'node:https';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../../policies/error-message.ts';
import { type Connection, configurationFailure, type TlsMaterial } from './connection.ts';

/** The time after which an idle connection is closed: before an API server (90 s) or a load balancer (60 s) closes it during a write. */
const idleMs = 30_000;

const maxIdleCount = 16;

/** The HTTP agent of one connection, with its open sockets. */
export class AgentPool {
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
