// The permissions of a tested agent: the shipped Role, that of grafana/rollout-operator, and each of them without one permission.
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import type { ApiClient } from './client.ts';
import type { Identity } from './identities.ts';

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

interface Document {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules?: readonly Rule[];
}

function shipped(name: string, wanted = 'ClusterRole'): readonly Rule[] {
  const documents = parseAllDocuments(readFileSync('deploy/rbac.yaml', 'utf8')).map((document) => document.toJS() as Document);
  const found = documents.find(({ kind, metadata }) => kind === wanted && metadata.name === name);
  if (found?.rules === undefined) throw new Error(`deploy/rbac.yaml has no ${wanted} ${name}`);
  return found.rules;
}

/** Returns the rules of deploy/rbac.yaml for a watched namespace. */
export function agentRules(): readonly Rule[] {
  return shipped('rollout-group-agent');
}

/** Returns the rules of deploy/rbac.yaml for sources and channels, in the namespace of the agent. */
export function sourceRules(): readonly Rule[] {
  return shipped('rollout-group-agent-sources', 'Role');
}

/** The Role in the Helm chart of grafana/rollout-operator, with access to ReplicaTemplates. */
export const originalRules: readonly Rule[] = [
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'get', 'watch', 'delete', 'patch'] },
  { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['list', 'get', 'watch', 'patch'] },
  { apiGroups: ['apps'], resources: ['statefulsets/status'], verbs: ['update'] },
  { apiGroups: ['rollout-operator.grafana.com'], resources: ['zoneawarepoddisruptionbudgets'], verbs: ['get', 'list', 'watch'] },
  {
    apiGroups: ['rollout-operator.grafana.com'],
    resources: ['replicatemplates/scale', 'replicatemplates/status'],
    verbs: ['get', 'patch'],
  },
];

/** Returns each single permission of the rules, as `verb resource.group`. */
export function permissionsOf(rules: readonly Rule[]): readonly string[] {
  return rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}${group && `.${group}`}`))),
  );
}

/** Returns the rules without one permission, which is named as by `permissionsOf`. */
export function without(rules: readonly Rule[], permission: string): readonly Rule[] {
  const single = rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.map((resource) => ({ apiGroups: [group], resources: [resource], verbs }))),
  );
  return single
    .map((rule) => ({ ...rule, verbs: rule.verbs.filter((verb) => permissionsOf([{ ...rule, verbs: [verb] }])[0] !== permission) }))
    .filter(({ verbs }) => verbs.length > 0);
}

const rbac = '/apis/rbac.authorization.k8s.io/v1';
const fieldManager = 'fieldManager=test&force=true';

/** Grants the user exactly these rules in the namespace. Replaces earlier grants there. */
export async function grant(client: ApiClient, identity: Identity, namespace: string, rules: readonly Rule[]): Promise<void> {
  const name = `test-${identity.user.replaceAll(':', '-')}`;
  await client.patch(`${rbac}/namespaces/${namespace}/roles/${name}?${fieldManager}`, 'apply', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name },
    rules,
  });
  await client.patch(`${rbac}/namespaces/${namespace}/rolebindings/${name}?${fieldManager}`, 'apply', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: identity.user }],
  });
}

/** Permits the user to read nodes. */
export function grantNodes(client: ApiClient, identity: Identity): Promise<void> {
  return grantInCluster(client, identity, 'nodes');
}

/** Permits the user to read the webhook configuration that pins pods. */
export function grantPins(client: ApiClient, identity: Identity): Promise<void> {
  return grantInCluster(client, identity, 'pins');
}

async function grantInCluster(client: ApiClient, identity: Identity, part: 'nodes' | 'pins'): Promise<void> {
  const name = `test-${identity.user.replaceAll(':', '-')}-${part}`;
  await client.patch(`${rbac}/clusterroles/${name}?${fieldManager}`, 'apply', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name },
    rules: shipped(`rollout-group-agent-${part}`),
  });
  await client.patch(`${rbac}/clusterrolebindings/${name}?${fieldManager}`, 'apply', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: identity.user }],
  });
}
