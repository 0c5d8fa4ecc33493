// A ValidatingAdmissionPolicy with its binding: what the API server evaluates by itself, whether anybody of ours answers or not.
import { clusterName, type InstallObject, type InstallOptions, installObject } from './object.ts';
import { marked } from './policy-mark.ts';
import { admissionVersion } from './webhooks.ts';

/** Served from Kubernetes 1.30 on. The binding comes after what it binds. */
export const admissionPolicyKinds = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'] as const;

interface BoundPolicy {
  /** Without the namespace of the installation. */
  readonly base: string;
  /** Of the policy. */
  readonly spec: Readonly<Record<string, unknown>>;
  /** Every namespace when left out. */
  readonly namespaceSelector?: object;
}

/** Both refuse, in one installation under one name. */
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
