// Runs the endpoints of the webhook over an API server in memory, in real time.
import { setTimeout as delay } from 'node:timers/promises';
import { startAdmission } from '../../agent/admission/guard.ts';
import type { AgentEnv } from '../../agent/env.ts';
import { processClock, processRandom, processTimers } from '../../cluster/connection/process-env.ts';
import type { KubernetesHttp, KubernetesRequest } from '../../cluster/env.ts';
import { customKinds, MemoryApi } from '../../test/kit/memory-api.ts';
import { MemoryWorkloads } from '../../test/kit/memory-workloads.ts';
import type { ServedRequest } from '../../test/kit/virtual-env.ts';
import { noDownscale } from '../../webhook/compat/no-downscale.ts';
import { enforceEndpoint } from '../../webhook/native/enforce.ts';
import type { ServedEndpoint } from '../../webhook/server/exchange.ts';
import { guardedLabels, longAnnotations, namespace, podsPerZone, type Scenario, zoneName, zones } from './webhook-reviews.ts';

interface LoadWorld {
  readonly endpoints: readonly ServedEndpoint[];
  readonly env: AgentEnv;
  /** Milliseconds in the API server so far. Valid only without latency, because calls then do not overlap. */
  readonly apiMs: () => number;
  /** Writes of ConfigMaps (ledgers) so far. */
  readonly ledgerWrites: () => number;
  readonly stop: () => void;
}

/** Latency of each call to the API server in the load with reservations, as on a quiet control plane. */
export const evictionLatencyMs = 5;

/** Resolves when policies and objects are loaded. */
export async function startLoadWorld(scenario: Scenario): Promise<LoadWorld> {
  const kinds = { ...customKinds, '/v1/namespaces': 'Namespace', 'events.k8s.io/v1/events': 'Event' };
  const api = new MemoryApi({ nowMs: processClock.nowMs, customKinds: kinds });
  // A deleted pod is back so fast that it can be evicted again in the next round.
  const times = { startMs: 20, drainMs: 20, controllerMs: 5 };
  const workloads = new MemoryWorkloads(api, processTimers, processClock.nowMs, times);
  api.put('/v1/namespaces', { metadata: { name: namespace } });
  api.put('/v1/nodes', { metadata: { name: 'node-1' }, status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  const annotations = longAnnotations();
  for (const zone of zones) workloads.create({ name: zoneName(zone), replicas: podsPerZone, annotations });
  workloads.create({ name: 'cache', replicas: podsPerZone, labels: guardedLabels, annotations });
  api.put('rollout-group.dev/v1alpha1/rolloutgroups', groupOf(scenario));
  const server = memoryKubernetes(api, scenario === 'evictions' ? evictionLatencyMs : 0);
  const silent = (): void => undefined;
  const env: AgentEnv = {
    clock: processClock,
    timers: processTimers,
    random: processRandom,
    kubernetes: server.http,
    pods: { call: () => Promise.reject(new Error('nothing here calls pods')) },
    log: { debug: silent, info: silent, warn: silent, error: silent },
  };
  const admission = startAdmission(env, {
    namespaces: [namespace],
    agentNamespace: namespace,
    policySources: ['objects', 'adopted'],
    identity: 'bench',
  });
  while (!admission.guard.isSettled()) await delay(10);
  const enforce = enforceEndpoint({ env, guard: admission.guard, namespaces: [namespace], isPreparedElsewhere: true });
  return {
    endpoints: [noDownscale(env), { ...(scenario === 'evictions' ? evicting(enforce, api) : enforce), withinMs: 4_000 }],
    env,
    apiMs: server.busyMs,
    ledgerWrites: server.ledgerWrites,
    stop: admission.stop,
  };
}

function groupOf(scenario: Scenario): Parameters<MemoryApi['put']>[1] {
  return {
    metadata: { name: 'ingester', namespace },
    spec: {
      members: { zones: zones.map((zone) => ({ name: zone, statefulSet: zoneName(zone) })) },
      rollout: { strategy: 'onDelete', rotateBy: 'delete' },
      ...(scenario === 'reviews' ? { protect: { noDownscale: true } } : { disruption: { maxUnavailable: podsPerZone } }),
    },
  };
}

/** Deletes each pod whose eviction was allowed, as the API server does after all webhooks answered. */
function evicting(endpoint: ServedEndpoint, api: MemoryApi): ServedEndpoint {
  return {
    ...endpoint,
    handle: async (review, call) => {
      const answer = await endpoint.handle(review, call);
      if (answer.allowed) {
        const path = `/api/v1/namespaces/${namespace}/pods/${review.name}`;
        processTimers.after(1, () => api.serve(servedRequest({ method: 'DELETE', path, timeoutMs: 1_000, site: 'bench.evict' }, false)));
      }
      return answer;
    },
  };
}

const maxKnown = 200;

/** Gives the webhook access to the API server in memory. */
function memoryKubernetes(
  api: MemoryApi,
  latencyMs: number,
): { readonly http: KubernetesHttp; readonly busyMs: () => number; readonly ledgerWrites: () => number } {
  let busyMs = 0;
  let writes = 0;
  // The API server must not use much processor time, so answers are cached until an object changes.
  const known = new Map<string, { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: string }>();
  const react = api.onChange;
  api.onChange = (plural, object) => {
    known.clear();
    react(plural, object);
  };
  return {
    busyMs: () => busyMs,
    ledgerWrites: () => writes,
    http: {
      request: async (request) => {
        if (latencyMs > 0) await delay(latencyMs);
        const before = request.method === 'GET' ? known.get(request.path) : undefined;
        if (before !== undefined) return before;
        const startedMs = performance.now();
        const answer = answerOf(api, request);
        busyMs += performance.now() - startedMs;
        if (request.method !== 'GET' && request.path.includes('/configmaps')) writes += 1;
        if (request.method === 'GET' && known.size < maxKnown) known.set(request.path, answer);
        return answer;
      },
      stream: async (request, onLine) => {
        const served = api.serve(servedRequest(request, true));
        if (!('watch' in served)) throw new Error(`${request.site} got no watch`);
        return served.watch.connect(onLine);
      },
    },
  };
}

function answerOf(api: MemoryApi, request: KubernetesRequest) {
  const served = api.serve(servedRequest(request, false));
  if (!('status' in served)) throw new Error(`${request.site} asked for a watch`);
  const { status, body = {} } = served;
  return { status, headers: {}, body: typeof body === 'string' ? body : JSON.stringify(body) };
}

function servedRequest(request: KubernetesRequest, isStream: boolean): ServedRequest {
  const { pathname, searchParams: query } = new URL(request.path, 'http://localhost');
  const json: unknown = request.body === undefined ? undefined : JSON.parse(request.body);
  return { ...request, isStream, pathname, query, json, sentAtMs: 0 };
}
