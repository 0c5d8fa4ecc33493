import { afterEach, describe, expect, it } from 'vitest';
import { type Random, randomFrom } from '../../kit/random.ts';
import { commitSeed, rounds } from '../../kit/share.ts';
import { forge } from '../review/forged.ts';
import { type Asking, ask, closeAll, endpoint, keepAliveAgent, type Reply, rawConnection, responseOf, serve } from './served.ts';

afterEach(closeAll);

const seed = Number(process.env['FUZZ_SEED'] ?? commitSeed);
const clients = 12;
const requestsOfEach = rounds(250, 80);
const requests = clients * requestsOfEach;

const endpoints = [
  endpoint(async (review) => ({ allowed: !review.dryRun, message: JSON.stringify(review), warnings: [review.name] })),
  endpoint(
    ({ uid }) => {
      throw new Error(uid);
    },
    { path: '/admission/throwing' },
  ),
];

/** Mostly what gets through to an endpoint, with some headers and paths that do not. */
function asking(random: Random): Asking {
  const { bytes } = forge(random);
  const cut = random.below(bytes.length + 1);
  const body = random.next() < 0.3 ? [bytes.subarray(0, cut), bytes.subarray(cut)] : bytes;
  const types = ['application/json', 'application/json', 'application/json', 'application/json; charset=utf-8', 'text/plain', ''];
  const paths = ['/admission/test', '/admission/test', '/admission/throwing', '/admission/throwing?timeout=5s', '/%ff', '/x?timeout=1s'];
  return {
    body,
    path: random.pick(paths),
    method: random.pick(['POST', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE']),
    headers: {
      'Content-Type': random.pick(types),
      ...(random.next() < 0.05 ? { 'Content-Encoding': random.pick(['gzip', 'identity', 'br']) } : {}),
    },
  };
}

function check(reply: Reply): void {
  expect(reply.body).not.toMatch(/\bat .{0,80}\.[jt]s:|node:internal|\(\/|Error:/);
  if (reply.status === 200) expect(responseOf(reply)).toMatchObject({ uid: expect.any(String), allowed: expect.any(Boolean) });
  else expect(reply.status >= 400 && reply.status < 500 ? '4xx' : reply.status).toBe('4xx');
}

describe('a server with arbitrary input', () => {
  it(`answers each of ${requests} requests with a review or a 4xx (FUZZ_SEED=${seed})`, async () => {
    const random = randomFrom(seed);
    const { port, inflight, webhook } = await serve({ endpoints, limits: { maxValues: 700 } });
    const agent = keepAliveAgent(16);
    const statuses = new Map<number, number>();
    const client = async (): Promise<void> => {
      for (let count = 0; count < requestsOfEach; count++) {
        const reply = await ask(port, { ...asking(random), agent });
        check(reply);
        statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
    agent.destroy();
    expect([...statuses.keys()].sort()).toEqual([200, 400, 404, 415]);
    expect(webhook.isReady()).toBe(true);
    await closeAll();
    expect(inflight.filter((line) => line.endsWith(' 1'))).toHaveLength(requests);
    expect(inflight.filter((line) => line.endsWith(' -1'))).toHaveLength(requests);
  }, 300_000);

  it(`survives invalid bytes, and requests that end early (FUZZ_SEED=${seed})`, async () => {
    const random = randomFrom(seed ^ 1);
    const { port, inflight } = await serve({ endpoints });
    for (let count = 0; count < 200; count++) {
      const { bytes } = forge(random);
      const head = `POST /admission/test HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${bytes.length}\r\n\r\n`;
      const sent = Buffer.concat([Buffer.from(head), bytes]);
      if (random.next() < 0.5) sent[random.below(head.length)] = random.below(256);
      const { socket, text, closed } = await rawConnection(port);
      socket.end(sent.subarray(0, random.below(sent.length + 1)));
      await closed;
      expect(text()).not.toMatch(/\bat .{0,80}\.[jt]s:|node:internal/);
      expect(text()).toMatch(/^(?:HTTP\/1\.1 (?:200|4\d\d|505) [\s\S]*)?$/);
    }
    check(await ask(port));
    await closeAll();
    expect(inflight.filter((line) => line.endsWith(' 1'))).toHaveLength(inflight.length / 2);
  }, 300_000);
});
