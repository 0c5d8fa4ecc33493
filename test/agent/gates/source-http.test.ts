import { afterEach, describe, expect, it } from 'vitest';
import { createCertificateAuthority } from '../../control-plane/certificates.ts';
import { bodyOf, type Handler, loopback, portTo, question, type SourceSpec, type SourcesGiven, writtenSource } from './source-kit.ts';

const { serve, exchanges, close } = loopback();
afterEach(close);

type Given = Omit<SourcesGiven, 'exchanges'>;

/** The problem with which a question is refused, and what the log says of it. */
async function refused(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'nothing was wrong',
    (error: Error) => error.message,
  );
}

const good = JSON.stringify({ status: 'success', data: { resultType: 'scalar', result: [1, '0'] } });

/** A Prometheus that notes what it is asked, and the port to it. */
async function prometheus({ spec = {}, handler, ...given }: Given & { spec?: SourceSpec; handler?: Handler } = {}) {
  const seen: { method?: string; url?: string; headers: NodeJS.Dict<string | string[]>; body: string }[] = [];
  const at = await serve((request, response) => {
    void bodyOf(request).then((body) => {
      const { method = '', url = '', headers } = request;
      seen.push({ method, url, headers, body });
      if (handler === undefined) response.end(good);
      else handler(request, response);
    });
  });
  const sources = { prod: { prometheus: { url: `http://${at}`, ...spec }, limits: { minInterval: '15s' } } };
  const { port, asked, logs, putSecret } = portTo({ sources, ...given, exchanges: exchanges() });
  const ask = (more: object = {}) => port.query({ ...question, query: 'sum(rate(errors[5m])) + 1', ...more });
  return { at, seen, asked, logs, ask, putSecret };
}

