// What the suites of the whole webhook share: groups in the native and in the compatible form, opted in, behind processes of the executable.
import { type ApiClient, isTooLate, type KubernetesObject, type Reply } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import {
  applyInstallation,
  eventually,
  type Front,
  type StartOptions,
  startFront,
  startWebhookProcess,
  untilTrusted,
  type WebhookProcess,
} from '../control-plane/webhook.ts';
import { isReady, type Pod, type StatefulSet, statefulSet } from '../control-plane/workloads.ts';
import { scopeOf } from '../install/given.ts';

/** A group is protected by its own kind, or by the labels that grafana/rollout-operator reads. */
export type Form = 'native' | 'compat';
export const forms: readonly Form[] = ['native', 'compat'];

type Status = KubernetesObject & { readonly message?: string; readonly code?: number };

export interface Outcome {
  /** What the client was told, in words. */
  readonly said: string;
  readonly isRefused: boolean;
  /** True if a webhook received the request, but did not answer in time. */
  readonly isTooLate: boolean;
  /** What kubectl prints as warnings. */
  readonly warnings: string;
}

export const merge = 'application/merge-patch+json';
export const json = 'application/json-patch+json';
export const strategic = 'application/strategic-merge-patch+json';
export const apply = 'application/apply-patch+yaml';

