// The kinds that sequences are about, and objects of them in which every field is written out that the server would otherwise fill in.
import type { Json } from '../../../simulation/server/request.ts';

export interface Kind {
  /** As in a path. */
  readonly plural: string;
  /** Such as `/apis/apps/v1`. */
  readonly root: string;
  readonly apiVersion: string;
  readonly kind: string;
  /** The same for the same name, without metadata other than labels. */
  readonly spec: (name: string) => Json;
  /** Merge patches that the server accepts; the first of them changes the name of nothing and may be repeated. */
  readonly changes: readonly Json[];
  /** Merge patches that it refuses, or ignores. */
  readonly refused: readonly Json[];
  /** Values of `status`; none without the subresource. */
  readonly statuses: readonly Json[];
  readonly hasScale: boolean;
  /** Its caches were made after the server had started: they cannot tell what was at resourceVersion 1. */
  readonly isCustom?: boolean;
  readonly fieldSelectors: readonly string[];
}

const containers = (image: string) => [
  {
    name: 'main',
    image,
    imagePullPolicy: 'IfNotPresent',
    resources: {},
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
  },
];

const podSpec = (image: string) => ({
  containers: containers(image),
  restartPolicy: 'Always',
  terminationGracePeriodSeconds: 30,
  dnsPolicy: 'ClusterFirst',
  securityContext: {},
  schedulerName: 'default-scheduler',
});

const notReady = 'node.kubernetes.io/not-ready';
const unreachable = 'node.kubernetes.io/unreachable';
const toleration = (key: string) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 });

const admittedPodSpec = (image: string) => ({
  ...podSpec(image),
  // Otherwise a volume with a name of the server's own choice would be added.
  automountServiceAccountToken: false,
  serviceAccountName: 'default',
  serviceAccount: 'default',
  enableServiceLinks: true,
  priority: 0,
  preemptionPolicy: 'PreemptLowerPriority',
  tolerations: [toleration(notReady), toleration(unreachable)],
});

const ready = (status: string) => ({ type: 'Ready', status, lastProbeTime: null, lastTransitionTime: '2000-01-01T12:00:00Z' });

export const pods: Kind = {
  plural: 'pods',
  root: '/api/v1',
  apiVersion: 'v1',
  kind: 'Pod',
  // `b` waits for a node, the others are on one.
  spec: (name) => ({
    spec: { ...admittedPodSpec('registry/one:1'), ...(name === 'b' ? {} : { nodeName: name === 'c' ? 'node-c' : 'node-a' }) },
  }),
  changes: [
    { spec: { containers: containers('registry/one:2') } },
    { spec: { containers: containers('registry/one:1') } },
    { spec: { activeDeadlineSeconds: 600 } },
  ],
  refused: [
    { spec: { nodeName: 'elsewhere' } },
    { spec: { hostname: 'other' } },
    { spec: { containers: [] } },
    { status: { phase: 'Failed' } },
    { spec: { restartPolicy: 'Never' } },
  ],
  statuses: [
    { phase: 'Running', qosClass: 'BestEffort', conditions: [ready('True')] },
    { phase: 'Running', qosClass: 'BestEffort', conditions: [ready('False')] },
    {
      phase: 'Running',
      qosClass: 'BestEffort',
      podIP: '10.1.2.3',
      podIPs: [{ ip: '10.1.2.3' }],
      hostIP: '10.0.0.1',
      hostIPs: [{ ip: '10.0.0.1' }],
    },
    { phase: 'Succeeded', qosClass: 'BestEffort' },
    { phase: 'Failed', qosClass: 'BestEffort', reason: 'Evicted' },
  ],
  hasScale: false,
  fieldSelectors: ['spec.nodeName=node-a', 'spec.nodeName!=node-c', 'status.phase!=Failed', 'status.phase=Pending'],
};

export const configMaps: Kind = {
  plural: 'configmaps',
  root: '/api/v1',
  apiVersion: 'v1',
  kind: 'ConfigMap',
  spec: (name) => ({ data: { of: name } }),
  changes: [{ data: { of: 'changed' } }, { data: { more: 'text' } }, { data: { more: null } }, { binaryData: { bytes: 'AAEC' } }],
  refused: [{ data: { 'not a key': 'x' } }, { binaryData: { 'not a key': 'AAEC' } }, { data: { number: 1 } }, { data: 'text' }],
  statuses: [],
  hasScale: false,
  fieldSelectors: [],
};

export const leases: Kind = {
  plural: 'leases',
  root: '/apis/coordination.k8s.io/v1',
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  spec: () => ({
    spec: { holderIdentity: 'one', leaseDurationSeconds: 15, leaseTransitions: 0, renewTime: '2000-01-01T12:00:00.000000Z' },
  }),
  changes: [
    { spec: { renewTime: '2000-01-01T12:00:05.000000Z' } },
    { spec: { holderIdentity: 'two', leaseTransitions: 1 } },
    { spec: { holderIdentity: '' } },
    { spec: { acquireTime: '2000-01-01T12:00:01.000000Z' } },
  ],
  refused: [{ spec: { leaseDurationSeconds: 0 } }, { spec: { leaseTransitions: -1 } }, { spec: { leaseDurationSeconds: 'long' } }],
  statuses: [],
  hasScale: false,
  fieldSelectors: [],
};

