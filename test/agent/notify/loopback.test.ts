import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callbackService, commitStatusService } from '../../../agent/notify/event-services.ts';
import type { Sending, ServiceParts } from '../../../agent/notify/service.ts';
import { slackService } from '../../../agent/notify/slack.ts';
import { createNotifyHttp } from '../../../agent/process/http-clients.ts';
import { createExchanges, type Exchanges } from '../../../cluster/connection/http-exchange.ts';
import type { Delivery } from '../../../engine/notify/deliveries.ts';
import type { NotedEvent, RunNotes } from '../../../engine/notify/notes.ts';
import {
  callbackKey,
  commit,
  type FakeService,
  fakeCallback,
  fakeGitHub,
  fakeGitLab,
  fakeSlack,
  gitToken,
  slackChannel,
  slackToken,
} from './services.ts';

const now = (): number => Date.now();
const token = { name: 'secret', key: 'token' };
const common = { name: 'sre', namespaces: ['mimir'] };

let servers: Server[] = [];
let exchanges: Exchanges;

beforeEach(() => {
  servers = [];
  exchanges = createExchanges({ env: {}, maxSockets: 4 });
});

afterEach(async () => {
  exchanges.close();
  for (const server of servers) server.closeAllConnections();
  await Promise.all(servers.map((server) => new Promise((resolve) => void server.close(resolve))));
});

/** Serves the service on loopback; the answer is its base. */
async function serve(service: Pick<FakeService, 'answer'>): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, `${value}`]));
      const body = Buffer.concat(chunks).toString();
      const answer = service.answer({ method: request.method ?? '', path: request.url ?? '', headers, body });
      response.writeHead(answer.status, { ...answer.headers, 'Content-Type': 'application/json' });
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body ?? {}));
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function parts(secret: string): ServiceParts {
  const http = createNotifyHttp(exchanges, 'rollout-group-agent/test');
  return { env: { clock: { nowMs: now, monotonicMs: now } }, call: http.call, secret: async () => secret };
}

const progress = { percent: 50, pods: 6, updated: 3, available: 6 };
const failed: NotedEvent = { id: 'e1', kind: 'failed', atMs: 1, progress, failure: `gate errors: ${'0.7 '.repeat(100)}`, to: ['sre'] };
const run: RunNotes = {
  key: 'r1',
  id: 'r1',
  kind: 'rollout',
  target: {},
  previous: {},
  startedMs: 0,
  outcome: 'failed',
  goal: 'all pods new',
  commit,
  events: [failed],
  channels: {},
};

function sending(delivery: Exclude<Delivery, { kind: 'close' }>, key = 'k1', of: RunNotes = run): Sending {
  return { name: { namespace: 'mimir', group: 'ingester' }, run: of, delivery, key };
}

function post(text: string, thread?: string): Exclude<Delivery, { kind: 'close' }> {
  return { kind: 'post', key: 'main', text, isBroadcast: false, ...(thread === undefined ? {} : { thread }) };
}

const tell: Exclude<Delivery, { kind: 'close' }> = { kind: 'tell', key: 'e1', event: failed };

