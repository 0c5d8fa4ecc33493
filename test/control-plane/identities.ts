// Who talks to the API server under which name, and what those may do that Kubernetes itself gives no rights.
import { writeFileSync } from 'node:fs';
import type { Certificate, CertificateAuthority, Subject } from './certificates.ts';

/** The controllers act under service accounts of their own; the controller manager's user only asks for their tokens. */
const subjects = {
  admin: { user: 'admin', groups: ['system:masters'] },
  /** Has no rights: a test binds the Role that it is about. */
  agent: serviceAccount('rollout-group', 'rollout-group-agent'),
  /** The user of kwok. Named as a node of its own, because it plays all of them. */
  kubelet: { user: 'system:node:kwok', groups: ['system:nodes'] },
  controllerManager: { user: 'system:kube-controller-manager', groups: [] },
  scheduler: { user: 'system:kube-scheduler', groups: [] },
} as const satisfies Readonly<Record<string, Subject>>;

export type IdentityName = keyof typeof subjects;

/** Somebody whom the API server knows by certificate, with a kubeconfig for programs. */
export interface Identity extends Subject, Certificate {
  readonly kubeconfig: string;
}

/** The subject that a pod of this service account would have. */
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

/** Issues a certificate and writes a kubeconfig around it. */
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

/** One identity for every name, each kubeconfig in the folder under that name. */
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

/** What a kubelet does to nodes and pods, without the node authorizer, which would want one user for each node. */
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
