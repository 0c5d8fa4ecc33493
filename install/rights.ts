// The account of the agent and what it may do: named resources and verbs, namespace by namespace where the namespaces are known.
import { apiGroup } from '../policies/schema/kinds.ts';
import { defined } from '../policies/values/defined.ts';
import { agentName, certificateSecret, clusterName, type InstallObject, type InstallOptions, installObject } from './object.ts';
import { type MirrorSource, usesStrategy } from './scope.ts';

/** As in `rbac.authorization.k8s.io/v1`. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

const rbac = 'rbac.authorization.k8s.io';
const original = 'rollout-operator.grafana.com';

/** The account first, then roles with their bindings: of the agent's namespace, of each namespace that is looked after, of the cluster. */
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

/** Names of the configurations that the agent writes its certificate authority into. */
interface Configurations {
  readonly validating: readonly string[];
  readonly mutating: readonly string[];
}

/** In the agent's own namespace: who acts, the certificate, policies for other namespaces, metric sources and channels with the Secrets that they name. */
const ownRules = ({ scope: { secrets } }: InstallOptions): readonly PolicyRule[] => [
  // `create` cannot be limited to a name.
  rule('coordination.k8s.io', ['leases'], ['create']),
  rule('coordination.k8s.io', ['leases'], ['get', 'update'], [agentName]),
  rule('', ['secrets'], ['create']),
  rule('', ['secrets'], ['get', 'list', 'watch', 'update'], [certificateSecret]),
  rule('events.k8s.io', ['events'], ['create']),
  rule(apiGroup, ['rolloutgroups', 'rolloutpolicies', 'rolloutexceptions', 'rolloutintents'], ['list', 'watch']),
  rule(apiGroup, ['metricsources', 'notificationchannels'], ['get']),
  ...(secrets.length === 0 ? [] : [rule('', ['secrets'], ['get'], secrets)]),
];

/** In each namespace that is looked after. */
function groupRules({ hasCompat }: InstallOptions): readonly PolicyRule[] {
  return [
    // `patch` touches a pod, so that a delete of a former leader that is still under way comes to nothing.
    rule('', ['pods'], ['get', 'list', 'watch', 'delete', 'patch']),
    rule('', ['pods/eviction'], ['create']),
    rule('apps', ['statefulsets'], ['get', 'list', 'watch', 'patch']),
    rule('apps', ['statefulsets/status'], ['update']),
    rule('policy', ['poddisruptionbudgets'], ['list', 'watch']),
    rule(original, ['zoneawarepoddisruptionbudgets'], ['list', 'watch']),
    // Ledgers, and what is published where our kinds are not installed. `list` finds those of groups that nothing defines any more (`onPolicyDeleted`).
    rule('', ['configmaps'], ['get', 'list', 'create', 'update']),
    rule('events.k8s.io', ['events'], ['create']),
    rule(apiGroup, ['rolloutgroups'], ['get', 'list', 'watch']),
    rule(apiGroup, ['rolloutgroups/status'], ['patch']),
    rule(apiGroup, ['rolloutpolicies', 'rolloutexceptions', 'rolloutintents'], ['list', 'watch']),
    rule(apiGroup, ['rolloutruns'], ['get', 'list', 'create', 'patch', 'delete']),
    // Whether it is being deleted, since what is in it may then go.
    rule('', ['namespaces'], ['get']),
    // The scale of these two is judged by the labels of the object itself.
    ...(hasCompat ? [rule('apps', ['deployments', 'replicasets'], ['get'])] : []),
  ];
}

/** Pods are pinned to the templates of revisions. Their names are not known beforehand. */
function revisionRules(isNeeded: boolean): readonly PolicyRule[] {
  return isNeeded ? [rule('apps', ['controllerrevisions'], ['get'])] : [];
}

/** Returns the rights for the kinds that groups mirror; ReplicaTemplates if they are unknown. */
function mirrorRules(mirrors: readonly MirrorSource[] | undefined): readonly PolicyRule[] {
  if (mirrors === undefined) {
    return [
      rule(original, ['replicatemplates'], ['get', 'list', 'watch']),
      rule(original, ['replicatemplates/scale'], ['get']),
      rule(original, ['replicatemplates/status'], ['patch']),
    ];
  }
  return mirrors.flatMap(({ group, kind, names, readsScale, writesStatus }) => {
    const plural = pluralOf(kind);
    return [
      // List and watch, too: they name the one object, which is what makes them pass.
      rule(group, [plural], ['get', 'list', 'watch'], names),
      ...(readsScale ? [rule(group, [`${plural}/scale`], ['get'], names)] : []),
      ...(writesStatus ? [rule(group, [`${plural}/status`], ['patch'], names)] : []),
    ];
  });
}

/** The lower-case plural that the API most likely serves a kind under; what it really is, only the server knows. */
export function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (/(?:s|x|z|ch|sh)$/.test(name)) return `${name}es`;
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`;
}

function webhookRules({ validating, mutating }: Configurations): readonly PolicyRule[] {
  const group = 'admissionregistration.k8s.io';
  const writes = (resource: string, names: readonly string[]) => (names.length === 0 ? [] : [rule(group, [resource], ['patch'], names)]);
  return [
    // Found by their labels; only those that are ours are written.
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
