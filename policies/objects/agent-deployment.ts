// Defines the names of the agent and a pattern for the names of its pods.

/**
 * The name of the executable, and of the ServiceAccount, Deployment, Service, Lease and most other objects. The API server records the writes
 * of the agent with this manager, which it takes from the user agent.
 */
export const agentName = 'rollout-group-agent';

/** The default namespace of the agent, as in deploy/rbac.yaml. RolloutPolicies in the agent's namespace may target other namespaces. */
export const usualAgentNamespace = 'rollout-group';

/** The template hash and the random part after the Deployment name. Pod names of StatefulSets end in a shorter ordinal and do not match. */
const suffix = '-[a-z0-9]{5,10}-[a-z0-9]{5}';

/** Returns a pattern, valid in JavaScript and in CEL, that matches the names of all pods of a Deployment. */
export function podNamesOf(deployment: string): string {
  return `^${deployment.replaceAll('.', '[.]')}${suffix}$`;
}
