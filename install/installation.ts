// All objects of an installation, in the order of installation and of removal.
import { customResourceDefinition } from '../policies/schema/crd.ts';
import { apiGroup, type Kind, kinds } from '../policies/schema/kinds.ts';
import { admissionPoliciesOf } from './admission-policy.ts';
import { admissionPolicyKinds } from './admission-policy-objects.ts';
import { compatDefinitions, compatWebhooksOf } from './compat.ts';
import { type HeldSet, releaseCommand } from './held-partitions.ts';
import { agentName, certificateSecret, enforceLabel, type InstallObject, type InstallOptions, installLabel } from './object.ts';
import { rightsOf } from './rights.ts';
import { usesStrategy } from './scope.ts';
import { webhooksOf } from './webhooks.ts';
import { agentNamespaceObject, workloadOf } from './workload.ts';

/**
 * The objects, deterministic, in the order in which each finds what it needs: kinds and rights before what runs, and webhook configurations
 * when there is something to send to. What opts namespaces in comes last.
 */
export function installation(options: InstallOptions): readonly InstallObject[] {
  const webhooks = [...webhooksOf(options), ...(options.hasCompat ? compatWebhooksOf(options) : [])];
  const named = (kind: string) => webhooks.filter((one) => one.kind === kind).map(({ metadata }) => metadata.name);
  return [
    ...(options.hasNamespace ? [agentNamespaceObject(options)] : []),
    ...definitionsOf(options),
    ...rightsOf(options, { validating: named('ValidatingWebhookConfiguration'), mutating: named('MutatingWebhookConfiguration') }),
    ...workloadOf(options),
    ...webhooks,
    ...admissionPoliciesOf(options),
    ...(options.isEnforced ? options.scope.namespaces.map(enforcedNamespace) : []),
  ];
}

interface RemovalOptions {
  /** With the kinds, and so with every object of them. */
  readonly hasDefinitions: boolean;
  /** Whether what is deleted was found in the cluster, and not only worked out from the options. */
  readonly isFound?: boolean;
}

/**
 * The same objects in the order in which they go: webhook configurations before whoever answers them, or what they guard could not be written
 * in between. Namespaces stay: data lives there.
 */
export function removal(options: InstallOptions, { hasDefinitions }: RemovalOptions): readonly InstallObject[] {
  const isWebhook = ({ kind }: InstallObject) => kind.endsWith('WebhookConfiguration') || admissionPolicyKinds.some((one) => one === kind);
  const goes = installation(options).filter(({ kind }) => kind !== 'Namespace' && (hasDefinitions || kind !== 'CustomResourceDefinition'));
  const reversed = goes.toReversed();
  return [...reversed.filter(isWebhook), ...reversed.filter((one) => !isWebhook(one))];
}

/** Something that stays after a removal, and the command that takes it away. */
interface Leftover {
  readonly what: string;
  readonly command: string;
}

/** What nothing here deletes: it was made by the agent or by people, or other things rest on it. */
export function leftovers(
  { namespace, scope, hasCompat }: InstallOptions,
  { hasDefinitions, isFound = false }: RemovalOptions,
): readonly Leftover[] {
  const where = scope.namespaces.length === 0 ? '--all-namespaces' : undefined;
  const inEach = (command: (flag: string) => string) =>
    where === undefined ? scope.namespaces.map((one) => command(`-n ${one}`)) : [command(where)];
  const definitions = definitionsOf({ hasCompat }).map(({ metadata }) => metadata.name);
  return [
    ...(hasDefinitions ? [] : [{ what: 'the kinds, with every object of them', command: `kubectl delete crd ${definitions.join(' ')}` }]),
    ...(isFound || scope.namespaces.length > 0
      ? []
      : [
          {
            what: 'Roles and RoleBindings in the namespaces of groups, when --policies or --groups-in named some at installation; --apply finds them',
            command: `kubectl delete rolebinding,role -l ${installLabel}=${namespace} --all-namespaces`,
          },
        ]),
    ...(isFound ? [] : heldSets({ scope })),
    { what: 'the certificate', command: `kubectl delete secret ${certificateSecret} -n ${namespace} --ignore-not-found` },
    { what: 'the Lease', command: `kubectl delete lease ${agentName} -n ${namespace} --ignore-not-found` },
    ...inEach((flag) => `kubectl delete configmap -l ${ledgerLabel} ${flag}`).map((command) => ({
      what: 'ledgers, which a later installation needs to know how long ago a zone shrank',
      command,
    })),
    {
      what: 'the label that opts namespaces in, which does nothing any more',
      command: `kubectl label namespace -l ${enforceLabel} ${enforceLabel}-`,
    },
  ];
}

/** Which of them a partition holds back only the cluster knows. */
function heldSets({ scope }: Pick<InstallOptions, 'scope'>): readonly Leftover[] {
  const engines = [scope.partition, scope.pinned];
  if (!engines.some(usesStrategy)) return [];
  const members = engines.flatMap((strategy) => strategy.members);
  const isEveryOneNamed = scope.members !== undefined && members.length > 0;
  const sets: readonly HeldSet[] = isEveryOneNamed
    ? members.map(({ namespace, statefulSet }) => ({ namespace, name: statefulSet }))
    : [{ namespace: 'NAMESPACE', name: 'NAME' }];
  return sets.map((set) => ({
    what: isEveryOneNamed
      ? `the partition of StatefulSet ${set.namespace}/${set.name}, if it holds pods back: changes are ignored for as long; taking it away rolls the pods`
      : 'partitions of StatefulSets of the strategies partition and pinned, where changes are ignored for as long; taking one away rolls the pods',
    command: releaseCommand(set),
  }));
}

/** Of every ConfigMap that the agent keeps. */
const ledgerLabel = 'rollout-group.dev/document';

/** Other installations in the cluster share them, so that they belong to none. */
function definitionsOf({ hasCompat }: Pick<InstallOptions, 'hasCompat'>): readonly InstallObject[] {
  const ours = kindNames().flatMap((kind): readonly InstallObject[] => {
    const { plural } = kinds[kind];
    const definition = customResourceDefinition(kind);
    if (plural === undefined || definition === undefined) return [];
    const metadata = { name: `${plural}.${apiGroup}`, labels: { 'app.kubernetes.io/part-of': 'rollout-group' } };
    return [{ ...definition, apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata }];
  });
  return [...ours, ...(hasCompat ? compatDefinitions : [])];
}

function kindNames(): readonly Kind[] {
  return Object.keys(kinds).filter((kind): kind is Kind => Object.hasOwn(kinds, kind));
}

function enforcedNamespace(name: string): InstallObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { [enforceLabel]: 'true' } } };
}
