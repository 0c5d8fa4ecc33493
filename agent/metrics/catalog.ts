// Defines every metric with its type, labels, buckets and help, for the registry and for docs/agent.md.

export interface MetricSpec<Type extends 'counter' | 'gauge' | 'histogram' = 'counter' | 'gauge' | 'histogram'> {
  readonly name: string;
  readonly type: Type;
  readonly labels: readonly string[];
  readonly help: string;
  /** The upper bounds of a histogram's buckets, without infinity. */
  readonly buckets?: readonly number[];
}

function counter(name: string, labels: readonly string[], help: string): MetricSpec<'counter'> {
  return { name, type: 'counter', labels, help };
}

function gauge(name: string, labels: readonly string[], help: string): MetricSpec<'gauge'> {
  return { name, type: 'gauge', labels, help };
}

function histogram(name: string, labels: readonly string[], help: string, buckets: readonly number[]): MetricSpec<'histogram'> {
  return { name, type: 'histogram', labels, help, buckets };
}

const standardBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const requestBuckets = [...standardBuckets, 25, 50, 100];
/** The bounds from 4 bytes to 1 GiB, each four times the previous bound. */
const byteBuckets = Array.from({ length: 15 }, (_, power) => 4 * 4 ** power);
const group = ['namespace', 'group'];

export const originalMetrics = {
  reconciles: counter(
    'rollout_operator_group_reconciles_total',
    ['rollout_group'],
    'Reconciles of groups whose StatefulSets carry the label rollout-group.',
  ),
  reconcilesFailed: counter(
    'rollout_operator_group_reconciles_failed_total',
    ['rollout_group'],
    'Failed reconciles of a group with the label rollout-group. The series exists from the first reconcile on, also without a failure.',
  ),
  reconcileDuration: histogram(
    'rollout_operator_group_reconcile_duration_seconds',
    ['rollout_group'],
    'Duration of the reconciles of groups with the label rollout-group.',
    standardBuckets,
  ),
  lastSuccess: gauge(
    'rollout_operator_last_successful_group_reconcile_timestamp_seconds',
    ['rollout_group'],
    'Unix time of the last successful reconcile of a group with the label rollout-group; 0 before the first.',
  ),
  requestDuration: histogram(
    'rollout_operator_request_duration_seconds',
    ['method', 'route', 'status_code', 'ws'],
    'Duration of requests to the HTTP server and to the webhooks.',
    requestBuckets,
  ),
  requestBytes: histogram(
    'rollout_operator_request_message_bytes',
    ['method', 'route'],
    'Body size of requests to the HTTP server and to the webhooks.',
    byteBuckets,
  ),
  responseBytes: histogram(
    'rollout_operator_response_message_bytes',
    ['method', 'route'],
    'Body size of responses of the HTTP server and of the webhooks.',
    byteBuckets,
  ),
  inflightRequests: gauge(
    'rollout_operator_inflight_requests',
    ['method', 'route'],
    'Requests that the HTTP server and the webhooks are processing.',
  ),
  invalidClusterClient: counter(
    'rollout_operator_client_invalid_cluster_validation_label_requests_total',
    ['method', 'protocol', 'request_cluster'],
    'Requests that a pod answered with 511 because of the header X-Cluster.',
  ),
  invalidClusterServer: counter(
    'rollout_operator_server_invalid_cluster_validation_label_requests_total',
    ['protocol', 'method', 'cluster_validation_label', 'request_cluster_validation_label'],
    'Requests to the HTTP server and to the webhooks whose header X-Cluster differs from the namespace of the agent.',
  ),
  kubernetesDuration: histogram(
    'rollout_operator_kubernetes_api_client_request_duration_seconds',
    ['path', 'method', 'status_code'],
    'Duration of requests to the API server, without the wait for the rate limit.',
    requestBuckets,
  ),
  kubernetesThrottled: counter(
    'rollout_operator_kubernetes_api_client_rate_limited_requests_total',
    ['api_group'],
    'Requests that the client did not send to the API server, because the wait for the rate limit would exceed their timeout.',
  ),
  podDuration: histogram(
    'rollout_operator_pod_http_client_request_duration_seconds',
    ['path', 'method', 'status_code'],
    'Duration of HTTP requests to pods.',
    requestBuckets,
  ),
  zoneBudgetsObserved: counter(
    'rollout_operator_zpdb_configurations_observed_total',
    ['result'],
    'Observed versions of ZoneAwarePodDisruptionBudgets: updated, deleted, ignored, delete-ignored, invalid. Every four minutes each budget counts again.',
  ),
  evictionRequests: counter(
    'rollout_operator_zpdb_eviction_requests_total',
    ['reason', 'status'],
    'Evaluated eviction requests and replacements of pods by the agent, by reason and response code.',
  ),
  evictionsInflight: gauge(
    'rollout_operator_zpdb_inflight_eviction_requests',
    [],
    'Eviction requests that are being evaluated or wait for another request under the same budget.',
  ),
  failurePolicy: gauge(
    'kube_validating_webhook_failure_policy',
    ['type', 'webhook', 'policy'],
    'Failure policy of each webhook of the namespace that protects groups: 1 for the policy in force, 0 for the other policy.',
  ),
};

