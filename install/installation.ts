// Lists all objects of an installation in the order of installation and of removal, with notes for the user.
import { releaseCommand } from '../engine/release/left.ts';
import { customResourceDefinition } from '../policies/schema/json-schema.ts';
import { type Kind, kinds } from '../policies/schema/kinds.ts';
import { admissionPoliciesOf, admissionPolicyKinds } from './admission-policy.ts';
import { compatDefinitions, compatWebhooksOf } from './compat.ts';
import { enforceLabel, type InstallObject, type InstallOptions, installLabel, issuedSecret } from './object.ts';
import { pluralOf, rightsOf } from './rights.ts';
import { usesStrategy } from './scope.ts';
import { webhooksOf } from './webhooks.ts';
import { agentNamespaceObject, storesOf, workloadOf } from './workload.ts';

/** Returns the objects in dependency order: kinds, certificate and Lease, rights, the workload, webhook configurations, the enforcement label. */
export function installation(options: InstallOptions): readonly InstallObject[] {
  return [
    ...(options.hasNamespace ? [agentNamespaceObject(options)] : []),
    ...definitionsOf(options),
    ...agentObjects(options),
    ...(options.isEnforced ? options.scope.namespaces.map(enforcedNamespace) : []),
  ];
}

export function agentObjects(options: InstallOptions): readonly InstallObject[] {
  const webhooks = [...webhooksOf(options), ...(options.hasCompat ? compatWebhooksOf(options) : [])];
  const configurations = webhooks.map(({ kind, metadata: { name } }) => ({ kind, name }));
  return [...storesOf(options), ...rightsOf(options, configurations), ...workloadOf(options), ...webhooks, ...admissionPoliciesOf(options)];
}

interface RemovalOptions {
  /** True if the removal also deletes the kinds, and with them every object of these kinds. */
  readonly hasDefinitions: boolean;
  /** True if the objects were read from the cluster. Otherwise they are computed from the options. */
  readonly isFound?: boolean;
}

/** Returns the objects in the order of removal: webhook configurations before the agent that answers them. Namespaces stay. */
export function removal(options: InstallOptions, { hasDefinitions }: RemovalOptions): readonly InstallObject[] {
  const isWebhook = ({ kind }: InstallObject) => kind.endsWith('WebhookConfiguration') || admissionPolicyKinds.some((one) => one === kind);
  const removed = installation(options).filter(
    ({ kind }) => kind !== 'Namespace' && (hasDefinitions || kind !== 'CustomResourceDefinition'),
  );
  const reversed = removed.toReversed();
  return [...reversed.filter(isWebhook), ...reversed.filter((one) => !isWebhook(one))];
}

/** An object that stays after a removal, and the command that deletes it. */
interface Leftover {
  readonly what: string;
  readonly command: string;
}

/** Returns the objects that a removal keeps: the agent or a user created them, or other objects need them. */
export function leftovers(
  { namespace, scope, hasCompat }: InstallOptions,
  { hasDefinitions, isFound = false }: RemovalOptions,
): readonly Leftover[] {
  const scopeFlags = scope.namespaces.length === 0 ? ['--all-namespaces'] : scope.namespaces.map((one) => `-n ${one}`);
  const definitions = definitionsOf({ hasCompat }).map(({ metadata }) => metadata.name);
  return [
    ...(hasDefinitions
      ? []
      : [{ what: 'the kinds, with every object of each kind', command: `kubectl delete crd ${definitions.join(' ')}` }]),
    ...(isFound || scope.namespaces.length > 0
      ? []
      : [
          {
            what: 'Roles and RoleBindings in the namespaces of groups, if the installation used --policies or --groups-in; --apply finds them',
            command: `kubectl delete rolebinding,role -l ${installLabel}=${namespace} --all-namespaces`,
          },
        ]),
    ...(isFound ? [] : possiblePartitionLeftovers({ scope })),
    ...scopeFlags.map((flag) => ({
      what: 'ledgers; a later installation reads the time of the last downscale of each zone from them',
      command: `kubectl delete configmap -l ${ledgerLabel} ${flag}`,
    })),
    {
      what: 'the Secret in which cert-manager stores the certificate, if the installation used --cert-manager-issuer',
      command: `kubectl delete secret ${issuedSecret} -n ${namespace} --ignore-not-found`,
    },
    {
      what: 'the enforcement label of namespaces, which no longer has an effect',
      command: `kubectl label namespace -l ${enforceLabel} ${enforceLabel}-`,
    },
  ];
}