describe('a question to a Prometheus', () => {
  it('is a POST of the query as written, with the timeout of the client', async () => {
    const { seen, ask, at, asked } = await prometheus();
    expect(await ask()).toMatchObject({ status: 200, body: good });
    const [first] = seen;
    expect(first).toMatchObject({ method: 'POST', url: '/api/v1/query' });
    expect(first?.headers).toMatchObject({
      host: at,
      'user-agent': 'rollout-group-agent/1',
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
    });
    expect(first?.headers['authorization']).toBeUndefined();
    const form = new URLSearchParams(first?.body);
    expect([...form.keys()]).toEqual(['query', 'timeout']);
    expect(form.get('query')).toBe('sum(rate(errors[5m])) + 1');
    expect(form.get('timeout')).toMatch(/^[1-9]\d{0,3}ms$/);
    expect(asked()).toEqual(['GET /apis/rollout-group.dev/v1alpha1/namespaces/operator/metricsources/prod']);
  });

  it('stays below the path of the source for every query', async () => {
    const { seen, ask, at } = await prometheus();
    const { port } = portTo({ sources: { prod: { prometheus: { url: `http://${at}/prometheus/` } } }, exchanges: exchanges() });
    await port.query({ ...question, query: '../../admin?x=1#y&query=up\r\nHost: evil' });
    expect(seen[0]).toMatchObject({ url: '/prometheus/api/v1/query', headers: { host: at } });
    expect(new URLSearchParams(seen[0]?.body).getAll('query')).toEqual(['../../admin?x=1#y&query=up\r\nHost: evil']);
    await ask();
  });

  it('shows a token, or a user and a password, that it reads each time', async () => {
    const secrets = { login: { token: 'first\n', user: 'prometheus', password: 'pässword\r\n' } };
    const bearer = await prometheus({ spec: { bearerToken: { name: 'login', key: 'token' } }, secrets });
    await bearer.ask();
    bearer.putSecret('login', { token: 'second', user: 'u', password: 'p' });
    await bearer.ask();
    expect(bearer.seen.map(({ headers }) => headers['authorization'])).toEqual(['Bearer first', 'Bearer second']);

    const key = (name: string) => ({ name: 'login', key: name });
    const basic = await prometheus({ spec: { basicAuth: { username: key('user'), password: key('password') } }, secrets });
    await basic.ask();
    expect(basic.seen[0]?.headers['authorization']).toBe(`Basic ${Buffer.from('prometheus:pässword').toString('base64')}`);
    // One Secret is read once for both of its keys.
    expect(basic.asked().filter((path) => path.includes('/secrets/'))).toEqual(['GET /api/v1/namespaces/operator/secrets/login']);
    expect([...bearer.logs, ...basic.logs]).toEqual([]);
  });

  const token = { bearerToken: { name: 'login', key: 'token' } };
  it.each<[string, Given & { spec?: SourceSpec }, string]>([
    ['its Secret is not there', { spec: token }, 'the Secret of the metric source does not exist'],
    [
      'its Secret may not be read',
      { spec: token, answers: (path) => (path.includes('secrets') ? 403 : undefined) },
      'the Secret of the metric source cannot be read (HTTP 403)',
    ],
    [
      'its Secret has not the key',
      { spec: token, secrets: { login: { other: 'x' } } },
      'the Secret of the metric source does not have the named key',
    ],
    ['the key is empty', { spec: token, secrets: { login: { token: '\n' } } }, 'the Secret of the metric source has an empty value'],
    [
      'the token would be another header',
      { spec: token, secrets: { login: { token: 'hunter2\r\nX-Scope-OrgID: other' } } },
      'the token in the Secret of the metric source has characters that are not allowed in a header',
    ],
    [
      'the user name has a colon',
      {
        spec: { basicAuth: { username: { name: 'login', key: 'u' }, password: { name: 'login', key: 'p' } } },
        secrets: { login: { u: 'a:b', p: 'hunter2' } },
      },
      'the user name in the Secret of the metric source has a colon',
    ],
    [
      'it has both a token and a password',
      {
        spec: { ...token, basicAuth: { username: { name: 'login', key: 'token' }, password: { name: 'login', key: 'token' } } },
        secrets: { login: { token: 'hunter2' } },
      },
      'the metric source prod has both a token and a password',
    ],
    [
      'its certificate authority is not there',
      { spec: { ca: { name: 'ca', key: 'ca.crt' } } },
      'the Secret of the metric source does not exist',
    ],
    ['the source may not be read', { answers: () => 403 }, 'the metric source prod cannot be read (HTTP 403)'],
    ['the source is not there', { sources: {} }, 'there is no metric source prod'],
    [
      'the source is not valid',
      { sources: { prod: { prometheus: { url: 'ftp://x' } } } },
      'the metric source prod is not valid; run lint for the reason',
    ],
    ['the source is a Consul', { sources: { prod: { consul: { url: 'http://x' } } } }, 'the metric source prod is not a Prometheus'],
  ])('is not asked when %s', async (_what, given, problem) => {
    const { ask, seen, logs } = await prometheus(given);
    expect(await refused(ask())).toBe(problem);
    expect(seen).toEqual([]);
    expect(logs.join()).not.toContain('hunter2');
  });

  it('is denied for a group of another namespace, and has a rate limit', async () => {
    const { ask, seen } = await prometheus();
    expect(await refused(ask({ namespace: 'loki' }))).toBe('the metric source prod is not available to namespace loki');
    expect(await refused(ask({ everyMs: 5_000 }))).toBe('the metric source prod allows a query every 15s, not every 5s');
    expect(seen).toEqual([]);
    expect(await ask({ everyMs: 15_000 })).toMatchObject({ status: 200 });
  });

  it('uses the first source of the name, from a file or an object, and no source that is not in the policies', async () => {
    const { at, seen } = await prometheus();
    const other = await prometheus();
    const written = writtenSource('prod', { prometheus: { url: `http://${at}` } });
    const sources = { prod: { prometheus: { url: `http://${other.at}` } } };
    const ask = (policySources: Given['policySources']) =>
      portTo({ sources, exchanges: exchanges(), ...(policySources === undefined ? {} : { policySources }) }).port.query({
        ...question,
        query: 'up',
        written,
      });
    await ask(['directory', 'objects', 'adopted']);
    expect([seen.length, other.seen.length]).toEqual([1, 0]);
    await ask(['adopted', 'objects', 'directory']);
    expect([seen.length, other.seen.length]).toEqual([1, 1]);
    expect(await refused(ask(['adopted']))).toBe('there is no metric source prod');
  });
});

