// An API server of a few hundred lines less than the real one: lists, reads, writes and watches of whatever a test puts in, on loopback.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface FakeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

export interface FakeApiServer {
  readonly url: string;
  /** Writes that came in, dry runs included. */
  readonly writes: readonly Asked[];
  readonly objects: () => readonly FakeObject[];
  /** Puts an object in, or in the place of the one of its name, and tells the watches. */
  readonly put: (object: FakeObject) => void;
  /** Resolves when somebody watches the plural. */
  readonly watched: (plural: string) => Promise<void>;
}

export interface FakeOptions {
  /** Plurals that are not served, as with CRDs that are not installed. */
  readonly missing?: readonly string[];
  /** Plurals that may not be read or written. */
  readonly forbidden?: readonly string[];
  /** Names of objects that may be read and not changed. */
  readonly forbiddenWrites?: readonly string[];
  /** Who asks, as a webhook writes it into intents and exceptions; without it nobody does. */
  readonly stamp?: { readonly user: string; readonly groups: readonly string[] };
}

interface Where {
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly group: string;
}

const plurals: Readonly<Record<string, string>> = {
  StatefulSet: 'statefulsets',
  Pod: 'pods',
  ConfigMap: 'configmaps',
  Lease: 'leases',
  Event: 'events',
  RolloutGroup: 'rolloutgroups',
  RolloutPolicy: 'rolloutpolicies',
  RolloutIntent: 'rolloutintents',
  RolloutException: 'rolloutexceptions',
  ControllerRevision: 'controllerrevisions',
  RolloutRun: 'rolloutruns',
  Namespace: 'namespaces',
  CustomResourceDefinition: 'customresourcedefinitions',
  ServiceAccount: 'serviceaccounts',
  Role: 'roles',
  RoleBinding: 'rolebindings',
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
  Service: 'services',
  NetworkPolicy: 'networkpolicies',
  PodDisruptionBudget: 'poddisruptionbudgets',
  Deployment: 'deployments',
  ValidatingWebhookConfiguration: 'validatingwebhookconfigurations',
  MutatingWebhookConfiguration: 'mutatingwebhookconfigurations',
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding: 'validatingadmissionpolicybindings',
};

