// Webhook processes before an API server in memory and in virtual time: what a test asks them, and what becomes of it.
import { type Admission, startAdmission } from '../../../agent/admission/guard.ts';
import type { AgentEnv } from '../../../agent/env.ts';
import { type KubernetesHttp, sleep } from '../../../cluster/env.ts';
import { TransportFailure } from '../../../cluster/request/failure.ts';
import { decodeLedger, ledgerKey, ledgerName } from '../../../engine/ledger/ledger-document.ts';
import { isUnknown, type Ledger } from '../../../engine/snapshot.ts';
import { messageOf } from '../../../policies/error-message.ts';
import type { ModelObject } from '../../../simulation/server/request.ts';
import { type EnforceEndpoint, type EnforceOptions, enforceEndpoint } from '../../../webhook/native/enforce.ts';
import type { Answer, Review } from '../../../webhook/review/review.ts';
import { defaultConfig } from '../../kit/agent-process.ts';
import { adoptedGroup, type Cluster, nativeGroup, newCluster, type StatefulSetInput, sets } from '../../kit/cluster.ts';
import { seededRandom } from '../../kit/virtual-env.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface EnforceWorld extends Cluster {
  /** A process of its own, with its own connection, once it knows everything. */
  readonly start: (options?: ProcessOptions) => Promise<WebhookProcess>;
  readonly set: (zone: string) => ModelObject;
  readonly pod: (zone: string, ordinal: number) => ModelObject;
  /** What is stored of the group. */
  readonly ledger: () => Ledger;
  readonly dropLedger: () => void;
  /** Deletes the namespace, which stays until it is empty. */
  readonly endNamespace: () => void;
  /** What the API server does once everybody has allowed it. */
  readonly scaleTo: (zone: string, replicas: number) => void;
}

interface ProcessOptions extends Partial<Pick<EnforceOptions, 'own' | 'namespaces' | 'isPreparedElsewhere'>> {
  readonly name?: string;
  /** Each way takes up to so long, in milliseconds; none when left out. */
  readonly latencyMs?: number;
  readonly seed?: number;
  /** The process dies once a request of the site has been answered. */
  readonly diesAfter?: string;
}

export interface WebhookProcess {
  readonly endpoint: EnforceEndpoint;
  /** With which other endpoints of the same process are made. */
  readonly env: AgentEnv;
  /** What pods were asked, as `METHOD url`; each answers 200. */
  readonly podCalls: readonly string[];
  readonly admission: Admission;
  /** Method and path of every request that would write. */
  readonly writes: readonly string[];
  readonly requests: readonly string[];
  /** From now on no request is answered. */
  readonly cutOff: () => void;
  readonly mend: () => void;
  /** The answer as the server would send it: of the endpoint, or what it says when it fails. */
  readonly ask: (review: Review, timeoutMs?: number) => Promise<Answer>;
}

/** A group of three zones, native unless something else is said. */
export function enforceWorld(
  group: { readonly kind?: 'native' | 'adopted' | 'none'; readonly spec?: Json; readonly sets?: Partial<StatefulSetInput> } = {},
): EnforceWorld {
  const cluster = newCluster();
  const { api, env } = cluster;
  api.put('namespaces', { metadata: { name: 'mimir', finalizers: ['example.com/not-empty'] } });
  if (group.kind === 'none') for (const zone of ['a', 'b', 'c']) cluster.workloads.create({ name: `ingester-zone-${zone}`, ...group.sets });
  else if (group.kind === 'adopted') adoptedGroup(cluster, group.sets);
  else nativeGroup(cluster, group.spec, group.sets);
  const found = (resource: string, name: string): ModelObject => {
    const object = api.get(resource, 'mimir', name);
    if (object === undefined) throw new Error(`${name} is not there`);
    return object;
  };
  const set = (zone: string): ModelObject => found(sets, `ingester-zone-${zone}`);
  return {
    ...cluster,
    set,
    pod: (zone, ordinal) => found('pods', `ingester-zone-${zone}-${ordinal}`),
    ledger: () => {
      const text = (api.get('configmaps', 'mimir', ledgerName('ingester'))?.['data'] as Json | undefined)?.[ledgerKey];
      const ledger = decodeLedger(typeof text === 'string' ? text : undefined, { namespace: 'mimir', group: 'ingester' });
      if (isUnknown(ledger)) throw new Error(ledger.unknown);
      return ledger;
    },
    dropLedger: () => api.remove('configmaps', 'mimir', ledgerName('ingester')),
    endNamespace: () => api.remove('namespaces', '', 'mimir'),
    scaleTo: (zone, replicas) => void api.change(sets, 'mimir', set(zone).metadata.name, { spec: { replicas } }),
    start: async (options = {}) => {
      const process = startWebhook(cluster, options);
      await env.until(() => process.admission.guard.isSettled());
      return process;
    },
  };
}

