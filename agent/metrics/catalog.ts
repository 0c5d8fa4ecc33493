// Defines every metric with its type, labels, buckets and help, for the registry and for docs/agent.md.

export interface MetricSpec {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** The upper bounds of a histogram's buckets, without infinity. */
  readonly buckets?: readonly number[];
}

const standardBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const requestBuckets = [...standardBuckets, 25, 50, 100];
/** The bounds from 4 bytes to 1 GiB, each four times the previous bound. */
const byteBuckets = Array.from({ length: 15 }, (_, power) => 4 * 4 ** power);
const group = ['namespace', 'group'];

/** The metrics of grafana/rollout-operator. */
export const originalMetrics = {
  reconciles: {
    name: 'rollout_operator_group_reconciles_total',
    type: 'counter',
    labels: ['rollout_group'],
    help: 'Reconciles of groups whose StatefulSets carry the label rollout-group.',
  },
  reconcilesFailed: {
    name: 'rollout_operator_group_reconciles_failed_total',
    type: 'counter',
    labels: ['rollout_group'],
    help: 'Failed reconciles of a group with the label rollout-group; 0 from its first reconcile on.',
  },
  reconcileDuration: {
    name: 'rollout_operator_group_reconcile_duration_seconds',
    type: 'histogram',
    labels: ['rollout_group'],
    help: 'Duration of the reconciles of groups with the label rollout-group.',
    buckets: standardBuckets,
  },
  lastSuccess: {
    name: 'rollout_operator_last_successful_group_reconcile_timestamp_seconds',
    type: 'gauge',
    labels: ['rollout_group'],
    help: 'Unix time of the last successful reconcile of a group with the label rollout-group; 0 before the first.',
  },
  requestDuration: {
    name: 'rollout_operator_request_duration_seconds',
    type: 'histogram',
    labels: ['method', 'route', 'status_code', 'ws'],
    help: 'Duration of requests to the HTTP server.',
    buckets: requestBuckets,
  },
  requestBytes: {
    name: 'rollout_operator_request_message_bytes',
    type: 'histogram',
    labels: ['method', 'route'],
    help: 'Body size of requests to the HTTP server.',
    buckets: byteBuckets,
  },
  responseBytes: {
    name: 'rollout_operator_response_message_bytes',
    type: 'histogram',
    labels: ['method', 'route'],
    help: 'Body size of responses of the HTTP server.',
    buckets: byteBuckets,
  },
  inflightRequests: {
    name: 'rollout_operator_inflight_requests',
    type: 'gauge',
    labels: ['method', 'route'],
    help: 'Requests that the HTTP server is processing.',
  },
  invalidClusterClient: {
    name: 'rollout_operator_client_invalid_cluster_validation_label_requests_total',
    type: 'counter',
    labels: ['method', 'protocol', 'request_cluster'],
    help: 'Requests that a pod answered with 511 because of the header X-Cluster.',
  },
  invalidClusterServer: {
    name: 'rollout_operator_server_invalid_cluster_validation_label_requests_total',
    type: 'counter',
    labels: ['protocol', 'method', 'cluster_validation_label', 'request_cluster_validation_label'],
    help: 'Requests to the HTTP server whose header X-Cluster differs from the namespace.',
  },
  kubernetesDuration: {
    name: 'rollout_operator_kubernetes_api_client_request_duration_seconds',
    type: 'histogram',
    labels: ['path', 'method', 'status_code'],
    help: 'Duration of requests to the API server, without the wait for the rate limit.',
    buckets: standardBuckets,
  },
  kubernetesThrottled: {
    name: 'rollout_operator_kubernetes_api_client_rate_limited_requests_total',
    type: 'counter',
    labels: ['api_group'],
    help: 'Requests to the API server that timed out in the rate limiter.',
  },
  podDuration: {
    name: 'rollout_operator_pod_http_client_request_duration_seconds',
    type: 'histogram',
    labels: ['path', 'method', 'status_code'],
    help: 'Duration of HTTP requests to pods.',
    buckets: standardBuckets,
  },
  zoneBudgetsObserved: {
    name: 'rollout_operator_zpdb_configurations_observed_total',
    type: 'counter',
    labels: ['result'],
    help: 'Watch events of ZoneAwarePodDisruptionBudgets: updated, deleted, ignored, delete-ignored, invalid.',
  },
  evictionRequests: {
    name: 'rollout_operator_zpdb_eviction_requests_total',
    type: 'counter',
    labels: ['reason', 'status'],
    help: 'Evaluated eviction requests, by reason and response code.',
  },
  evictionsInflight: {
    name: 'rollout_operator_zpdb_inflight_eviction_requests',
    type: 'gauge',
    labels: [],
    help: 'Eviction requests that are being evaluated or wait for another one under the same budget.',
  },
  failurePolicy: {
    name: 'kube_validating_webhook_failure_policy',
    type: 'gauge',
    labels: ['type', 'webhook', 'policy'],
    help: 'Failure policy of each webhook of the namespace: 1 for the policy in force, 0 for the other one.',
  },
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** The agent's own metrics. */
export const ownMetrics = {
  buildInfo: { name: 'rollout_group_build_info', type: 'gauge', labels: ['version'], help: 'Always 1.' },
  groups: { name: 'rollout_group_groups', type: 'gauge', labels: [], help: 'Defined groups.' },
  groupsUncounted: {
    name: 'rollout_group_groups_without_series',
    type: 'gauge',
    labels: [],
    help: 'Groups without series because they exceed the limit of 1000.',
  },
  state: {
    name: 'rollout_group_state',
    type: 'gauge',
    labels: [...group, 'phase'],
    help: '1 for the current phase of the group, 0 for every other phase.',
  },
  phaseStarted: {
    name: 'rollout_group_phase_started_timestamp_seconds',
    type: 'gauge',
    labels: group,
    help: 'Unix time at which the group entered its phase, or at which this process started if that is later.',
  },
  phaseSeconds: {
    name: 'rollout_group_phase_seconds_total',
    type: 'counter',
    labels: [...group, 'phase'],
    help: 'Time that the group spent in a phase since this process started.',
  },
  waits: {
    name: 'rollout_group_waits',
    type: 'gauge',
    labels: [...group, 'rule', 'reason', 'outcome'],
    help: '1 for each rule that blocks the group: outcome wait, no or unknown.',
  },
  stops: {
    name: 'rollout_group_stops',
    type: 'gauge',
    labels: [...group, 'rule', 'reason'],
    help: '1 for each rule by which a person or a policy stops the group, also while no step is due.',
  },
  waitStarted: {
    name: 'rollout_group_wait_started_timestamp_seconds',
    type: 'gauge',
    labels: [...group, 'rule'],
    help: 'Unix time at which the rule began to block the group, or at which this process started if that is later.',
  },
  budgetLimit: {
    name: 'rollout_group_budget_limit_pods',
    type: 'gauge',
    labels: [...group, 'zone'],
    help: 'Pods of the zone that the group allows to be unavailable at once. Absent if only the disruption budget limits them.',
  },
  budgetUsed: {
    name: 'rollout_group_budget_used_pods',
    type: 'gauge',
    labels: [...group, 'zone'],
    help: 'Unavailable pods of the zone.',
  },
  pods: {
    name: 'rollout_group_pods',
    type: 'gauge',
    labels: [...group, 'zone', 'state'],
    help: 'Pods of the zone by state: desired, updated, available.',
  },
  turns: {
    name: 'rollout_group_turns_total',
    type: 'counter',
    labels: [...group, 'result'],
    help: 'Turns of a group by result: ok or failed.',
  },
  turnDuration: {
    name: 'rollout_group_turn_duration_seconds',
    type: 'histogram',
    labels: [],
    help: 'Duration of turns, including their requests.',
    buckets: [0.001, 0.0025, ...standardBuckets, 30],
  },
  reaction: {
    name: 'rollout_group_reaction_seconds',
    type: 'histogram',
    labels: [],
    help: 'Time from the event that caused a turn until its first action was sent.',
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
    help: '1 for each part that the agent cannot use, by reason: forbidden, missing, unreachable or invalid.',
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
    help: 'Number of changes of the Lease holder when this process took the Lease.',
  },
  snapshotAge: {
    name: 'rollout_group_snapshot_age_seconds',
    type: 'gauge',
    labels: group,
    help: 'Age of the snapshot behind the last decision of the group. It grows while nothing changes.',
  },
  writes: {
    name: 'rollout_group_writes_total',
    type: 'counter',
    labels: ['writer', 'result'],
    help: 'Published objects by writer (decision, event, run) and result: done, failed, dropped.',
  },
  notifications: {
    name: 'rollout_group_notifications_total',
    type: 'counter',
    labels: ['channel', 'result'],
    help: 'Notifications to a NotificationChannel by result: sent, edited, found (sent earlier, the response was lost), refused (given up), failed (retried).',
  },
  admissions: {
    name: 'rollout_group_admission_requests_total',
    type: 'counter',
    labels: ['route', 'allowed', 'failure'],
    help: 'Admission requests by route and answer. `failure` is overload, deadline, error or client-gone if the endpoint could not evaluate the request.',
  },
  admissionDuration: {
    name: 'rollout_group_admission_duration_seconds',
    type: 'histogram',
    labels: ['route'],
    help: 'Time that a webhook endpoint took, including its requests to the API server.',
    buckets: standardBuckets,
  },
  refusedConnections: {
    name: 'rollout_group_webhook_refused_connections_total',
    type: 'counter',
    labels: ['why'],
    help: 'Connections to the webhook that were closed before their first request: limit, peer-limit or handshake.',
  },
  certificateExpiry: {
    name: 'rollout_group_webhook_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    labels: [],
    help: 'Unix time at which the webhook certificate expires.',
  },
  readyTimeWrites: {
    name: 'rollout_group_ready_time_writes_total',
    type: 'counter',
    labels: ['result'],
    help: 'Writes of the ready time of pods under a ZoneAwarePodDisruptionBudget: set, removed or failed.',
  },
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** Returns the metric tables of docs/agent.md as lines. */
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
