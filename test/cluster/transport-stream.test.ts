import type { ServerResponse } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import type { KubernetesTransport } from '../../cluster/connection/transport.ts';
import { TransportFailure } from '../../cluster/request/failure.ts';
import { ask, connectionTo, ManualTimers, serveHttps, transportTo } from './loopback.ts';

/** Opens a stream on a server that writes what the test tells it. */
async function open(onLine: (line: string) => void, http?: KubernetesTransport) {
  let toClient: ServerResponse | undefined;
  const server = await serveHttps((_, response) => {
    toClient = response;
    response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders();
  });
  const stream = await (http ?? transportTo(connectionTo(server.url))).stream(ask('/watch'), onLine);
  return { server, stream, toClient: toClient ?? never() };
}

function never(): never {
  throw new Error('the server was not asked');
}

/** Each piece goes out on its own, so that it arrives on its own. */
async function writePieces(response: ServerResponse, pieces: readonly Buffer[]): Promise<void> {
  for (const piece of pieces) await new Promise((resolve) => response.write(piece, () => setImmediate(resolve)));
}

describe('a stream', () => {
  it('delivers whole lines in order from any pieces', async () => {
    const lines: string[] = [];
    const { stream, toClient } = await open((line) => lines.push(line));
    const text = '{"name":"zürich"}\n{"name":"𝄞 日本"}\n\n{"name":"three"}\n';
    await writePieces(
      toClient,
      [...Buffer.from(text)].map((byte) => Buffer.from([byte])),
    );
    toClient.end();
    expect(await stream.ended).toBe('the server ended the stream');
    expect(lines).toEqual(['{"name":"zürich"}', '{"name":"𝄞 日本"}', '{"name":"three"}']);
  });

  it('does not deliver an incomplete line', async () => {
    const lines: string[] = [];
    const { stream, toClient } = await open((line) => lines.push(line));
    toClient.end('{"a":1}\n{"b":');
    expect(await stream.ended).toBe('the stream ended within a line');
    expect(lines).toEqual(['{"a":1}']);
  });

  it('reports a broken connection', async () => {
    const lines: string[] = [];
    const { stream, toClient } = await open((line) => lines.push(line));
    await writePieces(toClient, [Buffer.from('{"a":1}\n')]);
    await vi.waitFor(() => expect(lines).toEqual(['{"a":1}']));
    toClient.socket?.destroy();
    expect(await stream.ended).toMatch(/^the connection broke/);
  });

  it('carries 20,000 events of 1.7 KB and one of 3 MB', async () => {
    let count = 0;
    let byteCount = 0;
    const { stream, toClient } = await open((line) => {
      count += 1;
      byteCount += line.length;
    });
    const line = `${'e'.repeat(1700)}\n`;
    for (let index = 0; index < 200; index += 1) toClient.write(line.repeat(100));
    toClient.write(`${'l'.repeat(3_000_000)}\n`);
    toClient.end();
    expect(await stream.ended).toBe('the server ended the stream');
    expect([count, byteCount]).toEqual([20_001, 20_000 * 1700 + 3_000_000]);
  });

  it('delivers nothing after it was closed, also of a received piece, and ends the connection', async () => {
    const lines: string[] = [];
    const { server, stream, toClient } = await open((line) => {
      lines.push(line);
      if (lines.length === 2) stream.close();
    });
    const closed = new Promise<void>((resolve) => toClient.on('close', resolve));
    toClient.write('one\ntwo\nthree\nfour\n');
    expect(await stream.ended).toBe('closed');
    await closed;
    expect(lines).toEqual(['one', 'two']);
    stream.close();
    expect(server.seen).toHaveLength(1);
  });

  it('returns its handle before the first line, also if both arrive at once', async () => {
    const server = await serveHttps((_, response) => response.writeHead(200).end('one\ntwo\n'));
    const order: string[] = [];
    const stream = await transportTo(connectionTo(server.url)).stream(ask('/watch'), (line) => order.push(line));
    order.push('handle');
    await stream.ended;
    expect(order).toEqual(['handle', 'one', 'two']);
  });

  it('ends if its receiver fails, without other effects', async () => {
    const { stream, toClient } = await open((line) => {
      JSON.parse(line);
    });
    toClient.write('no JSON\n');
    expect(await stream.ended).toMatch(/^a line could not be processed: /);
  });

  it('slows the server while its receiver is busy', async () => {
    let isBusy = true;
    const { stream, toClient } = await open(() => {
      // Nothing else of this process runs meanwhile, so what is not read stays with the server.
      const until = performance.now() + (isBusy ? 20 : 0);
      while (performance.now() < until);
    });
    const line = `${'x'.repeat(100_000)}\n`;
    let isHeldBack = false;
    for (let index = 0; index < 400 && !isHeldBack; index += 1) isHeldBack = !toClient.write(line);
    expect(isHeldBack).toBe(true);
    isBusy = false;
    toClient.end();
    expect(await stream.ended).toBe('the server ended the stream');
  });

  it('returns the answer of the server instead of a stream', async () => {
    const server = await serveHttps((_, response) => response.writeHead(410).end('{"reason":"Expired"}'));
    const lines: string[] = [];
    const stream = await transportTo(connectionTo(server.url)).stream(ask('/watch'), (line) => lines.push(line));
    expect([stream.status, stream.body, await stream.ended, lines]).toEqual([410, '{"reason":"Expired"}', 'the server answered 410', []]);
    stream.close();
  });

  it('has a time limit until it is open', async () => {
    const timers = new ManualTimers();
    const silent = await serveHttps(() => timers.fire());
    const opening = transportTo(connectionTo(silent.url), { timers }).stream(ask('/watch'), () => undefined);
    await expect(opening).rejects.toThrow(TransportFailure);
    const server = await serveHttps((_, response) => response.writeHead(200).flushHeaders());
    await transportTo(connectionTo(server.url), { timers }).stream(ask('/watch'), () => undefined);
    expect(timers.delaysMs).toEqual([]);
  });
});
