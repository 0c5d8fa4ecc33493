// Policies that block rollouts and downscales in place of policies that cannot be read.
import type { GroupDefinition, PolicyDefinition } from '../definition.ts';
import type { UnusableDocument } from '../load.ts';
import { rolloutPolicySpec } from '../schema/rollout-policy.ts';
import { valueAt } from '../schema/schema-walk.ts';
import { defined } from '../values/defined.ts';

/** Returns a policy that blocks every group of a namespace; its name says which policy could not be read. */
function blockingPolicy(
  namespace: string,
  name: string,
  reason: string,
  targets: PolicyDefinition['targets'] = { all: true },
): PolicyDefinition {
  return {
    namespace,
    name: `unreadable-${name}`,
    targets,
    metrics: {},
    rules: [
      {
        name: 'hold',
        actions: ['scaleDown', 'rollout', 'restart', 'delete', 'evict'],
        effect: 'hold',
        onUnknown: 'hold',
        approval: { count: 1, from: [] },
        message: reason,
        source: {},
      },
    ],
    windows: [],
    limits: {},
    limitSources: {},
  };
}

/** Returns one blocking policy for each namespace with a group. */
export function blockAllGroups(groups: readonly GroupDefinition[], name: string, reason: string): readonly PolicyDefinition[] {
  return [...new Set(groups.map(({ namespace }) => namespace))].sort().map((namespace) => blockingPolicy(namespace, name, reason));
}

/**
 * Returns policies that block all groups that an unusable RolloutPolicy may target: its targets if they can be read, otherwise every group of its
 * namespace, and of all namespaces if it is in the agent's namespace.
 */
export function blockInsteadOf(
  { namespace, name, value }: UnusableDocument,
  groups: readonly GroupDefinition[],
  agentNamespace: string,
): readonly PolicyDefinition[] {
  const reason = `RolloutPolicy ${namespace}/${name} has errors`;
  const read = rolloutPolicySpec.shape.targets.safeParse(valueAt(value, ['spec', 'targets']));
  const chosen = read.success ? [read.data.groups, read.data.selector, read.data.all].filter((one) => one !== undefined) : [];
  if (read.success && chosen.length === 1) return [blockingPolicy(namespace, name, reason, defined(read.data))];
  if (namespace !== agentNamespace) return [blockingPolicy(namespace, name, reason)];
  const namespaces = [...new Set([namespace, ...groups.map((group) => group.namespace)])].sort();
  return [blockingPolicy(namespace, name, reason, { all: true, namespaces })];
}
