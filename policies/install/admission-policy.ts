// What guards update strategies while nobody of ours answers: a ValidatingAdmissionPolicy, which the API server evaluates by itself.
import { holdingPartition } from '../engines.ts';
import { isNotTheAgent, type MatchCondition, nameIn } from './conditions.ts';
import { clusterName, enforceLabel, type InstallObject, type InstallOptions, installObject } from './object.ts';
import { hasEngine } from './scope.ts';
import { admissionVersion } from './webhooks.ts';

/** Served from Kubernetes 1.30 on. The binding comes after what it binds. */
export const admissionPolicyKinds: readonly string[] = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'];

/** The partition of a StatefulSet; absent stands for 0, as the StatefulSet controller takes it. */
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

/**
 * Pods of it come back at another version as soon as it can be: its template changes in this request, its StatefulSet controller has not seen the last
 * change, or not all of its pods are at the update revision.
 */
const isMoving = [
  'object.spec.template != oldObject.spec.template',
  `${statusOf('observedGeneration', '0')} != oldObject.metadata.generation`,
  `${statusOf('currentRevision', "''")} != ${statusOf('updateRevision', "''")}`,
  // Pods may be elsewhere than both, as after a whole zone was brought back from a revision that is still asked for.
  `${statusOf('updatedReplicas', '0')} != ${statusOf('replicas', '0')}`,
].join(' || ');

const advice = `end the rollout first, or undo it; to pass this guard in an emergency: kubectl label namespace ' + request.namespace + ' ${enforceLabel}-`;

/**
 * The policy and its binding, where there is a group of the engines `promote` and `partition`, or may be one. It is about every StatefulSet that
 * is held by the partition of the agent, so that a new group needs no new installation; and by name about those of groups of the engine `partition`, whose
 * partition says nothing of the kind in the middle of a rollout. As with everything that refuses, only namespaces that are opted in are concerned.
 */
export function admissionPoliciesOf(options: InstallOptions): readonly InstallObject[] {
  const { namespace, scope, hasAdmissionPolicies } = options;
  if (!hasAdmissionPolicies || !(hasEngine(scope.promote) || hasEngine(scope.partition))) return [];
  const name = clusterName('rollout-group-update-strategy', namespace);
  const [policy, binding] = admissionPolicyKinds as readonly [string, string];
  return [
    installObject([admissionVersion, policy], { name }, namespace, {
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            { apiGroups: ['apps'], apiVersions: ['v1'], resources: ['statefulsets'], operations: ['UPDATE'], scope: 'Namespaced' },
          ],
          matchPolicy: 'Equivalent',
        },
        matchConditions: [isNotTheAgent(options), isHeld(options)],
        variables: [
          { name: 'before', expression: partitionOf('oldObject') },
          { name: 'after', expression: partitionOf('object') },
          { name: 'strategyBefore', expression: strategyOf('oldObject') },
          { name: 'strategyAfter', expression: strategyOf('object') },
          { name: 'isMoving', expression: isMoving },
        ],
        validations: [
          {
            expression: '!variables.isMoving || variables.strategyBefore == variables.strategyAfter',
            messageExpression: `'the update strategy ' + variables.strategyAfter + ' in the middle of a rollout, or with a template, lets pods of ' + object.metadata.name + ' change their version by a restart; ${advice}'`,
            reason: 'Forbidden',
          },
          {
            expression: `!variables.isMoving || variables.strategyAfter != 'RollingUpdate' || variables.after >= variables.before || variables.after >= ${holdingPartition}`,
            messageExpression: `'the partition ' + string(variables.after) + ' in the middle of a rollout, or with a template, lets the StatefulSet controller replace pods of ' + object.metadata.name + ' past waves, gates and budgets; leave the partition out of what is applied, ${advice}'`,
            reason: 'Forbidden',
          },
        ],
      },
    }),
    installObject([admissionVersion, binding], { name }, namespace, {
      spec: { policyName: name, validationActions: ['Deny'], matchResources: { namespaceSelector: guarded(options) } },
    }),
  ];
}

function isHeld({ scope }: InstallOptions): MatchCondition {
  const held = `${partitionOf('oldObject')} >= ${holdingPartition}`;
  const named = scope.partition.members;
  return { name: 'is-held', expression: named.length === 0 ? held : `${held} || ${nameIn('request.name', named)}` };
}

/** Another installation has an agent of its own, which this one would not let pass. */
function guarded({ scope: { namespaces } }: InstallOptions): object {
  const matchLabels = { [enforceLabel]: 'true' };
  if (namespaces.length === 0) return { matchLabels };
  return { matchLabels, matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: namespaces }] };
}