function startWebhook({ env }: Cluster, options: ProcessOptions): WebhookProcess {
  const { name = 'webhook-1', latencyMs = 0, seed = 1, diesAfter, ...endpointOptions } = options;
  const random = seededRandom(seed);
  const writes: string[] = [];
  const requests: string[] = [];
  const podCalls: string[] = [];
  let isCutOff = false;
  let isDead = false;
  const forever = new Promise<never>(() => undefined);
  const way = (): Promise<void> => (latencyMs === 0 ? Promise.resolve() : sleep(env, random() * latencyMs));
  const kubernetes: KubernetesHttp = {
    request: async (request) => {
      requests.push(`${request.method} ${request.path.split('?')[0]}`);
      if (request.method !== 'GET') writes.push(`${request.method} ${request.path.split('?')[0]}`);
      if (isDead) return forever;
      await way();
      if (isCutOff) {
        await sleep(env, request.timeoutMs);
        throw new TransportFailure('the connection was reset', { site: request.site ?? '', mayBeApplied: true });
      }
      const response = await env.kubernetes.request(request);
      isDead ||= request.site === diesAfter;
      if (isDead) return forever;
      if (random() < 0.3) await way();
      return response;
    },
    stream: (request, onLine) => env.kubernetes.stream(request, onLine),
  };
  const silent = (): void => undefined;
  const agentEnv: AgentEnv = {
    clock: env.clock,
    timers: env.timers,
    random,
    kubernetes,
    pods: {
      call: async ({ method, url }) => {
        podCalls.push(`${method} ${url}`);
        return { status: 200, body: '' };
      },
    },
    log: { debug: silent, info: silent, warn: silent, error: silent },
  };
  const admission = startAdmission(agentEnv, { ...defaultConfig, identity: name });
  const endpoint = enforceEndpoint({ env: agentEnv, guard: admission.guard, ...endpointOptions });
  return {
    endpoint,
    env: agentEnv,
    podCalls,
    admission,
    writes,
    requests,
    cutOff: () => {
      isCutOff = true;
    },
    mend: () => {
      isCutOff = false;
    },
    ask: (review, timeoutMs = 4000) => {
      const deadlineMs = env.clock.monotonicMs() + timeoutMs;
      const late = sleep(env, timeoutMs).then(() => endpoint.onFailure(review, 'there was no answer in time'));
      const answer = endpoint
        .handle(review, { deadlineMs, signal: new AbortController().signal })
        .catch((error: unknown) => endpoint.onFailure(review, messageOf(error)));
      return Promise.race([answer, late]);
    },
  };
}

const person = { name: 'kim', groups: ['system:authenticated'] };

function reviewOf(resource: 'statefulsets' | 'pods', overrides: Partial<Review>): Review {
  const group = resource === 'pods' ? '' : 'apps';
  return {
    apiVersion: 'admission.k8s.io/v1',
    uid: 'review-1',
    subresource: '',
    operation: 'UPDATE',
    dryRun: false,
    user: person,
    kind: { group, version: 'v1', kind: resource === 'pods' ? 'Pod' : 'StatefulSet' },
    resource: { group, version: 'v1', resource },
    namespace: 'mimir',
    name: '',
    ...overrides,
  };
}

/** A write of a StatefulSet: `change` is what it makes of the object. */
export function updateOf(set: ModelObject, change: (object: Json) => Json, overrides: Partial<Review> = {}): Review {
  return reviewOf('statefulsets', { name: set.metadata.name, oldObject: set, object: change(set), ...overrides });
}

/** A write of `/scale`; without `replicas` the number is left out. */
export function scaleOf(set: ModelObject, replicas: number | undefined, overrides: Partial<Review> = {}): Review {
  const scale = (count: unknown): Json => ({
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name: set.metadata.name, namespace: 'mimir' },
    spec: count === undefined ? {} : { replicas: count },
  });
  return reviewOf('statefulsets', {
    kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
    subresource: 'scale',
    name: set.metadata.name,
    oldObject: scale((set['spec'] as Json)['replicas']),
    object: scale(replicas),
    ...overrides,
  });
}

export function deletionOf(object: ModelObject, overrides: Partial<Review> = {}): Review {
  const resource = object['kind'] === 'Pod' ? 'pods' : 'statefulsets';
  return reviewOf(resource, { operation: 'DELETE', name: object.metadata.name, oldObject: object, ...overrides });
}

export function evictionOf(pod: ModelObject, overrides: Partial<Review> = {}): Review {
  const { name, namespace } = pod.metadata;
  return reviewOf('pods', {
    kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
    subresource: 'eviction',
    operation: 'CREATE',
    name,
    object: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } },
    ...overrides,
  });
}

/** The object with other fields in its spec. */
export function withSpec(fields: Json): (object: Json) => Json {
  return (object) => ({ ...object, spec: { ...(object['spec'] as Json), ...fields } });
}

/** The object with other labels; undefined takes one away. */
export function withLabels(labels: Readonly<Record<string, string | undefined>>): (object: Json) => Json {
  return (object) => {
    const metadata = object['metadata'] as Json;
    const all = { ...(metadata['labels'] as Json | undefined), ...labels };
    const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    return { ...object, metadata: { ...metadata, labels: kept } };
  };
}
