// Limits the connections per client address and closes them.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

export interface Connections {
  /** Closes connections without a request, including unused ones: clients keep connections that they opened in vain. */
  readonly destroyIdle: () => void;
  /** Closes all connections. */
  readonly destroyAll: () => void;
}

/** Closes connections beyond `maxPerPeer` per address immediately, before the TLS handshake costs CPU. */
export function watchConnections(
  server: Server,
  { maxPerPeer, refused }: { readonly maxPerPeer: number; readonly refused: (why: 'limit' | 'peer-limit') => void },
): Connections {
  const open = new Set<Socket>();
  const perPeer = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    // Undefined if the client already disconnected.
    const address = socket.remoteAddress ?? '';
    const count = perPeer.get(address) ?? 0;
    if (count >= maxPerPeer) {
      refused('peer-limit');
      socket.destroy();
      return;
    }
    perPeer.set(address, count + 1);
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      const left = (perPeer.get(address) ?? 1) - 1;
      if (left === 0) perPeer.delete(address);
      else perPeer.set(address, left);
    });
  });
  server.on('drop', () => refused('limit'));
  /** Requests under way per connection, after the handshake. */
  const inHand = new Map<Socket, number>();
  const change = (socket: Socket, by: 1 | -1): void => {
    const count = inHand.get(socket);
    if (count !== undefined) inHand.set(socket, count + by);
  };
  server.on('secureConnection', (socket: TLSSocket) => {
    inHand.set(socket, 0);
    socket.once('close', () => inHand.delete(socket));
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    change(socket, 1);
    response.once('close', () => change(socket, -1));
  });
  return {
    destroyIdle: () => {
      for (const [socket, count] of inHand) if (count === 0) socket.destroy();
    },
    destroyAll: () => {
      server.closeAllConnections();
      for (const socket of open) socket.destroy();
    },
  };
}
