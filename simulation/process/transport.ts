// Models the network between one process and the API server: it delays and loses requests and answers, and damages answers.

import type { KubernetesHttp, KubernetesRequest, KubernetesResponse, KubernetesStream } from '../../cluster/env.ts';
import { TransportFailure } from '../../cluster/request/failure.ts';
import { defined } from '../../policies/values/defined.ts';
import type { RequestFault } from '../faults/fault.ts';
import { draw } from '../random.ts';
import type { ModelRequest, ModelResponse } from '../server/request.ts';
import type { ModelServer } from '../server/server.ts';
import { type Life, makeCall, type Sending, sendingLatencyMs } from './life.ts';
import { Lines } from './lines.ts';

export interface TransportOptions {
  readonly life: Life;
  readonly server: Pick<ModelServer, 'handle' | 'watch'>;
  readonly user: string;
  /** The number of front ends, 1 or more. */
  readonly frontEnds: number;
  /** Changes the object of the request as another writer (F4). */
  readonly touch: (request: ModelRequest) => void;
  /** Asks the webhooks about the request, and calls back once: with the answer for the client if they deny the request. */
  readonly admit?: (request: ModelRequest, decided: (denial?: ModelResponse) => void) => void;
  /** Freezes the state that a front end shows, from now on for this time, and returns the number of the front end (F8). */
  readonly frozenFrontEnd: (forMs: number) => number;
  readonly showVersion: (revision: number, forMs: number) => void;
  /** Returns whether the front ends show an earlier revision. */
  readonly isPastShown: () => boolean;
}

type Connection = 'acting' | 'writing' | 'admitting';

/**
 * The client of a process: `acting` for actions, `writing` for published state, `admitting` for webhooks. A failed request or new watch may
 * change its front end.
 */
export class Transport implements KubernetesHttp {
  readonly #options: TransportOptions;
  readonly #connection: Connection;
  readonly #life: Life;
  #connections = 0;
  #frontEnd = 0;
  readonly #past = new Map<string, number>();

  constructor(options: TransportOptions, connection: Connection) {
    this.#options = options;
    this.#life = options.life;
    this.#connection = connection;
    this.#connect();
  }

  request(request: KubernetesRequest): Promise<KubernetesResponse> {
    const at = this.#frontEnd;
    const send = (model: ModelRequest): Answer => ({ response: this.#options.server.handle(model, at) });
    return this.#call(request, verbOf(request), send).then(({ response }) => response);
  }

  async stream(request: KubernetesRequest, onLine: (line: string) => void): Promise<KubernetesStream> {
    const opened = await this.#call(request, 'watch', (model, key) => {
      const behindMs = this.#past.get(request.site);
      this.#past.delete(request.site);
      if (draw(this.#life.seed, `${key} elsewhere`) < 0.25) this.#connect();
      const at = behindMs === undefined ? this.#frontEnd : this.#options.frozenFrontEnd(behindMs);
      const lines = new Lines({
        life: this.#life,
        site: request.site,
        key,
        onShowVersion: this.#options.showVersion,
        onReconnectToPast: (ms) => this.#past.set(request.site, ms),
      });
      const answer = this.#options.server.watch(model, lines.sink, at);
      if ('status' in answer) {
        lines.abandon();
        return { response: answer };
      }
      lines.opened(answer);
      return { response: opening, lines };
    });
    return streamOf(opened, onLine);
  }

  #connect(): void {
    this.#connections += 1;
    this.#frontEnd = Math.floor(
      draw(this.#life.seed, `${this.#life.name} ${this.#connection} connection ${this.#connections}`) * this.#options.frontEnds,
    );
  }

  #modelOf({ method, path, contentType, accept, body, site }: KubernetesRequest, point: string): ModelRequest {
    return {
      method,
      path: this.#options.isPastShown() && isListOfCache(site) ? ofAnyVersion(path) : path,
      ...defined({ contentType, accept, body }),
      actor: {
        user: this.#options.user,
        // Judges hold agents to the Lease, but webhooks write their claims without it.
        ...(this.#connection === 'admitting' ? {} : { process: this.#life.name }),
        site,
        point,
        sentAtMs: this.#life.scheduler.nowMs(),
        sentWallMs: this.#life.time.clock.nowMs(),
      },
    };
  }

  #call(request: KubernetesRequest, verb: string, send: SendOptions['send']): Promise<Answer> {
    const { site, timeoutMs } = request;
    const failure = (message: string, mayBeApplied: boolean) => new TransportFailure(message, { site, mayBeApplied });
    return makeCall(this.#life, {
      site,
      verb,
      timeoutMs,
      timedOut: () => {
        this.#connect();
        return failure(`no answer within ${timeoutMs} ms`, true);
      },
      answerLost: drop,
      send: (sending) => {
        const failed = (message: string, mayBeApplied: boolean): void => {
          this.#connect();
          sending.failed(failure(message, mayBeApplied));
        };
        sendThrough({
          life: this.#life,
          sending,
          send,
          failed,
          model: this.#modelOf(request, sending.point.key),
          touch: this.#options.touch,
          admit: this.#options.admit ?? ((_, decided) => decided()),
        });
      },
    });
  }
}

function isListOfCache(site: string): boolean {
  return site.startsWith('watch.') && site.endsWith('.list');
}

function ofAnyVersion(path: string): string {
  const [collection = path, query = ''] = path.split('?');
  const parameters = new URLSearchParams(query);
  parameters.set('resourceVersion', '0');
  return `${collection}?${parameters}`;
}

interface Answer {
  readonly response: ModelResponse;
  readonly lines?: Lines;
}

const opening: ModelResponse = { status: 200, headers: { 'content-type': 'application/json' }, body: '' };

