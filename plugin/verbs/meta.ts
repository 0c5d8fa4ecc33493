// Describes the verbs about the program and its installation.

import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import {
  agentNamespaceOption,
  allNamespacesOption,
  fileOption,
  fromReportOption,
  namespaceOption,
  type OptionSpec,
  outputOption,
  type Verb,
} from './verb.ts';

const completion: Verb = {
  name: 'completion',
  summary: 'Print the completion script of a shell, or install completion for kubectl',
  description:
    'kubectl reads completions from a second program, kubectl_complete-rollout_group. `completion install` writes it next to this program. Names of groups, zones, waves and more come from the cluster.',
  arguments: [
    { name: 'shell', description: 'A shell, or install.', isRequired: true, choices: ['bash', 'zsh', 'fish', 'powershell', 'install'] },
  ],
  options: [{ flags: '--dir <directory>', description: 'With install: a directory on the PATH.', completes: 'directory' }],
  examples: ['completion install', 'completion bash > /etc/bash_completion.d/kubectl-rollout-group'],
  exits: { 10: 'the directory does not exist', 11: 'the directory is not writable' },
  load: async () => (await import('../commands/completion.ts')).run,
};

const docs: Verb = {
  name: 'docs',
  summary: 'Read about a topic, a finding code or a rule, offline',
  arguments: [
    {
      name: 'topic',
      description: 'A topic, a code such as RG2001, or a rule such as zone-gap; default: the list of topics.',
      completes: 'topic',
    },
  ],
  options: [outputOption('text', 'json')],
  examples: ['docs', 'docs exit-codes', 'docs RG2001'],
  exits: { 10: 'the topic does not exist' },
  load: async () => (await import('../commands/docs.ts')).run,
};

const version: Verb = {
  name: 'version',
  summary: 'Print the version, and compare it with the installation',
  description:
    'Prints the version of this program, then compares it with the agent, the CRDs, the webhooks and the admission policies. If the cluster cannot be read, a note says why, and the exit code is still 0.',
  options: [
    { flags: '--client', description: 'Print only the version of this program.' },
    namespaceOption,
    agentNamespaceOption,
    fromReportOption,
    outputOption('text', 'json', 'yaml'),
  ],
  examples: ['version', 'version --client', 'version -n mimir -o json'],
  usesCluster: true,
  load: async () => (await import('../commands/version.ts')).run,
};

const doctor: Verb = {
  name: 'doctor',
  summary: 'Check an installation and report problems',
  description:
    'Checks the agent, its RBAC, the CRDs, the groups, and other tools that write the same fields as the agent. Changes nothing. A check without read permission is skipped, never passed.',
  options: [
    namespaceOption,
    allNamespacesOption,
    { flags: '--agent-namespace <name>', description: 'Namespace of the agent; default: the namespace of its Lease.' },
    {
      flags: '--agent-service-account <account>',
      description: 'Service account of the agent as NAMESPACE/NAME; default: rollout-group-agent in the namespace of the agent.',
    },
    { flags: '--fix-hints', description: 'Also show how to fix each problem.' },
    fromReportOption,
    outputOption('table', 'json', 'yaml'),
  ],
  examples: ['doctor -n mimir', 'doctor -A --fix-hints', 'doctor -n mimir -o json'],
  exits: { 4: 'a check failed', 11: 'permission to list StatefulSets is missing' },
  usesCluster: true,
  load: async () => (await import('../commands/doctor.ts')).run,
};

/** The options of install and uninstall that select the objects of an installation. */
const installOptions: readonly OptionSpec[] = [
  { flags: '-n, --namespace <name>', description: 'Namespace of the agent.', default: usualAgentNamespace },
  {
    flags: '--policies <directory>',
    description:
      'Directory with the policies and manifests of the groups. The installation has only the RBAC rules and webhooks that these policies need.',
    completes: 'directory',
  },
  { ...fileOption, description: 'Same as --policies, for a file, a directory, - for standard input, or git:REV[:PATH].' },
  {
    flags: '--groups-in <namespace>',
    description: 'Also include the objects for groups in this namespace. Without this flag and without policies: every namespace.',
    isRepeatable: true,
  },
  {
    flags: '--compat',
    description: 'Also include the kinds and webhook configurations of grafana/rollout-operator, under their own names.',
  },
];

