// Kubernetes objects that evictions are about: three zones of pods under one budget, as raw JSON, healthy unless a test says otherwise.

type Json = Readonly<Record<string, unknown>>;

const longAgo = '2026-01-15T09:00:00Z';

/** A ZoneAwarePodDisruptionBudget over the label `rollout-group=ingester`. */
export function budgetObject(spec: Json = { maxUnavailable: 1 }, name = 'ingester-rollout'): Json {
  return {
    apiVersion: 'rollout-operator.grafana.com/v1',
    kind: 'ZoneAwarePodDisruptionBudget',
    metadata: { name, namespace: 'mimir' },
    spec: { selector: { matchLabels: { 'rollout-group': 'ingester' } }, ...spec },
  };
}

interface SetFacts {
  readonly name: string;
  readonly replicas?: number;
  readonly statusReplicas?: number;
  readonly labels?: Readonly<Record<string, string>>;
}

export function statefulSetObject({ name, replicas = 3, statusReplicas = replicas, labels }: SetFacts): Json {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name, namespace: 'mimir', uid: `uid-${name}`, labels: labels ?? { 'rollout-group': 'ingester' } },
    spec: {
      replicas,
      serviceName: name,
      podManagementPolicy: 'Parallel',
      updateStrategy: { type: 'OnDelete' },
      selector: { matchLabels: { name } },
      template: { metadata: { labels: { name, 'rollout-group': 'ingester' } } },
    },
    status: { replicas: statusReplicas, readyReplicas: statusReplicas, currentRevision: 'r1', updateRevision: 'r1' },
  };
}

interface PodChange {
  readonly phase?: string;
  readonly isTerminating?: boolean;
  readonly areContainersReady?: boolean;
  readonly readyTime?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** `null`: nobody controls it. */
  readonly owner?: Json | null;
}

/** A pod of the StatefulSet, running and ready. */
export function podObject(statefulSet: string, ordinal: number | string, change: PodChange = {}): Json {
  const { phase = 'Running', isTerminating = false, areContainersReady = true, readyTime, labels, owner } = change;
  const controller = owner ?? { apiVersion: 'apps/v1', kind: 'StatefulSet', name: statefulSet, uid: `uid-${statefulSet}` };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${statefulSet}-${ordinal}`,
      namespace: 'mimir',
      uid: `uid-${statefulSet}-${ordinal}`,
      labels: labels ?? { name: statefulSet, 'rollout-group': 'ingester', 'controller-revision-hash': 'r1' },
      ...(readyTime === undefined ? {} : { annotations: { 'grafana.com/ready-time': readyTime } }),
      ...(owner === null ? {} : { ownerReferences: [{ ...controller, controller: true }] }),
      ...(isTerminating ? { deletionTimestamp: longAgo } : {}),
    },
    spec: { nodeName: 'node-1', containers: [{ name: 'ingester', image: 'mimir:1' }] },
    status: {
      phase,
      startTime: longAgo,
      conditions: [{ type: 'Ready', status: areContainersReady ? 'True' : 'False', lastTransitionTime: longAgo }],
      containerStatuses: [
        { name: 'ingester', ready: areContainersReady, state: areContainersReady ? { running: { startedAt: longAgo } } : { waiting: {} } },
      ],
    },
  };
}

interface ZonesFacts {
  readonly zones?: readonly string[];
  readonly replicas?: number;
  /** By StatefulSet. */
  readonly sets?: Readonly<Record<string, Partial<SetFacts>>>;
  /** By pod. */
  readonly pods?: Readonly<Record<string, PodChange | 'missing'>>;
  /** Of every pod that says nothing else. */
  readonly readyTime?: string;
}

const zoneNames = ['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c'];

/** The StatefulSets and their pods. */
export function zonesObjects({ zones = zoneNames, replicas = 3, sets = {}, pods = {}, readyTime }: ZonesFacts = {}): readonly Json[] {
  return zones.flatMap((name) => {
    const facts = { name, replicas, ...sets[name] };
    const ordinals = Array.from({ length: facts.replicas }, (_, ordinal) => ordinal);
    const all = ordinals.flatMap((ordinal) => {
      const change = pods[`${name}-${ordinal}`];
      if (change === 'missing') return [];
      return [podObject(name, ordinal, { ...(readyTime === undefined ? {} : { readyTime }), ...change })];
    });
    return [statefulSetObject(facts), ...all];
  });
}
