// Keeps connections for the next request, and drops them when their certificates change.
import http from 'node:http';
import https from 'node:https';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../../policies/error-message.ts';
import { type Connection, configurationFailure, type TlsMaterial } from './connection.ts';

/** API servers close idle connections after 90 s, load balancers after 60 s or less. A write on a closing connection has an unknown outcome. */
const idleMs = 30_000;

const maxIdleCount = 16;

export class AgentPool {
  readonly #connection: Connection;
  #tls: TlsMaterial | undefined;
  #making: Promise<http.Agent> | undefined;
  #agent: http.Agent | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Returns the one agent for this material. Rejects with ConnectionFailure if a certificate or key is unusable. */
  agentFor(tls: TlsMaterial): Promise<http.Agent> {
    if (this.#making !== undefined && this.#tls === tls) return this.#making;
    this.#retire();
    this.#tls = tls;
    // Concurrent requests share it while it is created.
    this.#making = this.#create(tls).then((agent) => {
      if (this.#tls === tls) this.#agent = agent;
      return agent;
    });
    return this.#making;
  }

  /** Closes idle connections. If one was closed by the server, the others probably were too. */
  closeIdle(): void {
    for (const sockets of Object.values(this.#agent?.freeSockets ?? {})) for (const socket of sockets ?? []) socket.destroy();
  }

  close(): void {
    this.#agent?.destroy();
    this.#agent = undefined;
    this.#making = undefined;
    this.#tls = undefined;
  }

  /** Requests in flight finish; their connections are not reused. */
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

  /** Creates the context once: Node.js would otherwise parse the certificates for each connection and compare them for each request. */
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