export const setsOf = (namespace: string): string => `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
export const podsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;
export const groupsOf = (namespace: string): string => `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutgroups`;
export const replicas = (value: unknown): object => ({ spec: { replicas: value } });

/** Sends a request until it is judged, as `ApiClient.askUntilJudged` does. Suites about requests that are not judged use `writeOnce`. */
export async function write(client: ApiClient, ...request: Parameters<ApiClient['ask']>): Promise<Outcome> {
  return outcomeOf(await client.askUntilJudged<Status>(...request));
}

export async function writeOnce(client: ApiClient, ...request: Parameters<ApiClient['ask']>): Promise<Outcome> {
  return outcomeOf(await client.ask<Status>(...request));
}

function outcomeOf(reply: Reply<Status>): Outcome {
  const { status, body, warnings } = reply;
  return { said: `${status} ${body.message ?? ''}`, isRefused: status >= 300, isTooLate: isTooLate(reply), warnings };
}

export function evict(client: ApiClient, namespace: string, name: string): Promise<Outcome> {
  return write(client, 'POST', `${podsOf(namespace)}/${name}/eviction`, evictionOf(namespace, name));
}

export function evictOnce(client: ApiClient, namespace: string, name: string): Promise<Outcome> {
  return writeOnce(client, 'POST', `${podsOf(namespace)}/${name}/eviction`, evictionOf(namespace, name));
}

function evictionOf(namespace: string, name: string): object {
  return { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
}

/** Evicts a pod as soon as the webhook knows that the budget permits it. The webhook may hear later than the test that pods are ready. */
export async function untilEvicted(client: ApiClient, namespace: string, name: string): Promise<void> {
  await eventually(
    `${namespace}/${name} is evicted`,
    () => evict(client, namespace, name),
    ({ isRefused }) => !isRefused,
  );
}

interface Workload {
  readonly spec: { readonly template: { readonly metadata: { readonly labels: object } } };
}

interface SetOptions {
  readonly replicas?: number;
  readonly setLabels?: Readonly<Record<string, string>>;
  /** Of the pods, by which the fixture steers them. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The label `app` is that of the pods. */
export function setObject(name: string, app: string, options: SetOptions = {}): object {
  const object = statefulSet({ name, replicas: 3, ...options }) as Workload;
  const { spec } = object;
  const template = { ...spec.template, metadata: { ...spec.template.metadata, labels: { ...spec.template.metadata.labels, app } } };
  return { ...object, spec: { ...spec, template } };
}

interface GroupOptions extends SetOptions {
  readonly name: string;
  readonly zones?: readonly string[];
  /** Nothing shrinks, and nothing is deleted; with budget one pod may be evicted at a time. */
  readonly isProtected?: boolean;
  /** More of the RolloutGroup's spec, in the native form. */
  readonly spec?: object;
}

export interface World {
  readonly admin: ApiClient;
  readonly front: Front;
  /** The process that answers from the beginning. */
  readonly first: WebhookProcess;
  readonly start: (options?: StartOptions) => Promise<WebhookProcess>;
  /** Creates the StatefulSets `NAME-zone-ZONE` and what makes them a group, and waits until their pods are Ready. */
  readonly createGroup: (form: Form, namespace: string, options: GroupOptions) => Promise<void>;
  /** Waits until a decrease of the StatefulSet is denied. */
  readonly untilGuarded: (namespace: string, name: string) => Promise<void>;
  /** A StatefulSet in an opted-in namespace that nobody protects, unless its labels do. */
  readonly createFree: (namespace: string, count?: number, setLabels?: Readonly<Record<string, string>>) => Promise<string>;
  readonly untilReady: (namespace: string, prefix: string, count: number) => Promise<readonly Pod[]>;
  readonly close: () => Promise<void>;
}

interface WorldOptions {
  /** Opted in; with the endpoints of the original where the name begins with `compat`. */
  readonly namespaces: readonly string[];
  readonly start?: StartOptions;
}

/** Installs everything but the Deployment's image, and starts one process. */
export async function createWorld(controlPlane: ControlPlane, { namespaces, start: startOptions }: WorldOptions): Promise<World> {
  const { client: admin } = controlPlane;
  const front = await startFront();
  const processes: WebhookProcess[] = [];
  const start = async (options: StartOptions = {}): Promise<WebhookProcess> => {
    const flags = [`-namespaces=${namespaces.join(',')}`, ...(options.flags ?? [])];
    const process = await startWebhookProcess(controlPlane, { ...options, flags });
    processes.push(process);
    return process;
  };
  for (const name of namespaces) await admin.create('/api/v1/namespaces', { metadata: { name } });
  const isForeign = (name: string): boolean => namespaces.some((one) => !one.startsWith('compat') && name.endsWith(`-${one}`));
  await applyInstallation(
    admin,
    front,
    { scope: scopeOf('', { namespaces }), hasCompat: true, isEnforced: true, replicas: 2 },
    ({ kind, metadata }) => !(kind.endsWith('WebhookConfiguration') && isForeign(metadata.name)),
  );
  const first = await start(startOptions);
  front.leadTo(first.port);
  await untilTrusted(admin);
  // What the process writes is one thing, and what the API server has heard of another.
  await eventually(
    'a webhook that answers',
    () => write(admin, 'POST', `${groupsOf(namespaces[0] ?? '')}?dryRun=All`, groupObject(namespaces[0] ?? '', { name: 'probe' })),
    ({ isRefused }) => !isRefused,
  );

  const untilReady = (namespace: string, prefix: string, count: number): Promise<readonly Pod[]> =>
    admin.until<Pod>(podsOf(namespace), `${count} pods of ${prefix} Ready`, (pods) => {
      const those = pods.filter(({ metadata }) => metadata.name.startsWith(prefix));
      return those.length === count && those.every((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined);
    });
  let freeCount = 0;
  return {
    admin,
    front,
    first,
    start,
    untilReady,
    createGroup: async (form, namespace, options) => {
      const { name, zones = ['a', 'b'], isProtected = true, setLabels = {}, spec: _, ...more } = options;
      const byLabel = { 'rollout-group': name, ...(isProtected ? { 'grafana.com/no-downscale': 'true' } : {}) };
      const labels = { app: name, cell: name, ...(form === 'compat' ? byLabel : {}), ...setLabels };
      if (form === 'native') await admin.create(groupsOf(namespace), groupObject(namespace, options));
      else await admin.create(budgetsOf(namespace), budgetObject(name));
      for (const zone of zones)
        await admin.create(setsOf(namespace), setObject(`${name}-zone-${zone}`, name, { ...more, setLabels: labels }));
      await untilReady(namespace, `${name}-zone-`, zones.length * (options.replicas ?? 3));
    },
    untilGuarded: async (namespace, name) => {
      const { spec } = await admin.get<StatefulSet>(`${setsOf(namespace)}/${name}`);
      await eventually(
        `${namespace}/${name} is guarded`,
        () => write(admin, 'PATCH', `${setsOf(namespace)}/${name}?dryRun=All`, replicas(spec.replicas - 1), merge),
        ({ said }) => /denied the request/.test(said),
      );
    },
    createFree: async (namespace, count = 3, setLabels = { team: 'storage' }) => {
      freeCount += 1;
      const name = `free${freeCount}`;
      await admin.create(setsOf(namespace), setObject(name, 'free', { replicas: count, setLabels }));
      return name;
    },
    close: async () => {
      await front.close();
      for (const { agent } of processes) await agent.kill();
    },
  };
}

const budgetsOf = (namespace: string): string =>
  `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`;

/** By a label, so that a StatefulSet may leave. */
function groupObject(namespace: string, { name, isProtected = true, spec = {} }: GroupOptions): object {
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutGroup',
    metadata: { name, namespace },
    spec: {
      members: { selector: { matchLabels: { cell: name } } },
      replicas: { leader: true },
      rollout: { strategy: 'onDelete' },
      disruption: { maxUnavailable: 1 },
      ...(isProtected ? { protect: { noDownscale: true, noDelete: true } } : {}),
      ...spec,
    },
  };
}

function budgetObject(name: string): object {
  return {
    apiVersion: 'rollout-operator.grafana.com/v1',
    kind: 'ZoneAwarePodDisruptionBudget',
    metadata: { name },
    spec: { maxUnavailable: 1, selector: { matchLabels: { app: name } } },
  };
}
