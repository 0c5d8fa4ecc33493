// What an installation consists of: Kubernetes objects as they are applied, with the names and labels that all of them share.
import { usualAgentNamespace } from '../policies/objects/agent-deployment.ts';
import { defined } from '../policies/values/defined.ts';
import type { InstallScope } from './scope.ts';

/** An object as it is printed and applied. */
export interface InstallObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

export interface InstallOptions {
  /** Where the agent lives. */
  readonly namespace: string;
  readonly image: string;
  /** Of the Deployment, at least 1: every one answers webhooks, and the one with the Lease acts. */
  readonly replicas: number;
  /** What the policies name. */
  readonly scope: InstallScope;
  /** With the webhook configurations and kinds of grafana/rollout-operator. */
  readonly hasCompat: boolean;
  /** With the namespace that the agent lives in. */
  readonly hasNamespace: boolean;
  /** With the label that opts the namespaces of the scope into enforcement. */
  readonly isEnforced: boolean;
  /** Whether webhooks hear only of the StatefulSets that the scope names. */
  readonly isMembersOnly: boolean;
  /** With what the API server refuses by itself. Kubernetes before 1.30 knows no such kinds. */
  readonly hasAdmissionPolicies: boolean;
}

/** ServiceAccount, Deployment, Service, Lease and most of the rest. */
export const agentName = 'rollout-group-agent';

/** The Secret in which the agent keeps the certificate that it signs itself. */
export const certificateSecret = 'rollout-group-agent-tls';

/** Namespaces with this label are enforced; taking it away is the way out when everything else fails. */
export const enforceLabel = 'rollout-group.dev/enforce';

/** Which installation an object belongs to, by the namespace of its agent. */
export const installLabel = 'rollout-group.dev/installation';

/** A name without a namespace: two installations in one cluster need two of them. */
export function clusterName(base: string, namespace: string): string {
  return namespace === usualAgentNamespace ? base : `${base}-${namespace}`;
}

function labelsOf(namespace: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': agentName, 'app.kubernetes.io/part-of': 'rollout-group', [installLabel]: namespace };
}

/** What finds the agent's pods. */
export function podLabelsOf(namespace: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': agentName, [installLabel]: namespace };
}

/** An object of the installation with its labels. */
export function installObject(
  [apiVersion, kind]: readonly [apiVersion: string, kind: string],
  { name, namespace }: { readonly name: string; readonly namespace?: string },
  installation: string,
  fields: Readonly<Record<string, unknown>>,
): InstallObject {
  return {
    apiVersion,
    kind,
    metadata: { name, ...defined({ namespace }), labels: labelsOf(installation) },
    ...fields,
  };
}
