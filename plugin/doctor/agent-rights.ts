// What the agent does with the API server, right by right, and what becomes of it without one. deploy/rbac.yaml gives the same.

export interface AgentRight {
  readonly group: string;
  /** With its subresource, as `pods/eviction`. */
  readonly resource: string;
  readonly verb: string;
  /** What does not happen without it, as the end of a sentence. */
  readonly without: string;
  /** `required`: groups stand still without it. `optional`: the agent goes on with less, and says so. */
  readonly weight: 'required' | 'optional';
  /** `namespace`: in each that is looked after. `agent`: in the agent's own. `cluster`: of no namespace. */
  readonly scope: 'namespace' | 'agent' | 'cluster';
  /** Only where there is a group whose pods are pinned, or whose replicas come from a ReplicaTemplate. */
  readonly only?: 'pinned' | 'mirroring';
}

interface RightOptions {
  readonly weight?: AgentRight['weight'];
  readonly scope?: AgentRight['scope'];
  readonly only?: AgentRight['only'];
}

function rights(
  group: string,
  resource: string,
  verbs: readonly string[],
  without: string,
  { weight = 'optional', scope = 'namespace', only }: RightOptions = {},
): readonly AgentRight[] {
  return verbs.map((verb) => ({ group, resource, verb, without, weight, scope, ...(only === undefined ? {} : { only }) }));
}

const look = ['list', 'watch'] as const;
const lookAndRead = ['get', ...look] as const;
const required: RightOptions = { weight: 'required' };
const mirroring: RightOptions = { only: 'mirroring' };
const ours = 'rollout-group.dev';
const grafana = 'rollout-operator.grafana.com';

/** Every right that the agent has a use for. */
export const agentRights: readonly AgentRight[] = [
  ...rights('', 'pods', look, 'no group can be rolled out', required),
  ...rights('', 'pods', ['delete'], 'no pod is replaced by deletion', required),
  ...rights('', 'pods', ['patch'], 'a delete of a former leader that is still under way cannot be revoked'),
  ...rights('', 'pods/eviction', ['create'], 'no pod is replaced by eviction'),
  ...rights('apps', 'statefulsets', lookAndRead, 'no group can be rolled out', required),
  ...rights('apps', 'statefulsets', ['patch'], 'no replicas are written', required),
  ...rights('apps', 'statefulsets/status', ['update'], 'the current revision of OnDelete sets stays behind'),
  ...rights('apps', 'controllerrevisions', ['get'], 'no pod is pinned to another revision', { ...required, only: 'pinned' }),
  ...rights('policy', 'poddisruptionbudgets', look, 'budgets are unknown, and no pod is evicted'),
  ...rights(grafana, 'zoneawarepoddisruptionbudgets', look, 'zone budgets are unknown'),
  ...rights('', 'configmaps', ['get', 'create', 'update'], 'ledgers are kept in memory, and are lost with the process'),
  ...rights('', 'configmaps', ['list'], 'groups that nothing defines any more are not released, whatever onPolicyDeleted said'),
  ...rights('coordination.k8s.io', 'leases', ['get', 'create', 'update'], 'the agent works alone and shares the work with no other', {
    scope: 'agent',
  }),
  ...rights('events.k8s.io', 'events', ['create'], 'decisions leave no Events'),
  ...rights(ours, 'rolloutgroups', lookAndRead, 'groups that are objects are not seen'),
  ...rights(ours, 'rolloutgroups/status', ['patch'], 'decisions are not published in objects'),
  ...rights(ours, 'rolloutpolicies', look, 'policies that are objects are not kept'),
  ...rights(ours, 'rolloutexceptions', look, 'exceptions do not count'),
  ...rights(ours, 'rolloutintents', look, 'pauses are not seen'),
  ...rights(ours, 'rolloutruns', ['get', 'list', 'create', 'patch', 'delete'], 'runs leave no record'),
  ...rights(ours, 'metricsources', ['get'], 'gates that name a source that is an object hold', { scope: 'agent' }),
  ...rights(ours, 'notificationchannels', ['get'], 'nobody is told by channels that are objects', { scope: 'agent' }),
  ...rights(grafana, 'replicatemplates', lookAndRead, 'replicas are not mirrored from ReplicaTemplates', mirroring),
  ...rights(grafana, 'replicatemplates/scale', ['get'], 'replicas are not mirrored from ReplicaTemplates', mirroring),
  ...rights(grafana, 'replicatemplates/status', ['patch'], 'ReplicaTemplates do not hear of the replicas in force', mirroring),
  ...rights('', 'nodes', look, 'every node counts as ready', { scope: 'cluster' }),
];

/** Of them, what a process needs that only serves webhooks: it looks, and keeps ledgers. */
export const webhookRights: readonly AgentRight[] = agentRights.filter(
  ({ resource, verb }) =>
    (resource === 'configmaps' && verb !== 'list') ||
    resource === 'events' ||
    resource === 'controllerrevisions' ||
    (look.some((one) => one === verb) && !['configmaps', 'replicatemplates', 'rolloutruns'].includes(resource)),
);
