// The flags that choose a cluster and a user, with the names of kubectl.
import type { OptionSpec } from './verb.ts';

/** The flags of every verb that can talk to a cluster. */
export const connectionOptions: readonly OptionSpec[] = [
  { flags: '--kubeconfig <file>', description: 'Kubeconfig file; default: KUBECONFIG, then ~/.kube/config.', completes: 'file' },
  { flags: '--context <name>', description: 'Context in the kubeconfig.' },
  { flags: '--cluster <name>', description: 'Cluster in the kubeconfig.' },
  { flags: '--user <name>', description: 'User in the kubeconfig.' },
  { flags: '-s, --server <url>', description: 'Address of the API server.' },
  { flags: '--token <token>', description: 'Bearer token.' },
  { flags: '--as <user>', description: 'User to impersonate.' },
  { flags: '--as-group <group>', description: 'Group to impersonate.', isRepeatable: true },
  { flags: '--as-uid <uid>', description: 'UID to impersonate.' },
  { flags: '--certificate-authority <file>', description: 'Certificate file of the authority for the API server.', completes: 'file' },
  { flags: '--client-certificate <file>', description: 'Client certificate file.', completes: 'file' },
  { flags: '--client-key <file>', description: 'Client key file.', completes: 'file' },
  { flags: '--insecure-skip-tls-verify', description: 'Do not verify the certificate of the API server.' },
  { flags: '--tls-server-name <name>', description: 'Server name for certificate verification.' },
  { flags: '--request-timeout <duration>', description: 'Timeout of a single request, for example 30s; 0 means 30s.' },
];

export const namespaceOption: OptionSpec = {
  flags: '-n, --namespace <name>',
  description: 'Namespace; default: the namespace of the context.',
};

export const allNamespacesOption: OptionSpec = { flags: '-A, --all-namespaces', description: 'Groups in all namespaces.' };

/** The flags of verbs that change something. */
export const actOptions: readonly OptionSpec[] = [
  { flags: '--reason <text>', description: 'Reason; it is recorded.' },
  {
    flags: '--dry-run <where>',
    description: 'Print the objects and change nothing. client: send nothing. server: the API server validates them.',
    choices: ['client', 'server'],
  },
  namespaceOption,
];
