// One request on one connection, and what is known about it when it fails: whether it left, and whether the connection had been closed before.
import http from 'node:http';
import https from 'node:https';
import type { KubernetesRequest } from '../env.ts';
import { type Deadline, DeadlineOver } from './deadline.ts';

/** No whole answer came. */
export class ExchangeFailure extends Error {
  override readonly name = 'ExchangeFailure';
  /** False: no byte of the request can have reached the server, for there was no connection yet. */
  readonly hasLeft: boolean;
  /** The connection had been used before, and was found closed before any answer. */
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
  /** The request as Node.js has it, until `receive` is done. */
  readonly underWay: Set<http.ClientRequest>;
}

/** A connection on which a watch waits is checked by TCP at this interval, because a firewall may have forgotten it. */
const probeEveryMs = 30_000;

/** Resolves with what `receive` makes of the answer, which it gets when the headers are there. Rejects with ExchangeFailure. */
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
      // The brackets of an IPv6 address belong to the address, not to the host.
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
