// Defines the ValidatingAdmissionPolicies of an installation. A mark on each object shows whether a user changed it.
import { holdingPartition } from '../policies/strategies.ts';
import { canonicalJson, isSameValue } from '../policies/values/canonical-json.ts';
import { sha256 } from '../policies/values/hash.ts';
import { isRecord } from '../policies/values/is-record.ts';
import { changesSpec, isNotTheAgent, type MatchCondition, nameIn } from './conditions.ts';
import { clusterName, enforceLabel, type InstallObject, type InstallOptions, installObject } from './object.ts';
import { usesStrategy } from './scope.ts';
import { admissionVersion, ourRule, ruleOf, type WebhookRule } from './webhooks.ts';

/** Returns the policies with their bindings; empty if the options exclude them. */
export function admissionPoliciesOf(options: InstallOptions): readonly InstallObject[] {
  return options.hasAdmissionPolicies ? [...stampPolicyOf(options), ...strategyPolicyOf(options)] : [];
}

/** The kinds of a policy and its binding. Kubernetes 1.30 and later has them. */
export const admissionPolicyKinds = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'] as const;

interface BoundPolicy {
  /** The name without the namespace of the installation. */
  readonly base: string;
  readonly rule: WebhookRule;
  readonly conditions: readonly MatchCondition[];
  readonly variables: readonly { readonly name: string; readonly expression: string }[];
  readonly validations: readonly object[];
  /** The namespaces in which the policy applies; all if absent. */
  readonly namespaceSelector?: object;
}

/** Returns a policy and its binding with the action Deny. Their name is unique for each installation. */
function boundPolicy({ namespace }: Pick<InstallOptions, 'namespace'>, bound: BoundPolicy): readonly InstallObject[] {
  const { base, rule, conditions, variables, validations, namespaceSelector } = bound;
  const matchConstraints = { resourceRules: [rule], matchPolicy: 'Equivalent' };
  const spec = { failurePolicy: 'Fail', matchConstraints, matchConditions: conditions, variables, validations };
  const name = clusterName(base, namespace);
  const [policy, binding] = admissionPolicyKinds;
  const matchResources = namespaceSelector === undefined ? {} : { matchResources: { namespaceSelector } };
  return [
    withMark(installObject([admissionVersion, policy], { name }, namespace, { spec })),
    withMark(
      installObject([admissionVersion, binding], { name }, namespace, {
        spec: { policyName: name, validationActions: ['Deny'], ...matchResources },
      }),
    ),
  ];
}

/** The field of the spec that names the requester, called the stamp. */
const stamp = 'requestedBy';

/** CEL that is true if the object is new, or if a field other than the stamp changes. The user who sends such a write is the requester. */
const isAsked = [
  "request.operation == 'CREATE'",
  `!variables.spec.all(key, key == '${stamp}' || (key in variables.oldSpec && variables.oldSpec[key] == variables.spec[key]))`,
  `!variables.oldSpec.all(key, key == '${stamp}' || key in variables.spec)`,
].join(' || ');

/** CEL that is true if the user is in all groups of the stamp. The stamp may have fewer groups, because the webhook limits their number. */
const areOwnGroups =
  '!has(variables.stamp.groups) || variables.stamp.groups == variables.groups || variables.stamp.groups.all(group, group in variables.groups)';

const stampAdvice = `leave spec.${stamp} out or set it to null: the webhook /admission/stamp fills it in, and without the webhook the requester is unverified`;

/**
 * Returns the policy that verifies requesters, and its binding, for every namespace. API servers evaluate it after the mutating webhooks,
 * so it checks the stamp. Without the webhook, the requester must be absent or the user of the request. No user is exempt.
 */
