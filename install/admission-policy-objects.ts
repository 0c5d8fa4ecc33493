// Builds a ValidatingAdmissionPolicy with its binding. The API server evaluates it without a call to the agent.
import { clusterName, type InstallObject, type InstallOptions, installObject } from './object.ts';
import { marked } from './policy-mark.ts';
import { admissionVersion } from './webhooks.ts';

/** Kinds of Kubernetes 1.30 and later. The policy comes before its binding. */
export const admissionPolicyKinds = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'] as const;

interface BoundPolicy {
  /** The name without the namespace of the installation. */
  readonly base: string;
  /** The spec of the policy. */
  readonly spec: Readonly<Record<string, unknown>>;
  /** Namespaces in which the policy applies; all if absent. */
  readonly namespaceSelector?: object;
}

/** Returns the policy and its binding, which denies, under one name per installation. */
export function boundPolicy({ namespace }: Pick<InstallOptions, 'namespace'>, bound: BoundPolicy): readonly InstallObject[] {
  const { base, spec, namespaceSelector } = bound;
  const name = clusterName(base, namespace);
  const [policy, binding] = admissionPolicyKinds;
  const matchResources = namespaceSelector === undefined ? {} : { matchResources: { namespaceSelector } };
  return [
    marked(installObject([admissionVersion, policy], { name }, namespace, { spec })),
    marked(
      installObject([admissionVersion, binding], { name }, namespace, {
        spec: { policyName: name, validationActions: ['Deny'], ...matchResources },
      }),
    ),
  ];
}
