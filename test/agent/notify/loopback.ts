// A service in memory (services.ts) behind a real HTTP server on loopback, for agents that speak real HTTP.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FakeService } from './services.ts';

export interface LoopbackService {
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** Answers every request as the service does. */
export async function onLoopback(service: Pick<FakeService, 'answer'>): Promise<LoopbackService> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, `${value}`]));
      const asked = { method: request.method ?? '', path: request.url ?? '', headers, body: Buffer.concat(chunks).toString() };
      const { status, body, headers: more = {} } = service.answer(asked);
      response.writeHead(status, { 'Content-Type': 'application/json', ...more }).end(JSON.stringify(body ?? {}));
    });
  });
  await new Promise<void>((settle) => void server.listen(0, '127.0.0.1', settle));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((settle) => void server.close(settle));
    },
  };
}