export async function fakeApiServer(
  initial: readonly FakeObject[],
  { missing = [], forbidden = [], forbiddenWrites = [], stamp }: FakeOptions = {},
): Promise<FakeApiServer> {
  const objects = new Map<string, FakeObject>();
  const writes: Asked[] = [];
  const watches = new Set<{ readonly where: Where; readonly answer: ServerResponse }>();
  const waiting = new Map<string, () => void>();
  let version = 1000;
  const keyOf = (plural: string, namespace: string | undefined, name: string): string => `${plural} ${namespace ?? ''} ${name}`;
  const put = (object: FakeObject): FakeObject => {
    const plural = plurals[object.kind] ?? '';
    const key = keyOf(plural, object.metadata.namespace, object.metadata.name);
    const before = objects.get(key);
    version += 1;
    const uid = before?.metadata['uid'] ?? object.metadata['uid'] ?? `uid-${version}`;
    const stored = { ...object, metadata: { ...object.metadata, uid, resourceVersion: String(version) } };
    objects.set(key, stored);
    tell(plural, before === undefined ? 'ADDED' : 'MODIFIED', stored);
    return stored;
  };
  for (const object of initial) put(object);

  const server = createServer((request, answer) => {
    void readBody(request).then((body) => serve(request, body, answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, writes, objects: () => [...objects.values()], put, watched };

  function tell(plural: string, type: 'ADDED' | 'MODIFIED' | 'DELETED', object: FakeObject): void {
    for (const { where, answer } of watches) {
      if (where.plural === plural && (where.namespace ?? object.metadata.namespace) === object.metadata.namespace)
        answer.write(`${JSON.stringify({ type, object })}\n`);
    }
  }

  async function watched(plural: string): Promise<void> {
    if ([...watches].some(({ where }) => where.plural === plural)) return;
    await new Promise<void>((resolve) => waiting.set(plural, resolve));
  }

  function serve(request: IncomingMessage, text: string, answer: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const where = whereOf(url.pathname);
    const method = request.method ?? 'GET';
    if (method !== 'GET') writes.push({ method, path: request.url ?? '', body: text === '' ? undefined : JSON.parse(text) });
    if (where !== undefined && url.searchParams.has('watch') && !missing.includes(where.plural) && !forbidden.includes(where.plural)) {
      watch(where, answer);
      return;
    }
    const [code, body] = replyTo(where, method, url, text);
    answer.writeHead(code, { 'content-type': 'application/json' });
    answer.end(JSON.stringify(body));
  }

  function replyTo(where: Where | undefined, method: string, url: URL, text: string): Reply {
    if (where === undefined || missing.includes(where.plural))
      return status(404, 'NotFound', 'the server could not find the requested resource');
    if (forbidden.includes(where.plural)) return status(403, 'Forbidden', denialOf(method, where));
    if (method !== 'GET' && forbiddenWrites.includes(where.name ?? '')) return status(403, 'Forbidden', denialOf(method, where));
    if (method === 'POST') return [201, put(JSON.parse(text))];
    return where.name === undefined ? list(where, url) : one(where, where.name, method, url, text);
  }

  function list({ plural, namespace }: Where, url: URL): Reply {
    const wantedName = /^metadata\.name=(.+)$/.exec(url.searchParams.get('fieldSelector') ?? '')?.[1];
    const label = url.searchParams.get('labelSelector');
    const items = [...objects]
      .filter(([key]) => key.startsWith(`${plural} `))
      .map(([, object]) => object)
      .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
      .filter(({ metadata }) => wantedName === undefined || metadata.name === wantedName)
      .filter(({ metadata }) => label === null || hasLabel(Object(metadata['labels']), label));
    return [200, { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: String(version) }, items }];
  }

  function watch(where: Where, answer: ServerResponse): void {
    answer.writeHead(200, { 'content-type': 'application/json' });
    answer.flushHeaders();
    const entry = { where, answer };
    watches.add(entry);
    waiting.get(where.plural)?.();
    answer.on('close', () => watches.delete(entry));
  }

  function one({ plural, namespace, subresource }: Where, name: string, method: string, url: URL, text: string): Reply {
    const key = keyOf(plural, namespace, name);
    const found = objects.get(key);
    const isDryRun = url.searchParams.get('dryRun') === 'All';
    if (method === 'PATCH' && url.searchParams.has('fieldManager')) {
      const object = stamped(JSON.parse(text));
      return [found === undefined ? 201 : 200, isDryRun ? object : put(object)];
    }
    if (found === undefined) return status(404, 'NotFound', `${plural} "${name}" not found`, { name, kind: plural });
    if (method === 'DELETE') {
      objects.delete(key);
      version += 1;
      tell(plural, 'DELETED', { ...found, metadata: { ...found.metadata, resourceVersion: String(version) } });
      return [200, found];
    }
    if (method === 'PATCH') {
      if (text.startsWith('[')) {
        const patched = byOperations(found, JSON.parse(text));
        if (patched === undefined) return status(422, 'Invalid', 'the server rejected our request: the test failed');
        return [200, isDryRun ? patched : put(patched)];
      }
      const patch: FakeObject = JSON.parse(text);
      const { uid, resourceVersion } = patch.metadata;
      if (uid !== found.metadata['uid'] || resourceVersion !== found.metadata['resourceVersion'])
        return status(409, 'Conflict', 'the object has been modified');
      const merged = { ...found, ...(merge(found, patch) as FakeObject) };
      return [200, isDryRun ? merged : put(merged)];
    }
    return [200, subresource === 'scale' ? { ...found, apiVersion: 'autoscaling/v1', kind: 'Scale' } : found];
  }

  function stamped(object: FakeObject): FakeObject {
    if (stamp === undefined || (object.kind !== 'RolloutIntent' && object.kind !== 'RolloutException')) return object;
    return { ...object, spec: { ...Object(object['spec']), requestedBy: { ...stamp, at: new Date().toISOString() } } };
  }
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

/** A JSON patch of members of objects; undefined when a test fails. */
function byOperations(before: FakeObject, operations: readonly Operation[]): FakeObject | undefined {
  const after = structuredClone(before);
  for (const { op, path, value } of operations) {
    const keys = path
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = keys.pop() ?? '';
    const parent: Record<string, unknown> = keys.reduce((at, key) => Object(at)[key], Object(after));
    if (op === 'test' && JSON.stringify(parent[last]) !== JSON.stringify(value)) return undefined;
    if (op === 'remove') delete parent[last];
    if (op === 'add' || op === 'replace') parent[last] = value;
  }
  return after;
}

/** `key`, or `key=value`. */
function hasLabel(labels: Readonly<Record<string, unknown>>, selector: string): boolean {
  const [key = '', value] = selector.split('=');
  return Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
}

type Reply = readonly [code: number, body: unknown];

function whereOf(path: string): Where | undefined {
  const match =
    /^\/(?:api|apis\/(?<group>[^/]+))\/[^/]+(?:\/namespaces\/(?<namespace>[^/]+))?\/(?<plural>[^/]+)(?:\/(?<name>[^/]+)(?:\/(?<subresource>[^/]+))?)?$/.exec(
      path,
    );
  if (match?.groups === undefined) return undefined;
  const { group = '', namespace, plural = '', name, subresource } = match.groups;
  return { group, namespace, plural, name, subresource };
}

function denialOf(method: string, { plural, group, namespace }: Where): string {
  const verb = method === 'GET' ? 'list' : 'patch';
  return `${plural}${group === '' ? '' : `.${group}`} is forbidden: User "anna" cannot ${verb} resource "${plural}" in API group "${group}" in the namespace "${namespace}"`;
}

function status(code: number, reason: string, message: string, details: object = {}): Reply {
  return [code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details }];
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of incoming.setEncoding('utf8')) text += chunk;
  return text;
}

function merge(before: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const kept = typeof before === 'object' && before !== null && !Array.isArray(before) ? { ...before } : {};
  return {
    ...kept,
    ...Object.fromEntries(
      Object.entries(patch).map(([key, value]) => [key, merge(Object.entries(kept).find(([name]) => name === key)?.[1], value)]),
    ),
  };
}
