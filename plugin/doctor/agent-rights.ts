// Lists the rights of the agent and the effect of each missing right. deploy/rbac.yaml grants the same rights.

export interface AgentRight {
  readonly group: string;
  /** The resource, with its subresource if any: `pods/eviction`. */
  readonly resource: string;
  readonly verb: string;
  /** The effect of the missing right, as the end of a sentence. */
  readonly without: string;
  /** `required`: groups make no progress without it. `optional`: the agent works without it and reports the loss. */
  readonly weight: 'required' | 'optional';
  /** `namespace`: in each watched namespace. `agent`: in the agent's namespace. `cluster`: cluster-wide. */
  readonly scope: 'namespace' | 'agent' | 'cluster';
  /** Present if only groups with pinned pods, or with replicas from a ReplicaTemplate, need the right. */
  readonly only?: 'pinned' | 'mirroring';
}

type RightOptions = Partial<Pick<AgentRight, 'weight' | 'scope' | 'only'>>;

/** Returns one right per verb. `path` is the API group, empty for the core group, and the resource. */
function rights(path: string, verbs: readonly string[], without: string, options: RightOptions = {}): readonly AgentRight[] {
  const [group = '', ...resource] = path.split('/');
  return verbs.map((verb) => ({ group, resource: resource.join('/'), verb, without, weight: 'optional', scope: 'namespace', ...options }));
}

const listAndWatch = ['list', 'watch'] as const;
const getListAndWatch = ['get', ...listAndWatch] as const;
const required: RightOptions = { weight: 'required' };
const mirroring: RightOptions = { only: 'mirroring' };
const ours = 'rollout-group.dev';
const grafana = 'rollout-operator.grafana.com';

export const agentRights: readonly AgentRight[] = [
  ...rights('/pods', listAndWatch, 'no group can be rolled out', required),
  ...rights('/pods', ['delete'], 'no pod is replaced by deletion', required),
  ...rights('/pods', ['patch'], 'a pending delete of a former leader cannot be revoked'),
  ...rights('/pods/eviction', ['create'], 'no pod is replaced by eviction'),
  ...rights('apps/statefulsets', getListAndWatch, 'no group can be rolled out', required),
  ...rights('apps/statefulsets', ['patch'], 'no replicas are written', required),
  ...rights('apps/statefulsets/status', ['update'], 'the current revision of OnDelete StatefulSets is not updated'),
  ...rights('apps/controllerrevisions', ['get'], 'no pod is pinned to another revision', { ...required, only: 'pinned' }),
  ...rights('policy/poddisruptionbudgets', listAndWatch, 'budgets are unknown, and no pod is evicted'),
  ...rights(`${grafana}/zoneawarepoddisruptionbudgets`, listAndWatch, 'zone budgets are unknown'),
  ...rights('/configmaps', ['get', 'create', 'update'], 'ledgers are kept in memory, and are lost with the process'),
  ...rights('/configmaps', ['list'], 'groups without a definition are not released, although onPolicyDeleted says so'),
  ...rights('coordination.k8s.io/leases', ['get', 'create', 'update'], 'the agent cannot elect a leader and must run alone', {
    scope: 'agent',
  }),
  ...rights('events.k8s.io/events', ['create'], 'decisions leave no Events'),
  ...rights('events.k8s.io/events', ['patch'], 'repeated facts get an Event each'),
  ...rights(`${ours}/rolloutgroups`, getListAndWatch, 'groups that are objects are not seen'),
  ...rights(`${ours}/rolloutgroups/status`, ['patch'], 'decisions are not published in objects'),
  ...rights(`${ours}/rolloutpolicies`, listAndWatch, 'policies that are objects are not applied'),
  ...rights(`${ours}/rolloutexceptions`, listAndWatch, 'exceptions are ignored'),
  ...rights(`${ours}/rolloutintents`, listAndWatch, 'pauses are not seen'),
  ...rights(`${ours}/rolloutruns`, ['get', 'list', 'create', 'patch', 'delete'], 'runs leave no record'),
  ...rights(`${ours}/metricsources`, ['get'], 'gates that name a MetricSource object block', { scope: 'agent' }),
  ...rights(`${ours}/notificationchannels`, ['get'], 'NotificationChannel objects send no notifications', { scope: 'agent' }),
  ...rights(`${grafana}/replicatemplates`, getListAndWatch, 'replicas are not mirrored from ReplicaTemplates', mirroring),
  ...rights(`${grafana}/replicatemplates/scale`, ['get'], 'replicas are not mirrored from ReplicaTemplates', mirroring),
  ...rights(
    `${grafana}/replicatemplates/status`,
    ['patch'],
    'the status of ReplicaTemplates does not show the replicas in force',
    mirroring,
  ),
  ...rights('/nodes', listAndWatch, 'every node counts as ready', { scope: 'cluster' }),
];

/** The rights of a process that only serves webhooks: such a process reads objects and writes ledgers. */
export const webhookRights: readonly AgentRight[] = agentRights.filter(
  ({ resource, verb }) =>
    (resource === 'configmaps' && verb !== 'list') ||
    resource === 'events' ||
    resource === 'controllerrevisions' ||
    (listAndWatch.some((one) => one === verb) && !['configmaps', 'replicatemplates', 'rolloutruns'].includes(resource)),
);
