// `helm test` waits for an agent that starts, and tells what is wrong with one that stays wrong.
import { execFile } from 'node:child_process';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { connectionScript } from '../../scripts/chart/connection-test.ts';
import { createCertificateAuthority } from '../control-plane/certificates.ts';
import { freePort } from '../control-plane/control-plane.ts';

const name = 'rollout-group-agent.rollout-group.svc';
const authority = createCertificateAuthority('helm-test');

async function listening(server: Server): Promise<number> {
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Returns the port of an agent that answers /ready with these statuses, the last one again and again. */
function readyServer(...statuses: readonly number[]): Promise<number> {
  const left = [...statuses];
  return listening(
    createHttpServer((_request, response) => {
      response.writeHead((left.length > 1 ? left.shift() : left[0]) ?? 0, { connection: 'close' }).end();
    }),
  );
}

/** Returns the port of webhooks with a certificate for this name. */
function webhooksFor(dnsName: string): Promise<number> {
  const { certificate: cert, privateKey: key } = authority.issueForServer([dnsName]);
  return listening(createTlsServer({ cert, key }, (socket) => void socket.on('error', () => undefined)));
}

function test(ports: { readonly ready: number; readonly webhooks: number }, waitSeconds: number): Promise<readonly [number, string]> {
  const env = {
    READY_URL: `http://127.0.0.1:${ports.ready}/ready`,
    WEBHOOK_NAME: name,
    WEBHOOK_ADDRESS: `127.0.0.1:${ports.webhooks}`,
    WAIT_SECONDS: String(waitSeconds),
  };
  return new Promise((settle) => {
    execFile(process.execPath, ['--eval', connectionScript], { env }, (error, stdout, stderr) =>
      settle([error === null ? 0 : 1, `${stderr}${stdout}`]),
    );
  });
}

it('succeeds for an agent that becomes ready', async () => {
  const ports = { ready: await readyServer(500, 200), webhooks: await webhooksFor(name) };
  const [code, said] = await test(ports, 60);
  expect([code, said.split('\n')]).toEqual([
    0,
    [`http://127.0.0.1:${ports.ready}/ready answers 500`, `the agent is ready, and its certificate is for ${name}`, ''],
  ]);
});

it.each([
  ['an agent that does not listen', { ready: freePort, webhooks: () => webhooksFor(name) }, /ready does not answer: .*ECONNREFUSED/],
  ['an agent that is not ready', { ready: () => readyServer(500), webhooks: () => webhooksFor(name) }, /ready answers 500\n$/],
  ['webhooks that do not listen', { ready: () => readyServer(200), webhooks: freePort }, /ECONNREFUSED/],
  ['a certificate for another name', { ready: () => readyServer(200), webhooks: () => webhooksFor('other.svc') }, /altnames.*\n$/],
] as const)('fails with the cause for %s', async (_what, { ready, webhooks }, cause) => {
  const [code, said] = await test({ ready: await ready(), webhooks: await webhooks() }, 0);
  expect([code, said]).toEqual([1, expect.stringMatching(cause)]);
});
