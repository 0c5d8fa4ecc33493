// The verbs that install the agent and its webhooks, and uninstall them.
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { fileOption, type OptionSpec, type Verb } from './verb.ts';

/** The contents of an installation. Both verbs share the options, so uninstall deletes exactly what install created. */
const installOptions: readonly OptionSpec[] = [
  { flags: '-n, --namespace <name>', description: 'Namespace of the agent.', default: usualAgentNamespace },
  {
    flags: '--policies <directory>',
    description: 'Policies and manifests of the groups; RBAC rules and webhooks cover only what they name.',
    completes: 'directory',
  },
  fileOption,
  {
    flags: '--groups-in <namespace>',
    description: 'Also manage the groups in this namespace. Without this flag and without policies: every namespace.',
    isRepeatable: true,
  },
  {
    flags: '--compat',
    description: 'Also install the kinds and webhook configurations of grafana/rollout-operator, under their own names.',
  },
];

const dryRun: OptionSpec = {
  flags: '--dry-run <where>',
  description: 'With --apply, change nothing. client: send nothing. server: the API server validates each object.',
  choices: ['client', 'server'],
};

const install: Verb = {
  name: 'install',
  group: 'Meta',
  summary: 'Print or apply the agent, its RBAC and its webhooks',
  description:
    'Prints YAML for Git or kubectl apply. --apply uses server-side apply without force. The RBAC rules name every resource and verb. The webhooks deny nothing in a namespace unless it has the label rollout-group.dev/enforce=true.',
  options: [
    ...installOptions,
    { flags: '--image <image>', description: 'Image of the agent; default: rollout-group-agent in this version.' },
    { flags: '--replicas <number>', description: 'Replicas of the agent; default: 3. All of them answer webhooks, one acts.', atLeast: 1 },
    { flags: '--create-namespace', description: 'Also create the namespace of the agent, with Pod Security level restricted.' },
    { flags: '--enforce', description: 'Also set the label rollout-group.dev/enforce=true on the named namespaces.' },
    {
      flags: '--members-only',
      description: 'Limit the webhooks to the StatefulSets that the policies name. Install again when you add a group.',
    },
    {
      flags: '--no-admission-policies',
      description: 'Omit the ValidatingAdmissionPolicies for update strategies and requesters. Needed before Kubernetes 1.30.',
    },
    { flags: '--apply', description: 'Apply to the cluster instead of printing.' },
    dryRun,
  ],
  examples: [
    'install --create-namespace --groups-in mimir | kubectl apply -f -',
    'install --policies policies/ --image registry.example.com/rollout-group-agent:1.0 --apply',
    'install --policies policies/ --compat --apply --dry-run server',
  ],
  exits: {
    4: 'the policies have errors',
    5: 'another field manager owns a field',
    10: 'a file or the namespace does not exist',
    11: 'permission is missing',
    12: 'the cluster is unreachable',
  },
  usesCluster: true,
  load: async () => (await import('../commands/install.ts')).run,
};

const uninstall: Verb = {
  name: 'uninstall',
  group: 'Meta',
  summary: 'Print or delete what install created, webhooks first',
  description:
    'Prints the objects in deletion order, for kubectl delete. --apply finds them by label and deletes them. CRDs, certificate, Lease, ledgers and the partitions of StatefulSets remain; the output says how to remove them.',
  options: [
    ...installOptions,
    { flags: '--crds', description: 'Also delete the CRDs, and with them every group, policy and record.' },
    { flags: '--apply', description: 'Delete from the cluster instead of printing.' },
    dryRun,
    { flags: '--yes', description: 'Do not ask if a partition still blocks the update of StatefulSets.' },
    { flags: '--no-input', description: 'Never prompt.' },
  ],
  examples: ['uninstall --groups-in mimir | kubectl delete -f -', 'uninstall --apply', 'uninstall --apply --dry-run server'],
  exits: {
    4: 'the policies have errors',
    5: 'not confirmed',
    10: 'a file does not exist',
    11: 'permission is missing',
    12: 'the cluster is unreachable',
  },
  usesCluster: true,
  load: async () => (await import('../commands/uninstall.ts')).run,
};

export const installVerbs: readonly Verb[] = [install, uninstall];
