// Puts a namespace of an API server into the state of a scenario. No controller runs there, so it stays as it is put.
import type { ApiClient, KubernetesObject } from '../../control-plane/client.ts';
import type { PodState, Scenario, SetState } from './scenario.ts';

const apps = (namespace: string): string => `/apis/apps/v1/namespaces/${namespace}`;
const core = (namespace: string): string => `/api/v1/namespaces/${namespace}`;
const templatesGroup = 'rollout-operator.grafana.com';

/** As grafana/rollout-operator ships it, without its validation. */
export const zoneBudgets = {
  metadata: { name: `zoneawarepoddisruptionbudgets.${templatesGroup}` },
  spec: {
    group: templatesGroup,
    scope: 'Namespaced',
    names: {
      kind: 'ZoneAwarePodDisruptionBudget',
      plural: 'zoneawarepoddisruptionbudgets',
      singular: 'zoneawarepoddisruptionbudget',
    },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

export async function putState(client: ApiClient, namespace: string, scenario: Scenario): Promise<void> {
  await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
  // Pods are refused until their namespace has this account, which otherwise a controller makes.
  await client.create(`${core(namespace)}/serviceaccounts`, { metadata: { name: 'default' } });
  for (const [name, { spec, status }] of Object.entries(scenario.templates ?? {})) {
    const path = `/apis/${templatesGroup}/v1/namespaces/${namespace}/replicatemplates`;
    const template = { apiVersion: `${templatesGroup}/v1`, kind: 'ReplicaTemplate', metadata: { name }, spec: { replicas: spec } };
    await client.create(path, template);
    if (status !== undefined) await client.patch(`${path}/${name}/status`, 'merge', { status: { replicas: status } });
  }
  for (const [name, spec] of Object.entries(scenario.budgets ?? {})) {
    const budget = { apiVersion: `${templatesGroup}/v1`, kind: 'ZoneAwarePodDisruptionBudget', metadata: { name }, spec };
    await client.create(`/apis/${templatesGroup}/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`, budget);
  }
  // Pods come before their StatefulSets carry the label that makes them a group: a half-built state is nobody's to act on.
  for (const set of scenario.sets) await putSet(client, namespace, set);
  for (const { name, label, pod = old } of scenario.foreignPods ?? []) await putPod(client, namespace, { name, label, pod });
  for (const { name } of scenario.sets) {
    await client.patch(`${apps(namespace)}/statefulsets/${name}`, 'merge', { metadata: { labels: { 'rollout-group': 'ingester' } } });
  }
}

/** Templates that ask for other numbers from now on. */
export async function changeTemplates(client: ApiClient, namespace: string, templates: Readonly<Record<string, number>>): Promise<void> {
  for (const [name, replicas] of Object.entries(templates)) {
    await client.patch(`/apis/${templatesGroup}/v1/namespaces/${namespace}/replicatemplates/${name}`, 'merge', { spec: { replicas } });
  }
}

async function putSet(client: ApiClient, namespace: string, set: SetState): Promise<void> {
  const { name, replicas, strategy = 'OnDelete', labels = {} } = set;
  const created = await client.create<KubernetesObject>(`${apps(namespace)}/statefulsets`, {
    metadata: { name, labels, annotations: annotationsOf(set) },
    spec: {
      replicas,
      serviceName: name,
      podManagementPolicy: 'Parallel',
      updateStrategy: { type: strategy },
      selector: { matchLabels: { name } },
      template: { metadata: { labels: { name } }, spec: { containers: [container] } },
    },
  });
  const pods = Array.from({ length: replicas }, (_, ordinal) => set.pods?.[ordinal] ?? set.everyPod ?? {});
  for (const [ordinal, pod] of pods.entries()) {
    if (pod.state !== 'missing') await putPod(client, namespace, { name: `${name}-${ordinal}`, label: name, pod, owner: created });
  }
  const ready = pods.filter(({ state = 'ready' }) => state === 'ready').length;
  const revision = set.currentRevision ?? 'new';
  await client.patch(`${apps(namespace)}/statefulsets/${name}/status`, 'merge', {
    status: {
      observedGeneration: 1,
      replicas: set.statusReplicas ?? replicas,
      readyReplicas: set.readyReplicas ?? ready,
      availableReplicas: ready,
      updatedReplicas: pods.filter((pod) => (pod.revision ?? 'new') === 'new').length,
      currentRevision: revision === 'empty' ? '' : `${name}-${revision}`,
      updateRevision: `${name}-new`,
    },
  });
}

const old: PodState = { revision: 'old' };
const container = { name: 'ingester', image: 'example.com/ingester:1' };

interface NewPod {
  readonly name: string;
  readonly label: string;
  readonly pod: PodState;
  readonly owner?: KubernetesObject;
}

async function putPod(client: ApiClient, namespace: string, { name, label, pod, owner }: NewPod): Promise<void> {
  const { revision = 'new', state = 'ready' } = pod;
  const isTerminating = state === 'terminating';
  await client.create(`${core(namespace)}/pods`, {
    metadata: {
      name,
      labels: { name: label, ...(revision === 'none' ? {} : { 'controller-revision-hash': `${label}-${revision}` }) },
      // Keeps a pod that is leaving, as a kubelet does that still stops its containers.
      ...(isTerminating ? { finalizers: ['test.rollout-group.dev/stays'] } : {}),
      ...(owner === undefined
        ? {}
        : {
            ownerReferences: [
              { apiVersion: 'apps/v1', kind: 'StatefulSet', name: owner.metadata.name, uid: owner.metadata.uid, controller: true },
            ],
          }),
    },
    spec: { containers: [container] },
  });
  await client.patch(`${core(namespace)}/pods/${name}/status`, 'merge', { status: podStatus(pod) });
  if (isTerminating) await client.delete(`${core(namespace)}/pods/${name}`);
}

function podStatus({ state = 'ready', condition }: PodState): object {
  const isReady = state === 'ready' || state === 'terminating';
  const at = new Date(Date.now() - 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z');
  const waits = typeof state === 'object';
  return {
    phase: 'Running',
    startTime: at,
    conditions: [{ type: 'Ready', status: condition ?? (isReady ? 'True' : 'False'), lastTransitionTime: at }],
    containerStatuses: [
      {
        name: container.name,
        image: container.image,
        imageID: '',
        restartCount: 0,
        ready: isReady,
        state: waits ? { waiting: { reason: state.waiting } } : { running: { startedAt: at } },
      },
    ],
  };
}

/** One annotation of the original has no prefix. `now-13h` stands for the instant of thirteen hours ago. */
function annotationsOf({ annotations = {} }: SetState): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(annotations).map(([key, value]) => [
      key === 'rollout-max-unavailable' ? key : `grafana.com/${key}`,
      value.replace(
        /^now-(\d+)h$/,
        (_, hours: string) => `${new Date(Date.now() - Number(hours) * 3_600_000).toISOString().slice(0, 19)}Z`,
      ),
    ]),
  );
}
