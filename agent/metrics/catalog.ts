// Every metric with its type, labels, buckets and meaning, as data: the registry and docs/agent.md are made from it.

export interface MetricSpec {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** Upper bounds, without the infinite one. */
  readonly buckets?: readonly number[];
  /** One of grafana/rollout-operator, under the name it has there. */
  readonly isOriginal?: true;
}

const standardBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const requestBuckets = [...standardBuckets, 25, 50, 100];
/** 4 bytes to 1 GiB, each four times the one before. */
const byteBuckets = Array.from({ length: 15 }, (_, power) => 4 * 4 ** power);
const group = ['namespace', 'group'];

/** The metrics of grafana/rollout-operator. */
export const originalMetrics = {
  reconciles: {
    name: 'rollout_operator_group_reconciles_total',
    type: 'counter',
    labels: ['rollout_group'],
    help: 'Turns of a group whose StatefulSets carry the label rollout-group.',
    isOriginal: true,
  },
  reconcilesFailed: {
    name: 'rollout_operator_group_reconciles_failed_total',
    type: 'counter',
    labels: ['rollout_group'],
    help: 'Turns of such a group that could not be finished; 0 from its first turn on.',
    isOriginal: true,
  },
  reconcileDuration: {
    name: 'rollout_operator_group_reconcile_duration_seconds',
    type: 'histogram',
    labels: ['rollout_group'],
    help: 'Duration of the turns of such a group.',
    buckets: standardBuckets,
    isOriginal: true,
  },
  lastSuccess: {
    name: 'rollout_operator_last_successful_group_reconcile_timestamp_seconds',
    type: 'gauge',
    labels: ['rollout_group'],
    help: 'When a turn of such a group last ended without an error, as Unix time; 0 until the first.',
    isOriginal: true,
  },
  requestDuration: {
    name: 'rollout_operator_request_duration_seconds',
    type: 'histogram',
    labels: ['method', 'route', 'status_code', 'ws'],
    help: 'Duration of requests to the HTTP server.',
    buckets: requestBuckets,
    isOriginal: true,
  },
  requestBytes: {
    name: 'rollout_operator_request_message_bytes',
    type: 'histogram',
    labels: ['method', 'route'],
    help: 'Size of the bodies of requests to the HTTP server.',
    buckets: byteBuckets,
    isOriginal: true,
  },
  responseBytes: {
    name: 'rollout_operator_response_message_bytes',
    type: 'histogram',
    labels: ['method', 'route'],
    help: 'Size of the bodies of its answers.',
    buckets: byteBuckets,
    isOriginal: true,
  },
  inflightRequests: {
    name: 'rollout_operator_inflight_requests',
    type: 'gauge',
    labels: ['method', 'route'],
    help: 'Requests to the HTTP server that have no answer yet.',
    isOriginal: true,
  },
  invalidClusterClient: {
    name: 'rollout_operator_client_invalid_cluster_validation_label_requests_total',
    type: 'counter',
    labels: ['method', 'protocol', 'request_cluster'],
    help: 'Requests to pods that were answered with 511 because of their header X-Cluster.',
    isOriginal: true,
  },
  invalidClusterServer: {
    name: 'rollout_operator_server_invalid_cluster_validation_label_requests_total',
    type: 'counter',
    labels: ['protocol', 'method', 'cluster_validation_label', 'request_cluster_validation_label'],
    help: 'Requests to the HTTP server whose header X-Cluster was not the namespace.',
    isOriginal: true,
  },
  kubernetesDuration: {
    name: 'rollout_operator_kubernetes_api_client_request_duration_seconds',
    type: 'histogram',
    labels: ['path', 'method', 'status_code'],
    help: 'Duration of requests to the API server, without the wait for the rate limit.',
    buckets: standardBuckets,
    isOriginal: true,
  },
  kubernetesThrottled: {
    name: 'rollout_operator_kubernetes_api_client_rate_limited_requests_total',
    type: 'counter',
    labels: ['api_group'],
    help: 'Requests to the API server that were given up while they waited for the rate limit.',
    isOriginal: true,
  },
  podDuration: {
    name: 'rollout_operator_pod_http_client_request_duration_seconds',
    type: 'histogram',
    labels: ['path', 'method', 'status_code'],
    help: 'Duration of HTTP requests to pods.',
    buckets: standardBuckets,
    isOriginal: true,
  },
  zoneBudgetsObserved: {
    name: 'rollout_operator_zpdb_configurations_observed_total',
    type: 'counter',
    labels: ['result'],
    help: 'Events of ZoneAwarePodDisruptionBudgets: updated, deleted, ignored, delete-ignored, invalid.',
    isOriginal: true,
  },
  evictionRequests: {
    name: 'rollout_operator_zpdb_eviction_requests_total',
    type: 'counter',
    labels: ['reason', 'status'],
    help: 'Evictions that were judged, by reason and code of the answer.',
    isOriginal: true,
  },
  evictionsInflight: {
    name: 'rollout_operator_zpdb_inflight_eviction_requests',
    type: 'gauge',
    labels: [],
    help: 'Evictions that are being judged, or wait for others under the same budget.',
    isOriginal: true,
  },
  failurePolicy: {
    name: 'kube_validating_webhook_failure_policy',
    type: 'gauge',
    labels: ['type', 'webhook', 'policy'],
    help: 'The failure policy of each webhook of the namespace: 1 for the one in force, 0 for the other.',
    isOriginal: true,
  },
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** Ours. */
export const ownMetrics = {
  buildInfo: { name: 'rollout_group_build_info', type: 'gauge', labels: ['version'], help: 'Always 1.' },
  groups: { name: 'rollout_group_groups', type: 'gauge', labels: [], help: 'Groups that are defined.' },
  groupsUncounted: {
    name: 'rollout_group_groups_without_series',
    type: 'gauge',
    labels: [],
    help: 'Groups beyond the thousandth, which have no series of their own.',
  },
  state: {
    name: 'rollout_group_state',
    type: 'gauge',
    labels: [...group, 'phase'],
    help: '1 for the phase in which the group is, 0 for the others.',
  },
  phaseStarted: {
    name: 'rollout_group_phase_started_timestamp_seconds',
    type: 'gauge',
    labels: group,
    help: 'Since when the group has been in its phase, as Unix time; not before the start of this process.',
  },
  phaseSeconds: {
    name: 'rollout_group_phase_seconds_total',
    type: 'counter',
    labels: [...group, 'phase'],
    help: 'Time that the group spent in a phase while this process watched.',
  },
  waits: {
    name: 'rollout_group_waits',
    type: 'gauge',
    labels: [...group, 'rule', 'reason', 'outcome'],
    help: '1 for each rule that holds the group now: outcome wait, no or unknown.',
  },
  waitStarted: {
    name: 'rollout_group_wait_started_timestamp_seconds',
    type: 'gauge',
    labels: [...group, 'rule'],
    help: 'Since when the rule has held the group without a break, as Unix time; not before the start of this process.',
  },
  budgetLimit: {
    name: 'rollout_group_budget_limit_pods',
    type: 'gauge',
    labels: [...group, 'zone'],
    help: 'Pods of the zone that may be unavailable at once by the group itself; absent when the disruption budget alone says so.',
  },
  budgetUsed: {
    name: 'rollout_group_budget_used_pods',
    type: 'gauge',
    labels: [...group, 'zone'],
    help: 'Pods of the zone that are unavailable.',
  },
  pods: {
    name: 'rollout_group_pods',
    type: 'gauge',
    labels: [...group, 'zone', 'state'],
    help: 'Pods of the zone: desired, updated, available.',
  },
  turns: { name: 'rollout_group_turns_total', type: 'counter', labels: [...group, 'result'], help: 'Turns of a group: ok or failed.' },
  turnDuration: {
    name: 'rollout_group_turn_duration_seconds',
    type: 'histogram',
    labels: [],
    help: 'Duration of turns, their requests included.',
    buckets: [0.001, 0.0025, ...standardBuckets, 30],
  },
  reaction: {
    name: 'rollout_group_reaction_seconds',
    type: 'histogram',
    labels: [],
    help: 'From the event that asked for a turn until its first action was sent.',
    buckets: [0.001, 0.0025, ...standardBuckets, 30],
  },
  actions: {
    name: 'rollout_group_actions_total',
    type: 'counter',
    labels: [...group, 'kind', 'result'],
    help: 'Actions by kind and result: done, conflict, refused, failed, unknown.',
  },
  degraded: {
    name: 'rollout_group_degraded',
    type: 'gauge',
    labels: ['part', 'reason'],
    help: '1 for each part that the agent would use and cannot: forbidden, missing, unreachable or invalid.',
  },
  findings: {
    name: 'rollout_group_findings',
    type: 'gauge',
    labels: ['code', 'severity'],
    help: 'Findings in the definitions of groups.',
  },
  leader: { name: 'rollout_group_leader', type: 'gauge', labels: [], help: '1 while this process may act.' },
  leaderEpoch: {
    name: 'rollout_group_leader_epoch',
    type: 'gauge',
    labels: [],
    help: 'How often the Lease had changed hands when this process took it.',
  },
  snapshotAge: {
    name: 'rollout_group_snapshot_age_seconds',
    type: 'gauge',
    labels: group,
    help: 'Age of what the last decision of the group was made from. It grows while nothing changes.',
  },
  writes: {
    name: 'rollout_group_writes_total',
    type: 'counter',
    labels: ['writer', 'result'],
    help: 'What is published, by writer (decision, event, run) and result: done, failed, dropped.',
  },
  notifications: {
    name: 'rollout_group_notifications_total',
    type: 'counter',
    labels: ['channel', 'result'],
    help: 'What went to a NotificationChannel, by result: sent, edited, found (sent before, its answer was lost), refused (given up), failed (tried again).',
  },
  admissions: {
    name: 'rollout_group_admission_requests_total',
    type: 'counter',
    labels: ['route', 'allowed', 'failure'],
    help: 'Requests that a webhook has judged. `failure` says why its endpoint could not: overload, deadline, error or client-gone; else it is empty.',
  },
  admissionDuration: {
    name: 'rollout_group_admission_duration_seconds',
    type: 'histogram',
    labels: ['route'],
    help: 'Time that an endpoint of the webhook took, requests to the API server included.',
    buckets: standardBuckets,
  },
  refusedConnections: {
    name: 'rollout_group_webhook_refused_connections_total',
    type: 'counter',
    labels: ['why'],
    help: 'Connections to the webhook that were ended before their first request: limit, peer-limit or handshake.',
  },
  certificateExpiry: {
    name: 'rollout_group_webhook_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    labels: [],
    help: 'When the certificate of the webhook ends to be valid.',
  },
  readyTimeWrites: {
    name: 'rollout_group_ready_time_writes_total',
    type: 'counter',
    labels: ['result'],
    help: 'Writes of the instant at which a pod under a ZoneAwarePodDisruptionBudget became ready: set, removed or failed.',
  },
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** The table of metrics for the documentation, as lines. */
export function metricTables(): readonly string[] {
  return [
    ...table('Metrics of this agent', Object.values(ownMetrics)),
    ...table('Metrics of grafana/rollout-operator', Object.values(originalMetrics)),
  ];
}

function table(title: string, metrics: readonly MetricSpec[]): readonly string[] {
  const rows = metrics.map(({ name, type, labels, help }) => {
    return `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`;
  });
  return [`### ${title}`, '', '| Name | Type | Labels | Meaning |', '|---|---|---|---|', ...rows, ''];
}
