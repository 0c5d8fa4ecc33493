// Defines the type and the options of installed objects, and the names and labels that they share.
import { agentName, usualAgentNamespace } from '../policies/objects/agent-deployment.ts';
import { defined } from '../policies/values/defined.ts';
import type { InstallScope } from './scope.ts';

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
  readonly namespace: string;
  readonly image: string;
  /** The replicas of the Deployment, at least 1. Every replica answers webhooks; the holder of the Lease acts. */
  readonly replicas: number;
  /** The namespaces and objects that the policies name. */
  readonly scope: InstallScope;
  /** True if the webhook configurations and kinds of grafana/rollout-operator are included. */
  readonly hasCompat: boolean;
  /** True if the agent reads the commits of runs from Kustomizations and Applications. */
  readonly readsCommits?: boolean;
  /** True if the namespace of the agent is included. */
  readonly hasNamespace: boolean;
  /** True if the enforcement label of the namespaces in the scope is included. */
  readonly isEnforced: boolean;
  /** True if webhooks receive requests only for the StatefulSets of the scope. */
  readonly isMembersOnly: boolean;
  /** True if admission policies are included. Kubernetes before 1.30 does not support them. */
  readonly hasAdmissionPolicies: boolean;
  /** The source of the certificate of the webhooks; absent if the agent creates the certificate. */
  readonly certificate?: CertificateOptions;
  /** The PriorityClass of the pods. */
  readonly priorityClass?: string;
  /** True if a ServiceMonitor of the Prometheus Operator is included. */
  readonly hasServiceMonitor?: boolean;
}

/** A certificate that the agent reads from files: from cert-manager, or from a Secret of the user. */
export type CertificateOptions =
  | { readonly kind: 'cert-manager'; readonly issuer: string; readonly issuerKind: string }
  /** A Secret of the type kubernetes.io/tls. `caBundle`: the CA certificate as in webhook configurations, base64. */
  | { readonly kind: 'secret'; readonly name: string; readonly caBundle: string };

/** The Secret with the certificate that the agent creates. */
export const certificateSecret = 'rollout-group-agent-tls';

/** The Secret with the certificate of cert-manager. Its type differs, so it needs another name. */
export const issuedSecret = 'rollout-group-agent-tls-issued';

/** The label that enables enforcement in a namespace. In an emergency, its removal turns enforcement off. */
export const enforceLabel = 'rollout-group.dev/enforce';

/** The label with the namespace of the agent, which identifies the installation. */
export const installLabel = 'rollout-group.dev/installation';

/** Returns the name of a cluster-scoped object, which differs between two installations in one cluster. */
export function clusterName(base: string, namespace: string): string {
  return namespace === usualAgentNamespace ? base : `${base}-${namespace}`;
}

function labelsOf(namespace: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': agentName, 'app.kubernetes.io/part-of': 'rollout-group', [installLabel]: namespace };
}

export function podLabelsOf(namespace: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': agentName, [installLabel]: namespace };
}

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

export const endpointPaths = {
  enforce: '/admission/enforce',
  enforceOthers: '/admission/enforce-others',
  validate: '/admission/validate',
  stamp: '/admission/stamp',
  pinPod: '/admission/pin-pod',
} as const;

/** The annotation by which a webhook configuration requests the CA certificate of a Certificate from cert-manager. */
export const injector = 'cert-manager.io/inject-ca-from';

/** The annotations by which a webhook configuration requests its `caBundle` from cert-manager. */
export const foreignInjectors: readonly string[] = [
  injector,
  'cert-manager.io/inject-ca-from-secret',
  'cert-manager.io/inject-apiserver-ca',
];