describe('Slack on loopback', () => {
  async function workspace(channel = slackChannel, secret = slackToken) {
    const fake = fakeSlack(now);
    const url = `${await serve(fake)}/api`;
    return { fake, slack: slackService(parts(secret), { ...common, service: 'slack', url, token, channel }) };
  }

  it('accepts a message, a reply in its thread and an edit', async () => {
    const { fake, slack } = await workspace();
    const main = await slack.send(sending(post('begins')));
    expect(main).toEqual({ kind: 'arrived', handle: fake.messages[0]?.ts });
    const handle = fake.messages[0]?.ts ?? '';
    expect(await slack.send(sending(post('a page', handle), 'k2'))).toMatchObject({ kind: 'arrived' });
    expect(await slack.send(sending({ kind: 'edit', key: 'main', handle, text: 'ends' }))).toMatchObject({
      kind: 'arrived',
    });
    expect(fake.messages.map(({ text, thread_ts }) => [text, thread_ts])).toEqual([
      ['ends', undefined],
      ['a page', handle],
    ]);
  });

  it('reports whether a message exists, also if others were written since, in the channel and in a thread', async () => {
    const { slack, fake } = await workspace();
    const sinceMs = now();
    await slack.send(sending(post('begins'), 'mine'));
    const thread = fake.messages[0]?.ts ?? '';
    for (let count = 0; count < 40; count += 1) await slack.send(sending(post(`another ${count}`), `other-${count}`));
    for (let count = 0; count < 40; count += 1) await slack.send(sending(post(`reply ${count}`, thread), `reply-${count}`));
    expect(await slack.find(sending(post('begins'), 'mine'), sinceMs)).toEqual({ kind: 'arrived', handle: thread });
    expect(await slack.find(sending(post('x', thread), 'reply-0'), sinceMs)).toEqual({ kind: 'arrived', handle: fake.messages[41]?.ts });
    expect(await slack.find(sending(post('x'), 'never'), sinceMs)).toEqual({ kind: 'absent' });
  });

  it.each<[string, Partial<FakeService> & { status?: number; error?: string; headers?: Record<string, string> }, unknown]>([
    ['ratelimited', { status: 429, headers: { 'Retry-After': '30' } }, { kind: 'busy', afterMs: 30_000 }],
    ['ratelimited', { headers: { 'Retry-After': '7' } }, { kind: 'busy', afterMs: 7000 }],
    ['channel_not_found', {}, { kind: 'unavailable', problem: 'Slack answered channel_not_found' }],
    ['not_in_channel', {}, { kind: 'unavailable' }],
    ['token_revoked', {}, { kind: 'unavailable' }],
    ['msg_too_long', {}, { kind: 'refused' }],
    ['fatal_error', {}, { kind: 'unknown' }],
    ['Bearer xoxb', {}, { kind: 'unavailable', problem: 'Slack answered without an error code' }],
  ])('with %s', async (error, { status = 200, headers = {} }, expected) => {
    const { slack, fake } = await workspace();
    fake.fault = () => ({ status, headers, body: { ok: false, error } });
    expect(await slack.send(sending(post('x')))).toMatchObject(expected as object);
  });

  it('waits for a correction if it does not know the token or the channel', async () => {
    const wrongToken = await workspace(slackChannel, 'xoxb-other');
    expect(await wrongToken.slack.send(sending(post('x')))).toEqual({ kind: 'unavailable', problem: 'Slack answered invalid_auth' });
    const wrongChannel = await workspace('C0000000000');
    expect(await wrongChannel.slack.send(sending(post('x')))).toMatchObject({ kind: 'unavailable' });
  });

  it('rejects other answers', async () => {
    const { slack, fake } = await workspace();
    fake.fault = () => ({ status: 200, body: '<html>maintenance</html>' });
    expect(await slack.send(sending(post('x')))).toMatchObject({ kind: 'unknown' });
    fake.fault = () => ({ status: 503 });
    expect(await slack.send(sending(post('x')))).toMatchObject({ kind: 'unknown' });
  });
});

