// Plays the part of an API server that keeps objects: create, get, list, replace and merge patch with preconditions, delete with preconditions.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { type Serve, type Served, type ServedRequest, status } from '../kit/virtual-env.ts';

interface ObjectsServer {
  readonly serve: Serve;
  /** By path. */
  readonly objects: Map<string, KubernetesObject>;
  /** Method, path and site of every request that would write. */
  readonly writes: () => readonly string[];
  /** Puts an object there, as somebody else would. */
  readonly put: (path: string, object: Readonly<Record<string, unknown>>) => void;
  /** Answers with a failure instead, as long as it is set; undefined: as usual. */
  fault: ((request: ServedRequest) => Served | undefined) | undefined;
}

type Json = Readonly<Record<string, unknown>>;

/** Serves every collection whose plural is in `served`. */
export function objectsServer(served: readonly string[]): ObjectsServer {
  const objects = new Map<string, KubernetesObject>();
  const writes: string[] = [];
  let revision = 100;

  const stored = (path: string, object: Json): KubernetesObject => {
    revision += 1;
    const metadata = {
      uid: `uid-${path}`,
      ...(object['metadata'] as Json),
      resourceVersion: `${revision}`,
    } as KubernetesObject['metadata'];
    const kept: KubernetesObject = { ...object, metadata: { ...metadata, name: metadata.name ?? path.split('/').at(-1) ?? '' } };
    objects.set(path, kept);
    return kept;
  };

  const server: ObjectsServer = {
    objects,
    writes: () => writes,
    put: (path, object) => void stored(path, object),
    fault: undefined,
    serve: (request) => {
      const { method, pathname, json } = request;
      const words = pathname.split('/');
      const plural = words[words.indexOf('namespaces') + 2] ?? '';
      const fault = server.fault?.(request);
      if (fault !== undefined) return fault;
      if (method !== 'GET') writes.push(`${method} ${pathname} ${request.site}`);
      if (!served.includes(plural)) return { status: 404, body: '404 page not found\n' };
      const body = json as Json;
      const path = pathname.replace(/\/status$/, '');
      if (method === 'POST') {
        const key = `${pathname}/${(body['metadata'] as Json)['name']}`;
        return objects.has(key) ? status(409, 'AlreadyExists') : { status: 201, body: stored(key, body) };
      }
      if (method === 'GET' && words.length === words.indexOf('namespaces') + 3) {
        const items = [...objects].filter(([key]) => key.startsWith(`${pathname}/`)).map(([, object]) => object);
        return { status: 200, body: { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: `${revision}` }, items } };
      }
      const object = objects.get(path);
      if (object === undefined) return status(404, 'NotFound', 'not found', { name: words.at(-1) });
      if (method === 'GET') return { status: 200, body: object };
      const wanted = (method === 'DELETE' ? body['preconditions'] : body['metadata']) as Json;
      const isSame = wanted['uid'] === object.metadata.uid && wanted['resourceVersion'] === object.metadata.resourceVersion;
      if (!isSame) return status(409, 'Conflict');
      if (method === 'DELETE') {
        objects.delete(path);
        return { status: 200, body: object };
      }
      return { status: 200, body: stored(path, method === 'PUT' ? body : (merged(object, body) as Json)) };
    },
  };
  return server;
}

function merged(before: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = typeof before === 'object' && before !== null && !Array.isArray(before) ? { ...before } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}
