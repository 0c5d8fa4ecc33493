// Defines the Grafana dashboards, from which `npm run generate` writes deploy/monitoring/dashboards/.

interface Panel {
  readonly title: string;
  readonly type: 'timeseries' | 'stat' | 'state-timeline';
  readonly unit: 'short' | 's' | 'ops' | 'percentunit';
  /** Each query of PromQL with its legend. */
  readonly queries: readonly (readonly [expr: string, legend: string])[];
  /** The failure without which the panel is empty. */
  readonly emptyWithout?: string;
}

interface Dashboard {
  readonly title: string;
  readonly variables: readonly ('namespace' | 'group')[];
  readonly panels: readonly Panel[];
}

const group = 'namespace=~"$namespace", group=~"$group"';
const ourWebhooks = 'name=~".+[.]rollout-group[.]dev|(no-downscale|prepare-downscale|pod-eviction|zpdb-validation)-.+[.]grafana[.]com"';

function quantile(share: number, metric: string, labels: string, by = ''): string {
  return `histogram_quantile(${share}, sum by (${by}le) (increase(${metric}_bucket{${labels}}[$__range])))`;
}

const overview: Dashboard = {
  title: 'All groups',
  variables: ['namespace'],
  panels: [
    {
      title: 'Groups by phase',
      type: 'stat',
      unit: 'short',
      queries: [['sum by (phase) (rollout_group_state{namespace=~"$namespace"})', '{{phase}}']],
    },
    {
      title: 'Phase of each group',
      type: 'state-timeline',
      unit: 'short',
      queries: [
        ['max by (namespace, group, phase) (rollout_group_state{namespace=~"$namespace"}) == 1', '{{namespace}}/{{group}} {{phase}}'],
      ],
    },
    {
      title: 'Outdated pods',
      type: 'timeseries',
      unit: 'short',
      queries: [
        [
          'sum by (namespace, group) (rollout_group_pods{namespace=~"$namespace", state="desired"}) - sum by (namespace, group) (rollout_group_pods{namespace=~"$namespace", state="updated"})',
          '{{namespace}}/{{group}}',
        ],
      ],
    },
    {
      title: 'Unavailable pods',
      type: 'timeseries',
      unit: 'short',
      queries: [['sum by (namespace, group) (rollout_group_budget_used_pods{namespace=~"$namespace"})', '{{namespace}}/{{group}}']],
    },
    {
      title: 'Ended runs',
      type: 'timeseries',
      unit: 'short',
      queries: [['sum by (outcome) (increase(rollout_group_runs_total{namespace=~"$namespace"}[$__rate_interval]))', '{{outcome}}']],
    },
    {
      title: 'Stops',
      type: 'timeseries',
      unit: 'short',
      emptyWithout: 'a failed run, a pause or another stop',
      queries: [['count by (namespace, group, rule) (rollout_group_stops{namespace=~"$namespace"})', '{{namespace}}/{{group}} {{rule}}']],
    },
    { title: 'Leader', type: 'state-timeline', unit: 'short', queries: [['sum by (pod) (rollout_group_leader)', '{{pod}}']] },
    {
      title: 'Degraded parts',
      type: 'timeseries',
      unit: 'short',
      emptyWithout: 'a part that the agent cannot use',
      queries: [['max by (part, reason) (rollout_group_degraded)', '{{part}}: {{reason}}']],
    },
    {
      title: 'Turns by result, and ledger conflicts',
      type: 'timeseries',
      unit: 'ops',
      queries: [
        ['sum by (result) (rate(rollout_group_turns_total{namespace=~"$namespace"}[$__rate_interval]))', '{{result}}'],
        ['sum(rate(rollout_group_ledger_conflicts_total{namespace=~"$namespace"}[$__rate_interval]))', 'ledger conflicts'],
      ],
    },
    {
      title: 'Requests to the API server by status',
      type: 'timeseries',
      unit: 'ops',
      queries: [
        [
          'sum by (status_code) (rate(rollout_operator_kubernetes_api_client_request_duration_seconds_count[$__rate_interval]))',
          '{{status_code}}',
        ],
      ],
    },
  ],
};

