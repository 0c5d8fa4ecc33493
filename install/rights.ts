// Defines the ServiceAccount of the agent and its roles: one Role per namespace if the namespaces are known, otherwise a ClusterRole.
import { agentName } from '../policies/objects/agent-deployment.ts';
import { apiGroup } from '../policies/schema/kinds.ts';
import { defined } from '../policies/values/defined.ts';
import { certificateSecret, clusterName, type InstallObject, type InstallOptions, installObject } from './object.ts';
import type { Registered } from './registered.ts';
import { type MirrorSource, usesStrategy } from './scope.ts';

/** A rule of `rbac.authorization.k8s.io/v1`. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

const rbac = 'rbac.authorization.k8s.io';
const compatGroup = 'rollout-operator.grafana.com';

/** Returns the account, then roles with bindings: for the agent's namespace, each namespace with groups, and the cluster. */
export function rightsOf(options: InstallOptions, configurations: readonly Configuration[]): readonly InstallObject[] {
  const { namespace, scope } = options;
  const account = installObject(['v1', 'ServiceAccount'], { name: agentName, namespace }, namespace, {
    automountServiceAccountToken: false,
  });
  const own = { name: `${agentName}-own`, namespace };
  const name = clusterName(agentName, namespace);
  const watched =
    scope.namespaces.length === 0
      ? roleAndBinding(options, { name }, groupRules(options, usesStrategy(scope.pinned), [anyReplicaTemplate]))
      : scope.namespaces.flatMap((one) => {
          const isPinned = scope.pinned.namespaces?.includes(one) ?? true;
          const mirrors = scope.mirrors.filter((mirror) => mirror.namespace === one);
          return roleAndBinding(options, { name, namespace: one }, groupRules(options, isPinned, mirrors));
        });
  return [
    account,
    ...roleAndBinding(options, own, ownRules(options)),
    ...watched,
    ...roleAndBinding(options, { name: clusterName(`${agentName}-nodes`, namespace) }, [rule('', ['nodes'], ['list', 'watch'])]),
    ...roleAndBinding(options, { name: clusterName(`${agentName}-webhooks`, namespace) }, webhookRules(configurations)),
    ...(options.readsCommits ? roleAndBinding(options, { name: clusterName(`${agentName}-commits`, namespace) }, commitRules) : []),
  ];
}

/** A webhook configuration into which the agent writes its CA certificate and the protected StatefulSets. */
export type Configuration = Pick<Registered, 'kind' | 'name'>;

/** The rights on the objects of GitOps tools that name the commit of a StatefulSet. */
const commitRules: readonly PolicyRule[] = [
  rule('argoproj.io', ['applications'], ['get']),
  rule('kustomize.toolkit.fluxcd.io', ['kustomizations'], ['get']),
];

/** Returns the rights in the agent's namespace: Lease, certificate, events, policies, metric sources, channels and their Secrets. */
const ownRules = ({ scope: { secrets }, certificate }: InstallOptions): readonly PolicyRule[] => [
  // RBAC cannot limit `create` to a name.
  rule('coordination.k8s.io', ['leases'], ['create']),
  rule('coordination.k8s.io', ['leases'], ['get', 'update'], [agentName]),
  ...(certificate === undefined ? certificateRules(certificateSecret) : []),
  rule('events.k8s.io', ['events'], ['create', 'patch']),
  rule(apiGroup, ['rolloutgroups', 'rolloutpolicies', 'rolloutexceptions', 'rolloutintents'], ['list', 'watch']),
  rule(apiGroup, ['metricsources', 'notificationchannels'], ['get']),
  ...(secrets.length === 0 ? [] : [rule('', ['secrets'], ['get'], secrets)]),
];

/** Returns the rights with which the agent creates and renews the certificate of the webhooks in this Secret. */
export function certificateRules(secret: string): readonly PolicyRule[] {
  return [rule('', ['secrets'], ['create']), rule('', ['secrets'], ['get', 'list', 'watch', 'update'], [secret])];
}

/** A mirrored kind. If `names` is absent, the rights cover all objects of the kind. */
type MirroredKind = Pick<MirrorSource, 'group' | 'kind' | 'readsScale' | 'writesStatus'> & Partial<Pick<MirrorSource, 'names'>>;

