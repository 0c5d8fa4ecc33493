// Objects of a namespace as the API server would return them: three zones of a group that the original operator's labels describe.
import { encodeLedger, ledgerKey, ledgerName } from '../../engine/ledger/ledger-document.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isUnknown, type Ledger } from '../../engine/snapshot.ts';
import { ledgerOf } from '../kit/questions.ts';
import type { FakeObject } from './served-objects.ts';

export interface SetOptions {
  readonly replicas?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly strategy?: object;
  readonly firstOrdinal?: number;
  /** The generation that the controller has observed; the object has generation 1. */
  readonly observedGeneration?: number;
  readonly updateRevision?: string;
}

const zoneNames = ['a', 'b', 'c'] as const;

export function statefulSetObject(zone: string, options: SetOptions = {}): FakeObject {
  const {
    replicas = 2,
    labels = {},
    annotations = {},
    strategy = { type: 'OnDelete' },
    firstOrdinal = 0,
    observedGeneration = 1,
    updateRevision = 'rev-1',
  } = options;
  const name = `ingester-zone-${zone}`;
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: {
      name,
      namespace: 'mimir',
      uid: `uid-${name}`,
      generation: 1,
      labels: { 'rollout-group': 'ingester', ...labels },
      annotations,
    },
    spec: {
      replicas,
      serviceName: name,
      podManagementPolicy: 'Parallel',
      updateStrategy: strategy,
      ...(firstOrdinal === 0 ? {} : { ordinals: { start: firstOrdinal } }),
      selector: { matchLabels: { 'rollout-group': 'ingester' } },
      template: {
        metadata: { labels: { name, 'rollout-group': 'ingester' } },
        spec: { containers: [{ name: 'ingester', image: 'mimir:1' }] },
      },
    },
    status: {
      observedGeneration,
      replicas,
      readyReplicas: replicas,
      availableReplicas: replicas,
      updatedReplicas: replicas,
      currentRevision: 'rev-1',
      updateRevision,
    },
  };
}

/** The pods of that StatefulSet, all ready and at `rev-1`. */
function podObjects(zone: string, replicas = 2): readonly FakeObject[] {
  const owner = `ingester-zone-${zone}`;
  return Array.from({ length: replicas }, (_, ordinal) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${owner}-${ordinal}`,
      namespace: 'mimir',
      labels: { name: owner, 'rollout-group': 'ingester', 'controller-revision-hash': 'rev-1' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: owner, uid: `uid-${owner}`, controller: true }],
    },
    spec: { nodeName: 'node-1', containers: [{ name: 'ingester', image: 'mimir:1' }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
      containerStatuses: [{ name: 'ingester', ready: true, state: { running: { startedAt: '2026-01-01T00:00:00Z' } } }],
    },
  }));
}

/** The whole group, healthy and idle; zone b follows a, and c follows b. */
export function adoptedObjects(options: SetOptions = {}): readonly FakeObject[] {
  return zoneNames.flatMap((zone, index) => {
    const leader = index === 0 ? {} : { 'grafana.com/rollout-downscale-leader': `ingester-zone-${zoneNames[index - 1]}` };
    const set = statefulSetObject(zone, { ...options, annotations: { ...leader, ...options.annotations } });
    return [set, ...podObjects(zone, options.replicas)];
  });
}

/** The ConfigMap with the claims and the run of the group. */
export function ledgerObject(more: Partial<Ledger>): FakeObject {
  const text = encodeLedger({ ...ledgerOf(more), namespace: 'mimir', group: 'ingester' });
  if (isUnknown(text)) throw new Error(text.unknown);
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: ledgerName('ingester'), namespace: 'mimir', labels: { 'rollout-group.dev/document': 'ledger' } },
    data: { [ledgerKey]: text },
  };
}

/** Where an agent publishes when there is no RolloutGroup. */
export function publishedObject(decision: PublishedDecision): FakeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: `rollout-status-${decision.group}`,
      namespace: decision.namespace,
      labels: { 'rollout-group.dev/document': 'status' },
    },
    data: { decision: JSON.stringify(decision) },
  };
}

/** The UID that the server chose for the StatefulSet. */
export function uidOf(objects: readonly FakeObject[], statefulSet: string): unknown {
  return objects.find(({ kind, metadata }) => kind === 'StatefulSet' && metadata.name === statefulSet)?.metadata['uid'];
}

/** The webhook that records requesters. */
export const requesterWebhook: FakeObject = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'MutatingWebhookConfiguration',
  metadata: { name: 'rollout-group' },
  webhooks: [{ clientConfig: { url: 'https://127.0.0.1', caBundle: 'Q0E=' } }],
};

export function leaseObject(holder: string, renewedMs: number, leaseDurationSeconds = 15): FakeObject {
  const renewTime = `${new Date(renewedMs).toISOString().slice(0, -1)}000Z`;
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'rollout-group-agent', namespace: 'rollout-group' },
    spec: { holderIdentity: holder, leaseDurationSeconds, renewTime },
  };
}