describe('an invalid answer', () => {
  it.each<[string, Handler, string]>([
    [
      'a redirect',
      (_request, response) => response.writeHead(302, { Location: 'http://127.0.0.1:1/' }).end(),
      'the provider redirects (HTTP 302), which the agent does not follow',
    ],
    ['a connection that is closed', (request) => request.socket.destroy(), 'the connection was reset'],
    [
      'a part of it',
      (request, response) => {
        response.writeHead(200, { 'Content-Length': '1000' });
        response.write('{');
        setImmediate(() => request.socket.destroy());
      },
      'the connection closed before the answer ended',
    ],
    ['10 MB', (_request, response) => response.end(Buffer.alloc(10_000_000, 0x20)), 'the answer is longer than 1048576 bytes'],
  ])('%s', async (_what, handler, problem) => {
    const { ask, seen, logs } = await prometheus({ handler });
    expect(await refused(ask())).toBe(problem);
    expect(seen).toHaveLength(1);
    expect(logs).toHaveLength(1);
  });

  it('is silence or a slow stream, which ends at the time limit of the gate and the source', async () => {
    const drip: Handler = (_request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(timer));
    };
    for (const handler of [() => undefined, drip]) {
      const { ask } = await prometheus({ handler });
      expect(await refused(ask({ timeoutMs: 200 }))).toMatch(/^no complete answer within 1?\d?\d ms$/);
    }
    const at = await serve(() => undefined);
    const sources = { prod: { prometheus: { url: `http://${at}` }, limits: { timeout: '150ms' } } };
    const { port } = portTo({ sources, exchanges: exchanges() });
    expect(await refused(port.query({ ...question, query: 'up' }))).toMatch(/^no complete answer within 1?\d?\d ms$/);
  });

  it.each<[number, object, number]>([
    [3_000, { maxResponseBytes: 2_048 }, 2_048],
    [1_048_577, {}, 1_048_576],
  ])('no more than the source allows: %d bytes', async (length, limits, most) => {
    const at = await serve((_request, response) => response.end('x'.repeat(length)));
    const sources = { prod: { prometheus: { url: `http://${at}` }, limits } };
    const { port } = portTo({ sources, exchanges: exchanges() });
    expect(await refused(port.query({ ...question, query: 'up' }))).toBe(`the answer is longer than ${most} bytes`);
  });

  it('is cut only at the limit of the source, also above 64 KiB', async () => {
    const body = good.padEnd(1_048_576);
    const at = await serve((_request, response) => response.end(body));
    const { port } = portTo({ sources: { prod: { prometheus: { url: `http://${at}` } } }, exchanges: exchanges() });
    expect(await port.query({ ...question, query: 'up' })).toMatchObject({ status: 200, body });
  });

  it('names its address once in the log of the agent, and not to the users of a group', async () => {
    const at = await serve(() => undefined);
    await close();
    const { port, logs } = portTo({ sources: { prod: { prometheus: { url: `http://${at}` } } }, exchanges: exchanges() });
    for (let time = 0; time < 3; time += 1) {
      expect(await refused(port.query({ ...question, query: 'up' }))).toBe('the provider refuses connections');
    }
    expect(logs).toHaveLength(1);
    expect(logs[0]).toContain(`"detail":"connect ECONNREFUSED ${at}"`);
  });

  it('is logged again if it returns after a valid answer', async () => {
    let isDown = true;
    const { ask, logs } = await prometheus({
      handler: (request, response) => (isDown ? request.socket.destroy() : response.end(good)),
    });
    await refused(ask());
    isDown = false;
    await ask();
    isDown = true;
    await refused(ask());
    expect(logs.map((line) => line.split(' {')[0])).toEqual([
      'metric source cannot be queried',
      'metric source answers again',
      'metric source cannot be queried',
    ]);
  });
});

