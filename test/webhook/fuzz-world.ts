// Every endpoint of the executable before an API server in memory: what forged reviews reach, what they make it write, and whom it calls.
import { startAdmission } from '../../agent/admission/guard.ts';
import type { AgentEnv } from '../../agent/env.ts';
import type { PodRequest } from '../../cluster/env.ts';
import { encodeLedger, ledgerKey, ledgerName } from '../../engine/ledger/ledger-document.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { projectKinds } from '../../simulation/server/kinds.ts';
import type { ModelObject } from '../../simulation/server/request.ts';
import { evictionCache } from '../../webhook/compat/eviction/eviction-cache.ts';
import { podEviction } from '../../webhook/compat/eviction/pod-eviction.ts';
import { noDownscale } from '../../webhook/compat/no-downscale.ts';
import { prepareDownscale } from '../../webhook/compat/prepare/downscale.ts';
import { startZoneBudgets, zpdbValidation } from '../../webhook/compat/zpdb.ts';
import { enforceEndpoint } from '../../webhook/native/enforce.ts';
import { pinEndpoint } from '../../webhook/native/pin-endpoint.ts';
import { stampEndpoint } from '../../webhook/native/stamp-endpoint.ts';
import { validateEndpoint } from '../../webhook/native/validate-endpoint.ts';
import type { Endpoint } from '../../webhook/review/review.ts';
import { defaultConfig } from '../kit/agent-process.ts';
import { adoptedGroup, type Cluster, isReadyPod, newCluster } from '../kit/cluster.ts';
import type { ServedRequest } from '../kit/virtual-env.ts';
import { withReplicas } from './compat/scenarios/world.ts';

type Json = Readonly<Record<string, unknown>>;

const kinds = [...projectKinds, withReplicas('deployments', 'Deployment'), withReplicas('replicasets', 'ReplicaSet')];

export interface FuzzWorld extends Cluster {
  readonly endpoints: readonly Endpoint[];
  readonly podCalls: readonly PodRequest[];
  readonly errors: readonly string[];
  /** Names of StatefulSets and pods that there are. */
  readonly names: readonly string[];
  /** Whatever a review must leave as it is, as text. */
  readonly kept: () => string;
  /** Announced disruptions of every group, as a webhook reads them now. */
  readonly openClaims: () => Promise<number>;
  readonly stop: () => void;
}

/**
 * An adopted group whose pods prepare, under a zone-aware budget; a native group that is protected; one whose first pod is pinned; and a StatefulSet
 * that nobody protects.
 */
export async function fuzzWorld(): Promise<FuzzWorld> {
  const cluster = newCluster({ kinds });
  const { api, env, workloads } = cluster;
  api.put('namespaces', { metadata: { name: 'mimir' } });
  adoptedGroup(cluster, {
    labels: { 'grafana.com/prepare-downscale': 'true', 'grafana.com/min-time-between-zones-downscale': '10m' },
    annotations: { 'grafana.com/prepare-downscale-http-path': 'prepare', 'grafana.com/prepare-downscale-http-port': '8080' },
  });
  for (const { metadata } of api.list('pods', 'mimir')) {
    api.change('pods', 'mimir', metadata.name, { metadata: { labels: { 'rollout-group': 'ingester' } } });
  }
  api.put('zoneawarepoddisruptionbudgets.rollout-operator.grafana.com', {
    metadata: { name: 'ingester', namespace: 'mimir' },
    spec: { selector: { matchLabels: { 'rollout-group': 'ingester' } }, maxUnavailable: 1 },
  });
  for (const zone of ['a', 'b'])
    workloads.create({ name: `store-zone-${zone}`, labels: zone === 'a' ? { 'grafana.com/no-downscale': 'true' } : {} });
  workloads.create({ name: 'free' });
  api.put('rolloutgroups.rollout-group.dev', {
    metadata: { name: 'store', namespace: 'mimir' },
    spec: {
      members: { zones: ['a', 'b'].map((name) => ({ name, statefulSet: `store-zone-${name}` })) },
      replicas: { leader: true },
      rollout: { strategy: 'onDelete' },
      disruption: { maxUnavailable: 1 },
    },
  });
  pinnedGroup(cluster);
  const podCalls: PodRequest[] = [];
  const errors: string[] = [];
  const silent = (): void => undefined;
  const agentEnv: AgentEnv = {
    ...env,
    pods: {
      call: (request) => {
        podCalls.push(request);
        return Promise.resolve({ status: 200, body: '' });
      },
    },
    log: { debug: silent, info: silent, warn: silent, error: (_, fields) => void errors.push(`${fields?.['path']}: ${fields?.['error']}`) },
  };
  const { guard, followed, stop } = startAdmission(agentEnv, { ...defaultConfig, identity: 'webhook-1' });
  const budgets = startZoneBudgets({ log: agentEnv.log, followed: followed.zoneBudgets });
  const prepare = { clusterDomain: 'cluster.local.', podTimeoutMs: 500 };
  await env.until(() => guard.isSettled() && budgets.isSettled());
  return {
    ...cluster,
    endpoints: [
      noDownscale(agentEnv),
      prepareDownscale(agentEnv, prepare),
      prepareDownscale(agentEnv, { ...prepare, zoneTracker: { configMapName: 'zone-tracker' } }),
      podEviction(agentEnv, { budgets, cache: evictionCache(agentEnv, { guard, isAlone: () => false }) }),
      zpdbValidation(),
      enforceEndpoint({ env: agentEnv, guard, own: { namespace: 'agent', names: ['rollout-group-agent'] }, isPreparedElsewhere: true }),
      validateEndpoint(agentEnv, { agentNamespace: 'mimir', groups: (namespace) => guard.groups(namespace) }),
      stampEndpoint(agentEnv),
      pinEndpoint({ env: agentEnv, guard }),
    ],
    podCalls,
    errors,
    names: [...api.list('statefulsets.apps', 'mimir'), ...api.list('pods', 'mimir')].map(({ metadata }) => metadata.name),
    kept: () => JSON.stringify([...api.list('statefulsets.apps'), ...api.list('pods')].map(withoutRecord)),
    openClaims: async () => {
      const { ledgers } = await env.finish(guard.snapshot('mimir', groupNames, 2_000));
      return ledgers.reduce((count, { claims }) => count + claims.length, 0);
    },
    stop: () => {
      budgets.stop();
      stop();
    },
  };
}

