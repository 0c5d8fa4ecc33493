import { Agent, createServer, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import type { TlsSource } from '../../../webhook/certificates/source.ts';
import { newWorld, pass, secretName } from './world.ts';

/** A request with the bundle that the configuration has, as the API server makes it. */
function call(port: number, ca: string, agent?: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      ca,
      servername: 'operator.one.svc',
      ...(agent === undefined ? { agent: false as const } : { agent }),
    };
    const asked = request(options, (response) => {
      response.resume();
      response.on('end', () => resolve(String(response.statusCode)));
    });
    asked.on('error', reject);
    asked.end();
  });
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

it('TLS clients that trust what the configuration says get an answer before, during and after a renewal, on old connections too', async () => {
  const world = newWorld(1, Date.now());
  world.configure('hooks');
  const certificates = world.certificates();
  // What the server follows.
  const source: TlsSource = certificates;
  await world.env.until(() => world.bundles('hooks')[0] !== '');
  await world.env.advance(1000);
  const { cert, key } = certificates.current() ?? {};
  const server = createServer({ cert, key }, (_, response) => response.end());
  const contexts: string[] = [];
  source.onChange(() => {
    const { cert: nextCert = '', key: nextKey = '' } = certificates.current() ?? {};
    server.setSecureContext({ cert: nextCert, key: nextKey });
    contexts.push(nextCert);
  });
  const port = await listening(server);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const bundle = (): string => world.bundles('hooks')[0] ?? '';
  const answers: string[] = [];
  try {
    answers.push(await call(port, bundle(), agent));
    world.server.remove({ user: 'jane' }, { resource: 'secrets', namespace: 'one', name: secretName });
    for (let second = 0; second < 60; second += 1) {
      await world.env.advance(1000);
      answers.push(await call(port, bundle()));
    }
    answers.push(await call(port, bundle(), agent));
    expect(certificates.current()?.cert).not.toBe(cert);
    expect(contexts.at(-1)).toBe(certificates.current()?.cert);
    expect(new Set(answers)).toEqual(new Set(['200']));
    await pass(world, 0.1 * 86_400_000);
    expect(await call(port, bundle())).toBe('200');
  } finally {
    agent.destroy();
    server.close();
    certificates.stop();
  }
});
