// The webhook configurations of our endpoints: the requests that they receive and their failure policies.
import { apiGroup, apiVersion } from '../policies/schema/kinds.ts';
import {
  changesWhatIsGuarded,
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
  saysSomethingNew,
  scalesDown,
  scalesUp,
  takesPodAway,
} from './conditions.ts';
import { agentName, clusterName, enforceLabel, type InstallObject, type InstallOptions, installObject } from './object.ts';
import { endpointPaths } from './paths.ts';
import { usesStrategy } from './scope.ts';

export interface WebhookRule {
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly resources: readonly string[];
  readonly operations: readonly string[];
  readonly scope: 'Namespaced';
}

/** One entry, before it becomes one of `admissionregistration.k8s.io/v1`. */
interface Entry {
  readonly name: string;
  readonly path: string;
  readonly rule: WebhookRule;
  readonly conditions: readonly MatchCondition[];
  /** `Fail` where something protected could be lost; `Ignore` where Kubernetes would stand still, or the agent checks again. */
  readonly failurePolicy: 'Fail' | 'Ignore';
  /** Whether an answer reserves something, which it never does on a dry run. */
  readonly isReserving: boolean;
  /** Whether only namespaces that are opted in are concerned. */
  readonly isOptedIn: boolean;
}

/** The API server waits this long; the handler answers before. */
const timeoutSeconds = 5;

export const admissionVersion = 'admissionregistration.k8s.io/v1';

/** The label, besides the namespace, by which the agent finds the configurations for its certificate authority. */
export function injectionLabels(namespace: string): Readonly<Record<string, string>> {
  return { 'grafana.com/inject-rollout-operator-ca': 'true', 'grafana.com/namespace': namespace };
}

/** The one that pins pods only where there is a group of that engine, or may be one. */
export function webhooksOf(options: InstallOptions): readonly InstallObject[] {
  const name = configurationName(options);
  return [
    configuration(
      ['ValidatingWebhookConfiguration', name],
      options,
      validating(options).map((entry) => webhookOf(entry, options)),
    ),
    configuration(['MutatingWebhookConfiguration', name], options, [
      // A later change of the object is stamped again.
      { ...webhookOf(stampEntry, options), reinvocationPolicy: 'IfNeeded' },
    ]),
    ...(usesStrategy(options.scope.pinned)
      ? [configuration(['MutatingWebhookConfiguration', pinConfigurationName(options)], options, [pinWebhook(options)])]
      : []),
  ];
}

/** The name of both configurations that enforce, check and stamp. */
export function configurationName({ namespace }: Pick<InstallOptions, 'namespace'>): string {
  return clusterName('rollout-group', namespace);
}

/**
 * The name of the configuration by which pods are pinned. API servers ask mutating webhooks in the order of these names, and whoever adds containers
 * is to add them to the pod as it will be: nothing that is named like its product comes before a digit and a hyphen.
 */
export function pinConfigurationName({ namespace }: Pick<InstallOptions, 'namespace'>): string {
  return clusterName('0-rollout-group-pinned', namespace);
}

function configuration(
  [kind, name]: readonly [kind: string, name: string],
  options: InstallOptions,
  webhooks: readonly object[],
): InstallObject {
  const { namespace } = options;
  const object = installObject([admissionVersion, kind], { name }, namespace, { webhooks });
  return { ...object, metadata: { ...object.metadata, labels: { ...object.metadata.labels, ...injectionLabels(namespace) } } };
}

function webhookOf(entry: Entry, { namespace }: InstallOptions): object {
  const { name, path, rule, conditions, failurePolicy, isReserving, isOptedIn } = entry;
  return {
    name: `${name}.${apiGroup}`,
    clientConfig: serviceAt(namespace, path),
    rules: [rule],
    matchConditions: conditions,
    matchPolicy: 'Equivalent',
    failurePolicy,
    sideEffects: isReserving ? 'NoneOnDryRun' : 'None',
    timeoutSeconds,
    admissionReviewVersions: ['v1'],
    // No objectSelector: requests for /scale and /eviction carry no labels of what they are about, and would all pass.
    ...(isOptedIn ? { namespaceSelector: { matchLabels: { [enforceLabel]: 'true' } } } : {}),
  };
}

/** The `clientConfig`; the certificate authority is the agent's to write. */
export function serviceAt(namespace: string, path: string): object {
  return { service: { name: agentName, namespace, path, port: 443 } };
}