/** StatefulSet `held`, with a ledger that pins its first pod to a second revision. */
function pinnedGroup({ api, workloads }: Cluster): void {
  workloads.create({ name: 'held' });
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    name: 'held',
    uid: api.get('statefulsets.apps', 'mimir', 'held')?.metadata.uid,
  };
  for (const version of [1, 2]) {
    api.put('controllerrevisions.apps', {
      metadata: { name: `held-${version}`, namespace: 'mimir', ownerReferences: [{ ...owner, controller: true }] },
      data: { spec: { template: { metadata: {}, spec: { containers: [{ name: 'app', image: `app:${version}` }] } } } },
    });
  }
  api.put('rolloutgroups.rollout-group.dev', {
    metadata: { name: 'held', namespace: 'mimir' },
    spec: { members: { zones: [{ name: 'a', statefulSet: 'held' }] }, replicas: { leader: true }, rollout: { strategy: 'pinned' } },
  });
  const ledger = encodeLedger({
    namespace: 'mimir',
    group: 'held',
    claims: [],
    downscales: [],
    preparations: [],
    pins: [{ zone: 'a', ordinal: 0, revision: 'held-2', placements: 0 }],
  });
  if (isUnknown(ledger)) throw new Error(ledger.unknown);
  api.put('configmaps', { metadata: { name: ledgerName('held'), namespace: 'mimir' }, data: { [ledgerKey]: ledger } });
}

/** The pod `held-0` as its controller makes it. */
export function newPodOf({ api }: Pick<Cluster, 'api'>): Json {
  const uid = api.get('statefulsets.apps', 'mimir', 'held')?.metadata.uid;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'held-0',
      namespace: 'mimir',
      labels: { 'controller-revision-hash': 'held-1', 'apps.kubernetes.io/pod-index': '0' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'held', uid, controller: true }],
    },
    spec: { containers: [{ name: 'app', image: 'app:1' }] },
  };
}

const groupNames = ['ingester', 'store', 'held'].map((name) => ({ namespace: 'mimir', name }));
const record = 'grafana.com/last-downscale';

/** What is recorded of a decrease is the one thing that may change of an object. */
function withoutRecord({ metadata, ...rest }: ModelObject): Json {
  const { resourceVersion: _, annotations, ...kept } = metadata;
  const { [record]: __, ...others } = (annotations ?? {}) as Json;
  return { ...rest, metadata: { ...kept, annotations: others } };
}

const records =
  /^\/api\/v1\/namespaces\/mimir\/configmaps(?:\/(?:rollout-group-(?:ingester|store|held)|rollout-group\.departures|zone-tracker))?$/;

/** What is wrong with a request that writes; undefined for reservations, records of decreases, and Events. */
export function trespass({ method, pathname, json }: ServedRequest): string | undefined {
  if (method === 'GET') return undefined;
  const what = `${method} ${pathname} ${JSON.stringify(json)?.slice(0, 300)}`;
  if (method === 'POST' && /^\/apis\/events\.k8s\.io\/v1\/namespaces\/mimir\/events$/.test(pathname)) return undefined;
  if (method !== 'DELETE' && records.test(pathname)) {
    const { metadata } = json as { readonly metadata: Json };
    const name = String(metadata['name'] ?? pathname.split('/').at(-1));
    return records.test(`/api/v1/namespaces/mimir/configmaps/${name}`) ? undefined : what;
  }
  if (method !== 'PATCH' || !/^\/apis\/apps\/v1\/namespaces\/mimir\/statefulsets\/ingester-zone-[abc]$/.test(pathname)) return what;
  const { metadata, ...rest } = json as { readonly metadata: Json };
  const { annotations, uid: _, resourceVersion: __, ...others } = metadata;
  const isRecord = [...Object.keys(rest), ...Object.keys(others)].length === 0 && Object.keys(annotations as Json).join() === record;
  return isRecord ? undefined : what;
}

/** What is wrong with a call to a pod; undefined for one that its StatefulSet, as it is stored, asks for before it leaves or when it stays. */
export function straying({ api }: FuzzWorld, { method, url }: PodRequest): string | undefined {
  const [, pod = '', service = ''] = /^http:\/\/([a-z0-9-]+)\.([a-z0-9-]+)\.mimir\.svc\.cluster\.local\.:8080\/prepare$/.exec(url) ?? [];
  const live = api.get('pods', 'mimir', pod);
  const isMarked = api.get('statefulsets.apps', 'mimir', service)?.metadata.labels?.['grafana.com/prepare-downscale'] === 'true';
  const isItsOwn = live !== undefined && isReadyPod(live) && pod.replace(/-\d+$/, '') === service;
  return isMarked && isItsOwn && (method === 'POST' || method === 'DELETE') ? undefined : `${method} ${url}`;
}
