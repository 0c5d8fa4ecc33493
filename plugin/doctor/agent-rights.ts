// Lists the rights of the agent and the effect of each missing right. deploy/rbac.yaml grants the same rights.
import { effects, unreadSource } from '../../engine/rules/agent-access.ts';
import type { AgentAction } from '../../engine/snapshot.ts';
import { type Configuration, certificateRules, mirrorRules, type PolicyRule, webhookRules } from '../../install/rights.ts';
import type { MirrorSource } from '../../install/scope.ts';
import { agentName } from '../../policies/objects/agent-deployment.ts';
import { defined } from '../../policies/values/defined.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import type { AccountFact, RightFact } from './check.ts';

export interface AgentRight {
  readonly group: string;
  /** The resource, with its subresource if any: `pods/eviction`. */
  readonly resource: string;
  readonly verb: string;
  /** The effect of the missing right, as the end of a sentence. */
  readonly without: string;
  /** `required`: groups make no progress without the right. `optional`: the agent works without the right and reports the loss. */
  readonly weight: 'required' | 'optional';
  /** `namespace`: in each watched namespace. `agent`: in the agent's namespace. `cluster`: cluster-wide. */
  readonly scope: 'namespace' | 'agent' | 'cluster';
  /** Present if only groups with pinned pods need the right. */
  readonly only?: 'pinned';
  /** The only action that fails without the right. Absent if every action fails (`required`) or no action fails (`optional`). */
  readonly action?: AgentAction;
  /** True if, without the right, the agent does not see RolloutGroup objects. */
  readonly showsGroups?: true;
  /** The only object that the agent needs; a role may grant the right for this object alone. */
  readonly object?: string;
  /** The kind of the object if zones mirror its replicas. */
  readonly mirroredKind?: string;
}

type RightOptions = Partial<Pick<AgentRight, 'weight' | 'scope' | 'only' | 'action' | 'showsGroups' | 'object' | 'mirroredKind'>>;

/** Returns one right per verb. `path` is the API group, empty for the core group, and the resource. */
function rights(path: string, verbs: readonly string[], without: string, options: RightOptions = {}): readonly AgentRight[] {
  const [group = '', ...resource] = path.split('/');
  return verbs.map((verb) => ({ group, resource: resource.join('/'), verb, without, weight: 'optional', scope: 'namespace', ...options }));
}

const listAndWatch = ['list', 'watch'] as const;
const getListAndWatch = ['get', ...listAndWatch] as const;
const required: RightOptions = { weight: 'required' };
const ours = 'rollout-group.dev';
const noLease = 'the agent cannot elect a leader and must run alone';

export const agentRights: readonly AgentRight[] = [
  ...rights('/pods', listAndWatch, 'no group can be rolled out', required),
  ...rights('/pods', ['delete'], effects.deletePod, { ...required, action: 'deletePod' }),
  ...rights('/pods', ['patch'], 'a pending delete of a former leader cannot be revoked'),
  ...rights('/pods/eviction', ['create'], effects.evictPod, { action: 'evictPod' }),
  ...rights('apps/statefulsets', getListAndWatch, 'no group can be rolled out', required),
  ...rights('apps/statefulsets', ['patch'], effects.patchStatefulSet, { ...required, action: 'patchStatefulSet' }),
  ...rights('apps/statefulsets/status', ['update'], 'the current revision of OnDelete StatefulSets is not updated'),
  ...rights('apps/controllerrevisions', ['get'], 'no pod is pinned to another revision', {
    ...required,
    only: 'pinned',
    action: 'pinPod',
  }),
  ...rights('policy/poddisruptionbudgets', listAndWatch, 'budgets are unknown, and no pod is evicted', { action: 'evictPod' }),
  ...rights('rollout-operator.grafana.com/zoneawarepoddisruptionbudgets', listAndWatch, 'zone budgets are unknown'),
  ...rights('/configmaps', ['get', 'create', 'update'], 'ledgers are kept in memory, and are lost with the process'),
  ...rights('/configmaps', ['list'], 'groups without a definition are not released, although onPolicyDeleted says so'),
  ...rights('coordination.k8s.io/leases', ['get', 'update'], noLease, { scope: 'agent', object: agentName }),
  ...rights('coordination.k8s.io/leases', ['create'], noLease, { scope: 'agent' }),
  ...rights('events.k8s.io/events', ['create'], 'decisions leave no Events'),
  ...rights('events.k8s.io/events', ['patch'], 'repeated facts get an Event each'),
  ...rights(`${ours}/rolloutgroups`, ['get'], 'RolloutGroup objects are not seen'),
  ...rights(`${ours}/rolloutgroups`, listAndWatch, 'RolloutGroup objects are not seen', { showsGroups: true }),
  ...rights(`${ours}/rolloutgroups/status`, ['patch'], 'decisions are not published in RolloutGroup objects'),
  ...rights(`${ours}/rolloutpolicies`, listAndWatch, 'RolloutPolicy objects are not applied'),
  ...rights(`${ours}/rolloutexceptions`, listAndWatch, 'exceptions are ignored'),
  ...rights(`${ours}/rolloutintents`, listAndWatch, 'pauses and other requests are not seen'),
  ...rights(`${ours}/rolloutruns`, ['get', 'list', 'create', 'patch', 'delete'], 'runs leave no record'),
  ...rights(`${ours}/metricsources`, ['get'], 'gates that name a MetricSource object block', { scope: 'agent' }),
  ...rights(`${ours}/notificationchannels`, ['get'], 'NotificationChannel objects send no notifications', { scope: 'agent' }),
  ...rights('/nodes', listAndWatch, 'every node counts as ready', { scope: 'cluster' }),
  ...rights('admissionregistration.k8s.io/mutatingwebhookconfigurations', listAndWatch, 'no pinned pod is replaced', {
    ...required,
    scope: 'cluster',
    only: 'pinned',
    action: 'pinPod',
  }),
];

