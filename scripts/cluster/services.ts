// Connects the API server to the webhooks: no network leads to a Service here, so the API server asks this proxy (HTTP CONNECT).
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';

export interface Services {
  readonly close: () => Promise<void>;
}

/** Listens on the socket. Connects port 443 to the port that `webhookPort` returns. Refuses every other connection. */
export async function startServices(socketPath: string, webhookPort: () => number | undefined): Promise<Services> {
  const sockets = new Set<Socket>();
  const keep = (one: Socket, other: Socket): void => {
    sockets.add(one);
    one.on('error', () => other.destroy());
    one.on('close', () => {
      sockets.delete(one);
      other.destroy();
    });
  };
  const server = createServer().on('connect', ({ url = '' }, incoming: Socket) => {
    const port = url.endsWith(':443') ? webhookPort() : undefined;
    if (port === undefined) {
      incoming.end('HTTP/1.1 503 Service Unavailable\r\n\r\n');
      return;
    }
    const outgoing = connect({ host: '127.0.0.1', port });
    keep(incoming, outgoing);
    keep(outgoing, incoming);
    outgoing.on('connect', () => {
      incoming.write('HTTP/1.1 200 OK\r\n\r\n');
      incoming.pipe(outgoing).pipe(incoming);
    });
  });
  await new Promise<void>((settle) => server.listen(socketPath, settle));
  return {
    close: async () => {
      const closed = new Promise((settle) => server.close(settle));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
