// Objects, reviews and paths of scenarios: three zones of one group, as Mimir's ingesters have them.
import type { ExpectedCall, Json, ScenarioRequest } from './scenario.ts';

const prefix = '/apis/apps/v1/namespaces/one';

/** Paths of requests to the API server. */
export const at = {
  set: (name: string): string => `${prefix}/statefulsets/${name}`,
  sets: `${prefix}/statefulsets`,
  deployment: (name: string): string => `${prefix}/deployments/${name}`,
  replicaSet: (name: string): string => `${prefix}/replicasets/${name}`,
  pods: '/api/v1/namespaces/one/pods',
  pod: (name: string): string => `/api/v1/namespaces/one/pods/${name}`,
  configMaps: '/api/v1/namespaces/one/configmaps',
  tracker: '/api/v1/namespaces/one/configmaps/tracker',
};

/** The address at which a pod is called. */
export function podAt(pod: string, path = '/prepare'): string {
  return `http://${pod}.headless.one.svc.cluster.local.:8080${path}`;
}

interface SetOptions {
  readonly replicas?: number | null;
  readonly labels?: Json;
  readonly annotations?: Json;
  readonly spec?: Json;
  readonly status?: Json;
}

/** A StatefulSet of three replicas, all updated, whose pods carry `name: <set>`; it is in no group and has no marks. */
export function statefulSet(name: string, { replicas = 3, labels = {}, annotations = {}, spec = {}, status = {} }: SetOptions = {}): Json {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { namespace: 'one', name, labels, annotations },
    spec: {
      replicas,
      serviceName: 'headless',
      selector: { matchLabels: { name } },
      template: { metadata: { labels: { name } }, spec: { containers: [{ name: 'app', image: 'app:1' }] } },
      ...spec,
    },
    status: { replicas: replicas ?? 0, readyReplicas: replicas ?? 0, updatedReplicas: replicas ?? 0, ...status },
  };
}

export const group = { 'rollout-group': 'ingester' };
export const prepared = { 'grafana.com/prepare-downscale': 'true' };
export const endpoint = { 'grafana.com/prepare-downscale-http-port': '8080', 'grafana.com/prepare-downscale-http-path': 'prepare' };
export const waits = (duration: string): Json => ({ 'grafana.com/min-time-between-zones-downscale': duration });
export const shrankAt = (instant: string): Json => ({ 'grafana.com/last-downscale': instant });

/** A zone of the group that prepares its pods. */
export function zone(name: string, { labels = {}, annotations = {}, ...rest }: SetOptions = {}): Json {
  return statefulSet(name, { ...rest, labels: { ...group, ...prepared, ...labels }, annotations: { ...endpoint, ...annotations } });
}

interface PodOptions {
  readonly metadata?: Json;
  readonly status?: Json;
}

/** A pod of a StatefulSet that runs and is ready. */
export function pod(set: string, ordinal: number, { metadata = {}, status = {} }: PodOptions = {}): Json {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'one', name: `${set}-${ordinal}`, labels: { name: set }, ...metadata },
    spec: { nodeName: 'node-1', containers: [{ name: 'app', image: 'app:1' }] },
    status: { phase: 'Running', containerStatuses: [containerStatus(true)], ...status },
  };
}

export function containerStatus(ready: boolean): Json {
  return { name: 'app', image: 'app:1', imageID: '', ready, restartCount: 0, state: { running: { startedAt: '2026-01-15T11:00:00Z' } } };
}

export function podsOf(set: string, count = 3): readonly Json[] {
  return Array.from({ length: count }, (_, ordinal) => pod(set, ordinal));
}

export function scale(name: string, replicas: number | undefined): Json {
  return {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { namespace: 'one', name },
    spec: replicas === undefined ? {} : { replicas },
  };
}

/** An update of the object itself. Of what is left out, the runner takes the stored state. */
export function update(name: string, to: number | null, overrides: Partial<ScenarioRequest> = {}): ScenarioRequest {
  return { resource: 'statefulsets', name, patch: { spec: { replicas: to } }, dryRun: false, ...overrides };
}

/** A write to `/scale`. */
export function rescale(name: string, from: number, to: number | undefined, overrides: Partial<ScenarioRequest> = {}): ScenarioRequest {
  const objects = { oldObject: scale(name, from), object: scale(name, to) };
  return { resource: 'statefulsets', subresource: 'scale', name, ...objects, dryRun: false, ...overrides };
}

/** The list of a group, and those of the pods of its other zones, as a check makes them. */
export function checks(...others: readonly string[]): readonly ExpectedCall[] {
  return [`GET ${at.sets} rollout-group=ingester`, ...others.map((other) => `GET ${at.pods} name=${other}`)];
}

/** Calls to pods, in that order. */
export function calls(method: 'POST' | 'DELETE', ...pods: readonly string[]): readonly ExpectedCall[] {
  return pods.map((name) => `${method} ${podAt(name)}`);
}

/** The write of the annotation, at the instant at which scenarios begin. */
export function annotates(name: string, instant = '2026-01-15T12:00:00Z'): ExpectedCall {
  return { call: `PATCH ${at.set(name)}`, body: { metadata: { annotations: shrankAt(instant) } } };
}