/** Returns leftovers for partitions that may block pods: one for each named member, or one with placeholders if not all names are known. */
function possiblePartitionLeftovers({ scope }: Pick<InstallOptions, 'scope'>): readonly Leftover[] {
  const strategies = [scope.partition, scope.pinned];
  if (!strategies.some(usesStrategy)) return [];
  const members = strategies.flatMap((strategy) => strategy.members);
  const areAllNamed = scope.members !== undefined && members.length > 0;
  const sets: readonly BlockedStatefulSet[] = areAllNamed
    ? members.map(({ namespace, statefulSet }) => ({ namespace, name: statefulSet }))
    : [{ namespace: 'NAMESPACE', name: 'NAME' }];
  return sets.map((set) => ({
    what: areAllNamed
      ? `the partition of StatefulSet ${set.namespace}/${set.name}, if it blocks pods: template changes have no effect until you remove it; removing it replaces the outdated pods`
      : 'partitions of StatefulSets of the strategies partition and pinned: template changes have no effect until you remove them; removing one replaces the outdated pods',
    command: releaseCommand(set),
  }));
}

/** The label of ledgers and of other ConfigMaps that the agent writes. */
const ledgerLabel = 'rollout-group.dev/document';

/** Returns the CRDs. They have no installation label, because all installations in the cluster share them. */
export function definitionsOf({ hasCompat }: Pick<InstallOptions, 'hasCompat'>): readonly InstallObject[] {
  const ours = (Object.keys(kinds) as Kind[]).flatMap((kind) => customResourceDefinition(kind) ?? []);
  return [...ours, ...(hasCompat ? compatDefinitions : [])];
}

function enforcedNamespace(name: string): InstallObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { [enforceLabel]: 'true' } } };
}

export interface BlockedStatefulSet {
  readonly namespace: string;
  readonly name: string;
}

export function partitionWarning(sets: readonly BlockedStatefulSet[]): string {
  const names = sets.map(({ namespace, name }) => `${namespace}/${name}`).join(', ');
  return `warning: a partition blocks ${sets.length === 1 ? 'the StatefulSet' : `${sets.length} StatefulSets`} ${names}. Without the agent, template changes have no effect, \`kubectl rollout status\` reports success, and a deleted pinned pod returns at the old revision. To release the StatefulSets first: finish all rollouts, set \`spec.rollout.onPolicyDeleted: release\` in their groups, and delete the groups while the agent runs.\n`;
}

export function partitionLeftovers(sets: readonly BlockedStatefulSet[]): readonly Leftover[] {
  return sets.map((set) => ({
    what: `the partition of StatefulSet ${set.namespace}/${set.name}; removing it replaces every outdated pod. Patch one StatefulSet after another`,
    command: releaseCommand(set),
  }));
}

const known: ReadonlySet<string> = new Set([
  'ReplicaTemplate',
  'StatefulSet',
  'Deployment',
  'ReplicaSet',
  'HorizontalPodAutoscaler',
  'RolloutGroup',
]);

/** Returns the notes on an installation. `enforced` are the namespaces that are known to have the enforcement label. */
export function installNotes(
  { namespace, scope, hasCompat, isEnforced, isMembersOnly }: InstallOptions,
  enforced: readonly string[] = [],
): readonly string[] {
  const { namespaces, mirrors } = scope;
  const label = `${enforceLabel}=true`;
  const unlabelled = namespaces.length === 0 ? ['NAMESPACE'] : namespaces.filter((one) => !enforced.includes(one));
  const command = `kubectl label namespace ${unlabelled.join(' ')} ${label}`;
  const guessed = [...new Set(mirrors.map(({ kind }) => kind))].filter((kind) => !known.has(kind));
  return [
    ...(namespaces.length === 0
      ? ['no namespace is named, so the agent gets rights in the whole cluster; to limit them, use --policies or --groups-in']
      : []),
    ...(isEnforced || unlabelled.length === 0
      ? []
      : [`namespaces without the label ${label} are not enforced; to set it, run: ${command}`]),
    ...(hasCompat
      ? [
          `the webhooks of --compat do not need the label ${label}: while no agent runs, they deny updates of StatefulSets and evictions in ${(namespaces.length === 0 ? [namespace] : namespaces).join(', ')}`,
        ]
      : []),
    ...guessed.map((kind) => `the plural of ${kind} is assumed to be ${pluralOf(kind)}; to check it, run: kubectl api-resources`),
    ...(isMembersOnly ? ['webhooks receive requests only for the StatefulSets named now; install again after you add a group'] : []),
  ];
}