/** Drops an answer that never reaches the process. */
function drop({ lines }: Answer): void {
  lines?.abandon();
}

function streamOf({ response, lines }: Answer, onLine: (line: string) => void): KubernetesStream {
  if (lines !== undefined) return lines.connect(onLine);
  const { status, headers, body } = response;
  // The stream ends at once, as if a proxy had answered.
  if (status === 200) for (const line of body.split('\n')) onLine(line);
  return {
    status,
    headers,
    body: status === 200 ? '' : body,
    ended: Promise.resolve(`the server answered ${status}`),
    close: () => undefined,
  };
}

interface SendOptions {
  readonly life: Life;
  readonly sending: Sending<Answer>;
  readonly send: (request: ModelRequest, key: string) => Answer;
  readonly model: ModelRequest;
  readonly failed: (message: string, mayBeApplied: boolean) => void;
  readonly touch: (request: ModelRequest) => void;
  readonly admit: NonNullable<TransportOptions['admit']>;
}

/** Sends a request to the server and applies its fault. A sent request arrives even if its sender crashes. */
function sendThrough({ life, sending, send, model, failed, touch, admit }: SendOptions): void {
  const { point, fault } = sending;
  const damaged = (response?: ModelResponse): void => {
    if (fault?.kind !== 'answer') return;
    const { what } = fault;
    if (what === 'tls') failed('the TLS connection failed', response !== undefined);
    else sending.replied({ response: faultyAnswer({ ...fault, what }, response) });
  };
  const applied = (answer: Answer): void => {
    if (sending.hasDied()) drop(answer);
    else if (fault?.kind === 'replyLost') {
      drop(answer);
      if (!fault.isSilent) failed('the connection was reset', true);
    } else if (fault?.kind === 'answer') {
      drop(answer);
      damaged(answer.response);
    } else sending.replied(answer);
  };
  const arrive = (): void => {
    if (fault?.kind === 'foreignWrite') touch(model);
    if (fault?.kind === 'answer' && (!fault.isApplied || fault.what === 429)) damaged();
    else if (fault?.kind === 'denied') sending.replied({ response: deniedAnswer(fault.status) });
    else if (fault?.kind === 'expired' || fault?.kind === 'tooLarge') sending.replied({ response: versionAnswer(fault.kind) });
    else admit(model, (denial) => applied(denial === undefined ? send(model, point.key) : { response: denial }));
  };
  const onTheWayMs = sendingLatencyMs(life, point);
  if (fault?.kind === 'lost') {
    if (!fault.isSilent) failed('the connection was refused', false);
  } else if (fault?.kind === 'held') life.holds.after(onTheWayMs + fault.delayMs, arrive);
  else life.scheduler.after(onTheWayMs, arrive);
}

/** Returns the verb of a request that is no watch, as in RBAC; `delete` also for a collection. */
export function verbOf({ method, path }: Pick<KubernetesRequest, 'method' | 'path'>): string {
  if (method === 'POST') return 'create';
  if (method === 'PUT') return 'update';
  if (method === 'PATCH') return 'patch';
  if (method === 'DELETE') return 'delete';
  const parts = path.replace(/\?.*$/, '').split('/').slice(1);
  const below = parts.slice(parts[0] === 'api' ? 2 : 3);
  const [first, , ...inNamespace] = below;
  return (first === 'namespaces' && inNamespace.length > 0 ? inNamespace : below).length === 1 ? 'list' : 'get';
}

type AnswerFault = Extract<RequestFault, { readonly kind: 'answer' }>;

/** Returns the answer of the fault. `applied` is the answer of the server if the request reached it. */
function faultyAnswer(fault: AnswerFault & { readonly what: Exclude<AnswerFault['what'], 'tls'> }, applied?: ModelResponse): ModelResponse {
  const { what, retryAfterSeconds } = fault;
  const html = { 'content-type': 'text/html' };
  switch (what) {
    case 'malformed':
      return { status: applied?.status ?? 200, headers: html, body: '<html><body>It works!</body></html>' };
    case 'truncated': {
      const { status, headers, body } = applied ?? { status: 200, headers: {}, body: '{"apiVersion":"v1","kind":"Status"}' };
      return { status, headers, body: body.slice(0, Math.floor(body.length / 2)) };
    }
    case 502:
      return { status: what, headers: html, body: '<html><body>Bad Gateway</body></html>' };
    case 429:
    case 500:
    case 503:
    case 504:
      return statusAnswer(what, reasons[what], `injected: ${reasons[what]}`, retryAfterSeconds);
    default:
      return what satisfies never;
  }
}

function deniedAnswer(status: 401 | 403): ModelResponse {
  return statusAnswer(status, status === 401 ? 'Unauthorized' : 'Forbidden', `injected: the request is denied with ${status}`);
}

/** Returns the answer to a list or a watch: the continue token expired, or the server does not have the resource version yet. */
function versionAnswer(kind: 'expired' | 'tooLarge'): ModelResponse {
  if (kind === 'expired') {
    const message = 'The provided continue parameter is too old to display a consistent list result.';
    return statusAnswer(410, 'Expired', message);
  }
  return statusAnswer(504, 'Timeout', 'Too large resource version: injected, current: 1', 1);
}

const reasons: Readonly<Record<429 | 500 | 503 | 504, string>> = {
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

function statusAnswer(code: number, reason: string, message: string, retryAfterSeconds?: number): ModelResponse {
  const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, ...details, code };
  const headers = { 'content-type': 'application/json' };
  return {
    status: code,
    headers: retryAfterSeconds === undefined ? headers : { ...headers, 'retry-after': String(retryAfterSeconds) },
    body: JSON.stringify(status),
  };
}