const dryRun: OptionSpec = {
  flags: '--dry-run <where>',
  description: 'With --apply, change nothing. client: send no changes. server: the API server validates each object.',
  choices: ['client', 'server'],
};

const install: Verb = {
  name: 'install',
  summary: 'Print or apply the agent, its RBAC and its webhooks',
  description:
    'Prints YAML for Git or kubectl apply. --apply uses server-side apply without force. The RBAC rules contain no wildcards. Without --compat, the webhooks deny requests for StatefulSets and pods only in namespaces with the label rollout-group.dev/enforce=true.',
  options: [
    ...installOptions,
    { flags: '--image <image>', description: 'Image of the agent; default: rollout-group-agent in this version.' },
    { flags: '--replicas <number>', description: 'Replicas of the agent; default: 3. All of them answer webhooks, one acts.', atLeast: 1 },
    {
      flags: '--read-commits',
      description: 'Let the agent read the Applications of Argo CD and the Kustomizations of Flux, for the commits of rollouts.',
    },
    { flags: '--create-namespace', description: 'Also create the namespace of the agent, with Pod Security level restricted.' },
    { flags: '--enforce', description: 'Also set rollout-group.dev/enforce=true on the namespaces of --groups-in and the policies.' },
    {
      flags: '--members-only',
      description: 'Limit the webhooks to the StatefulSets that the policies name. Install again when you add a group.',
    },
    {
      flags: '--no-admission-policies',
      description:
        'Omit the ValidatingAdmissionPolicies for update strategies and requesters. Before Kubernetes 1.30, kubectl apply fails without this flag.',
    },
    {
      flags: '--cert-manager-issuer <issuer>',
      description: 'Let cert-manager issue the certificate of the webhooks. ISSUER is NAME, Issuer/NAME or ClusterIssuer/NAME.',
    },
    {
      flags: '--certificate-secret <name>',
      description:
        'Use the certificate in this Secret of the type kubernetes.io/tls, for rollout-group-agent.NAMESPACE.svc. Needs --ca-file.',
    },
    { flags: '--ca-file <file>', description: 'With --certificate-secret: the file with the CA certificate.', completes: 'file' },
    { flags: '--priority-class <name>', description: 'PriorityClass of the agent.' },
    { flags: '--service-monitor', description: 'Also include a ServiceMonitor, for the Prometheus Operator.' },
    { flags: '--apply', description: 'Apply to the cluster instead of printing.' },
    dryRun,
  ],
  examples: [
    'install --create-namespace --groups-in mimir | kubectl apply -f -',
    'install --policies policies/ --image registry.example.com/rollout-group-agent:1.0 --apply',
    'install --policies policies/ --compat --apply --dry-run server',
  ],
  exits: { 4: 'the policies have errors', 5: 'another field manager owns a field', 10: 'a file or the namespace does not exist' },
  usesCluster: true,
  load: async () => (await import('../commands/install.ts')).install,
};

const uninstall: Verb = {
  name: 'uninstall',
  summary: 'Print or delete what install created, webhooks first',
  description:
    'Prints the objects in deletion order, for kubectl delete. --apply finds them by label and deletes them. Ledgers, partitions of StatefulSets and, without --crds, the CRDs remain; the output says how to remove them. Namespaces also remain.',
  options: [
    ...installOptions,
    { flags: '--crds', description: 'Also delete the CRDs, and with them every group, policy and record.' },
    { flags: '--apply', description: 'Delete from the cluster instead of printing.' },
    dryRun,
    { flags: '--yes', description: 'Do not ask for confirmation when a partition still blocks the update of StatefulSets.' },
    { flags: '--no-input', description: 'Never prompt: continue without confirmation, as without a terminal.' },
  ],
  examples: ['uninstall --groups-in mimir | kubectl delete -f -', 'uninstall --apply', 'uninstall --apply --dry-run server'],
  exits: { 4: 'the policies have errors', 5: 'not confirmed', 10: 'a file does not exist' },
  usesCluster: true,
  load: async () => (await import('../commands/install.ts')).uninstall,
};

export const metaVerbs: readonly Verb[] = [install, uninstall, doctor, completion, docs, version];
