// Defines the ServiceAccount of the agent and its roles: one Role per namespace if the namespaces are known, otherwise a ClusterRole.
import { apiGroup } from '../policies/schema/kinds.ts';
import { defined } from '../policies/values/defined.ts';
import { agentName, certificateSecret, clusterName, type InstallObject, type InstallOptions, installObject } from './object.ts';
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
export function rightsOf(options: InstallOptions, configurations: Configurations): readonly InstallObject[] {
  const { namespace, scope } = options;
  const account = installObject(['v1', 'ServiceAccount'], { name: agentName, namespace }, namespace, {
    automountServiceAccountToken: false,
  });
  const own = { name: `${agentName}-own`, namespace };
  const watched =
    scope.namespaces.length === 0
      ? roleAndBinding(options, { name: clusterName(agentName, namespace) }, [
          ...groupRules(options),
          ...revisionRules(usesStrategy(scope.pinned)),
          ...mirrorRules(undefined),
        ])
      : scope.namespaces.flatMap((one) =>
          roleAndBinding(options, { name: clusterName(agentName, namespace), namespace: one }, [
            ...groupRules(options),
            ...revisionRules(scope.pinned.namespaces?.includes(one) ?? true),
            ...mirrorRules(scope.mirrors.filter((mirror) => mirror.namespace === one)),
          ]),
        );
  return [
    account,
    ...roleAndBinding(options, own, ownRules(options)),
    ...watched,
    ...roleAndBinding(options, { name: clusterName(`${agentName}-nodes`, namespace) }, [rule('', ['nodes'], ['list', 'watch'])]),
    ...roleAndBinding(options, { name: clusterName(`${agentName}-webhooks`, namespace) }, webhookRules(configurations)),
  ];
}

/** The names of the webhook configurations into which the agent writes its CA certificate. */
interface Configurations {
  readonly validating: readonly string[];
  readonly mutating: readonly string[];
}

/** Returns the rights in the agent's namespace: Lease, certificate, policies, metric sources, channels and their Secrets. */
const ownRules = ({ scope: { secrets } }: InstallOptions): readonly PolicyRule[] => [
  // RBAC cannot limit `create` to a name.
  rule('coordination.k8s.io', ['leases'], ['create']),
  rule('coordination.k8s.io', ['leases'], ['get', 'update'], [agentName]),
  rule('', ['secrets'], ['create']),
  rule('', ['secrets'], ['get', 'list', 'watch', 'update'], [certificateSecret]),
  rule('events.k8s.io', ['events'], ['create', 'patch']),
  rule(apiGroup, ['rolloutgroups', 'rolloutpolicies', 'rolloutexceptions', 'rolloutintents'], ['list', 'watch']),
  rule(apiGroup, ['metricsources', 'notificationchannels'], ['get']),
  ...(secrets.length === 0 ? [] : [rule('', ['secrets'], ['get'], secrets)]),
];

/** Returns the rights in each namespace with groups. */
function groupRules({ hasCompat }: InstallOptions): readonly PolicyRule[] {
  return [
    // A new leader patches a pod, so that a delayed delete request of the former leader fails its precondition.
    rule('', ['pods'], ['get', 'list', 'watch', 'delete', 'patch']),
    rule('', ['pods/eviction'], ['create']),
    rule('apps', ['statefulsets'], ['get', 'list', 'watch', 'patch']),
    rule('apps', ['statefulsets/status'], ['update']),
    rule('policy', ['poddisruptionbudgets'], ['list', 'watch']),
    rule(compatGroup, ['zoneawarepoddisruptionbudgets'], ['list', 'watch']),
    // Ledgers, and published results where our kinds are not installed. `list` finds the ConfigMaps of deleted groups (`onPolicyDeleted`).
    rule('', ['configmaps'], ['get', 'list', 'create', 'update']),
    rule('events.k8s.io', ['events'], ['create', 'patch']),
    rule(apiGroup, ['rolloutgroups'], ['get', 'list', 'watch']),
    rule(apiGroup, ['rolloutgroups/status'], ['patch']),
    rule(apiGroup, ['rolloutpolicies', 'rolloutexceptions', 'rolloutintents'], ['list', 'watch']),
    rule(apiGroup, ['rolloutruns'], ['get', 'list', 'create', 'patch', 'delete']),
    // The webhook reads whether the namespace is being deleted, because its objects may then be deleted too.
    rule('', ['namespaces'], ['get']),
    // The webhook decides a scale request for these kinds by the labels of the object.
    ...(hasCompat ? [rule('apps', ['deployments', 'replicasets'], ['get'])] : []),
  ];
}

/** Returns the rights for ControllerRevisions, whose templates pin pods. Their names are not known in advance. */
function revisionRules(isNeeded: boolean): readonly PolicyRule[] {
  return isNeeded ? [rule('apps', ['controllerrevisions'], ['get'])] : [];
}

/** Returns the rights for the kinds that groups mirror. If the groups are unknown, returns those for ReplicaTemplates. */
function mirrorRules(mirrors: readonly MirrorSource[] | undefined): readonly PolicyRule[] {
  if (mirrors === undefined) {
    return [
      rule(compatGroup, ['replicatemplates'], ['get', 'list', 'watch']),
      rule(compatGroup, ['replicatemplates/scale'], ['get']),
      rule(compatGroup, ['replicatemplates/status'], ['patch']),
    ];
  }
  return mirrors.flatMap(({ group, kind, names, readsScale, writesStatus }) => {
    const plural = pluralOf(kind);
    return [
      // With `resourceNames`, RBAC permits `list` and `watch` only for requests that select the object by name.
      rule(group, [plural], ['get', 'list', 'watch'], names),
      ...(readsScale ? [rule(group, [`${plural}/scale`], ['get'], names)] : []),
      ...(writesStatus ? [rule(group, [`${plural}/status`], ['patch'], names)] : []),
    ];
  });
}

/** Returns the lower-case plural that the API most likely uses for a kind. Only the API server knows the actual plural. */
export function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (/(?:s|x|z|ch|sh)$/.test(name)) return `${name}es`;
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`;
}

function webhookRules({ validating, mutating }: Configurations): readonly PolicyRule[] {
  const group = 'admissionregistration.k8s.io';
  const writes = (resource: string, names: readonly string[]) => (names.length === 0 ? [] : [rule(group, [resource], ['patch'], names)]);
  return [
    // The agent finds webhook configurations by their labels, and the configuration that pins pods by its name. It writes only its own.
    rule(group, ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'], ['list', 'watch']),
    ...writes('validatingwebhookconfigurations', validating),
    ...writes('mutatingwebhookconfigurations', mutating),
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
