// Defines the webhook configurations of our endpoints: the requests that they receive and their failure policies.
import { agentName } from '../policies/objects/agent-deployment.ts';
import { apiGroup, apiVersion } from '../policies/schema/kinds.ts';
import {
  changesGuardedFields,
  changesSpec,
  createsNoStop,
  createsStop,
  hasOrdinal,
  isMadeForMember,
  isMadeForStatefulSet,
  isMember,
  isNoController,
  isNoNamespaceDeletion,
  isNoNode,
  isNoPodOfTheAgent,
  isNotTerminating,
  isNotTheAgent,
  isOfStatefulSet,
  isPodOfMember,
  type MatchCondition,
  onlyGrows,
  removesPod,
  scalesDown,
  scalesUp,
} from './conditions.ts';
import { clusterName, endpointPaths, enforceLabel, type InstallObject, type InstallOptions, injector, installObject } from './object.ts';
import { usesStrategy } from './scope.ts';

export interface WebhookRule {
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly resources: readonly string[];
  readonly operations: readonly string[];
  readonly scope: 'Namespaced';
}

interface Entry {
  readonly name: string;
  readonly path: string;
  readonly rule: WebhookRule;
  readonly conditions: readonly MatchCondition[];
  /** `Fail` if an unchecked request could do harm; `Ignore` if its denial would block Kubernetes or protect nothing. */
  readonly failurePolicy: 'Fail' | 'Ignore';
}

/** The timeout of the API server for each request. The endpoint answers earlier. */
const timeoutSeconds = 5;

export const admissionVersion = 'admissionregistration.k8s.io/v1';

/** Returns the webhook configurations. The one that pins pods is included only if a group of the strategy `pinned` exists or may exist. */
export function webhooksOf(options: InstallOptions): readonly InstallObject[] {
  const name = configurationName(options);
  const enforcing = validating(options).map((entry) => webhookOf(entry, options));
  return [
    configuration(['ValidatingWebhookConfiguration', name], options, enforcing),
    configuration(
      ['MutatingWebhookConfiguration', name],
      options,
      // API servers call the webhook again if another webhook changes the object.
      requestEntries(endpointPaths.stamp, 'stamp', 'stops.stamp').map((entry) => ({
        ...webhookOf(entry, options),
        reinvocationPolicy: 'IfNeeded',
      })),
    ),
    ...(usesStrategy(options.scope.pinned)
      ? [configuration(['MutatingWebhookConfiguration', pinConfigurationName(options)], options, [pinWebhook(options)])]
      : []),
  ];
}

/** Returns the name of the validating configuration, and of the mutating configuration with the webhook `stamp`. */
export function configurationName({ namespace }: Pick<InstallOptions, 'namespace'>): string {
  return clusterName('rollout-group', namespace);
}

/** Returns the name of the configuration that pins pods. The name sorts first, so that webhooks that add containers get the pinned pod. */
export function pinConfigurationName({ namespace }: Pick<InstallOptions, 'namespace'>): string {
  return clusterName('0-rollout-group-pinned', namespace);
}

/** Returns a webhook configuration with the labels by which the agent finds it to add its CA certificate. */
export function configuration(
  [kind, name]: readonly [kind: string, name: string],
  options: InstallOptions,
  webhooks: readonly object[],
): InstallObject {
  const { namespace, certificate } = options;
  const object = installObject([admissionVersion, kind], { name }, namespace, { webhooks });
  const labels = { 'grafana.com/inject-rollout-operator-ca': 'true', 'grafana.com/namespace': namespace };
  const injected = certificate?.kind === 'cert-manager' ? { annotations: { [injector]: `${namespace}/${agentName}` } } : {};
  return { ...object, metadata: { ...object.metadata, labels: { ...object.metadata.labels, ...labels }, ...injected } };
}

function webhookOf(entry: Entry, options: InstallOptions): object {
  const { name, path, rule, conditions, failurePolicy } = entry;
  // Enforcement applies to namespaces with the label. Except in a dry run, an answer may write a claim to the ledger.
  const isEnforcing = path === endpointPaths.enforce;
  return {
    name: `${name}.${apiGroup}`,
    clientConfig: serviceAt(options, path),
    rules: [rule],
    matchConditions: conditions,
    matchPolicy: 'Equivalent',
    failurePolicy,
    sideEffects: isEnforcing ? 'NoneOnDryRun' : 'None',
    timeoutSeconds,
    admissionReviewVersions: ['v1'],
    // No objectSelector: requests for /scale and /eviction do not contain the labels of the object, so they would all bypass the webhook.
    ...(isEnforcing ? { namespaceSelector: { matchLabels: { [enforceLabel]: 'true' } } } : {}),
  };
}

/** Returns the `clientConfig`. Without a certificate of the user it has no `caBundle`, which the agent or cert-manager adds. */
export function serviceAt({ namespace, certificate }: InstallOptions, path: string): object {
  const service = { service: { name: agentName, namespace, path, port: 443 } };
  return certificate?.kind === 'secret' ? { ...service, caBundle: certificate.caBundle } : service;
}