export const statefulSets: Kind = {
  plural: 'statefulsets',
  root: '/apis/apps/v1',
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  spec: (name) => ({
    spec: {
      replicas: 3,
      serviceName: 'headless',
      selector: { matchLabels: { name } },
      template: { metadata: { labels: { name } }, spec: podSpec('registry/one:1') },
      podManagementPolicy: 'OrderedReady',
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
      revisionHistoryLimit: 10,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    },
  }),
  changes: [
    { spec: { replicas: 4 } },
    { spec: { replicas: 3 } },
    { spec: { updateStrategy: { rollingUpdate: { partition: 2 } } } },
    { spec: { updateStrategy: { type: 'OnDelete', rollingUpdate: null } } },
    { spec: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: null } } },
    { spec: { updateStrategy: null } },
    { spec: { template: { spec: { containers: containers('registry/one:2') } } } },
    { spec: { minReadySeconds: 5 } },
  ],
  refused: [
    { spec: { serviceName: 'other' } },
    { spec: { podManagementPolicy: 'Parallel' } },
    { spec: { selector: { matchLabels: { name: 'other' } } } },
    { spec: { replicas: -1 } },
    { spec: { replicas: 'many' } },
    { status: { replicas: 7 } },
  ],
  statuses: [
    { replicas: 3, observedGeneration: 1, currentRevision: 'x-1', updateRevision: 'x-1', collisionCount: 0, availableReplicas: 0 },
    { replicas: 3, readyReplicas: 2, availableReplicas: 2, observedGeneration: 2, currentRevision: 'x-1', updateRevision: 'x-2' },
    { replicas: 0, availableReplicas: 0 },
  ],
  hasScale: true,
  fieldSelectors: [],
};

export const budgets: Kind = {
  plural: 'poddisruptionbudgets',
  root: '/apis/policy/v1',
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  spec: () => ({ spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'x' } } } }),
  changes: [{ spec: { maxUnavailable: 2 } }, { spec: { maxUnavailable: '50%' } }, { spec: { unhealthyPodEvictionPolicy: 'AlwaysAllow' } }],
  refused: [{ spec: { minAvailable: 1 } }, { spec: { maxUnavailable: -1 } }, { status: { disruptionsAllowed: 3 } }],
  statuses: [
    { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2 },
    { observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 2 },
    { observedGeneration: 2, disruptionsAllowed: 2, currentHealthy: 2, desiredHealthy: 0, expectedPods: 2 },
    { observedGeneration: 0, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2 },
  ],
  hasScale: false,
  fieldSelectors: [],
};

const rollout = {
  strategy: 'onDelete',
  order: 'descending',
  rotateBy: 'delete',
  maxUnavailable: 1,
  minInterval: '0s',
  replaceUnready: { when: 'any', after: '5m' },
  deadlines: {},
  onFailure: 'pause',
  skipOnRollback: true,
  historyLimit: 10,
  onPolicyDeleted: 'hold',
};

export const rolloutGroups: Kind = {
  plural: 'rolloutgroups',
  root: '/apis/rollout-group.dev/v1alpha1',
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutGroup',
  spec: () => ({
    spec: { profile: 'native', members: { zones: [{ name: 'a', statefulSet: 'any-zone-a' }] }, replicas: { count: 3 }, rollout },
  }),
  changes: [
    { spec: { replicas: { count: 5 } } },
    { spec: { replicas: { count: 3 } } },
    { spec: { members: { zones: [{ name: 'a', statefulSet: 'other-zone-a' }] } } },
  ],
  refused: [{ status: { phase: 'Rolling' } }],
  statuses: [{ phase: 'Idle', replicas: 3 }, { phase: 'Rolling', replicas: 2 }, { decision: { anything: ['goes', { here: true }] } }],
  hasScale: true,
  isCustom: true,
  fieldSelectors: [],
};

export const replicaTemplates: Kind = {
  plural: 'replicatemplates',
  root: '/apis/rollout-operator.grafana.com/v1',
  apiVersion: 'rollout-operator.grafana.com/v1',
  kind: 'ReplicaTemplate',
  spec: (name) => ({ spec: { replicas: 3, labelSelector: `name=${name}` } }),
  changes: [{ spec: { replicas: 4 } }, { spec: { replicas: 3 } }, { spec: { labelSelector: 'name=other' } }],
  refused: [{ status: { replicas: 9 } }],
  statuses: [{ replicas: 3 }, { replicas: 0 }],
  hasScale: true,
  isCustom: true,
  fieldSelectors: [],
};

/** Path of the collection in the namespace of the sequence. */
export function collectionOf({ root, plural }: Kind): string {
  return `${root}/namespaces/<ns>/${plural}`;
}

/** An object of that name, as it is created. */
export function objectOf(kind: Kind, name: string, metadata: Json = {}): Json {
  const { apiVersion, kind: kindName, spec } = kind;
  return { apiVersion, kind: kindName, metadata: { name, namespace: '<ns>', labels: { app: 'x' }, ...metadata }, ...spec(name) };
}
