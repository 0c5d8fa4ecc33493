// The real API server as something that sequences are played on: all requests and streams over a few HTTP/2 connections.
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import type { FilledRequest, Reply, Target } from './operation.ts';

/** Fewer streams than the server allows on one connection are open at a time on each. */
const connectionCount = 8;
const requestTimeoutMs = 20_000;

/** Owns the connections. */
export class RealServer implements Target {
  readonly #sessions: readonly ClientHttp2Session[];
  #next = 0;

  constructor({ url, authority, identities }: ControlPlane) {
    const { certificate, privateKey } = identities.admin;
    this.#sessions = Array.from({ length: connectionCount }, () => {
      const session = connect(url, { ca: authority.certificate, cert: certificate, key: privateKey });
      // Whoever waits for an answer hears of it there.
      session.on('error', () => undefined);
      return session;
    });
  }

  readonly ask = async (request: FilledRequest): Promise<Reply> => {
    const stream = this.#send(request);
    stream.setTimeout(requestTimeoutMs, () => stream.destroy(new Error(`${request.method} ${request.path} was not answered in time`)));
    const { status, headers } = await begun(stream);
    return { status, headers, body: await text(stream) };
  };

  readonly open: Target['open'] = async (request, onLine, onEnd) => {
    const stream = this.#send(request);
    const { status, headers } = await begun(stream);
    if (status !== 200) return { refusal: { status, headers, body: await text(stream) }, close: () => undefined };
    const take = lines(onLine);
    stream.setEncoding('utf8');
    stream.on('data', take);
    stream.on('close', onEnd);
    stream.on('error', onEnd);
    return { close: () => stream.close(constants.NGHTTP2_CANCEL) };
  };

  /** A list of the quorum waits until the cache of the collection has caught up. */
  readonly settle = async (collection: string): Promise<void> => {
    await this.ask({ method: 'GET', path: `${collection}?limit=1` });
  };

  /** Pods are refused until their namespace has an account, which no controller makes here. */
  readonly prepare = async (namespace: string): Promise<void> => {
    await this.#make('/api/v1/namespaces', { metadata: { name: namespace } });
    await this.#make(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'default' } });
  };

  close(): void {
    for (const session of this.#sessions) session.destroy();
  }

  async #make(path: string, body: unknown): Promise<void> {
    const reply = await this.ask({ method: 'POST', path, body: JSON.stringify(body) });
    if (reply.status !== 201) throw new Error(`POST ${path} is answered with ${reply.status}: ${reply.body}`);
  }

  #send({ method, path, contentType, body }: FilledRequest): ClientHttp2Stream {
    const session = this.#sessions[this.#next++ % connectionCount];
    if (session === undefined) throw new Error('there is no connection');
    const described =
      body === undefined ? {} : { 'content-type': contentType ?? 'application/json', 'content-length': Buffer.byteLength(body) };
    const stream = session.request(
      { ':method': method, ':path': path, accept: 'application/json', ...described },
      { endStream: body === undefined },
    );
    if (body !== undefined) stream.end(body);
    return stream;
  }
}

function begun(stream: ClientHttp2Stream): Promise<Pick<Reply, 'status' | 'headers'>> {
  return new Promise((settle, reject) => {
    stream.on('error', reject);
    stream.on('response', (headers) => {
      const texts = Object.entries(headers).map(([name, value]) => [name, String(value)]);
      settle({ status: headers[':status'] ?? 0, headers: Object.fromEntries(texts) });
    });
  });
}

async function text(stream: ClientHttp2Stream): Promise<string> {
  let all = '';
  for await (const part of stream.setEncoding('utf8')) all += part;
  return all;
}

/** Takes parts of a text as they come and calls back with each whole line. */
export function lines(onLine: (line: string) => void): (part: string) => void {
  let rest = '';
  return (part) => {
    const whole = (rest + part).split('\n');
    rest = whole.pop() ?? '';
    for (const line of whole) onLine(line);
  };
}
