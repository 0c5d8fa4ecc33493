// Connections that are kept for the next request, and given up when the certificates behind them change.
import http from 'node:http';
import https from 'node:https';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../../policies/error-message.ts';
import { type Connection, ConnectionFailure, type TlsMaterial } from './connection.ts';

/**
 * The API server closes connections that are idle for 90 s, load balancers often after 60 s or less. We close first: a write that meets a closing
 * connection fails without anybody knowing whether it was carried out.
 */
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

  /** The one agent for this material. Rejects with ConnectionFailure when a certificate or key cannot be used. */
  agentFor(tls: TlsMaterial): Promise<http.Agent> {
    if (this.#making !== undefined && this.#tls === tls) return this.#making;
    this.#retire();
    this.#tls = tls;
    // Requests that come together share it, also while it is being made.
    this.#making = this.#create(tls).then((agent) => {
      if (this.#tls === tls) this.#agent = agent;
      return agent;
    });
    return this.#making;
  }

  /** Closes the connections on which nothing is under way: what closed one of them has probably closed all. */
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

  /** The context is made once: Node.js would otherwise read the certificates again for each connection and compare them for each request. */
  #tlsOptions({ ca, cert, key, serverName, isVerified }: TlsMaterial): https.AgentOptions {
    try {
      return {
        secureContext: createSecureContext({ ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }), minVersion: 'TLSv1.2' }),
        rejectUnauthorized: isVerified,
        ...(serverName !== undefined && { servername: serverName }),
      };
    } catch (error) {
      const why = messageOf(error);
      throw new ConnectionFailure('configuration', `a certificate or key of ${this.#connection.origin} cannot be used: ${why}`, {
        cause: error,
      });
    }
  }
}
