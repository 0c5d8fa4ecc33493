// The model of the API server behind HTTP on loopback, for commands that connect by URL.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { processClock, processTimers } from '../../cluster/connection/process-env.ts';
import { isSameValue } from '../../policies/values/canonical-json.ts';
import type { ModelRequest } from '../../simulation/server/request.ts';
import type { ModelServer } from '../../simulation/server/server.ts';
import { requesterWebhook } from './live-objects.ts';
import { type FakeObject, type ServedLimits, serveObjects, user } from './served-objects.ts';

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

export interface FakeApiServer {
  readonly url: string;
  /** Writes that came in, dry runs included. An access review writes nothing. */
  readonly writes: readonly Asked[];
  readonly objects: () => readonly FakeObject[];
  /** Creates the object with its status, or replaces the content of the one of its name. */
  readonly put: (object: FakeObject) => void;
  /** Resolves when a watch of the plural is open. */
  readonly watched: (plural: string) => Promise<void>;
}

export interface FakeOptions extends ServedLimits {
  /** Names of objects that may be read and not changed. */
  readonly forbiddenWrites?: readonly string[];
  /** Names of objects of which only dry runs succeed. */
  readonly dryRunsOnly?: readonly string[];
  /** The requester that a webhook writes into intents and exceptions; no webhook does if absent. */
  readonly stamp?: { readonly user: string; readonly groups: readonly string[] };
  /** Answers an access review: whether the right is granted. If absent, no review is served. */
  readonly isAllowed?: (right: { readonly resource: string; readonly verb: string; readonly namespace?: string }) => boolean;
  /** The groups of the user. If absent, no SelfSubjectReview is served. */
  readonly groups?: readonly string[];
  /** Called after each answer to a GET that is no watch, with its path. */
  readonly onRead?: (path: string) => void;
  /** True if no webhook answers: only new requests that stop a group succeed, as install/webhooks.ts registers them. */
  readonly isWebhookAway?: boolean;
  /** Reports whether a GET of this path fails. */
  readonly isFailing?: (path: string) => boolean;
}

export async function fakeApiServer(
  initial: readonly FakeObject[],
  {
    forbiddenWrites = [],
    dryRunsOnly = [],
    stamp,
    isAllowed,
    groups,
    isWebhookAway = false,
    onRead,
    isFailing,
    ...limits
  }: FakeOptions = {},
): Promise<FakeApiServer> {
  // A requester is recorded only by a registered webhook.
  const isRegistered = stamp === undefined || initial.some(({ kind }) => kind === requesterWebhook.kind);
  const { api, put, objects } = serveObjects(isRegistered ? initial : [...initial, requesterWebhook], limits, {
    clock: processClock,
    timers: processTimers,
  });
  const { server } = api;
  const writes: Asked[] = [];
  const watches = new Set<Address>();
  const waiting = new Map<string, () => void>();
  const listener = createServer((incoming, answer) => {
    void requestOf(incoming).then((request) => serve(request, answer));
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    listener.closeAllConnections();
    listener.close();
  });
  const { port } = listener.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, writes, objects, put, watched };

  async function watched(plural: string): Promise<void> {
    if ([...watches].some((watch) => watch.plural === plural)) return;
    await new Promise<void>((resolve) => waiting.set(plural, resolve));
  }

  async function serve(request: ModelRequest, answer: ServerResponse): Promise<void> {
    if (request.method !== 'GET' && !/reviews$/.test(request.path))
      writes.push({ method: request.method, path: request.path, body: request.body === undefined ? undefined : JSON.parse(request.body) });
    if (isAllowed !== undefined && request.path.endsWith('/subjectaccessreviews')) {
      const allowed = isAllowed(JSON.parse(request.body ?? '').spec.resourceAttributes);
      answer.writeHead(201, { 'content-type': 'application/json' });
      answer.end(JSON.stringify({ status: { allowed } }));
      return;
    }
    if (groups !== undefined && request.path.endsWith('/selfsubjectreviews')) {
      answer.writeHead(201, { 'content-type': 'application/json' });
      answer.end(JSON.stringify({ status: { userInfo: { username: user, groups } } }));
      return;
    }
    const address = addressOf(request.path);
    if (address.isWatch) return watch(request, address, answer);
    const isUncalled = isWebhookAway && request.method === 'PATCH' && !isNewStop(request, address);
    if (isUncalled || (request.method === 'GET' && isFailing?.(request.path) === true)) {
      answer.writeHead(500, { 'content-type': 'application/json' });
      answer.end(JSON.stringify({ kind: 'Status', code: 500, reason: 'InternalError', message: isUncalled ? uncalled : 'failed' }));
      return;
    }
    const withheld = request.path.includes('dryRun=All') ? forbiddenWrites : [...forbiddenWrites, ...dryRunsOnly];
    const isWithheld = request.method !== 'GET' && withheld.includes(address.name);
    if (isWithheld) server.forbid(`* ${address.resource}`);
    const response = server.handle(isApply(request) ? applyAs(server, request, { ...address, stamp }) : request);
    if (isWithheld) server.permit(`* ${address.resource}`);
    const { status, headers, body } = response;
    answer.writeHead(status, headers);
    answer.end(body);
    if (request.method === 'GET') onRead?.(request.path);
  }

  function isNewStop({ body = '' }: ModelRequest, { plural, name }: Address): boolean {
    const isStored = objects().some(({ kind, metadata }) => kind === 'RolloutIntent' && metadata.name === name);
    return plural === 'rolloutintents' && !isStored && /"action":"(pause|protect|undo)"/.test(body);
  }

  function watch(request: ModelRequest, address: Address, answer: ServerResponse): void {
    const opened = server.watch(request, { line: (text) => answer.write(`${text}\n`), end: () => answer.end() });
    if ('status' in opened) {
      answer.writeHead(opened.status, opened.headers);
      answer.end(opened.body);
      return;
    }
    answer.writeHead(200, { 'content-type': 'application/json' });
    answer.flushHeaders();
    watches.add(address);
    waiting.get(address.plural)?.();
    answer.on('close', () => {
      watches.delete(address);
      opened.close();
    });
  }
}

