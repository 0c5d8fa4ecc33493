import { afterEach, describe, expect, it } from 'vitest';
import { processTimers } from '../../../cluster/connection/process-env.ts';
import type { Timers } from '../../../cluster/env.ts';
import type { Answer } from '../../../webhook/review/review.ts';
import { reviewText } from '../review/reviews.ts';
import {
  ask,
  changingSource,
  closeAll,
  drainUntil,
  endpoint,
  gate,
  keepAliveAgent,
  newMaterial,
  rawConnection,
  responseOf,
  serve,
  until,
} from './served.ts';

afterEach(closeAll);

describe('the shutdown of a server', () => {
  it('starts with its readiness, and requests are answered until clients know it', async () => {
    const { passed, open } = gate();
    const { webhook, port } = await serve(drainUntil(passed));
    const agent = keepAliveAgent(1);
    expect((await ask(port, { agent })).headers['connection']).toBe('keep-alive');
    expect(webhook.isReady()).toBe(true);
    const closed = webhook.close();
    expect(webhook.isReady()).toBe(false);
    // On the connection that was kept, and on a new one; each ends with its answer.
    for (const client of [agent, false] as const) {
      const reply = await ask(port, { agent: client });
      expect(responseOf(reply)).toMatchObject({ allowed: true });
      expect(reply.headers['connection']).toBe('close');
    }
    expect((await ask(port, { path: '/none' })).headers['connection']).toBe('close');
    open();
    await closed;
    await expect(ask(port)).rejects.toThrow('ECONNREFUSED');
    agent.destroy();
  });

  it('waits for open requests', async () => {
    const { passed, open } = gate();
    let asked = 0;
    const holding = async (): Promise<Answer> => {
      asked++;
      await passed;
      return { allowed: true };
    };
    const { webhook, port } = await serve({ endpoints: [endpoint(holding)] });
    const agent = keepAliveAgent(5);
    const replies = Array.from({ length: 5 }, () => ask(port, { agent }));
    await until(() => asked === 5);
    const closed = webhook.close();
    // Once nobody gets in any more, the listener has closed.
    let isOpen = true;
    while (isOpen) {
      isOpen = await rawConnection(port).then(
        ({ socket }) => {
          socket.destroy();
          return true;
        },
        () => false,
      );
    }
    open();
    for (const reply of await Promise.all(replies)) {
      expect(responseOf(reply)).toMatchObject({ allowed: true });
      expect(reply.headers['connection']).toBe('close');
    }
    await closed;
    agent.destroy();
  });

  it('ends idle connections, and in the end all of them', async () => {
    const never = (): Promise<Answer> => new Promise(() => undefined);
    const { webhook, port, inflight } = await serve({ endpoints: [endpoint(never)], config: { closeWithinMs: 100 } });
    const idle = await rawConnection(port);
    const lost = ask(port);
    lost.catch(() => undefined);
    await until(() => inflight.length === 1);
    await Promise.all([webhook.close(), webhook.close()]);
    await idle.closed;
    await expect(lost).rejects.toThrow();
  });

  it('answers a request that arrived before the time for the first request ended', async () => {
    const firstRequestMs = 1_000;
    let end: (() => void) | undefined;
    const after: Timers['after'] = (delayMs, callback) => {
      if (delayMs !== firstRequestMs) return processTimers.after(delayMs, callback);
      end = callback;
      return () => undefined;
    };
    const { webhook, port } = await serve({ timers: { after } });
    const { socket, text, closed } = await rawConnection(port);
    const ended = webhook.close();
    await until(() => end !== undefined);
    // On a busy machine the time is over before the process reads what has arrived. Timers fire before Node.js reads.
    setTimeout(() => {
      const body = reviewText();
      const headers = `Host: webhook\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}`;
      socket.write(`POST /admission/test HTTP/1.1\r\n${headers}\r\n\r\n${body}`);
      end?.();
    });
    await closed;
    expect(text()).toMatch(/^HTTP\/1.1 200 .*"allowed":true/s);
    await ended;
  });

  it('loses no request of clients that follow readiness late', async () => {
    const tls = changingSource(newMaterial());
    const endpoints = [endpoint(async ({ uid }) => ({ allowed: true, warnings: [uid] }))];
    const start = async () => {
      const { passed, open } = gate();
      return { ...(await serve({ tls, endpoints, ...drainUntil(passed) })), drained: open };
    };
    let current = await start();
    let isOver = false;
    let answered = 0;
    // Which server each client believes in: as endpoints reach API servers with a delay, it looks only now and then.
    const believed = Array.from({ length: 8 }, () => 0);
    const client = async (_: unknown, index: number): Promise<void> => {
      const agent = keepAliveAgent(1);
      while (!isOver) {
        const { port } = current;
        believed[index] = port;
        for (let count = 0; count < 5; count++) {
          expect(responseOf(await ask(port, { agent }))).toMatchObject({ allowed: true });
          answered++;
        }
      }
      agent.destroy();
    };
    const clients = Promise.all(believed.map(client));
    for (let roll = 0; roll < 5; roll++) {
      const next = await start();
      const old = current;
      const closed = old.webhook.close();
      const before = answered;
      await until(() => answered > before + 20);
      current = next;
      await until(() => !believed.includes(old.port));
      old.drained();
      await closed;
    }
    isOver = true;
    await clients;
    current.drained();
    expect(answered).toBeGreaterThan(100);
  });
});