const oneGroup: Dashboard = {
  title: 'One group',
  variables: ['namespace', 'group'],
  panels: [
    {
      title: 'Phase',
      type: 'state-timeline',
      unit: 'short',
      queries: [[`max by (phase) (rollout_group_state{${group}}) == 1`, '{{phase}}']],
    },
    {
      title: 'Rules that block',
      type: 'state-timeline',
      unit: 'short',
      queries: [[`max by (rule, outcome) (rollout_group_waits{${group}})`, '{{rule}} ({{outcome}})']],
    },
    {
      title: 'Updated and available pods by zone',
      type: 'timeseries',
      unit: 'percentunit',
      queries: ['updated', 'available'].map((state) => [
        `sum by (zone) (rollout_group_pods{${group}, state="${state}"}) / sum by (zone) (rollout_group_pods{${group}, state="desired"})`,
        `{{zone}} ${state}`,
      ]),
    },
    {
      title: 'Unavailable pods and budget by zone',
      type: 'timeseries',
      unit: 'short',
      queries: [
        [`sum by (zone) (rollout_group_budget_used_pods{${group}})`, '{{zone}}'],
        [`max by (zone) (rollout_group_budget_limit_pods{${group}})`, '{{zone}} limit'],
      ],
    },
    {
      title: 'Active time of the run, and time without progress',
      type: 'timeseries',
      unit: 's',
      queries: [
        [`max(rollout_group_run_active_seconds{${group}})`, 'active'],
        [`max(rollout_group_run_stalled_seconds{${group}})`, 'without progress'],
        [`max(rollout_group_run_deadline_seconds{${group}})`, 'deadline'],
      ],
    },
    {
      title: 'Actions by kind and result',
      type: 'timeseries',
      unit: 'short',
      queries: [[`sum by (kind, result) (increase(rollout_group_actions_total{${group}}[$__rate_interval]))`, '{{kind}} {{result}}']],
    },
    {
      title: 'Replacement of a pod',
      type: 'stat',
      unit: 's',
      queries: [0.5, 0.9, 0.99].map((share) => [
        quantile(share, 'rollout_group_pod_replacement_duration_seconds', group),
        `p${share * 100}`,
      ]),
    },
    {
      title: 'Waves and runs',
      type: 'stat',
      unit: 's',
      queries: ['wave', 'run'].flatMap((part) =>
        [0.5, 0.9].map((share) => [quantile(share, `rollout_group_${part}_duration_seconds`, group), `${part} p${share * 100}`] as const),
      ),
    },
    {
      title: 'Stops, warnings, exceptions and drift',
      type: 'timeseries',
      unit: 'short',
      emptyWithout: 'a failed run, a pod that restarted before its wave, or another warning',
      queries: [
        [`max by (rule) (rollout_group_stops{${group}})`, 'stop {{rule}}'],
        [`max by (rule) (rollout_group_warnings{${group}})`, 'warning {{rule}}'],
        [`max by (rule, exception) (rollout_group_permitted{${group}})`, 'exception {{exception}} permits {{rule}}'],
        [`sum by (zone) (rollout_group_drift_fields{${group}}) > 0`, '{{zone}} fields'],
      ],
    },
    {
      title: 'Age of the last decision',
      type: 'timeseries',
      unit: 's',
      queries: [[`max(rollout_group_snapshot_age_seconds{${group}})`, 'age']],
    },
  ],
};

