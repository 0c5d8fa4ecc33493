// The connections of a server: how many there may be from one address, and how they end.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

export interface Connections {
  /** Ends those on which no request is in hand, also such that never had one: clients keep connections that they have opened in vain. */
  readonly destroyIdle: () => void;
  /** Ends all of them, whatever they do. */
  readonly destroyAll: () => void;
}

/** Ends connections beyond `maxPerPeer` from one address as soon as they are there, before the handshake has cost anything. */
export function watchConnections(
  server: Server,
  { maxPerPeer, refused }: { readonly maxPerPeer: number; readonly refused: (why: 'limit' | 'peer-limit') => void },
): Connections {
  const open = new Set<Socket>();
  const perPeer = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    // Undefined when the client has gone already.
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
  /** Requests in hand, of each connection whose handshake is done. */
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