function validating(options: InstallOptions): readonly Entry[] {
  const own = isNotTheAgent(options);
  const sets = (operation: string, ...resources: readonly string[]) => ruleOf('apps', 'v1', operation, ...resources);
  return [
    enforced('statefulset-update', 'Fail', sets('UPDATE', 'statefulsets', 'statefulsets/status'), [
      own,
      ...isMember(options, 'request.name'),
      changesWhatIsGuarded,
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
    // A denied final removal by the kubelet would leave a pod terminating, so this row fails open.
    enforced('pod-delete', 'Ignore', ruleOf('', 'v1', 'DELETE', 'pods'), [
      own,
      isNoNode,
      isNoController,
      isNotTerminating,
      isOfStatefulSet,
      ...isPodOfMember(options, 'oldObject.metadata.name'),
    ]),
    // Replaces a deletion that would be denied, and fails open like it. The status carries labels too.
    enforced('pod-update', 'Ignore', ruleOf('', 'v1', 'UPDATE', 'pods', 'pods/status'), [
      own,
      isNoNode,
      isNoController,
      isNotTerminating,
      isOfStatefulSet,
      ...isPodOfMember(options, 'request.name'),
      takesPodAway,
    ]),
    // More replicas put nothing at risk, and may be what an incident needs.
    enforced('statefulset-growth', 'Ignore', sets('UPDATE', 'statefulsets'), [own, ...isMember(options, 'request.name'), onlyGrows]),
    enforced('statefulset-scale-up', 'Ignore', sets('UPDATE', 'statefulsets/scale'), [own, ...isMember(options, 'request.name'), scalesUp]),
    // The agent leaves out what has errors, so that nothing rests on this answer.
    validated('policies', 'Ignore', 'rolloutgroups', 'rolloutpolicies', 'metricsources', 'notificationchannels'),
    // Who asked must be true, or it counts for nothing.
    validated('requests', 'Fail', 'rolloutexceptions', 'rolloutintents'),
  ];
}

/** In every namespace, enforced or not: it refuses nothing, and without it pods of such a group come back at the old version. */
function pinWebhook(options: InstallOptions): object {
  const entry: Entry = {
    name: 'pinned',
    path: endpointPaths.pinPod,
    rule: ruleOf('', 'v1', 'CREATE', 'pods'),
    conditions: [isMadeForStatefulSet, ...isMadeForMember(options)],
    // Pod creation does not wait: without an answer the pod keeps its former revision.
    failurePolicy: 'Ignore',
    isReserving: false,
    isOptedIn: false,
  };
  return {
    ...webhookOf(entry, options),
    // A later change of the pod changes a pinned pod; the webhook checks it again.
    reinvocationPolicy: 'IfNeeded',
    // Both are on every pod that the StatefulSet controller makes, and together on no other.
    objectSelector: {
      matchExpressions: ['statefulset.kubernetes.io/pod-name', 'controller-revision-hash'].map((key) => ({ key, operator: 'Exists' })),
    },
  };
}

const stampEntry: Entry = {
  name: 'stamp',
  path: endpointPaths.stamp,
  rule: { ...ourRule('rolloutexceptions', 'rolloutintents') },
  conditions: [saysSomethingNew],
  failurePolicy: 'Fail',
  isReserving: false,
  isOptedIn: false,
};

function enforced(name: string, failurePolicy: Entry['failurePolicy'], rule: WebhookRule, conditions: readonly MatchCondition[]): Entry {
  return { name: `${name}.enforce`, path: endpointPaths.enforce, rule, conditions, failurePolicy, isReserving: true, isOptedIn: true };
}

function validated(name: string, failurePolicy: Entry['failurePolicy'], ...resources: readonly string[]): Entry {
  return {
    name: `${name}.validate`,
    path: endpointPaths.validate,
    rule: ourRule(...resources),
    conditions: [saysSomethingNew],
    failurePolicy,
    isReserving: false,
    isOptedIn: false,
  };
}

function ruleOf(group: string, version: string, operation: string, ...resources: readonly string[]): WebhookRule {
  return { apiGroups: [group], apiVersions: [version], resources, operations: [operation], scope: 'Namespaced' };
}

function ourRule(...resources: readonly string[]): WebhookRule {
  const version = apiVersion.slice(apiGroup.length + 1);
  return { apiGroups: [apiGroup], apiVersions: [version], resources, operations: ['CREATE', 'UPDATE'], scope: 'Namespaced' };
}
