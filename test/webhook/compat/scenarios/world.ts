// What the endpoints reach in tests: the model of the API server in virtual time, pods that answer as told, and a record of every call.
import { type PodRequest, type PodResponse, sleep } from '../../../../cluster/env.ts';
import { kubernetesKinds, projectKinds, type ServedKind } from '../../../../simulation/server/kinds.ts';
import type { Json as ModelJson } from '../../../../simulation/server/request.ts';
import type { ModelServer } from '../../../../simulation/server/server.ts';
import type { WebhookEnv } from '../../../../webhook/env.ts';
import type { Call } from '../../../../webhook/review/review.ts';
import { ModelApi } from '../../../kit/model-server.ts';
import { type Served, status, type VirtualEnv, virtualEnv } from '../../../kit/virtual-env.ts';
import type { ApiFault, Json, PodBehaviour } from './scenario.ts';

export const namespace = 'one';

/** A call as the world saw it. */
interface SeenCall {
  readonly call: string;
  readonly body?: unknown;
}

export interface WorldOptions {
  readonly state?: Readonly<Record<string, readonly Json[]>>;
  readonly faults?: readonly ApiFault[];
  readonly pods?: Readonly<Record<string, PodBehaviour>>;
  /** How long a request is on its way, in milliseconds: asked once before it arrives, and once for its answer. */
  readonly latencyMs?: () => number;
}

export interface World {
  readonly virtual: VirtualEnv;
  readonly env: WebhookEnv;
  readonly server: ModelServer;
  readonly calls: readonly SeenCall[];
  readonly logged: readonly string[];
  /** A call that has nine seconds, as handlers have. */
  readonly newCall: () => Call;
  /** What stands in the server, without namespace in the name: `get('statefulsets.apps', 'zone-a')`. */
  readonly get: (resource: string, name: string) => ModelJson | undefined;
  readonly change: (resource: string, name: string, patch: Json) => void;
}

/** Kinds that only these endpoints look at. */
export function withReplicas(plural: string, kind: string): ServedKind {
  const sets = kubernetesKinds.find((known) => known.plural === 'statefulsets');
  if (sets === undefined) throw new Error('the model serves no StatefulSets');
  return { ...sets, plural, kind, singular: kind.toLowerCase(), shortNames: [] };
}

export function scenarioWorld({ state = {}, faults = [], pods = {}, latencyMs }: WorldOptions = {}): World {
  const virtual = virtualEnv();
  const kinds = [...projectKinds, withReplicas('deployments', 'Deployment'), withReplicas('replicasets', 'ReplicaSet')];
  const api = new ModelApi({ env: virtual, kinds, user: 'webhook' });
  const { server } = api;
  const put = (resource: string, object: Json): void => void api.put(resource, object as ModelJson & { readonly metadata: ModelJson });
  const change = (resource: string, name: string, patch: Json): void => void api.change(resource, namespace, name, patch);
  for (const [resource, objects] of Object.entries(state)) for (const object of objects) put(resource, object);
  const calls: SeenCall[] = [];
  const counts = new Map<ApiFault, number>();
  virtual.replaceServer(async (request) => {
    if (latencyMs !== undefined) await sleep(virtual, latencyMs());
    const line = `${request.method} ${request.pathname}`;
    const selector = request.query.get('labelSelector');
    calls.push({ call: selector === null ? line : `${line} ${selector}`, ...(request.json === undefined ? {} : { body: request.json }) });
    for (const fault of faults.filter(({ on }) => on === line)) {
      const count = (counts.get(fault) ?? 0) + 1;
      counts.set(fault, count);
      if (fault.nth !== undefined && fault.nth !== count) continue;
      const { meanwhile, created, answer } = fault;
      if (meanwhile !== undefined) change(meanwhile.resource, meanwhile.name, meanwhile.patch);
      if (created !== undefined) put(created.resource, created.object);
      if (answer !== undefined) return faulty(answer);
    }
    const answer = await api.serve(request);
    return latencyMs === undefined ? answer : { ...answer, delayMs: latencyMs() };
  });
  const logged: string[] = [];
  const log = (message: string): void => {
    logged.push(message);
  };
  const env: WebhookEnv = {
    ...virtual,
    log: { debug: log, info: log, warn: log, error: log },
    pods: {
      call: (request) => {
        calls.push({ call: `${request.method} ${request.url}` });
        return podAnswer(virtual, pods, request);
      },
    },
  };
  return {
    virtual,
    env,
    server,
    calls,
    logged,
    newCall: () => ({ deadlineMs: virtual.clock.monotonicMs() + 9_000, signal: new AbortController().signal }),
    get: (resource, name) => server.get(resource, namespace, name),
    change,
  };
}

function faulty(answer: NonNullable<ApiFault['answer']>): Served {
  if (answer === 'lost') return { lost: 'before-apply' };
  if (answer === 'silent') return { lost: 'before-apply', forever: true };
  return status(answer.status, answer.reason ?? 'InternalError', answer.message);
}

function podAnswer(virtual: VirtualEnv, pods: Readonly<Record<string, PodBehaviour>>, request: PodRequest): Promise<PodResponse> {
  const pod = new URL(request.url).hostname.split('.')[0] ?? '';
  const behaviour = pods[`${request.method} ${pod}`] ?? 200;
  if (behaviour === 'refused') return Promise.reject(new Error('the connection was refused'));
  const { status: code, delayMs } = typeof behaviour === 'object' ? behaviour : { status: behaviour, delayMs: 0 };
  return new Promise((resolve, reject) => {
    if (code === 'silent' || delayMs >= request.timeoutMs) {
      virtual.timers.after(request.timeoutMs, () => reject(new Error(`no complete answer within ${request.timeoutMs} ms`)));
    } else virtual.timers.after(delayMs, () => resolve({ status: code, body: '' }));
  });
}
