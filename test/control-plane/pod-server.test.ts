import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type PodServer, startPodServer } from './pod-server.ts';

let server: PodServer;
beforeEach(async () => {
  server = await startPodServer();
});
afterEach(() => server.close());

const host = 'ingester-zone-a-1.ingester-zone-a.mimir.svc.cluster.local.';

/** Sends a request as a client of a proxy does: with the whole address in the request line. */
function ask(method: string, address = `http://${host}:8080/ingester/prepare?now=1`): Promise<readonly [number | undefined, string]> {
  return new Promise((settle, reject) => {
    const sent = request(server.url, { method, path: address, headers: { host } }, async (reply) => {
      settle([reply.statusCode, await text(reply)]);
    });
    sent.on('error', reject);
    sent.setTimeout(300, () => sent.destroy(new Error('timeout')));
    sent.end();
  });
}

describe('the server of all pods', () => {
  it('remembers since when a pod has been prepared, until it is told to stay', async () => {
    const [status, body] = await ask('POST');
    const { timestamp } = JSON.parse(body) as { readonly timestamp: number };
    expect([status, await ask('POST')]).toEqual([200, [200, body]]);
    expect(server.prepared()).toEqual({ 'ingester-zone-a-1': timestamp });
    expect(Math.abs(timestamp * 1000 - Date.now())).toBeLessThan(60_000);
    await ask('DELETE');
    expect(server.prepared()).toEqual({});
  });

  it('writes down whom the call was for', async () => {
    await ask('POST');
    expect(server.calls()).toMatchObject([
      { method: 'POST', pod: 'ingester-zone-a-1', host, port: 8080, path: '/ingester/prepare?now=1', status: 200 },
    ]);
  });

  it('behaves as scripted, by pod and method; the last script counts', async () => {
    server.script(/.*/, { kind: 'status', status: 500 });
    server.script(/-1$/, { kind: 'status', status: 409 }, 'DELETE');
    server.script(/-2$/, { kind: 'body', body: 'hello' });
    expect([(await ask('POST'))[0], (await ask('DELETE'))[0]]).toEqual([500, 409]);
    expect(await ask('POST', 'http://x-2.y/')).toEqual([200, 'hello']);
    server.script(/-1$/, { kind: 'lying', secondsFromNow: -3600 });
    const { timestamp } = JSON.parse((await ask('POST'))[1]) as { readonly timestamp: number };
    expect(timestamp * 1000).toBeLessThan(Date.now() - 3_500_000);
    server.script(/.*/, { kind: 'refuse' });
    await expect(ask('POST')).rejects.toThrow('socket hang up');
    server.script(/.*/, { kind: 'hang' });
    await expect(ask('POST')).rejects.toThrow('timeout');
    expect(server.calls().map(({ status }) => status)).toEqual([500, 409, 200, 200, undefined, undefined]);
  });
});
