// Blocks the steps that the agent cannot carry out: it does not run, does not watch the namespace, or lacks a right. A plan reads the Lease
// and the rights. The agent learns of a missing right when the API server denies an action.
import type { GroupDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { result } from '../rule.ts';
import type { AgentAction, MissingAccess, RefusedWrite, Snapshot } from '../snapshot.ts';

/** Returns a block if the agent is known to lack the access that the step needs. */
export function agentAccess({ group, snapshot }: GroupContext, step: 'roll' | 'scale' | 'wait'): RuleResult | undefined {
  const actions = step === 'scale' ? (['patchStatefulSet'] as const) : step === 'roll' ? rollActions(group) : [];
  const { missingAccess = [], refusedWrites = [] } = snapshot;
  const facts = [...missingAccess, ...refusedWrites.flatMap((write) => deniedAccess(write) ?? [])].flatMap(
    ({ namespaces, group: only = group.name, action, fact }) => {
      const isNeeded = action === undefined || actions.some((one) => one === action);
      return namespaces.includes(group.namespace) && only === group.name && isNeeded ? [fact] : [];
    },
  );
  return facts.length === 0 ? undefined : result('agent-access', 'no', [...new Set(facts)].join('; '));
}

/** Returns the wait of a plan if the agent of the group does not run. The steps follow when the agent runs. */
export function agentRuns({ unattended = [] }: Snapshot, group: GroupDefinition): RuleResult | undefined {
  const stopped = unattended.find((one) => one.namespace === group.namespace && one.group === group.name);
  return stopped && result('agent-access', 'wait', stopped.fact);
}

/** Returns the actions with which the agent replaces the pods of the group. */
export function rollActions(group: GroupDefinition): readonly AgentAction[] {
  const { lowersPartition, pinsPods } = traitsOf(group);
  if (lowersPartition) return ['patchStatefulSet'];
  return [group.rollout.rotateBy === 'evict' ? 'evictPod' : 'deletePod', ...(pinsPods ? (['pinPod'] as const) : [])];
}

/** The effect of a missing right, as the end of a sentence. */
export const effects = {
  deletePod: 'no pod is replaced by deletion',
  evictPod: 'no pod is replaced by eviction',
  patchStatefulSet: 'no replicas and no partitions are written',
} as const satisfies Partial<Record<AgentAction, string>>;

const actionOf: Partial<Record<RefusedWrite['kind'], keyof typeof effects>> = {
  deletePod: 'deletePod',
  evictPod: 'evictPod',
  scaleStatefulSet: 'patchStatefulSet',
  setPartition: 'patchStatefulSet',
};

/** Returns the right that the agent lacks for a rejected write. Undefined for other answers: webhooks and quotas also answer 403. */
function deniedAccess({ kind, message, namespace }: RefusedWrite): MissingAccess | undefined {
  const action = actionOf[kind];
  const [, user = '', verb, resource, group = ''] =
    /User "([^"]+)" cannot (\w+) resource "([^"]+)" in API group "([^"]*)"/.exec(message) ?? [];
  if (action === undefined || resource === undefined) return undefined;
  const account = user.replace(/^system:serviceaccount:([^:]+):/, '$1/');
  const what = group === '' ? resource : `${resource} (${group})`;
  return { namespaces: [namespace], action, fact: `${account} may not ${verb} ${what} in ${namespace}: ${effects[action]}` };
}
