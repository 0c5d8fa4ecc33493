// Plays the HTTP server of every pod, as a proxy that an agent is led to by HTTP_PROXY; writes down what was asked and answers as scripted.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** How a pod answers. */
export type PodBehaviour =
  /** As a database does: a POST prepares and tells since when, always the same instant, until a DELETE withdraws. */
  | { readonly kind: 'honest' }
  /** Tells a POST this many seconds from now as the instant, each time anew. */
  | { readonly kind: 'lying'; readonly secondsFromNow: number }
  | { readonly kind: 'status'; readonly status: number }
  /** 200 with this body. */
  | { readonly kind: 'body'; readonly body: string }
  /** The connection ends without an answer. */
  | { readonly kind: 'refuse' }
  /** No answer until the client gives up. */
  | { readonly kind: 'hang' };

interface PodCall {
  readonly method: string;
  /** The first label of the host. */
  readonly pod: string;
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** Wall clock, milliseconds. */
  readonly atMs: number;
  /** Absent when there was no answer. */
  readonly status?: number;
}

export interface PodServer {
  /** For HTTP_PROXY. */
  readonly url: string;
  readonly calls: () => readonly PodCall[];
  /** From now on the pods whose name matches behave so, for this method when given. What was scripted last counts. */
  readonly script: (pods: RegExp, behaviour: PodBehaviour, method?: 'POST' | 'DELETE') => void;
  /** As if somebody else had told the pod to stay. */
  readonly forget: (pod: string) => void;
  /** Since when each pod has been prepared, in Unix seconds. */
  readonly prepared: () => Readonly<Record<string, number>>;
  readonly close: () => Promise<void>;
}

/** Starts on a free port of the loopback interface. Every pod is honest until a script says otherwise. */
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