const uncalled =
  'Internal error occurred: failed calling webhook "one.rollout-group.dev": failed to call webhook: Post "https://agent.ops.svc:443/admission?timeout=5s": no endpoints available for service "agent"';

interface Address {
  /** Path without the name. */
  readonly collection: string;
  readonly plural: string;
  readonly resource: string;
  readonly name: string;
  readonly query: string;
  readonly isWatch: boolean;
}

function addressOf(path: string): Address {
  const { collection = '', group, plural = '', name = '', query = '' } = pathPattern.exec(path)?.groups ?? {};
  const resource = group === undefined ? plural : `${plural}.${group}`;
  return { collection, plural, resource, name, query, isWatch: new URLSearchParams(query).has('watch') };
}

const pathPattern =
  /^(?<collection>\/(?:api|apis\/(?<group>[^/]+))\/[^/]+(?:\/namespaces\/[^/]+)?\/(?<plural>[^/?]+))(?:\/(?<name>[^/?]+))?[^?]*(?<query>\?.*)?$/;

function isApply({ contentType }: ModelRequest): boolean {
  return contentType === 'application/apply-patch+yaml';
}

/** The webhook's part: writes the requester into an intent or an exception, unless the rest of its spec is as stored. */
function stamped(request: ModelRequest, stamp: FakeOptions['stamp'], stored: FakeObject | undefined): ModelRequest {
  const object: FakeObject = JSON.parse(request.body ?? '');
  if (object.kind !== 'RolloutIntent' && object.kind !== 'RolloutException') return request;
  const { requestedBy, ...before } = Object(stored?.['spec']);
  const by = isSameValue(before, object['spec']) ? requestedBy : stamp && { ...stamp, at: new Date().toISOString() };
  // The one owner of the fields no longer applies these.
  const dropped = Object.fromEntries(Object.keys(before).map((key) => [key, null]));
  const spec = { ...dropped, ...Object(object['spec']), ...(by && { requestedBy: by }) };
  return { ...request, body: JSON.stringify({ ...object, spec }) };
}

/** The model knows no server-side apply and no owners of fields: creates the object, or merges it into the existing one. */
function applyAs(server: ModelServer, request: ModelRequest, address: Address & { readonly stamp: FakeOptions['stamp'] }): ModelRequest {
  const { collection, name, query, stamp } = address;
  const found = server.handle({ method: 'GET', path: `${collection}/${name}`, actor: request.actor });
  const isNew = 'status' in found && found.status === 404;
  const stored = isNew || !('body' in found) ? undefined : JSON.parse(found.body);
  const sent = stamped(request, stamp, stored);
  if (!isNew) return { ...sent, contentType: 'application/merge-patch+json' };
  return { ...sent, method: 'POST', path: `${collection}${query}`, contentType: 'application/json' };
}

async function requestOf(incoming: IncomingMessage): Promise<ModelRequest> {
  let body = '';
  for await (const chunk of incoming.setEncoding('utf8')) body += chunk;
  const { 'content-type': contentType, accept } = incoming.headers;
  return {
    method: (incoming.method ?? 'GET') as ModelRequest['method'],
    path: incoming.url ?? '/',
    actor: { user },
    ...(contentType !== undefined && { contentType }),
    ...(accept !== undefined && { accept }),
    ...(body !== '' && { body }),
  };
}
