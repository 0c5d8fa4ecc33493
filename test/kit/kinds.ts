// Kinds of Kubernetes that only tests need from the model of the API server.
import type { ServedKind } from '../../simulation/server/kinds.ts';

type Brief = Pick<ServedKind, 'group' | 'plural' | 'kind'> & Partial<ServedKind>;

function builtIn(brief: Brief): ServedKind {
  const defaults = { version: 'v1', isNamespaced: true, isCustom: false, hasStatus: false, hasGeneration: false };
  return { ...defaults, singular: brief.kind.toLowerCase(), ...brief };
}

function ofCluster(brief: Brief): ServedKind {
  return builtIn({ isNamespaced: false, ...brief });
}

function registration(brief: Omit<Brief, 'group'>): ServedKind {
  return ofCluster({ group: 'admissionregistration.k8s.io', hasGeneration: true, ...brief });
}

const roles = 'rbac.authorization.k8s.io';

export const moreKinds: readonly ServedKind[] = [
  builtIn({ group: '', plural: 'secrets', kind: 'Secret', fields: ['immutable', 'type', 'data'] }),
  builtIn({ group: '', plural: 'serviceaccounts', kind: 'ServiceAccount', fields: ['automountServiceAccountToken'] }),
  builtIn({ group: 'apps', plural: 'deployments', kind: 'Deployment', hasStatus: true, hasGeneration: true }),
  builtIn({ group: 'discovery.k8s.io', plural: 'endpointslices', kind: 'EndpointSlice', fields: ['addressType', 'endpoints', 'ports'] }),
  builtIn({ group: 'networking.k8s.io', plural: 'networkpolicies', kind: 'NetworkPolicy', hasGeneration: true }),
  builtIn({ group: roles, plural: 'roles', kind: 'Role', fields: ['rules'] }),
  builtIn({ group: roles, plural: 'rolebindings', kind: 'RoleBinding', fields: ['roleRef', 'subjects'] }),
  ofCluster({ group: roles, plural: 'clusterroles', kind: 'ClusterRole', fields: ['rules'] }),
  ofCluster({ group: roles, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding', fields: ['roleRef', 'subjects'] }),
  registration({ plural: 'validatingwebhookconfigurations', kind: 'ValidatingWebhookConfiguration', fields: ['webhooks'] }),
  registration({ plural: 'validatingadmissionpolicies', kind: 'ValidatingAdmissionPolicy', hasStatus: true }),
  registration({ plural: 'validatingadmissionpolicybindings', kind: 'ValidatingAdmissionPolicyBinding' }),
  ofCluster({
    group: 'apiextensions.k8s.io',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    hasStatus: true,
    hasGeneration: true,
  }),
];
