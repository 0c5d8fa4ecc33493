// Where the agent lives when nobody says otherwise.

/** The namespace of deploy/rbac.yaml. RolloutPolicies in the agent's namespace may name other namespaces. */
export const usualAgentNamespace = 'rollout-group';