/** Returns the rights that `install` grants on a mirrored kind. If the agent reads the scale subresource, it does not get the object. */
export function mirrorRights(mirror: MirrorSource): readonly Omit<RightFact, 'isAllowed'>[] {
  const all = mirrorRules(mirror).flatMap(({ apiGroups: [group], resources: [resource = ''], verbs }) =>
    mirror.names.flatMap((object) => {
      const [path, source] = [`${group}/${resource}`, `${mirror.kind} ${object}`];
      if (resource.endsWith('/status'))
        return rights(path, verbs, `the status of ${source} does not show the replicas in force`, { object });
      const isRead = resource.endsWith('/scale') || !mirror.readsScale;
      const follows = verbs.filter((verb) => verb !== 'get');
      return [
        ...rights(path, isRead ? ['get'] : [], unreadSource(source), {
          ...required,
          action: 'readSource',
          object,
          mirroredKind: mirror.kind,
        }),
        ...rights(path, follows, `changes of ${source} are seen late`, { object }),
      ];
    }),
  );
  return all.map((right) => ({ right, namespace: mirror.namespace }));
}

/** Returns the rights that `install` grants to a process that serves webhooks with the certificate in this Secret of its namespace. */
export function servingRights(
  { namespace, secret }: { readonly namespace: string; readonly secret: string },
  configurations: readonly Configuration[],
): readonly Omit<RightFact, 'isAllowed'>[] {
  const ofRules = (rules: readonly PolicyRule[], without: (object?: string) => string, scope: 'agent' | 'cluster') =>
    rules.flatMap(({ apiGroups: [group], resources, verbs, resourceNames = [undefined] }) =>
      resources.flatMap((resource) =>
        resourceNames.flatMap((object) => rights(`${group}/${resource}`, verbs, without(object), { scope, ...defined({ object }) })),
      ),
    );
  const certificate = `the certificate of the webhooks in Secret ${secret} is not created or renewed`;
  const written = (name = 'the webhooks'): string => `caBundle and new StatefulSets are not written to ${name}`;
  return [
    ...ofRules(certificateRules(secret), () => certificate, 'agent').map((right) => ({ right, namespace })),
    ...ofRules(webhookRules(configurations), written, 'cluster').map((right) => ({ right })),
  ];
}

/** The rights of an agent with `-leader-election=required`, as in an installation. It takes no action without Lease or ledger. */
export const rightsWithLease: readonly AgentRight[] = agentRights.map((right) => {
  const { resource, verb } = right;
  if (resource === 'leases') return { ...right, ...required, without: 'the agent takes no action without its Lease' };
  const isLedger = resource === 'configmaps' && verb !== 'list';
  return isLedger ? { ...right, ...required, without: 'the agent takes no action without its ledgers' } : right;
});

/** Reports whether a group makes no progress, or an action fails, without the right. */
export function isNeeded({ weight, action, showsGroups }: AgentRight): boolean {
  return weight === 'required' || action !== undefined || showsGroups === true;
}

export interface MissingVerbs {
  readonly right: AgentRight;
  readonly namespace?: string | undefined;
  readonly verbs: readonly string[];
}

/** Returns the missing rights. Verbs on one resource with the same consequence make one entry. */
export function missingVerbs(rights: readonly RightFact[]): readonly MissingVerbs[] {
  const missing = groupBy(rights, ({ right, namespace, isAllowed }) =>
    isAllowed ? undefined : `${right.group}/${right.resource}/${namespace ?? ''}/${right.without}`,
  );
  return [...missing.values()].map((same) => ({ ...same[0], verbs: same.map(({ right }) => right.verb) }));
}

/** Returns `ACCOUNT may not get, list pods in mimir: no group can be rolled out`. */
export function missingText(account: string, missing: MissingVerbs): string {
  return `${account} may not ${missing.verbs.join(', ')} ${resourceText(missing.right)} ${placeText(missing)}: ${missing.right.without}`;
}

export function placeText({ namespace }: Pick<MissingVerbs, 'namespace'>): string {
  return namespace === undefined ? 'in the cluster' : `in ${namespace}`;
}

export function resourceText({ group, resource }: AgentRight): string {
  return group === '' ? resource : `${resource} (${group})`;
}

/** The rights of a process that only serves webhooks: such a process reads objects and writes ledgers. */
export const webhookRights: readonly AgentRight[] = agentRights.filter(
  ({ resource, verb }) =>
    (resource === 'configmaps' && verb !== 'list') ||
    (resource === 'events' && verb === 'create') ||
    resource === 'controllerrevisions' ||
    (listAndWatch.some((one) => one === verb) && !['configmaps', 'mutatingwebhookconfigurations', 'rolloutruns'].includes(resource)),
);

export function unwatchedText({ namespaces, flag }: NonNullable<AccountFact['unwatched']>): string {
  return `the agent does not watch namespace ${namespaces.join(', ')} (it runs with ${flag})`;
}