describe('a source with TLS', () => {
  const authority = createCertificateAuthority('of the sources');

  it('is trusted through the authority in its policy, and through no other', async () => {
    const at = await serve((_request, response) => response.end(good), authority.issueForServer());
    const ask = async (secrets: Readonly<Record<string, Readonly<Record<string, string>>>>, more: object = {}) => {
      const sources = { prod: { prometheus: { url: `https://${at}`, ...more } } };
      return await portTo({ sources, secrets, exchanges: exchanges() }).port.query({ ...question, query: 'up' });
    };
    const ca = { ca: { name: 'ca', key: 'ca.crt' } };
    const secretOf = (text: string) => ({ ca: { 'ca.crt': text } });
    expect(await ask(secretOf(authority.certificate), ca)).toMatchObject({ status: 200 });
    expect(await refused(ask({}))).toBe('the certificate of the provider is not trusted');
    const other = createCertificateAuthority('somebody else');
    expect(await refused(ask(secretOf(other.certificate), ca))).toBe('the certificate of the provider is not trusted');
    expect(await refused(ask(secretOf('no PEM'), ca))).toMatch(/^(?:no answer|the certificate)/);
  });

  it('gets no request without TLS', async () => {
    const at = await serve((_request, response) => response.end(good));
    const { port } = portTo({ sources: { prod: { prometheus: { url: `https://${at}` } } }, exchanges: exchanges() });
    expect(await refused(port.query({ ...question, query: 'up' }))).toBe('the provider does not speak TLS');
  });
});

describe('a question to a Consul', () => {
  async function consul(given: Given & { spec?: SourceSpec } = {}) {
    const seen: string[] = [];
    const at = await serve((request, response) => {
      seen.push(`${request.method} ${request.url} ${String(request.headers['x-consul-token'])}`);
      response.writeHead(200, { 'Content-Type': 'application/json', 'X-Consul-KnownLeader': 'true', 'X-Consul-LastContact': '0' });
      response.end('[]');
    });
    const { port } = portTo({ sources: { prod: { consul: { url: `http://${at}`, ...given.spec } } }, ...given, exchanges: exchanges() });
    return { seen, ask: (more: object = {}) => port.health({ ...question, service: 'kv store', ...more }) };
  }

  it('is about one service, in the datacenter that the gate names, with the token of the source', async () => {
    const { seen, ask } = await consul({ spec: { token: { name: 'acl', key: 'token' } }, secrets: { acl: { token: 'secret-id\n' } } });
    const answer = await ask();
    await ask({ datacenter: 'dc2' });
    expect(seen).toEqual(['GET /v1/health/service/kv%20store secret-id', 'GET /v1/health/service/kv%20store?dc=dc2 secret-id']);
    expect(answer).toMatchObject({ status: 200, body: '[]', headers: { 'x-consul-knownleader': 'true', 'x-consul-lastcontact': '0' } });
  });

  it('has a token only if the source names one, and is never sent to a Prometheus', async () => {
    const { seen, ask } = await consul();
    await ask({ service: '../../acl/tokens?x' });
    expect(seen).toEqual(['GET /v1/health/service/..%2F..%2Facl%2Ftokens%3Fx undefined']);
    const other = await consul({ sources: { prod: { prometheus: { url: 'http://127.0.0.1:9' } } } });
    expect(await refused(other.ask())).toBe('the metric source prod is not a Consul');
  });
});
