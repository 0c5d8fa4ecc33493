// What the agent does with the API server, right by right, and what becomes of it without one.

export interface AgentRight {
  readonly group: string;
  /** With its subresource, as `pods/eviction`. */
  readonly resource: string;
  readonly verb: string;
  /** What does not happen without it, as the end of a sentence. */
  readonly without: string;
  /** `required`: FAIL without it. `optional`: the agent goes on without and says so. */
  readonly weight: 'required' | 'optional';
  /** Of no namespace, or looked at in the agent's own only. */
  readonly scope?: 'cluster' | 'agent';
}

interface RightOptions {
  readonly weight?: AgentRight['weight'];
  readonly scope?: NonNullable<AgentRight['scope']>;
}

function rights(
  group: string,
  resource: string,
  verbs: readonly string[],
  without: string,
  { weight = 'required', scope }: RightOptions = {},
): readonly AgentRight[] {
  return verbs.map((verb) => ({ group, resource, verb, without, weight, ...(scope === undefined ? {} : { scope }) }));
}

const look = ['get', 'list', 'watch'] as const;
const optional: RightOptions = { weight: 'optional' };
const ours = 'rollout-group.dev';

/** Every right that the agent has a use for. */
export const agentRights: readonly AgentRight[] = [
  ...rights('', 'pods', look, 'no group can be looked after'),
  ...rights('', 'pods', ['delete'], 'no pod is replaced by deletion'),
  ...rights('', 'pods/eviction', ['create'], 'no pod is replaced by eviction', optional),
  ...rights('apps', 'statefulsets', look, 'no group can be looked after'),
  ...rights('apps', 'statefulsets', ['patch'], 'no replicas are written'),
  ...rights('apps', 'controllerrevisions', ['get', 'list'], 'an earlier template is not known to be one', optional),
  ...rights(
    '',
    'configmaps',
    ['get', 'list', 'watch', 'create', 'update'],
    'ledgers are kept in memory, and are lost with the process',
    optional,
  ),
  ...rights('coordination.k8s.io', 'leases', ['get', 'create', 'update'], 'the agent works alone and shares the work with no other', {
    weight: 'optional',
    scope: 'agent',
  }),
  ...rights('events.k8s.io', 'events', ['create', 'patch'], 'decisions leave no Events', optional),
  ...rights('policy', 'poddisruptionbudgets', ['list', 'watch'], 'budgets are unknown, and no pod is evicted'),
  ...rights('', 'nodes', ['list', 'watch'], 'every node counts as ready', { weight: 'optional', scope: 'cluster' }),
  ...rights(ours, 'rolloutgroups', ['list', 'watch'], 'groups that are objects are not seen', optional),
  ...rights(ours, 'rolloutgroups/status', ['patch'], 'decisions are not published in objects', optional),
  ...rights(ours, 'rolloutpolicies', ['list', 'watch'], 'policies that are objects are not kept', optional),
  ...rights(ours, 'rolloutexceptions', ['list', 'watch'], 'exceptions do not count', optional),
  ...rights(ours, 'rolloutintents', ['list', 'watch'], 'pauses are not seen, and groups hold', optional),
];