describe('commit statuses on loopback', () => {
  it.each(['github', 'gitlab'] as const)('at %s are created within their limits, and found again', async (service) => {
    const fake = service === 'github' ? fakeGitHub(now) : fakeGitLab(now);
    const base = await serve(fake);
    const channel =
      service === 'github'
        ? { ...common, service, url: base, token, repository: 'acme/deploy' }
        : { ...common, service, url: `${base}/api/v4`, token, project: 'acme/deploy' };
    const statuses = commitStatusService(parts(gitToken), channel);
    expect(await statuses.find(sending(tell), now())).toEqual({ kind: 'absent' });
    expect(await statuses.send(sending(tell))).toEqual({ kind: 'arrived' });
    expect(fake.statuses[0]).toMatchObject({ state: service === 'github' ? 'failure' : 'failed', name: 'rollout-group/mimir/ingester' });
    expect(fake.statuses[0]?.description.length).toBe(service === 'github' ? 140 : 255);
    expect(await statuses.find(sending(tell), now())).toEqual({ kind: 'arrived' });
    // What an earlier run of the same commit has said is not this one's.
    expect(await statuses.find(sending(tell), now() + 600_000)).toEqual({ kind: 'absent' });
  });

  it('count as created if GitLab already has them', async () => {
    const fake = fakeGitLab(now);
    const channel = { ...common, service: 'gitlab' as const, url: `${await serve(fake)}/api/v4`, token, project: 'acme/deploy' };
    const statuses = commitStatusService(parts(gitToken), channel);
    await statuses.send(sending(tell));
    expect(await statuses.send(sending(tell))).toEqual({ kind: 'arrived' });
    expect(fake.statuses).toHaveLength(1);
  });

  it('at GitHub: answers about rate limits, commits and tokens', async () => {
    const fake = fakeGitHub(now);
    const channel = { ...common, service: 'github' as const, url: await serve(fake), token, repository: 'acme/deploy' };
    const statuses = commitStatusService(parts(gitToken), channel);
    expect(await statuses.send(sending(tell, 'k', { ...run, commit: 'f'.repeat(40) }))).toEqual({
      kind: 'refused',
      problem: 'the service answered 422',
    });
    expect(await statuses.send(sending(tell, 'k', { ...run, commit: 'a1b2c3d' }))).toMatchObject({ kind: 'refused' });
    expect(await commitStatusService(parts('other'), channel).send(sending(tell))).toMatchObject({ kind: 'unavailable' });
    fake.fault = () => ({ status: 403, headers: { 'Retry-After': '60' } });
    expect(await statuses.send(sending(tell))).toEqual({ kind: 'busy', problem: 'the service answered 403', afterMs: 60_000 });
    fake.fault = () => ({
      status: 403,
      headers: { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': `${Math.floor(now() / 1000) + 100}` },
    });
    expect(await statuses.send(sending(tell))).toMatchObject({ kind: 'busy' });
  });
});

describe('a callback on loopback', () => {
  it('is signed over its time and body, and accepted', async () => {
    const fake = fakeCallback(now);
    const channel = { ...common, service: 'callback' as const, url: `${await serve(fake)}/hook?team=a`, signingKey: token };
    expect(await callbackService(parts(callbackKey), channel).send(sending(tell))).toEqual({ kind: 'arrived' });
    expect(fake.taken.map(({ id }) => id)).toEqual(['e1']);
    expect(fake.asked[0]?.path).toBe('/hook?team=a');
    expect(await callbackService(parts('another key'), channel).send(sending(tell))).toMatchObject({ kind: 'refused' });
  });

  it('follows no redirect', async () => {
    const elsewhere = fakeCallback(now);
    const target = await serve(elsewhere);
    const url = await serve({ answer: () => ({ status: 307, headers: { Location: target } }) });
    const channel = { ...common, service: 'callback' as const, url, signingKey: token };
    expect(await callbackService(parts(callbackKey), channel).send(sending(tell))).toMatchObject({
      kind: 'unavailable',
      problem: 'the service answered 307, a redirect, which the agent does not follow',
    });
    expect(elsewhere.asked).toEqual([]);
  });

  it('has a limit for time and size', async () => {
    const http = createNotifyHttp(exchanges, 'test');
    const long = await serve({ answer: () => ({ status: 200, body: 'x'.repeat(100_000) }) });
    const asked = { method: 'POST' as const, url: long, headers: {}, timeoutMs: 5000, maxBodyBytes: 65_536, site: 'test' };
    await expect(http.call(asked)).rejects.toThrow('the answer is longer than 65536 bytes');
    const silent = createServer(() => undefined);
    servers.push(silent);
    await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    await expect(http.call({ ...asked, url, timeoutMs: 50 })).rejects.toThrow('no complete answer within 50 ms');
  });

  it('keeps the address out of its error', async () => {
    const http = createNotifyHttp(exchanges, 'test');
    const closed = createServer();
    await new Promise<void>((resolve) => void closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => void closed.close(resolve));
    const asked = { method: 'POST' as const, headers: {}, timeoutMs: 5000, maxBodyBytes: 100, site: 'test' };
    const error = await http.call({ ...asked, url: `http://127.0.0.1:${port}/secret-path` }).catch((problem: unknown) => problem);
    expect(String(error)).toBe('Error: no answer (ECONNREFUSED)');
  });
});
