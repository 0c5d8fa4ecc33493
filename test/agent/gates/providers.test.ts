// Gates of metric sources from the port to the reading, against servers on this machine that answer as the real ones document, and as none should.
import { afterEach, describe, expect, it } from 'vitest';
import { consulClient, prometheusClient } from '../../../agent/gates/source-clients.ts';
import { type Handler, loopback, portTo } from './source-kit.ts';

const { serve, exchanges, close } = loopback();
afterEach(close);

const of = { namespace: 'mimir', everyMs: 60_000, written: () => undefined };
const ask = () => ({ atMs: Date.now(), timeoutMs: 5_000 });

/** A reading without its instant, or the problem that it becomes. */
async function told(work: Promise<object>): Promise<unknown> {
  return await work.then(
    (reading) => Object.fromEntries(Object.entries(reading).filter(([key]) => key !== 'atMs')),
    (error: Error) => error.message,
  );
}

const json =
  (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Handler =>
  (_request, response) => {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

describe('a gate on a Prometheus', () => {
  const seconds = () => Date.now() / 1000;
  const success = (resultType: string, result: unknown, more: object = {}) => ({
    status: 'success',
    data: { resultType, result },
    ...more,
  });
  const sample = (value: string, at = seconds()) => ({ metric: { job: 'x' }, value: [at, value] });
  const error = (message: string) => ({ result: 'error', message });

  it.each<[string, () => Handler, unknown]>([
    ['one series', () => json(success('vector', [sample('0.25')])), { result: 'value', value: 0.25 }],
    ['a scalar', () => json(success('scalar', [seconds(), '1'])), { result: 'value', value: 1 }],
    ['NaN', () => json(success('vector', [sample('NaN')])), { result: 'notFinite', value: 'NaN' }],
    ['+Inf', () => json(success('vector', [sample('+Inf')])), { result: 'notFinite', value: '+Inf' }],
    ['nothing', () => json(success('vector', [])), { result: 'noData' }],
    ['a string', () => json(success('string', [seconds(), '0'])), error('the query answers with a string; a gate needs one number')],
    [
      'two series',
      () => json(success('vector', [sample('0'), sample('0')])),
      error('the query answers with 2 series; a gate needs one number'),
    ],
    ['a stale sample', () => json(success('vector', [sample('0', seconds() - 600)])), error('the sample is 10m old')],
    ['a part', () => json(success('vector', [sample('0')], { warnings: ['x'] })), error('the answer has warnings, so it may be partial')],
    [
      'an error with status 200',
      () =>
        json({ status: 'error', errorType: 'timeout', error: 'query timed out', data: { resultType: 'vector', result: [sample('0')] } }),
      error('the query failed: timeout'),
    ],
    [
      'an error',
      () => json({ status: 'error', errorType: 'bad_data', error: 'x' }, 400),
      error('the provider answered HTTP 400: bad_data'),
    ],
    ['a page', () => json('<html>Sign in</html>'), error('the answer is not JSON')],
    [
      'a redirect',
      () => json('', 307, { Location: 'https://elsewhere' }),
      'the provider redirects (HTTP 307), which the agent does not follow',
    ],
    [
      '10 MB',
      () =>
        json(
          success(
            'vector',
            Array.from({ length: 150_000 }, () => sample('0')),
          ),
        ),
      'the answer is longer than 1048576 bytes',
    ],
  ])('reads %s', async (_what, handler, reading) => {
    const at = await serve(handler());
    const { port } = portTo({ sources: { prod: { prometheus: { url: `http://${at}` } } }, exchanges: exchanges() });
    const client = prometheusClient(port, { source: 'prod', query: 'up' }, of);
    expect(await told(client.query(ask()))).toEqual(reading);
  });

  it('counts a repeated sample once', async () => {
    const body = success('vector', [sample('0')]);
    const at = await serve(json(body));
    const { port } = portTo({ sources: { prod: { prometheus: { url: `http://${at}` } } }, exchanges: exchanges() });
    const client = prometheusClient(port, { source: 'prod', query: 'up' }, of);
    expect(await told(client.query(ask()))).toEqual({ result: 'value', value: 0 });
    expect(await told(client.query(ask()))).toEqual(error('the answer repeats the previous sample'));
  });
});

describe('a gate on a Consul', () => {
  const headers = {
    'X-Consul-Index': '42',
    'X-Consul-KnownLeader': 'true',
    'X-Consul-LastContact': '0',
    'X-Consul-Effective-Consistency': 'leader',
  };
  const instance = (id: string, ...statuses: readonly string[]) => ({
    Node: { Node: 'foobar', Address: '10.1.10.12', Datacenter: 'dc1' },
    Service: { ID: id, Service: 'redis', Port: 8000 },
    Checks: statuses.map((Status, index) => ({ Node: 'foobar', CheckID: `check:${index}`, Status })),
  });
  const list = [instance('a', 'passing', 'passing'), instance('b', 'passing', 'critical'), instance('c', 'passing')];

  async function read(handler: Handler, gate: { passing?: number } = {}) {
    const at = await serve((request, response) => {
      if (request.headers['x-consul-token'] === 'right') handler(request, response);
      else json('Permission denied: token with AccessorID lacks permission', 403)(request, response);
    });
    const spec = { consul: { url: `http://${at}`, token: { name: 'acl', key: 'token' } } };
    const secrets = { acl: { token: 'right' } };
    const { port } = portTo({ sources: { dc: spec }, secrets, exchanges: exchanges() });
    return await told(consulClient(port, { source: 'dc', service: 'redis', ...gate }, of).query(ask()));
  }

  it('counts the failing instances, or the passing ones if the gate requires a number', async () => {
    expect(await read(json(list, 200, headers))).toEqual({ result: 'value', value: 1 });
    expect(await read(json(list, 200, headers), { passing: 3 })).toEqual({ result: 'value', value: 2 });
    expect(await read(json([], 200, headers))).toEqual({ result: 'noData' });
  });

  it.each<[string, Handler, string]>([
    ['no leader', json('No cluster leader', 500), 'the provider answered HTTP 500'],
    [
      'a follower without a leader',
      json(list, 200, { ...headers, 'X-Consul-KnownLeader': 'false' }),
      'the datacenter has no leader, so the answer may be old',
    ],
    ['a follower that is behind', json(list, 200, { ...headers, 'X-Consul-LastContact': '60000' }), 'the answer is 1m old'],
    ['a part', json(list, 200, { ...headers, 'X-Consul-Results-Filtered-By-ACLs': 'true' }), 'the ACLs hide some instances from the token'],
    ['an unknown datacenter', json('No path to datacenter', 500), 'the provider answered HTTP 500'],
  ])('is an error on %s', async (_what, handler, message) => {
    expect(await read(handler)).toEqual({ result: 'error', message });
  });

  it('is an error without the token, and never contains text of the answer', async () => {
    const at = await serve(json('Permission denied: token hunter2', 403));
    const { port } = portTo({ sources: { dc: { consul: { url: `http://${at}` } } }, exchanges: exchanges() });
    const reading = await told(consulClient(port, { source: 'dc', service: 'redis' }, of).query(ask()));
    expect(reading).toEqual({ result: 'error', message: 'the provider does not accept the credentials (HTTP 403)' });
  });
});