export function stampPolicyOf(options: InstallOptions): readonly InstallObject[] {
  return boundPolicy(options, {
    base: 'rollout-group-requested-by',
    rule: ourRule('rolloutexceptions', 'rolloutintents'),
    conditions: [changesSpec],
    variables: [
      { name: 'spec', expression: 'dyn(object.spec)' },
      { name: 'oldSpec', expression: "request.operation == 'CREATE' ? dyn({}) : dyn(oldObject.spec)" },
      { name: 'stamp', expression: stampIn('variables.spec') },
      { name: 'oldStamp', expression: stampIn('variables.oldSpec') },
      { name: 'groups', expression: 'has(request.userInfo.groups) ? dyn(request.userInfo.groups) : dyn([])' },
      { name: 'isAsked', expression: isAsked },
    ],
    validations: [
      // The policy does not check the time of the stamp. CEL could compare the time only with the creation timestamp. Such a check would
      // not cover updates, and would deny every intent, even an emergency pause, while the clock of the webhook is ahead. The agent
      // does not count approvals dated in the future.
      {
        expression: `!variables.isAsked || variables.stamp == null || (variables.stamp.user == request.userInfo.username && (${areOwnGroups}))`,
        messageExpression: `'spec.${stamp} must name the requester ' + request.userInfo.username + ' and only groups of this user; ${stampAdvice}'`,
        reason: 'Forbidden',
      },
      // Allow the removal of the field, for a manifest that is applied again after the webhook was removed. The request then has no
      // verified requester. The same user could also change the rest of the spec and leave the field out.
      {
        expression: 'variables.isAsked || variables.stamp == null || variables.stamp == variables.oldStamp',
        message: `spec.${stamp} must stay unchanged or be removed if the rest of the spec is unchanged`,
        reason: 'Forbidden',
      },
    ],
  });
}

function stampIn(spec: string): string {
  return `'${stamp}' in ${spec} ? ${spec}.${stamp} : null`;
}

/** Returns the partition of a StatefulSet in CEL; absent means 0, as for the StatefulSet controller. */
function partitionOf(of: 'object' | 'oldObject'): string {
  const path = `${of}.spec.updateStrategy`;
  return `(has(${path}) && has(${path}.rollingUpdate) && has(${path}.rollingUpdate.partition) ? ${path}.rollingUpdate.partition : 0)`;
}

function strategyOf(of: 'object' | 'oldObject'): string {
  const path = `${of}.spec.updateStrategy`;
  return `(has(${path}) && has(${path}.type) ? ${path}.type : 'RollingUpdate')`;
}

function statusOf(field: string, otherwise: string): string {
  return `(has(oldObject.status) && has(oldObject.status.${field}) ? oldObject.status.${field} : ${otherwise})`;
}

/** CEL that is true if a pod that restarts may get another version: the template changes, or the status is stale or shows outdated pods. */
const isMoving = [
  'object.spec.template != oldObject.spec.template',
  `${statusOf('observedGeneration', '0')} != oldObject.metadata.generation`,
  `${statusOf('currentRevision', "''")} != ${statusOf('updateRevision', "''")}`,
  // Pods may have neither the current nor the update revision, for example if the template was reverted during a rollout.
  `${statusOf('updatedReplicas', '0')} != ${statusOf('replicas', '0')}`,
].join(' || ');

const strategyAdvice = `finish or undo the rollout first; if no group contains the StatefulSet, define the group again; in an emergency, disable enforcement: kubectl label namespace ' + request.namespace + ' ${enforceLabel}-`;

/**
 * Returns the policy that guards update strategies, and its binding, if groups of `pinned` or `partition` may exist. In namespaces with
 * the enforcement label, the policy matches StatefulSets by the partition that blocks all pods, and members of `partition` groups by name.
 */
