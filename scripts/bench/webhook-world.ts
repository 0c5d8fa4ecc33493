// Runs the endpoints of the webhook over the model of the API server, in real time.
import { setTimeout as delay } from 'node:timers/promises';
import { startAdmission } from '../../agent/admission/guard.ts';
import type { AgentEnv } from '../../agent/env.ts';
import { processClock, processRandom, processTimers } from '../../cluster/connection/process-env.ts';
import type { KubernetesHttp, KubernetesRequest } from '../../cluster/env.ts';
import { groups, startWorkloads } from '../../test/kit/cluster.ts';
import { ModelApi } from '../../test/kit/model-server.ts';
import type { Served, ServedRequest } from '../../test/kit/virtual-env.ts';
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

/** The cluster runs twenty times as fast as the webhook, so a deleted pod is back before it is evicted again. */
const pace = 20;
const fast = {
  clock: { nowMs: processClock.nowMs, monotonicMs: () => processClock.monotonicMs() * pace },
  timers: { after: (delayMs: number, callback: () => void) => processTimers.after(delayMs / pace, callback) },
};

/** Resolves when policies and objects are loaded. */
export async function startLoadWorld(scenario: Scenario): Promise<LoadWorld> {
  const api = new ModelApi({ env: fast });
  const workloads = startWorkloads(fast, api, { startMs: 400, drainMs: 200 });
  api.put('namespaces', { metadata: { name: namespace } });
  const annotations = longAnnotations();
  for (const zone of zones) workloads.create({ name: zoneName(zone), replicas: podsPerZone, annotations });
  workloads.create({ name: 'cache', replicas: podsPerZone, labels: guardedLabels, annotations });
  api.put(groups, groupOf(scenario));
  const server = modelKubernetes(api, scenario === 'evictions' ? evictionLatencyMs : 0);
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

function groupOf(scenario: Scenario): Parameters<ModelApi['put']>[1] {
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
function evicting(endpoint: ServedEndpoint, api: ModelApi): ServedEndpoint {
  return {
    ...endpoint,
    handle: async (review, call) => {
      const answer = await endpoint.handle(review, call);
      if (answer.allowed) {
        const path = `/api/v1/namespaces/${namespace}/pods/${review.name}`;
        processTimers.after(
          1,
          () => void api.serve(servedRequest({ method: 'DELETE', path, timeoutMs: 1_000, site: 'bench.evict' }, false)),
        );
      }
      return answer;
    },
  };
}

const maxKnown = 200;

/** Gives the webhook access to the model of the API server. */
function modelKubernetes(
  api: ModelApi,
  latencyMs: number,
): { readonly http: KubernetesHttp; readonly busyMs: () => number; readonly ledgerWrites: () => number } {
  let busyMs = 0;
  let writes = 0;
  // The API server must not use much processor time, so answers are cached until an object changes.
  const known = new Map<string, { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: string }>();
  api.server.observe({
    committed: ({ resource }) => {
      for (const path of known.keys()) if (path.includes(`/${resource.split('.')[0]}`)) known.delete(path);
    },
  });
  return {
    busyMs: () => busyMs,
    ledgerWrites: () => writes,
    http: {
      request: async (request) => {
        if (latencyMs > 0) await delay(latencyMs);
        const before = request.method === 'GET' ? known.get(request.path) : undefined;
        if (before !== undefined) return before;
        const startedMs = performance.now();
        const serving = api.serve(servedRequest(request, false));
        busyMs += performance.now() - startedMs;
        const answer = answerOf(request, await serving);
        if (request.method !== 'GET' && request.path.includes('/configmaps')) writes += 1;
        if (request.method === 'GET' && known.size < maxKnown) known.set(request.path, answer);
        return answer;
      },
      stream: async (request, onLine) => {
        const served = await api.serve(servedRequest(request, true));
        if (!('watch' in served)) throw new Error(`${request.site} got no watch`);
        return served.watch.connect(onLine);
      },
    },
  };
}

function answerOf(request: KubernetesRequest, served: Served) {
  if (!('status' in served)) throw new Error(`${request.site} asked for a watch`);
  const { status, body = {} } = served;
  return { status, headers: {}, body: typeof body === 'string' ? body : JSON.stringify(body) };
}

function servedRequest(request: KubernetesRequest, isStream: boolean): ServedRequest {
  const { pathname, searchParams: query } = new URL(request.path, 'http://localhost');
  const json: unknown = request.body === undefined ? undefined : JSON.parse(request.body);
  return { ...request, isStream, pathname, query, json, sentAtMs: 0 };
}
