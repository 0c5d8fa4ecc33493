// The users of the cluster, and a kubeconfig with a context for each of them.
import { writeFileSync } from 'node:fs';
import type { ControlPlane } from '../../test/control-plane/control-plane.ts';
import type { Identity } from '../../test/control-plane/identities.ts';
import { applyObjects, type Manifest } from './objects.ts';

export interface Person {
  readonly name: string;
  readonly group: string;
  readonly isApprover: boolean;
}

const names = ['alice', 'bob', 'carol', 'dave', 'erin'];
/** The user group of the person who may request but not approve. */
const otherGroup = 'developers';

/** Returns a person for each user group that approves in the policies, and one of another group. */
export function peopleOf(policies: readonly Manifest[]): readonly Person[] {
  const approvers = [...new Set(policies.flatMap(approversIn))].filter((group) => group !== otherGroup);
  return [...approvers, otherGroup].map((group, index) => ({
    name: names[index] ?? `user-${index}`,
    group,
    isApprover: group !== otherGroup,
  }));
}

/** Returns the groups in each `approval.from`, at any depth. */
function approversIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === 'approval' && Array.isArray(inner?.from) ? (inner.from as readonly string[]) : approversIn(inner),
  );
}

const role = 'rollout-group-people';

/** Lets these people read everything that the commands read, and write requests. */
export async function applyRights({ client }: ControlPlane, people: readonly Person[]): Promise<void> {
  await applyObjects(client, [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: role },
      rules: [
        { apiGroups: ['', 'apps', 'policy', 'autoscaling', 'events.k8s.io'], resources: ['*'], verbs: ['get', 'list', 'watch'] },
        { apiGroups: ['coordination.k8s.io', 'rollout-group.dev'], resources: ['*'], verbs: ['get', 'list', 'watch'] },
        { apiGroups: ['admissionregistration.k8s.io', 'apiextensions.k8s.io'], resources: ['*'], verbs: ['get', 'list', 'watch'] },
        { apiGroups: ['rollout-group.dev'], resources: ['rolloutintents'], verbs: ['create', 'update', 'patch', 'delete'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: role },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: people.map(({ group }) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group })),
    },
  ]);
}

/** Writes a context for the administrator, which is current, and for each person. */
export function writeKubeconfig(file: string, cluster: ControlPlane, people: readonly Person[], namespace: string): void {
  const users: readonly (readonly [string, Identity])[] = [
    ['admin', cluster.identities.admin],
    ...people.map(({ name, group }) => [name, cluster.identityOf({ user: name, groups: [group] })] as const),
  ];
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const server = { server: cluster.url, 'certificate-authority-data': base64(cluster.authority.certificate) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'local', cluster: server }],
    users: users.map(([name, { certificate, privateKey }]) => ({
      name,
      user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(privateKey) },
    })),
    contexts: users.map(([name]) => ({ name, context: { cluster: 'local', user: name, namespace } })),
    'current-context': 'admin',
  };
  writeFileSync(file, `${JSON.stringify(config, undefined, 2)}\n`, { mode: 0o600 });
}
