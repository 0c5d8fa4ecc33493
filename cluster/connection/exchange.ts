// Sends one HTTP request for the transport within a deadline, and explains a failure.
import http from 'node:http';
import https from 'node:https';
import { messageOf } from '../../policies/error-message.ts';
import type { KubernetesRequest, Timers } from '../env.ts';
import { type Connection, ConnectionFailure } from './connection.ts';

/** The failure of a request without a complete answer. */
export class ExchangeFailure extends Error {
  override readonly name = 'ExchangeFailure';
  /** False if no connection existed, so that no byte of the request was sent. */
  readonly hasLeft: boolean;
  /** True if the connection was reused and closed before any answer arrived. */
  readonly isStale: boolean;

  constructor(cause: Error, { hasLeft, isStale }: { readonly hasLeft: boolean; readonly isStale: boolean }) {
    super(cause.message, { cause });
    this.hasLeft = hasLeft;
    this.isStale = isStale;
  }
}

interface ExchangeOptions {
  readonly server: URL;
  readonly agent: http.Agent;
  readonly request: KubernetesRequest;
  readonly headers: http.OutgoingHttpHeaders;
  readonly deadline: Deadline;
  /** The requests in progress. This request is in the set until `receive` ends. */
  readonly underWay: Set<http.ClientRequest>;
}

/** The interval of TCP keep-alives, which detect a silent watch whose connection a firewall dropped. */
const probeEveryMs = 30_000;

/** Calls `receive` when the headers of the answer arrive. Resolves with the result of `receive`; rejects with ExchangeFailure. */
export function exchange<Result>(
  { server, agent, request, headers, deadline, underWay }: ExchangeOptions,
  receive: (response: http.IncomingMessage, sent: http.ClientRequest) => Promise<Result>,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let hasLeft = false;
    let hasAnswer = false;
    const isTls = server.protocol === 'https:';
    const sent = (isTls ? https : http).request({
      agent,
      // A URL has an IPv6 address in brackets; `hostname` must not have the brackets.
      hostname: server.hostname.replace(/^\[|\]$/g, ''),
      ...(server.port !== '' && { port: server.port }),
      path: `${server.pathname.replace(/\/$/, '')}${request.path}`,
      method: request.method,
      headers,
    });
    const fail = (cause: Error): void => {
      underWay.delete(sent);
      reject(new ExchangeFailure(cause, { hasLeft, isStale: sent.reusedSocket && !hasAnswer && isClosing(cause) }));
    };
    underWay.add(sent);
    sent.on('socket', (socket) => {
      if (sent.reusedSocket || !(isTls || socket.connecting)) hasLeft = true;
      else
        socket.once(isTls ? 'secureConnect' : 'connect', () => {
          hasLeft = true;
        });
      socket.setKeepAlive(true, probeEveryMs);
    });
    sent.on('error', fail);
    sent.on('response', (response) => {
      hasAnswer = true;
      receive(response, sent).then(
        (result) => {
          underWay.delete(sent);
          resolve(result);
        },
        (error) => fail(error instanceof Error ? error : new Error(String(error))),
      );
    });
    deadline.whenOver(() => {
      fail(new DeadlineOver());
      sent.destroy();
    });
    sent.end(request.body);
  });
}

function isClosing(error: Error): boolean {
  return 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

/** The failure of a request whose deadline passed. */
class DeadlineOver extends Error {
  override readonly name = 'DeadlineOver';
}

/** Limits the time of one request with one timer. AbortSignal.any is simpler, but Node.js 20 keeps signals until their timers fire. */
export class Deadline {
  readonly timeoutMs: number;
  readonly cancel: () => void;
  #isOver = false;
  #onOver: () => void = () => undefined;

  constructor(timers: Timers, timeoutMs: number) {
    this.timeoutMs = timeoutMs;
    this.cancel = timers.after(timeoutMs, () => {
      this.#isOver = true;
      this.#onOver();
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Sets the one callback for the end of the deadline, and calls it at once if the deadline has already passed. */
  whenOver(react: () => void): void {
    this.#onOver = react;
    if (this.#isOver) react();
  }

  /** Rejects with DeadlineOver if the deadline passes first. The work continues, because other callers may wait for it. */
  during<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.whenOver(() => reject(new DeadlineOver()));
      work.then(resolve, reject);
    });
  }
}

interface FailureContext {
  readonly connection: Pick<Connection, 'server' | 'origin' | 'createProxyAgent'>;
  readonly timeoutMs: number;
  readonly mayBeApplied: boolean;
}

interface Explanation {
  readonly message: string;
  /** A ConnectionFailure if the configuration is at fault. */
  readonly cause: unknown;
}

export function explain(error: unknown, { connection, timeoutMs, mayBeApplied }: FailureContext): Explanation {
  const root = error instanceof ExchangeFailure ? error.cause : error;
  const route = connection.createProxyAgent === undefined ? '' : ', through its proxy';
  const where = `the API server at ${connection.server} (${connection.origin}${route})`;
  if (root instanceof DeadlineOver) {
    const message = mayBeApplied
      ? `${where} gave no complete answer within ${timeoutMs} ms`
      : `${where} could not be reached within ${timeoutMs} ms`;
    return { message, cause: root };
  }
  if (root instanceof ConnectionFailure || !(root instanceof Error)) return { message: messageOf(root), cause: root };
  if (isDistrust(error)) {
    const message = `the certificate of ${where} is not trusted: ${root.message}; check the certificate authority`;
    return { message, cause: new ConnectionFailure('configuration', message, { cause: root }) };
  }
  const reason = reasons[codeOf(root)];
  if (reason !== undefined) return { message: `${where} ${reason}`, cause: root };
  if (!(error instanceof ExchangeFailure)) return { message: root.message, cause: root };
  return { message: `${where} ${mayBeApplied ? 'gave no complete answer' : 'could not be reached'}: ${root.message}`, cause: root };
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refuses connections. Check that the cluster runs and the address is right',
  ENOTFOUND: 'has an unknown host name. Check the address and the network (VPN)',
  EAI_AGAIN: 'has a host name that cannot be resolved. Check the network',
  EHOSTUNREACH: 'cannot be reached: there is no route. Check the network (VPN)',
  ENETUNREACH: 'cannot be reached: there is no route. Check the network (VPN)',
  EPROTO: 'does not speak TLS. Check whether the address must begin with http://',
};

export function isDistrust(error: unknown): boolean {
  const root = error instanceof ExchangeFailure ? error.cause : error;
  return /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_\w+|INVALID_CA|ERR_TLS_CERT_ALTNAME_INVALID)$/.test(
    codeOf(root),
  );
}

/** Returns the code of a system or TLS error, such as ECONNRESET; empty if the error has no code. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