export function strategyPolicyOf(options: InstallOptions): readonly InstallObject[] {
  const { scope } = options;
  if (!(usesStrategy(scope.pinned) || usesStrategy(scope.partition))) return [];
  return boundPolicy(options, {
    base: 'rollout-group-update-strategy',
    rule: ruleOf('apps', 'v1', 'UPDATE', 'statefulsets'),
    conditions: [isNotTheAgent(options), isGuardedStatefulSet(options)],
    variables: [
      { name: 'before', expression: partitionOf('oldObject') },
      { name: 'after', expression: partitionOf('object') },
      { name: 'strategyBefore', expression: strategyOf('oldObject') },
      { name: 'strategyAfter', expression: strategyOf('object') },
      { name: 'isMoving', expression: isMoving },
    ],
    validations: [
      {
        expression: `!variables.isMoving || variables.strategyBefore == variables.strategyAfter || (variables.strategyBefore == 'OnDelete' && variables.after >= ${holdingPartition})`,
        messageExpression: `'the update strategy ' + variables.strategyAfter + ' is denied in the middle of a rollout or with a template change: pods of ' + object.metadata.name + ' could change their version at a restart; ${strategyAdvice}'`,
        reason: 'Forbidden',
      },
      {
        expression: `!variables.isMoving || variables.strategyAfter != 'RollingUpdate' || variables.after >= variables.before || variables.after >= ${holdingPartition}`,
        messageExpression: `'the partition ' + string(variables.after) + ' is denied in the middle of a rollout or with a template change: the StatefulSet controller would replace pods of ' + object.metadata.name + ' without waves, gates and budgets; remove the partition from the manifest, or ${strategyAdvice}'`,
        reason: 'Forbidden',
      },
    ],
    namespaceSelector: enforcedNamespaces(options),
  });
}

/** Matches a StatefulSet by its partition or by its name. */
export function isGuardedStatefulSet({ scope }: Pick<InstallOptions, 'scope'>): MatchCondition {
  const held = `${partitionOf('oldObject')} >= ${holdingPartition}`;
  const named = scope.partition.members;
  return { name: 'is-held', expression: named.length === 0 ? held : `${held} || ${nameIn('request.name', named)}` };
}

/** Returns the selector for the namespaces of this installation. Elsewhere the policy would deny the agent of another installation. */
function enforcedNamespaces({ scope: { namespaces } }: InstallOptions): object {
  const matchLabels = { [enforceLabel]: 'true' };
  if (namespaces.length === 0) return { matchLabels };
  return { matchLabels, matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: namespaces }] };
}

/** The fields of an object as read from the cluster. Any field may be missing or have another type. */
export type Fields = Readonly<Record<string, unknown>>;

/** The annotation with the mark. It is not a signature: a user who may change the policy may also change the annotation. */
export const markAnnotation = 'rollout-group.dev/installed-spec';

/** The defaults of `matchConstraints` and `matchResources` in the API server. */
const matchesAll: Fields = { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} };

/** The defaults of all fields. The mark omits fields with their defaults, so marks of older versions stay valid. */
const usualFields: Fields = {
  failurePolicy: 'Fail',
  paramKind: null,
  variables: [],
  validations: [],
  matchConditions: [],
  matchConstraints: matchesAll,
  policyName: null,
  paramRef: null,
  validationActions: [],
  matchResources: matchesAll,
};

function withMark(object: InstallObject): InstallObject {
  const { metadata, spec, ...rest } = object;
  const annotations = { ...metadata.annotations, [markAnnotation]: markOf(fieldsOf(spec)) };
  return { ...rest, apiVersion: object.apiVersion, kind: object.kind, metadata: { ...metadata, annotations }, spec };
}

/** Returns the mark of a spec. The defaults that the API server adds do not change the mark. */
export function markOf(spec: Fields): string {
  return sha256(canonicalJson(markedFields(spec))).slice(0, 32);
}

export function markedFields(spec: Fields): Fields {
  const custom = Object.entries(usualFields).flatMap(([field, usual]) => {
    const value = fieldOf(spec, field);
    return isSameValue(value, usual) ? [] : [[field, value] as const];
  });
  return Object.fromEntries(custom);
}

/** Returns a field of a spec with the default of the API server. */
export function fieldOf(spec: Fields, field: string): unknown {
  const usual = usualFields[field];
  return usual === matchesAll ? { ...matchesAll, ...fieldsOf(spec[field]) } : (spec[field] ?? usual);
}

export function fieldsOf(value: unknown): Fields {
  return isRecord(value) ? value : {};
}
