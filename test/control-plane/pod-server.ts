// Plays the HTTP servers of all pods, as the HTTP_PROXY of an agent. Records the requests and answers as scripted.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The behaviour of a pod. */
export type PodBehaviour =
  /** Answers like a database: POST prepares and returns the time of preparation, always the same until DELETE cancels it. */
  | { readonly kind: 'honest' }
  /** Answers each POST with a time this many seconds in the future. */
  | { readonly kind: 'lying'; readonly secondsFromNow: number }
  | { readonly kind: 'status'; readonly status: number }
  /** Answers 200 with this body. */
  | { readonly kind: 'body'; readonly body: string }
  /** The connection ends without a response. */
  | { readonly kind: 'refuse' }
  /** Does not answer until the client gives up. */
  | { readonly kind: 'hang' };

interface PodCall {
  readonly method: string;
  /** The first label of the host name. */
  readonly pod: string;
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** Wall clock in milliseconds. */
  readonly atMs: number;
  /** Absent without a response. */
  readonly status?: number;
}

export interface PodServer {
  /** The address for HTTP_PROXY. */
  readonly url: string;
  readonly calls: () => readonly PodCall[];
  /** Sets the behaviour of the pods whose name matches, for this method if given. The last matching script counts. */
  readonly script: (pods: RegExp, behaviour: PodBehaviour, method?: 'POST' | 'DELETE') => void;
  /** Cancels the preparation of the pod, as another client would. */
  readonly forget: (pod: string) => void;
  /** Returns the time since which each pod is prepared, in Unix seconds. */
  readonly prepared: () => Readonly<Record<string, number>>;
  readonly close: () => Promise<void>;
}

/** Starts on a free loopback port. Every pod answers like a database until a script changes it. */
export async function startPodServer(): Promise<PodServer> {
  const calls: { -readonly [Field in keyof PodCall]: PodCall[Field] }[] = [];
  const scripts: { pods: RegExp; behaviour: PodBehaviour; method: string | undefined }[] = [];
  const prepared = new Map<string, number>();

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', `http://${request.headers.host ?? 'nowhere'}`);
    const [pod = ''] = url.hostname.split('.');
    const call: (typeof calls)[number] = {
      method: request.method ?? '',
      pod,
      host: url.hostname,
      port: Number(url.port || 80),
      path: `${url.pathname}${url.search}`,
      atMs: Date.now(),
    };
    calls.push(call);
    const found = scripts.findLast(({ pods, method }) => pods.test(pod) && (method === undefined || method === call.method));
    const reply = replyOf(found?.behaviour ?? { kind: 'honest' }, call, prepared);
    if (reply === 'hang') return;
    if (reply === 'refuse') {
      request.socket.destroy();
      return;
    }
    call.status = reply.status;
    send(request, response, reply);
  });
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: () => calls.slice(),
    script: (pods, behaviour, method) => scripts.push({ pods, behaviour, method }),
    forget: (pod) => void prepared.delete(pod),
    prepared: () => Object.fromEntries(prepared),
    close: async () => {
      const closed = new Promise((settle) => server.close(settle));
      server.closeAllConnections();
      await closed;
    },
  };
}

interface Reply {
  readonly status: number;
  readonly body: string;
}

function replyOf(behaviour: PodBehaviour, { method, pod, atMs }: PodCall, prepared: Map<string, number>): Reply | 'hang' | 'refuse' {
  const now = Math.floor(atMs / 1000);
  switch (behaviour.kind) {
    case 'hang':
    case 'refuse':
      return behaviour.kind;
    case 'status':
      return { status: behaviour.status, body: 'a script says so' };
    case 'body':
      return { status: 200, body: behaviour.body };
    case 'lying':
      return { status: 200, body: JSON.stringify({ timestamp: now + behaviour.secondsFromNow }) };
    case 'honest': {
      if (method === 'DELETE') {
        prepared.delete(pod);
        return { status: 200, body: '' };
      }
      const timestamp = prepared.get(pod) ?? now;
      prepared.set(pod, timestamp);
      return { status: 200, body: JSON.stringify({ timestamp }) };
    }
  }
}

function send(request: IncomingMessage, response: ServerResponse, { status, body }: Reply): void {
  request.resume();
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(body);
}
