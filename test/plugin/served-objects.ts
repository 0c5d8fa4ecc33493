// The model of the API server with the objects, kinds and permissions that a test gives it.
import { apiVersionOf } from '../../cluster/request/resource.ts';
import type { Cluster } from '../../plugin/connection.ts';
import { kubernetesKinds, projectKinds, resourceOf } from '../../simulation/server/kinds.ts';
import { moreKinds } from '../kit/kinds.ts';
import { ModelApi } from '../kit/model-server.ts';
import { type VirtualEnv, virtualEnv } from '../kit/virtual-env.ts';
import { leaseObject } from './live-objects.ts';

export interface FakeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

export interface ServedLimits {
  /** Plurals that are not served, as with CRDs that are not installed. */
  readonly missing?: readonly string[];
  /** Plurals that may not be read or written. */
  readonly forbidden?: readonly string[];
  /** False if no agent runs. Otherwise an agent holds the Lease, unless a Lease is among the objects. */
  readonly hasAgent?: boolean;
}

export interface ServedObjects {
  readonly api: ModelApi;
  /** Creates the object with its status, or replaces the content of the one of its name. */
  readonly put: (object: FakeObject) => void;
  readonly objects: () => readonly FakeObject[];
}

interface Owner {
  readonly uid: string;
}

/** The user of every request. */
export const user = 'anna';

/**
 * Serves the objects. The server chooses their UIDs: an owner reference finds its owner, which is put before, by the UID that the test gave.
 * A creationTimestamp is the time at which the object is created.
 */
export function serveObjects(
  initial: readonly FakeObject[],
  { missing = [], forbidden = [], hasAgent = true }: ServedLimits,
  { clock, timers }: Pick<VirtualEnv, 'clock' | 'timers'>,
): ServedObjects {
  const own = [...projectKinds, ...moreKinds].filter(({ plural }) => !missing.includes(plural));
  const kinds = [...kubernetesKinds, ...own];
  let createdMs: number | undefined;
  const api = new ModelApi({ env: { clock: { ...clock, nowMs: () => createdMs ?? clock.nowMs() }, timers }, kinds: own, user });
  const uids = new Map<unknown, string>();

  const put = (object: FakeObject): void => {
    const { uid, creationTimestamp, ownerReferences, ...metadata } = object.metadata;
    const kind = kinds.find((one) => one.kind === object.kind && apiVersionOf(one) === object.apiVersion);
    if (kind === undefined) throw new Error(`${object.apiVersion} ${object.kind} is not served`);
    const owners = (ownerReferences as readonly Owner[] | undefined)?.map((owner) => ({ ...owner, uid: uids.get(owner.uid) ?? owner.uid }));
    createdMs = typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) : undefined;
    const stored = api.put(resourceOf(kind), { ...object, metadata: { ...metadata, ...(owners && { ownerReferences: owners }) } });
    createdMs = undefined;
    if (uid !== undefined) uids.set(uid, stored.metadata.uid);
  };
  for (const object of initial) put(object);
  // The agent runs for the rest of the test.
  if (hasAgent && initial.every(({ kind }) => kind !== 'Lease')) put(leaseObject('agent-0', clock.nowMs(), 86_400));
  for (const kind of kinds) if (forbidden.includes(kind.plural)) api.forbid(`* ${resourceOf(kind)}`);
  return { api, put, objects: () => kinds.flatMap((kind) => api.list(resourceOf(kind))) };
}

export interface ClusterAnswers extends ServedLimits {
  /** By plural. */
  readonly objects?: Readonly<Record<string, readonly FakeObject[]>>;
  /** Answers to access reviews. */
  readonly reviews?: (plural: string, body: { readonly spec?: { readonly user?: string } }) => object;
}

export function clusterOf({ objects = {}, reviews = () => ({}), ...limits }: ClusterAnswers): Cluster {
  const env = virtualEnv();
  const { api } = serveObjects(Object.values(objects).flat(), limits, env);
  env.replaceServer((request) => {
    const { method, pathname, json } = request;
    return method === 'POST' ? { status: 201, body: reviews(pathname.split('/').at(-1) ?? '', Object(json)) } : api.serve(request);
  });
  return { env, namespace: 'mimir', server: 'https://test', contextName: '', timeoutMs: 1000, close: () => undefined };
}
