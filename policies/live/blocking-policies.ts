// What stands for policies that nobody can read: no pod goes and no zone shrinks, and everybody who asks is told why.
import type { GroupDefinition, PolicyDefinition } from '../definition.ts';
import type { UnusableDocument } from '../load.ts';
import { rolloutPolicySpec } from '../schema/rollout-policy.ts';
import { valueAt } from '../schema/schema-walk.ts';
import { defined } from '../values/defined.ts';

/** Holds every group of a namespace; the name says what could not be read. */
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

/** One for each namespace that has a group. */
export function blockAllGroups(groups: readonly GroupDefinition[], name: string, reason: string): readonly PolicyDefinition[] {
  return [...new Set(groups.map(({ namespace }) => namespace))].sort().map((namespace) => blockingPolicy(namespace, name, reason));
}

/**
 * In the place of a RolloutPolicy that cannot be used: what it may have held is held. Those are its targets, where they can be read, else every
 * group of its namespace, and of any other when it stands where the agent lives.
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
