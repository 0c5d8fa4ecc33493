// The admission policy that protects update strategies of StatefulSets with a blocking partition while no webhook answers.
import { holdingPartition } from '../policies/strategies.ts';
import { boundPolicy } from './admission-policy-objects.ts';
import { isNotTheAgent, type MatchCondition, nameIn } from './conditions.ts';
import { enforceLabel, type InstallObject, type InstallOptions } from './object.ts';
import { usesStrategy } from './scope.ts';

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

/**
 * True if a restarted pod may change its version: the request changes the template, the StatefulSet controller has not observed the last
 * change, or some pods are not at the update revision.
 */
const isMoving = [
  'object.spec.template != oldObject.spec.template',
  `${statusOf('observedGeneration', '0')} != oldObject.metadata.generation`,
  `${statusOf('currentRevision', "''")} != ${statusOf('updateRevision', "''")}`,
  // Pods may be at neither revision, for example after a zone was returned to an earlier template in the middle of a rollout.
  `${statusOf('updatedReplicas', '0')} != ${statusOf('replicas', '0')}`,
].join(' || ');

const advice = `finish or undo the rollout first; in an emergency, disable enforcement: kubectl label namespace ' + request.namespace + ' ${enforceLabel}-`;

/**
 * Returns the policy and its binding if the scope has, or may have, groups of the strategies `pinned` and `partition`. The policy matches
 * every StatefulSet with the blocking partition of the agent, so a new group needs no new installation. It matches members of the strategy
 * `partition` by name, because their partition is lower in the middle of a rollout. It applies only to namespaces with the enforcement
 * label.
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
          messageExpression: `'the update strategy ' + variables.strategyAfter + ' is denied in the middle of a rollout or with a template change: pods of ' + object.metadata.name + ' could change their version at a restart; ${advice}'`,
          reason: 'Forbidden',
        },
        {
          expression: `!variables.isMoving || variables.strategyAfter != 'RollingUpdate' || variables.after >= variables.before || variables.after >= ${holdingPartition}`,
          messageExpression: `'the partition ' + string(variables.after) + ' is denied in the middle of a rollout or with a template change: the StatefulSet controller would replace pods of ' + object.metadata.name + ' without waves, gates and budgets; remove the partition from the manifest, or ${advice}'`,
          reason: 'Forbidden',
        },
      ],
    },
    namespaceSelector: guarded(options),
  });
}

/** Matches a StatefulSet by its partition or by its name. */
export function isHeld({ scope }: Pick<InstallOptions, 'scope'>): MatchCondition {
  const held = `${partitionOf('oldObject')} >= ${holdingPartition}`;
  const named = scope.partition.members;
  return { name: 'is-held', expression: named.length === 0 ? held : `${held} || ${nameIn('request.name', named)}` };
}

/** Limits the policy to the namespaces of this installation: it would deny the agent of another installation. */
function guarded({ scope: { namespaces } }: InstallOptions): object {
  const matchLabels = { [enforceLabel]: 'true' };
  if (namespaces.length === 0) return { matchLabels };
  return { matchLabels, matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: namespaces }] };
}
