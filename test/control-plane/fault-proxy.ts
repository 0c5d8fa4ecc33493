// A proxy in front of the API server that makes requests fail like networks and API servers do, and records all requests.
import { readFileSync, writeFileSync } from 'node:fs';
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import type { ControlPlane } from './control-plane.ts';
import { type Fault, type FaultRule, Faults, type Injection, type ProxiedRequest } from './faults.ts';
import type { Identity } from './identities.ts';

export interface FaultProxy {
  readonly url: string;
  /** The user whose kubeconfig leads through the proxy. Its requests reach the server with the user's certificate. */
  readonly through: (identity: Identity) => Identity;
  readonly inject: (rule: FaultRule) => Injection;
  /** All requests so far, in their order. */
  readonly requests: () => readonly ProxiedRequest[];
  /** Closes all connections. */
  readonly close: () => Promise<void>;
}

type Book = { -readonly [Field in keyof ProxiedRequest]: ProxiedRequest[Field] };

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Starts a proxy on a free loopback port. Like the API server it asks for client certificates. */
export async function startFaultProxy({ url, authority, folder }: Pick<ControlPlane, 'url' | 'authority' | 'folder'>): Promise<FaultProxy> {
  const certificate = authority.issueForServer();
  const faults = new Faults();
  const book: Book[] = [];
  const agents = new Map<string, Agent>();
  const firstAnswers = new Map<string, Answer>();
  const options = {
    key: certificate.privateKey,
    cert: certificate.certificate,
    ca: authority.certificate,
    requestCert: true,
    rejectUnauthorized: true,
  };
  const server = createServer(options, (incoming, outgoing) => {
    // Any error on the way closes the connection of the client, as with a real proxy.
    serve(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  const ownUrl = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const user = userOf(incoming);
    const agent = agents.get(user);
    const entry: Book = {
      user,
      method: incoming.method ?? 'GET',
      path: incoming.url ?? '/',
      isWatch: /[?&]watch=(1|true)\b/.test(incoming.url ?? ''),
      body: (await buffer(incoming)).toString(),
      atMs: Date.now(),
    };
    book.push(entry);
    const rule = faults.choose(entry);
    if (rule !== undefined) entry.rule = rule.name;
    const fault = rule?.fault;
    if (agent === undefined) return answer(entry, outgoing, status(403, 'Forbidden', 'the proxy was told of no such identity'));
    if (fault?.kind === 'dropRequest') {
      outgoing.destroy();
      return;
    }
    if (fault?.kind === 'answer') return answer(entry, outgoing, answerOf(fault));
    if (fault?.kind === 'die' && fault.moment === 'beforeApply') {
      await fault.die();
      outgoing.destroy();
      return;
    }
    if (fault?.kind === 'oldAnswer') {
      const old = firstAnswers.get(`${user} ${entry.path}`);
      if (old !== undefined) return answer(entry, outgoing, old);
    }
    if (fault?.kind === 'delay' && fault.what === 'request') await delay(fault.ms);
    const path = fault?.kind === 'listAsOf' ? asOf(entry.path, fault.revision) : entry.path;
    const { reply, sent } = await ask(incoming, { ...entry, path }, agent);
    entry.serverStatus = reply.statusCode ?? 0;
    outgoing.on('close', () => sent.destroy());
    if (entry.isWatch && reply.statusCode === 200) return passWatch({ entry, reply, outgoing, fault });
    const received: Answer = { status: reply.statusCode ?? 502, headers: reply.headers, body: await buffer(reply) };
    const key = `${user} ${entry.path}`;
    if (entry.method === 'GET' && received.status === 200 && !firstAnswers.has(key)) firstAnswers.set(key, received);
    if (fault?.kind === 'delay' && fault.what === 'reply') await delay(fault.ms);
    if (fault?.kind === 'die') await die(fault, entry, { outgoing, received });
    else if (fault?.kind === 'dropReply') outgoing.destroy();
    else if (fault?.kind === 'truncate') truncate(outgoing, received, fault.bytes);
    else answer(entry, outgoing, received);
  }

  function ask(incoming: IncomingMessage, entry: Book, agent: Agent): Promise<{ reply: IncomingMessage; sent: ClientRequest }> {
    const { host: _, 'transfer-encoding': __, connection: ___, 'accept-encoding': ____, ...headers } = incoming.headers;
    return new Promise((settle, reject) => {
      const sent = request(`${url}${entry.path}`, { method: entry.method, headers, agent }, (reply) => settle({ reply, sent }));
      sent.on('error', reject);
      sent.end(entry.body === '' ? undefined : entry.body);
    });
  }

  return {
    url: ownUrl,
    through: (identity) => {
      agents.set(
        identity.user,
        new Agent({ keepAlive: true, ca: authority.certificate, cert: identity.certificate, key: identity.privateKey }),
      );
      const kubeconfig = `${folder}/proxied-${agents.size}.kubeconfig`;
      writeFileSync(kubeconfig, readFileSync(identity.kubeconfig, 'utf8').replaceAll(url, ownUrl), { mode: 0o600 });
      return { ...identity, kubeconfig };
    },
    inject: (rule) => faults.inject(rule),
    requests: () => book.slice(),
    close: async () => {
      for (const agent of agents.values()) agent.destroy();
      const closed = new Promise((settle) => server.close(settle));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Returns the common name of the client certificate, which TLS has verified. */
function userOf({ socket }: IncomingMessage): string {
  const name = socket instanceof TLSSocket ? socket.getPeerCertificate().subject?.CN : undefined;
  return typeof name === 'string' ? name : '';
}

/** Returns the path of the same list at exactly this version. */
function asOf(path: string, revision: string): string {
  const [collection = path, query = ''] = path.split('?');
  const parameters = new URLSearchParams(query);
  parameters.set('resourceVersion', revision);
  parameters.set('resourceVersionMatch', 'Exact');
  return `${collection}?${parameters}`;
}

/** Ends the process whose request the server has carried out. */
async function die(
  { moment, die }: Fault & { readonly kind: 'die' },
  entry: Book,
  { outgoing, received }: { readonly outgoing: ServerResponse; readonly received: Answer },
): Promise<void> {
  if (moment === 'afterReply') answer(entry, outgoing, received);
  await die();
  outgoing.destroy();
}

interface Watch {
  readonly entry: Book;
  readonly reply: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly fault: Fault | undefined;
}

/** Forwards complete events until the limit of the fault. */
async function passWatch({ entry, reply, outgoing, fault }: Watch): Promise<void> {
  entry.status = 200;
  outgoing.writeHead(200, { 'content-type': reply.headers['content-type'] ?? 'application/json' });
  outgoing.flushHeaders();
  let left = fault !== undefined && 'afterEvents' in fault ? fault.afterEvents : Number.POSITIVE_INFINITY;
  if (left === 0) {
    reply.destroy();
    return breakWatch(fault, outgoing);
  }
  if (fault?.kind === 'holdWatch') await fault.until;
  let rest = '';
  for await (const chunk of reply.setEncoding('utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (fault?.kind === 'filterWatch' && !fault.passes(JSON.parse(line))) continue;
      outgoing.write(`${line}\n`);
      left -= 1;
      if (left === 0) return breakWatch(fault, outgoing);
    }
  }
  outgoing.end();
}

/** The stream of the server ended when the loop over it ended. */
async function breakWatch(fault: Fault | undefined, outgoing: ServerResponse): Promise<void> {
  if (fault?.kind === 'freezeWatch') return;
  if (fault?.kind === 'expireWatch') {
    const object = JSON.parse(status(410, 'Expired', 'too old resource version').body.toString());
    outgoing.end(`${JSON.stringify({ type: 'ERROR', object })}\n`);
    return;
  }
  // A client discards unread data when the connection breaks, so the events before the cut are flushed first.
  await delay(20);
  outgoing.destroy();
}

function answer(entry: Book, outgoing: ServerResponse, { status, headers, body }: Answer): void {
  entry.status = status;
  const { 'transfer-encoding': _, 'content-length': __, connection: ___, ...kept } = headers;
  outgoing.writeHead(status, { ...kept, 'content-length': body.length });
  outgoing.end(body);
}

/** The content length is that of the whole body, so that a client notices the missing part. */
function truncate(outgoing: ServerResponse, { status, headers, body }: Answer, bytes: number): void {
  outgoing.writeHead(status, { 'content-type': headers['content-type'] ?? 'application/json', 'content-length': body.length });
  outgoing.write(body.subarray(0, bytes), () => outgoing.destroy());
}

const reasons: Readonly<Record<number, string>> = {
  403: 'Forbidden',
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

function answerOf(fault: Fault & { readonly kind: 'answer' }): Answer {
  const made = status(fault.status, fault.reason ?? reasons[fault.status] ?? 'Unknown', `a fault answers ${fault.status}`);
  return fault.retryAfterSeconds === undefined
    ? made
    : { ...made, headers: { ...made.headers, 'retry-after': String(fault.retryAfterSeconds) } };
}

function status(code: number, reason: string, message: string): Answer {
  const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
  return { status: code, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) };
}
