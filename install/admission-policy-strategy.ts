// The admission policy that protects update strategies of StatefulSets with a blocking partition while no webhook answers.
import { holdingPartition } from '../policies/strategies.ts';
import { boundPolicy } from './admission-policy-objects.ts';
import { isNotTheAgent, type MatchCondition, nameIn } from './conditions.ts';
import { enforceLabel, type InstallObject, type InstallOptions } from './object.ts';
import { usesStrategy } from './scope.ts';

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
 * The policy and its binding, where there is a group of the strategies `pinned` and `partition`, or may be one. It is about every StatefulSet that
 * is held by the partition of the agent, so that a new group needs no new installation; and by name about those of groups of the strategy `partition`, whose
 * partition says nothing of the kind in the middle of a rollout. As with everything that refuses, only namespaces that are opted in are concerned.
 */
export function strategyPolicyOf(options: InstallOptions): readonly InstallObject[] {
  const { scope } = options;
  if (!(usesStrategy(scope.pinned) || usesStrategy(scope.partition))) return [];
  return boundPolicy(options, {
    base: 'rollout-group-update-strategy',
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
    namespaceSelector: guarded(options),
  });
}

/** By its partition, or by its name. */
export function isHeld({ scope }: Pick<InstallOptions, 'scope'>): MatchCondition {
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