/** The only kind that the agent may mirror if the groups are unknown. */
const anyReplicaTemplate: MirroredKind = { group: compatGroup, kind: 'ReplicaTemplate', readsScale: true, writesStatus: true };

function groupRules({ hasCompat }: InstallOptions, isPinned: boolean, mirrors: readonly MirroredKind[]): readonly PolicyRule[] {
  return [
    // A new leader patches a pod, so that a delayed delete request of the former leader fails its precondition.
    rule('', ['pods'], ['get', 'list', 'watch', 'delete', 'patch']),
    rule('', ['pods/eviction'], ['create']),
    rule('apps', ['statefulsets'], ['get', 'list', 'watch', 'patch']),
    rule('apps', ['statefulsets/status'], ['update']),
    rule('policy', ['poddisruptionbudgets'], ['list', 'watch']),
    rule(compatGroup, ['zoneawarepoddisruptionbudgets'], ['list', 'watch']),
    // For ledgers, and decisions about groups without a RolloutGroup. `list` finds the ConfigMaps of deleted groups (`onPolicyDeleted`).
    rule('', ['configmaps'], ['get', 'list', 'create', 'update']),
    rule('events.k8s.io', ['events'], ['create', 'patch']),
    rule(apiGroup, ['rolloutgroups'], ['get', 'list', 'watch']),
    rule(apiGroup, ['rolloutgroups/status'], ['patch']),
    rule(apiGroup, ['rolloutpolicies', 'rolloutexceptions', 'rolloutintents'], ['list', 'watch']),
    rule(apiGroup, ['rolloutruns'], ['get', 'list', 'create', 'patch', 'delete']),
    // The webhook reads whether the namespace is being deleted, because it then allows deletions of the objects in the namespace.
    rule('', ['namespaces'], ['get']),
    // The webhook decides a scale request for these kinds by the labels of the object.
    ...(hasCompat ? [rule('apps', ['deployments', 'replicasets'], ['get'])] : []),
    // The templates of ControllerRevisions pin pods. Their names are not known in advance.
    ...(isPinned ? [rule('apps', ['controllerrevisions'], ['get'])] : []),
    ...mirrors.flatMap(mirrorRules),
  ];
}

export function mirrorRules({ group, kind, names, readsScale, writesStatus }: MirroredKind): readonly PolicyRule[] {
  const plural = pluralOf(kind);
  return [
    // With `resourceNames`, RBAC permits `list` and `watch` only for requests that select the object by name.
    rule(group, [plural], ['get', 'list', 'watch'], names),
    ...(readsScale ? [rule(group, [`${plural}/scale`], ['get'], names)] : []),
    ...(writesStatus ? [rule(group, [`${plural}/status`], ['patch'], names)] : []),
  ];
}

/** Returns the lower-case plural that the API most likely uses for a kind. Only the API server knows the actual plural. */
export function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (/(?:s|x|z|ch|sh)$/.test(name)) return `${name}es`;
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`;
}

export function webhookRules(configurations: readonly Configuration[]): readonly PolicyRule[] {
  const group = 'admissionregistration.k8s.io';
  const kinds = ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'];
  return [
    // The agent finds webhook configurations by their labels, and the configuration that pins pods by its name. It writes only its own.
    rule(group, kinds.map(pluralOf), ['list', 'watch']),
    ...kinds.flatMap((kind) => {
      const names = configurations.filter((one) => one.kind === kind).map(({ name }) => name);
      return names.length === 0 ? [] : [rule(group, [pluralOf(kind)], ['patch'], names)];
    }),
  ];
}

function rule(group: string, resources: readonly string[], verbs: readonly string[], resourceNames?: readonly string[]): PolicyRule {
  return { apiGroups: [group], resources, verbs, ...defined({ resourceNames }) };
}

function roleAndBinding(
  { namespace: installation }: InstallOptions,
  target: { readonly name: string; readonly namespace?: string },
  rules: readonly PolicyRule[],
): readonly InstallObject[] {
  const prefix = target.namespace === undefined ? 'Cluster' : '';
  return [
    installObject([`${rbac}/v1`, `${prefix}Role`], target, installation, { rules }),
    installObject([`${rbac}/v1`, `${prefix}RoleBinding`], target, installation, {
      roleRef: { apiGroup: rbac, kind: `${prefix}Role`, name: target.name },
      subjects: [{ kind: 'ServiceAccount', name: agentName, namespace: installation }],
    }),
  ];
}
