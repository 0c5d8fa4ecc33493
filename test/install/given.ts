// Options of installations, and what tests read of the objects.

import type { InstallObject, InstallOptions } from '../../install/object.ts';
import { everyOptions } from '../../install/registered-policies.ts';
import type { PolicyRule } from '../../install/rights.ts';
import { type InstallScope, installScope } from '../../install/scope.ts';
import { lintPolicies } from '../../policies/lint/lint.ts';

export function optionsOf(changes: Partial<InstallOptions> = {}): InstallOptions {
  return { ...everyOptions('rollout-group'), image: 'example.com/rollout-group-agent:1', replicas: 3, ...changes };
}

export function scopeOf(text: string, { namespaces = [] as readonly string[], agentNamespace = 'rollout-group' } = {}): InstallScope {
  const { loaded: load, resolution } = lintPolicies([{ name: 'policies.yaml', text }], { agentNamespace });
  return installScope(load.documents, resolution.bundle, { agentNamespace, namespaces });
}

/** Two zones that mirror a ReplicaTemplate. */
export const group = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester, namespace: mimir }
spec:
  members: { zones: [{ name: a, statefulSet: ingester-zone-a }, { name: b, statefulSet: ingester-zone-b, follows: a }] }
  replicas: { mirror: { from: { apiVersion: rollout-operator.grafana.com/v1, kind: ReplicaTemplate, name: ingester }, writeBack: status } }
  rollout: { strategy: onDelete }
`;

export interface Webhook {
  readonly name: string;
  readonly clientConfig: { readonly service: { readonly path: string } };
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly apiVersions: readonly string[];
    readonly resources: readonly string[];
    readonly operations: readonly string[];
    readonly scope: string;
  }[];
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly matchPolicy: string;
  readonly failurePolicy: string;
  readonly sideEffects: string;
  readonly timeoutSeconds: number;
  readonly admissionReviewVersions: readonly string[];
  readonly namespaceSelector?: object;
  readonly objectSelector?: object;
}

export function webhooksIn(objects: readonly InstallObject[]): readonly Webhook[] {
  return objects.flatMap(({ webhooks }) => (webhooks ?? []) as readonly Webhook[]);
}

export function rulesIn({ rules }: InstallObject): readonly PolicyRule[] {
  return (rules ?? []) as readonly PolicyRule[];
}

/** `kind namespace/name`. */
export function nameOf({ kind, metadata: { name, namespace = '' } }: InstallObject): string {
  return `${kind} ${namespace}/${name}`;
}
