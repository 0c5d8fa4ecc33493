// Blocks the steps that the agent cannot carry out: it does not run, does not watch the namespace, or lacks a right. A plan reads the Lease
// and the rights. The agent learns of a missing right when the API server denies an action.
import type { GroupDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { defined } from '../../policies/values/defined.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { result } from '../rule.ts';
import { type AgentAction, isUnknown, type Known, type MissingAccess, type RefusedWrite, type Snapshot } from '../snapshot.ts';

/** Returns a block if the agent is known to lack the access that the step needs. */
export function agentAccess({ group, snapshot }: GroupContext, step: 'roll' | 'scale' | 'wait'): RuleResult | undefined {
  const actions = step === 'scale' ? (['patchStatefulSet'] as const) : step === 'roll' ? rollActions(group) : [];
  const { missingAccess = [], refusedWrites = [] } = snapshot;
  const isNeeded = ({ action }: MissingAccess): boolean => action === undefined || actions.some((one) => one === action);
  return blockOf(group, [...missingAccess, ...refusedWrites.flatMap((write) => deniedWrite(write) ?? [])].filter(isNeeded));
}

/**
 * Returns a block if the agent is known to lack the right to read this mirrored object. The agent learns it from the answer to its read.
 * Another reader of the snapshot may have the right, so the rights of the agent decide.
 */
export function sourceAccess(
  { group, snapshot: { missingAccess = [] } }: GroupContext,
  source: string,
  replicas: Known<number> | undefined,
): RuleResult | undefined {
  const { namespace } = group;
  const known = missingAccess.filter(({ action, object }) => action === 'readSource' && object === source);
  const fact = isUnknown(replicas) ? deniedRight(replicas.unknown, namespace, unreadSource(source)) : undefined;
  return blockOf(group, fact === undefined ? known : [...known, { namespaces: [namespace], fact }]);
}

function blockOf({ namespace, name }: GroupDefinition, missing: readonly MissingAccess[]): RuleResult | undefined {
  const facts = missing.flatMap((one) => (one.namespaces.includes(namespace) && (one.group ?? name) === name ? [one.fact] : []));
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

/** The effect of the missing right to read a mirrored object, such as `Deployment ingester`. */
export function unreadSource(source: string): string {
  return `the replicas of ${source} are unknown, and no zone follows it`;
}

const actionOf: Partial<Record<RefusedWrite['kind'], keyof typeof effects>> = {
  deletePod: 'deletePod',
  evictPod: 'evictPod',
  scaleStatefulSet: 'patchStatefulSet',
  setPartition: 'patchStatefulSet',
};

/** Returns the right that the agent lacks for a rejected write. Undefined for other answers. */
function deniedWrite({ kind, message, namespace }: RefusedWrite): MissingAccess | undefined {
  const action = actionOf[kind];
  const fact = action && deniedRight(message, namespace, effects[action]);
  return fact === undefined ? undefined : { namespaces: [namespace], fact, ...defined({ action }) };
}

/** Returns the missing right that an answer of the API server names. Undefined for other answers: webhooks and quotas also answer 403. */
function deniedRight(message: string, namespace: string, effect: string): string | undefined {
  const [, user = '', verb, resource, group = ''] =
    /User "([^"]+)" cannot (\w+) resource "([^"]+)" in API group "([^"]*)"/.exec(message) ?? [];
  if (resource === undefined) return undefined;
  const account = user.replace(/^system:serviceaccount:([^:]+):/, '$1/');
  const what = group === '' ? resource : `${resource} (${group})`;
  return `${account} may not ${verb} ${what} in ${namespace}: ${effect}`;
}
