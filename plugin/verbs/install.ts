// The verbs that bring the agent with its webhooks into a cluster, and take it away.
import { usualAgentNamespace } from '../../policies/agent-namespace.ts';
import { fileOption, type OptionSpec, type Verb } from './verb.ts';

/** What an installation consists of: the same for both verbs, so that one takes away what the other has brought. */
const installOptions: readonly OptionSpec[] = [
  { flags: '-n, --namespace <name>', description: 'Where the agent lives.', default: usualAgentNamespace },
  {
    flags: '--policies <directory>',
    description: 'Policies and manifests of the groups: rights and webhooks reach what they name.',
    completes: 'directory',
  },
  fileOption,
  {
    flags: '--groups-in <namespace>',
    description: 'A namespace whose groups are looked after, besides those that the policies name; without any, every namespace.',
    isRepeatable: true,
  },
  { flags: '--compat', description: 'Also the kinds and webhook configurations of grafana/rollout-operator, under their own names.' },
];

const dryRun: OptionSpec = {
  flags: '--dry-run <where>',
  description: 'With --apply, change nothing: client sends nothing, server lets the API server check it.',
  choices: ['client', 'server'],
};

const install: Verb = {
  name: 'install',
  group: 'Meta',
  summary: 'Print or apply the agent, its rights and its webhooks',
  description:
    'Prints YAML for Git or kubectl apply; --apply sends it server-side, taking no field of others by force. Rights name every resource and verb. Nothing is refused to anybody before a namespace has the label rollout-group.dev/enforce=true, and after it is gone.',
  options: [
    ...installOptions,
    { flags: '--image <image>', description: 'The image of the agent; otherwise rollout-group-agent in this version.' },
    { flags: '--replicas <number>', description: 'Pods of the agent: all answer webhooks, one acts; otherwise 3.', atLeast: 1 },
    { flags: '--create-namespace', description: 'Also the namespace of the agent, with Pod Security set to restricted.' },
    { flags: '--enforce', description: 'Also the label that opts the named namespaces in.' },
    {
      flags: '--members-only',
      description: 'Webhooks hear only of the StatefulSets that the policies name now; install again when a group is added.',
    },
    {
      flags: '--no-admission-policies',
      description: 'Without the ValidatingAdmissionPolicies about update strategies and about who asked; for Kubernetes before 1.30.',
    },
    { flags: '--apply', description: 'Apply it to the cluster instead of printing it.' },
    dryRun,
  ],
  examples: [
    'install --create-namespace --groups-in mimir | kubectl apply -f -',
    'install --policies policies/ --image registry.example.com/rollout-group-agent:1.0 --apply',
    'install --policies policies/ --compat --apply --dry-run server',
  ],
  exits: {
    4: 'the policies have errors',
    5: 'another field manager owns what would be written',
    10: 'a file or the namespace does not exist',
    11: 'permission is missing',
    12: 'the cluster cannot be reached',
  },
  usesCluster: true,
  load: async () => (await import('../commands/install.ts')).run,
};

const uninstall: Verb = {
  name: 'uninstall',
  group: 'Meta',
  summary: 'Print or delete what install brought, webhooks first',
  description:
    'Prints what is to be deleted, in order, for kubectl delete; --apply finds it in the cluster by its labels and deletes it. Kinds, certificate, Lease, ledgers and the partitions of StatefulSets stay, and how to remove them is said.',
  options: [
    ...installOptions,
    { flags: '--crds', description: 'Also the kinds, and with them every group, policy and record.' },
    { flags: '--apply', description: 'Delete it from the cluster instead of printing it.' },
    dryRun,
    { flags: '--yes', description: 'Do not ask when StatefulSets stay behind that a partition holds back.' },
    { flags: '--no-input', description: 'Ask nothing, also on a terminal.' },
  ],
  examples: ['uninstall --groups-in mimir | kubectl delete -f -', 'uninstall --apply', 'uninstall --apply --dry-run server'],
  exits: {
    4: 'the policies have errors',
    5: 'whoever was asked said no',
    10: 'a file does not exist',
    11: 'permission is missing',
    12: 'the cluster cannot be reached',
  },
  usesCluster: true,
  load: async () => (await import('../commands/uninstall.ts')).run,
};

export const installVerbs: readonly Verb[] = [install, uninstall];
