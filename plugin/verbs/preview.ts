// The verbs that show what would happen, of files or of a cluster, and the one that makes it so.
import { allNamespacesOption } from './connection.ts';
import { faultNames, usualFaults } from './fault-names.ts';
import { agentNamespaceOption, fileOption, type OptionSpec, outputOption, type Verb } from './verb.ts';

const namespace: OptionSpec = { flags: '-n, --namespace <name>', description: 'Only groups of this namespace.' };
export const currentState: OptionSpec = {
  flags: '--current <source>',
  description: 'Manifests taken as the running cluster: a file, a directory, - or git:REV[:PATH].',
  completes: 'source',
};
export const desiredState: OptionSpec = {
  flags: '--desired <source>',
  description: 'Manifests taken as what is asked for, in the same forms.',
  completes: 'source',
};
export const instant: OptionSpec = {
  flags: '--at <instant>',
  description: 'The instant at which it starts, as 2026-01-15T10:00:00Z; otherwise now.',
};
const live: OptionSpec = {
  flags: '--live',
  description: 'The cluster stands for what runs, also beside --desired; so it does when neither --current nor --desired is given.',
};
const planInputs: readonly OptionSpec[] = [
  currentState,
  desiredState,
  fileOption,
  {
    flags: '--set <key=value>',
    description: 'What if: [ZONE.]image=[CONTAINER=]IMAGE, [ZONE.]replicas=N or spec.PATH=VALUE.',
    isRepeatable: true,
  },
  { flags: '--assumptions <file>', description: 'Start, drain and gate times behind p50 and p90.', completes: 'file' },
  instant,
  { flags: '--group <name>', description: 'Only this group.', isRepeatable: true },
  namespace,
  agentNamespaceOption,
];

const plan: Verb = {
  name: 'plan',
  group: 'Preview',
  summary: 'Show waves, steps, gates, times and risks before anything moves',
  description:
    'What runs comes from manifests (--current), or from the cluster. Of the cluster, manifests among -f are what is asked for; the API server tries them by dry run where it may.',
  options: [
    ...planInputs,
    live,
    allNamespacesOption,
    { flags: '--out <file>', description: 'Also save the plan; one of the cluster can be applied.', completes: 'file' },
    { flags: '--detailed-exitcode', description: 'Exit 2 when there are changes, 1 on errors.' },
    outputOption('table', 'wide', 'json', 'yaml', 'markdown', 'html'),
  ],
  examples: [
    'plan --current manifests/ --set image=grafana/mimir:2.17.1',
    'plan --current git:main:manifests --desired manifests/ -f policies/ -o markdown',
    'plan -f policies/ -f manifests/ --out ingester.plan',
  ],
  exits: {
    1: 'with --detailed-exitcode: an error',
    2: 'with --detailed-exitcode: there are changes',
    4: 'a policy has findings',
    5: 'policy refuses a part of it',
    10: 'a file, a revision or a group does not exist',
    11: 'permission is missing',
    12: 'the cluster cannot be reached',
  },
  usesCluster: true,
  load: async () => (await import('../commands/plan.ts')).run,
};

const diff: Verb = {
  name: 'diff',
  group: 'Preview',
  summary: 'Show field differences by zone, with what each one leads to',
  description:
    'Compares manifests with each other, or with the cluster when --current is not given: then manifests among -f are what is asked for, and nothing that they leave out counts as removed.',
  options: [
    currentState,
    desiredState,
    fileOption,
    { flags: '--against <state>', description: 'live, or a source that stands for what runs.', completes: 'source' },
    live,
    allNamespacesOption,
    { flags: '--zones', description: 'Compare the zones of one group with each other.' },
    namespace,
    agentNamespaceOption,
    outputOption('table', 'json', 'yaml', 'markdown', 'external'),
  ],
  examples: [
    'diff --current git:main:manifests --desired manifests/',
    'diff -f policies/ -f manifests/',
    'diff --current manifests/ --zones',
  ],
  exits: {
    1: 'there are differences',
    4: 'a policy has findings',
    10: 'a file or a revision does not exist',
    11: 'permission is missing',
    12: 'the cluster cannot be reached',
  },
  usesCluster: true,
  load: async () => (await import('../commands/diff.ts')).run,
};

