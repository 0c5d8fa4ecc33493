// The flags that choose a cluster and who asks it: those of kubectl, with kubectl's names.
import type { OptionSpec } from './verb.ts';

/** Every verb that may talk to a cluster takes these. */
export const connectionOptions: readonly OptionSpec[] = [
  { flags: '--kubeconfig <file>', description: 'The kubeconfig, instead of KUBECONFIG and ~/.kube/config.', completes: 'file' },
  { flags: '--context <name>', description: 'The context of the kubeconfig.' },
  { flags: '--cluster <name>', description: 'The cluster of the kubeconfig.' },
  { flags: '--user <name>', description: 'The user of the kubeconfig.' },
  { flags: '-s, --server <url>', description: 'The address of the API server.' },
  { flags: '--token <token>', description: 'A bearer token.' },
  { flags: '--as <user>', description: 'Act as this user.' },
  { flags: '--as-group <group>', description: 'Act as a member of this group.', isRepeatable: true },
  { flags: '--as-uid <uid>', description: 'Act as the user with this UID.' },
  { flags: '--certificate-authority <file>', description: 'Certificates that the API server is checked with.', completes: 'file' },
  { flags: '--client-certificate <file>', description: 'The certificate to log in with.', completes: 'file' },
  { flags: '--client-key <file>', description: 'The key of the certificate.', completes: 'file' },
  { flags: '--insecure-skip-tls-verify', description: 'Do not check the certificate of the API server.' },
  { flags: '--tls-server-name <name>', description: 'The name that the certificate of the API server must have.' },
  { flags: '--request-timeout <duration>', description: 'The longest a single request may take, as 30s; 0 for 30s.' },
];

export const namespaceOption: OptionSpec = {
  flags: '-n, --namespace <name>',
  description: 'The namespace; otherwise that of the context.',
};

export const allNamespacesOption: OptionSpec = { flags: '-A, --all-namespaces', description: 'Groups of all namespaces.' };

/** Of verbs that change something. */
export const actOptions: readonly OptionSpec[] = [
  { flags: '--reason <text>', description: 'Why; it is recorded.' },
  {
    flags: '--dry-run <where>',
    description: 'Change nothing and print what would be sent: client sends nothing, server lets the API server check it.',
    choices: ['client', 'server'],
  },
  namespaceOption,
];