function validating(options: InstallOptions): readonly Entry[] {
  const own = isNotTheAgent(options);
  const sets = (operation: string, ...resources: readonly string[]) => ruleOf('apps', 'v1', operation, ...resources);
  return [
    enforced('statefulset-update', 'Fail', sets('UPDATE', 'statefulsets', 'statefulsets/status'), [
      own,
      ...isMember(options, 'request.name'),
      changesGuardedFields,
    ]),
    enforced('statefulset-delete', 'Fail', sets('DELETE', 'statefulsets'), [
      isNoNamespaceDeletion,
      ...isMember(options, 'oldObject.metadata.name'),
      isNotTerminating,
    ]),
    enforced('statefulset-scale', 'Fail', sets('UPDATE', 'statefulsets/scale'), [own, ...isMember(options, 'request.name'), scalesDown]),
    enforced('pod-eviction', 'Fail', ruleOf('', 'v1', 'CREATE', 'pods/eviction'), [
      own,
      isNoPodOfTheAgent(options),
      hasOrdinal,
      ...isPodOfMember(options, 'request.name'),
    ]),
    // The conditions already exclude the final removal by the kubelet. `Ignore` makes sure that an outage leaves no pod terminating.
    enforced('pod-delete', 'Ignore', ruleOf('', 'v1', 'DELETE', 'pods'), [
      own,
      isNoNode,
      isNoController,
      isNotTerminating,
      isOfStatefulSet,
      ...isPodOfMember(options, 'oldObject.metadata.name'),
    ]),
    // An update can end a pod like a deletion, so this entry has `Ignore` too. The status subresource can change labels.
    enforced('pod-update', 'Ignore', ruleOf('', 'v1', 'UPDATE', 'pods', 'pods/status'), [
      own,
      isNoNode,
      isNoController,
      isNotTerminating,
      isOfStatefulSet,
      ...isPodOfMember(options, 'request.name'),
      removesPod,
    ]),
    // A scale-up is no risk and may be urgent in an incident, so it passes if no webhook answers.
    enforced('statefulset-growth', 'Ignore', sets('UPDATE', 'statefulsets'), [own, ...isMember(options, 'request.name'), onlyGrows]),
    enforced('statefulset-scale-up', 'Ignore', sets('UPDATE', 'statefulsets/scale'), [own, ...isMember(options, 'request.name'), scalesUp]),
    // The agent blocks the groups of an invalid policy, so this entry may have `Ignore`.
    {
      name: 'policies.validate',
      path: endpointPaths.validate,
      rule: ourRule('rolloutgroups', 'rolloutpolicies', 'metricsources', 'notificationchannels'),
      conditions: [changesSpec],
      failurePolicy: 'Ignore',
    },
    ...requestEntries(endpointPaths.validate, 'requests.validate', 'stops.validate'),
  ];
}

/** Returns the webhook that pins pods in every namespace. It denies nothing. Without it, pods are created at the current revision. */
function pinWebhook(options: InstallOptions): object {
  const entry: Entry = {
    name: 'pinned',
    path: endpointPaths.pinPod,
    rule: ruleOf('', 'v1', 'CREATE', 'pods'),
    conditions: [isMadeForStatefulSet, ...isMadeForMember(options)],
    // A failed webhook must not block the creation of pods. The pod then keeps the revision that the StatefulSet controller chose.
    failurePolicy: 'Ignore',
  };
  return {
    ...webhookOf(entry, options),
    // Another webhook may change the pinned pod, so this one checks it again.
    reinvocationPolicy: 'IfNeeded',
    // Only pods of the StatefulSet controller have both labels.
    objectSelector: {
      matchExpressions: ['statefulset.kubernetes.io/pod-name', 'controller-revision-hash'].map((key) => ({ key, operator: 'Exists' })),
    },
  };
}

/** Returns two entries for writes of requests and exceptions: one for new requests that only stop a group, and one for all other writes. */
function requestEntries(path: string, others: string, stops: string): readonly Entry[] {
  return [
    // The agent trusts the requester of these objects, so this entry has `Fail`.
    {
      name: others,
      path,
      rule: ourRule('rolloutexceptions', 'rolloutintents'),
      conditions: [changesSpec, createsNoStop],
      failurePolicy: 'Fail',
    },
    // A stop needs no verified requester, and users must be able to stop a rollout while no webhook answers.
    {
      name: stops,
      path,
      rule: { ...ourRule('rolloutintents'), operations: ['CREATE'] },
      conditions: [createsStop],
      failurePolicy: 'Ignore',
    },
  ];
}

function enforced(name: string, failurePolicy: Entry['failurePolicy'], rule: WebhookRule, conditions: readonly MatchCondition[]): Entry {
  return { name: `${name}.enforce`, path: endpointPaths.enforce, rule, conditions, failurePolicy };
}

export function ruleOf(group: string, version: string, operation: string, ...resources: readonly string[]): WebhookRule {
  return { apiGroups: [group], apiVersions: [version], resources, operations: [operation], scope: 'Namespaced' };
}

export function ourRule(...resources: readonly string[]): WebhookRule {
  const version = apiVersion.slice(apiGroup.length + 1);
  return { apiGroups: [apiGroup], apiVersions: [version], resources, operations: ['CREATE', 'UPDATE'], scope: 'Namespaced' };
}