const apply: Verb = {
  name: 'apply',
  group: 'Preview',
  summary: 'Apply policies and manifests, or a saved plan, after showing what follows',
  description:
    'Applies server-side, object by object, and never takes a field of others by force. A saved plan is refused when anything that its decision read has changed since. What another tool keeps as Git has it is refused too.',
  arguments: [{ name: 'plan', description: 'A plan that plan --out saved.', completes: 'file' }],
  options: [
    fileOption,
    desiredState,
    { flags: '--assumptions <file>', description: 'Start, drain and gate times behind p50 and p90.', completes: 'file' },
    { flags: '--group <name>', description: 'Plan only this group.', isRepeatable: true },
    { flags: '--auto-approve', description: 'Do not ask for confirmation.' },
    { flags: '--no-input', description: 'Never ask; without --auto-approve it is refused where an answer would be needed.' },
    {
      flags: '--dry-run <where>',
      description: 'Change nothing: client only plans, server lets the API server check every object.',
      choices: ['client', 'server'],
    },
    { flags: '--detailed-exitcode', description: 'With --dry-run: exit 2 when there are changes, 1 on errors.' },
    { flags: '--wait', description: 'Then wait as status does, with its exit codes.' },
    { flags: '--for <condition>', description: 'With --wait: what to wait for, as with status.' },
    { flags: '--timeout <duration>', description: 'With --wait: the longest to wait.' },
    namespace,
    allNamespacesOption,
    agentNamespaceOption,
    outputOption('table', 'json', 'yaml'),
  ],
  examples: ['apply -f policies/ -f manifests/ --dry-run=server', 'apply ingester.plan', 'apply ingester.plan --auto-approve --wait'],
  exits: {
    1: 'with --detailed-exitcode: an error',
    2: 'with --dry-run and --detailed-exitcode: there are changes',
    4: 'a policy has findings',
    5: 'policy, another field manager or another tool refuses it, or it was not confirmed',
    9: 'the plan is stale',
    10: 'a file or a kind does not exist',
    11: 'permission is missing',
    12: 'the cluster cannot be reached',
  },
  usesCluster: true,
  load: async () => (await import('../commands/apply.ts')).run,
};

const simulate: Verb = {
  name: 'simulate',
  group: 'Preview',
  summary: 'Carry the plan out on a virtual clock, with failures',
  description:
    'Two agents carry the change out against a model of the API server, while things go wrong; invariants are judged at every commit. A run that breaks one is made small and told as a timeline. Topic simulate has the kinds of fault.',
  options: [
    ...planInputs,
    { flags: '--seed <number>', description: 'The seed of the first run; the same seed gives the same runs. 1 when left out.', atLeast: 0 },
    { flags: '--runs <number>', description: 'How many runs; 8 when left out.', atLeast: 1 },
    {
      flags: '--faults <kinds>',
      description: `What may go wrong, drawn by the seed: all, none, or of ${faultNames.join(', ')}. Without it ${usualFaults.join(', ')}; none beside --fail.`,
    },
    {
      flags: '--fail <what>',
      description:
        'An accident at an instant from the start: pod=NAME@DURATION or zone=NAME@DURATION (pods are lost; with +DURATION they are not ready for so long), node=ZONE@DURATION (lost), drain=ZONE@DURATION, agent=a@DURATION (dies).',
      isRepeatable: true,
    },
    { flags: '--until <duration>', description: 'Break runs off after this long on their clock.' },
    outputOption('table', 'json'),
  ],
  examples: [
    'simulate --current manifests/ --set image=grafana/mimir:2.17.1 --fail pod=ingester-zone-b-1@20m',
    'simulate --current manifests/ --desired next/ -f policies/ --faults all --runs 100',
    'simulate --current manifests/ --set replicas=5 --fail node=zone-a@14m+5m --faults network,crash --seed 7',
  ],
  exits: {
    4: 'an invariant was broken',
    5: 'policy refuses a part of it, which is left out, or the members of a group are missing',
    7: 'a run did not come to its end',
    10: 'a file or a revision does not exist',
  },
  load: async () => (await import('../commands/simulate.ts')).run,
};

const demo: Verb = {
  name: 'demo',
  group: 'Preview',
  summary: 'Plan an embedded example and run the plan forward',
  options: [{ flags: '--fast', description: 'Do not wait between the steps.' }],
  examples: ['demo'],
  isHidden: true,
  load: async () => (await import('../commands/demo.ts')).run,
};

export const previewVerbs: readonly Verb[] = [plan, diff, simulate, apply, demo];
