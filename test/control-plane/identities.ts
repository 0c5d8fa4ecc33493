// Defines the users of the API server, and the permissions of users that have none by default in Kubernetes.
import { writeFileSync } from 'node:fs';
import type { Certificate, CertificateAuthority, Subject } from './certificates.ts';

/** The controllers use separate service accounts. The user of the controller manager only requests their tokens. */
const subjects = {
  admin: { user: 'admin', groups: ['system:masters'] },
  /** Has no permissions: a test binds the Role that it tests. */
  agent: serviceAccount('rollout-group', 'rollout-group-agent'),
  /** The user of kwok. It is not named after one node, because kwok plays all nodes. */
  kubelet: { user: 'system:node:kwok', groups: ['system:nodes'] },
  controllerManager: { user: 'system:kube-controller-manager', groups: [] },
  scheduler: { user: 'system:kube-scheduler', groups: [] },
} as const satisfies Readonly<Record<string, Subject>>;

export type IdentityName = keyof typeof subjects;

/** A user with a client certificate, and a kubeconfig for programs. */
export interface Identity extends Subject, Certificate {
  readonly kubeconfig: string;
}

/** Returns the subject that a pod with this service account has. */
export function serviceAccount(namespace: string, name: string): Subject {
  return {
    user: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
  };
}

export interface Server {
  readonly url: string;
  readonly authority: CertificateAuthority;
}

/** Issues a certificate and writes a kubeconfig with it. */
export function createIdentity(server: Server, subject: Subject, kubeconfig: string): Identity {
  const issued = server.authority.issueForClient(subject);
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server: server.url, 'certificate-authority-data': base64(server.authority.certificate) } }],
    users: [
      {
        name: subject.user,
        user: { 'client-certificate-data': base64(issued.certificate), 'client-key-data': base64(issued.privateKey) },
      },
    ],
    contexts: [{ name: 'test', context: { cluster: 'test', user: subject.user } }],
    'current-context': 'test',
  };
  writeFileSync(kubeconfig, `${JSON.stringify(config, undefined, 2)}\n`, { mode: 0o600 });
  return { ...subject, ...issued, kubeconfig };
}

/** Creates one user for every name. Each kubeconfig is in the folder under that name. */
export function createIdentities(server: Server, folder: string): Readonly<Record<IdentityName, Identity>> {
  const create = (name: IdentityName) => createIdentity(server, subjects[name], `${folder}/${name}.kubeconfig`);
  return {
    admin: create('admin'),
    agent: create('agent'),
    kubelet: create('kubelet'),
    controllerManager: create('controllerManager'),
    scheduler: create('scheduler'),
  };
}

const kubeletRole = 'test:kubelet';

/** The requests of a kubelet on nodes and pods, without the node authorizer, which needs a user for each node. */
export const kubeletRights = [
  {
    path: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    object: {
      metadata: { name: kubeletRole },
      rules: [
        { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
        { apiGroups: [''], resources: ['nodes/status', 'pods/status'], verbs: ['patch', 'update'] },
        { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'delete'] },
        { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch', 'update'] },
        { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'list', 'watch', 'create', 'patch', 'update'] },
      ],
    },
  },
  {
    path: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
    object: {
      metadata: { name: kubeletRole },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: kubeletRole },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: subjects.kubelet.user }],
    },
  },
] as const;