const webhooks: Dashboard = {
  title: 'Webhooks',
  variables: [],
  panels: [
    {
      title: 'Requests by route and answer',
      type: 'timeseries',
      unit: 'ops',
      queries: [
        ['sum by (route, allowed) (rate(rollout_group_admission_requests_total[$__rate_interval]))', '{{route}} allowed={{allowed}}'],
      ],
    },
    {
      title: 'Time to answer by route',
      type: 'timeseries',
      unit: 's',
      queries: [0.5, 0.99].map((share) => [
        `histogram_quantile(${share}, sum by (route, le) (rate(rollout_group_admission_duration_seconds_bucket[$__rate_interval])))`,
        `{{route}} p${share * 100}`,
      ]),
    },
    {
      title: 'Requests without a decision',
      type: 'timeseries',
      unit: 'short',
      emptyWithout: 'a webhook that does not answer or cannot decide',
      queries: [
        [
          `sum by (name) (apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error", ${ourWebhooks}})`,
          '{{name}} denied',
        ],
        [`sum by (name) (apiserver_admission_webhook_fail_open_count{${ourWebhooks}})`, '{{name}} passed'],
        [
          'sum by (route, failure, allowed) (rollout_group_admission_requests_total{failure!=""})',
          '{{route}} {{failure}} allowed={{allowed}}',
        ],
      ],
    },
    {
      title: 'Requests that the API server sent',
      type: 'timeseries',
      unit: 'ops',
      queries: [
        [`sum by (name, code) (rate(apiserver_admission_webhook_request_total{${ourWebhooks}}[$__rate_interval]))`, '{{name}} {{code}}'],
      ],
    },
    {
      title: 'Time until the certificate expires',
      type: 'stat',
      unit: 's',
      queries: [['min(rollout_group_webhook_certificate_expiry_timestamp_seconds) - time()', 'certificate']],
    },
    {
      title: 'Failure policies',
      type: 'state-timeline',
      unit: 'short',
      queries: [['max by (webhook, policy) (kube_validating_webhook_failure_policy) == 1', '{{webhook}} {{policy}}']],
    },
    {
      title: 'Refused connections',
      type: 'timeseries',
      unit: 'short',
      emptyWithout: 'a client that cannot complete the handshake, or too many connections',
      queries: [['sum by (why) (rollout_group_webhook_refused_connections_total)', '{{why}}']],
    },
    {
      title: 'Evictions under a ZoneAwarePodDisruptionBudget',
      type: 'timeseries',
      unit: 'short',
      queries: [
        ['sum by (reason, status) (increase(rollout_operator_zpdb_eviction_requests_total[$__rate_interval]))', '{{reason}} {{status}}'],
        ['sum(rollout_operator_zpdb_inflight_eviction_requests)', 'in flight'],
      ],
    },
  ],
};

/** The dashboards by the name of their file, without its extension. */
const dashboards: Readonly<Record<string, Dashboard>> = { overview, group: oneGroup, webhooks };

/** Returns the text of each dashboard by the name of its file. */
export function dashboardFiles(): ReadonlyMap<string, string> {
  return new Map(Object.entries(dashboards).map(([name, one]) => [`${name}.json`, `${JSON.stringify(model(name, one), null, 2)}\n`]));
}

const datasource = { type: 'prometheus', uid: '${datasource}' } as const;

/** Returns the JSON model of Grafana. */
function model(name: string, { title, variables, panels }: Dashboard): object {
  return {
    uid: `rollout-group-${name}`,
    title: `Rollout groups / ${title}`,
    tags: ['rollout-group'],
    schemaVersion: 39,
    refresh: '1m',
    time: { from: 'now-6h', to: 'now' },
    templating: { list: [{ name: 'datasource', type: 'datasource', query: 'prometheus' }, ...variables.map(variable)] },
    links: [{ title: 'Rollout groups', type: 'dashboards', tags: ['rollout-group'], asDropdown: true, includeVars: true, keepTime: true }],
    panels: panels.map(panelModel),
  };
}

/** Returns a variable whose values are those of the label. The values of `group` depend on `namespace`. */
function variable(label: 'namespace' | 'group'): object {
  const series = label === 'group' ? 'rollout_group_state{namespace=~"$namespace"}' : 'rollout_group_state';
  const query = `label_values(${series}, ${label})`;
  return { name: label, type: 'query', datasource, query, refresh: 2, sort: 1, multi: true, includeAll: true, allValue: '.+' };
}

function panelModel({ title, type, unit, queries, emptyWithout }: Panel, index: number): object {
  return {
    id: index + 1,
    title,
    ...(emptyWithout === undefined ? {} : { description: `Empty without ${emptyWithout}.` }),
    type,
    datasource,
    gridPos: { x: (index % 2) * 12, y: Math.floor(index / 2) * 8, w: 12, h: 8 },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: queries.map(([expr, legendFormat], query) => ({ refId: 'ABCD'[query], expr, legendFormat })),
  };
}