export const ownMetrics = {
  buildInfo: gauge('rollout_group_build_info', ['version'], 'Always 1.'),
  groups: gauge('rollout_group_groups', [], 'Defined groups.'),
  groupsUncounted: gauge('rollout_group_groups_without_series', [], 'Groups without series because they exceed the limit of 1000.'),
  state: gauge('rollout_group_state', [...group, 'phase'], '1 for the current phase of the group, 0 for every other phase.'),
  phaseStarted: gauge(
    'rollout_group_phase_started_timestamp_seconds',
    group,
    'Unix time at which the group entered its phase, or of the first turn of this process if that is later.',
  ),
  phaseSeconds: counter(
    'rollout_group_phase_seconds_total',
    [...group, 'phase'],
    'Time that the group spent in a phase since the first turn of this process.',
  ),
  waits: gauge(
    'rollout_group_waits',
    [...group, 'rule', 'reason', 'outcome'],
    '1 for each rule that blocks the group: outcome wait, no or unknown.',
  ),
  stops: gauge(
    'rollout_group_stops',
    [...group, 'rule', 'reason'],
    '1 for each rule that stops the group, for example `paused` or `run-failed`, also while no step is due.',
  ),
  warnings: gauge(
    'rollout_group_warnings',
    [...group, 'rule', 'reason'],
    '1 for each rule that warns about the group and blocks nothing, for example `approved-plan` or `updated-by-restart`.',
  ),
  waitStarted: gauge(
    'rollout_group_wait_started_timestamp_seconds',
    [...group, 'rule'],
    'Unix time at which the rule began to block the group, or of the first turn of this process if that is later.',
  ),
  budgetLimit: gauge(
    'rollout_group_budget_limit_pods',
    [...group, 'zone'],
    'Pods of the zone that the group allows to be unavailable at once. Absent if maxUnavailable is `fromBudget`.',
  ),
  budgetUsed: gauge('rollout_group_budget_used_pods', [...group, 'zone'], 'Unavailable pods of the zone.'),
  pods: gauge('rollout_group_pods', [...group, 'zone', 'state'], 'Pods of the zone by state: desired, updated, available.'),
  drift: gauge(
    'rollout_group_drift_fields',
    [...group, 'zone'],
    'Fields of the StatefulSet that differ from its manifest, because another field manager wrote them.',
  ),
  permitted: gauge(
    'rollout_group_permitted',
    [...group, 'rule', 'exception'],
    '1 for each rule that would block the group without this RolloutException.',
  ),
  runs: counter('rollout_group_runs_total', [...group, 'outcome'], 'Ended runs by outcome: completed or failed.'),
  runDuration: histogram(
    'rollout_group_run_duration_seconds',
    group,
    'Active time of completed runs, as `rollout_group_run_active_seconds` counts it.',
    [60, 300, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400, 259_200],
  ),
  waveDuration: histogram(
    'rollout_group_wave_duration_seconds',
    group,
    'Duration of the waves of runs, with their soaks, gates and approvals.',
    [60, 300, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400, 259_200],
  ),
  podDuration: histogram(
    'rollout_group_pod_replacement_duration_seconds',
    group,
    'Time from the replacement of a pod until its successor is available. Not observed if another process began to lead in this time.',
    [5, 15, 30, 60, 120, 300, 600, 1200, 2400, 3600],
  ),
  runActive: gauge(
    'rollout_group_run_active_seconds',
    group,
    'Time since the start or the last retry of the run in progress, without waits for a person or a window. Absent without such a run.',
  ),
  runDeadline: gauge(
    'rollout_group_run_deadline_seconds',
    group,
    '`rollout.deadlines.run` of the group: the active time after which a run fails. Absent without a run in progress or a deadline.',
  ),
  runStalled: gauge(
    'rollout_group_run_stalled_seconds',
    group,
    'Time since the last progress of the run in progress; 0 while it waits for a person, a window, a soak, a gate or the minimum interval.',
  ),
  ledgerConflicts: counter(
    'rollout_group_ledger_conflicts_total',
    group,
    'Writes of the ledger that failed because another process had written it.',
  ),
  turns: counter('rollout_group_turns_total', [...group, 'result'], 'Turns of a group by result: ok or failed.'),
  turnDuration: histogram('rollout_group_turn_duration_seconds', [], 'Duration of turns, including their requests.', [
    0.001,
    0.0025,
    ...standardBuckets,
    30,
  ]),
  reaction: histogram('rollout_group_reaction_seconds', [], 'Time from the event that caused a turn until its first action was sent.', [
    0.001,
    0.0025,
    ...standardBuckets,
    30,
  ]),
  actions: counter(
    'rollout_group_actions_total',
    [...group, 'kind', 'result'],
    'Actions by kind and result: done, conflict, refused, failed, unknown.',
  ),
  degraded: gauge(
    'rollout_group_degraded',
    ['part', 'reason'],
    '1 for each part that the agent cannot use, by reason: forbidden, missing, unreachable or invalid.',
  ),
  findings: gauge('rollout_group_findings', ['code', 'severity'], 'Findings in policy files, policy objects and adopted StatefulSets.'),
  leader: gauge('rollout_group_leader', [], '1 while this process may act.'),
  leaderEpoch: gauge('rollout_group_leader_epoch', [], 'Number of changes of the Lease holder when this process took the Lease.'),
  snapshotAge: gauge(
    'rollout_group_snapshot_age_seconds',
    group,
    'Age of the snapshot from which the last decision of the group was made. An idle group has a turn every five minutes.',
  ),
  writes: counter(
    'rollout_group_writes_total',
    ['writer', 'result'],
    'Published objects by writer (decision, event, run) and result: done, failed, dropped.',
  ),
  notifications: counter(
    'rollout_group_notifications_total',
    ['channel', 'result'],
    'Notifications to a NotificationChannel by result: sent, edited, found (sent earlier, the response was lost), refused (given up), failed (retried).',
  ),
  admissions: counter(
    'rollout_group_admission_requests_total',
    ['route', 'allowed', 'failure'],
    'Admission requests by route and answer. `failure` is overload, deadline, error or client-gone if the endpoint could not evaluate the request, and unread if the request passed because a read failed.',
  ),
  admissionDuration: histogram(
    'rollout_group_admission_duration_seconds',
    ['route'],
    'Time that a webhook endpoint took, including its requests to the API server.',
    standardBuckets,
  ),
  refusedConnections: counter(
    'rollout_group_webhook_refused_connections_total',
    ['why'],
    'Connections to the webhook that were closed before their first request: limit, peer-limit or handshake.',
  ),
  certificateExpiry: gauge(
    'rollout_group_webhook_certificate_expiry_timestamp_seconds',
    [],
    'Unix time at which the webhook certificate expires. Absent without a certificate.',
  ),
  certificateWarning: gauge(
    'rollout_group_webhook_certificate_warning_timestamp_seconds',
    [],
    'Unix time from which the log warns that the certificate was not renewed: two weeks before it expires, or less if its lifetime is short. Absent without a certificate.',
  ),
  readyTimeWrites: counter(
    'rollout_group_ready_time_writes_total',
    ['result'],
    'Writes of the ready time of pods under a ZoneAwarePodDisruptionBudget: set, removed or failed.',
  ),
};
