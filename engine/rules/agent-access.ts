// Blocks, in plans of a cluster, the steps that the agent cannot carry out: it does not watch the namespace, or it lacks a right.
import type { GroupDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { result } from '../rule.ts';
import type { AgentAction } from '../snapshot.ts';

/** Returns a block if the agent is known to lack the access that the step needs. */
export function agentAccess({ group, snapshot }: GroupContext, step: 'roll' | 'scale'): RuleResult | undefined {
  const actions = step === 'scale' ? (['patchStatefulSet'] as const) : rollActions(group);
  const missing = (snapshot.missingAccess ?? []).filter(
    ({ namespaces, action }) => namespaces.includes(group.namespace) && (action === undefined || actions.some((one) => one === action)),
  );
  return missing.length === 0 ? undefined : result('agent-access', 'no', missing.map(({ fact }) => fact).join('; '));
}

function rollActions(group: GroupDefinition): readonly AgentAction[] {
  const { lowersPartition, pinsPods } = traitsOf(group);
  if (lowersPartition) return ['patchStatefulSet'];
  return [group.rollout.rotateBy === 'evict' ? 'evictPod' : 'deletePod', ...(pinsPods ? (['pinPod'] as const) : [])];
}
