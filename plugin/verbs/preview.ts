// Describes the verbs that preview a change from files or a cluster, and the verb that applies a change.

import {
  agentNamespaceOption as agentNamespaceBase,
  allNamespacesOption,
  fileOption,
  fromReportOption,
  groupForms,
  type OptionSpec,
  outputOption,
  type Verb,
} from './verb.ts';

/** All fault names, in the order of docs/simulate.md. */
export const faultNames: readonly string[] =
  'network conflicts watch server crash pause clock lease pods nodes controllers webhook people'.split(' ');

/** The default faults: each of these kinds happens in any cluster within a week. */
export const usualFaults: readonly string[] = ['network', 'watch', 'crash', 'pods'];

const namespace: OptionSpec = { flags: '-n, --namespace <name>', description: 'Only groups in this namespace.', completes: 'namespace' };
const agentNamespaceOption: OptionSpec = {
  ...agentNamespaceBase,
  description: `${agentNamespaceBase.description} With a cluster: the namespace of the agent's Lease, if there is one.`,
};
const assumptionsOption: OptionSpec = {
  flags: '--assumptions <file>',
  description: 'Assumed start and drain durations of pods, and results of gates, approvals and preparations.',
  completes: 'file',
};
export const currentState: OptionSpec = {
  flags: '--current <source>',
  description: 'Manifests to use as the running cluster: a file, a directory, - or git:REV[:PATH].',
  completes: 'source',
};
export const desiredState: OptionSpec = {
  flags: '--desired <source>',
  description: 'Manifests to use as the requested state, in the same forms.',
  completes: 'source',
};
export const instant: OptionSpec = {
  flags: '--at <instant>',
  description: 'Start time, for example 2026-01-15T10:00:00Z; default: now.',
};
const live: OptionSpec = {
  flags: '--live',
  description: 'Compare with the cluster, also if --desired is given. This is the default without --current and --desired.',
};
const setOption: OptionSpec = {
  flags: '--set <key=value>',
  description: 'Plan this change: [ZONE.]image=[CONTAINER=]IMAGE, [ZONE.]replicas=N or spec.PATH=VALUE.',
  isRepeatable: true,
};
const groupOption: OptionSpec = {
  flags: '--group <name>',
  description: `Only this group: ${groupForms}`,
  isRepeatable: true,
  completes: 'group',
};
const planInputs: readonly OptionSpec[] = [
  currentState,
  desiredState,
  fileOption,
  setOption,
  assumptionsOption,
  instant,
  groupOption,
  namespace,
  agentNamespaceOption,
];

const forceConflicts: OptionSpec = {
  flags: '--force-conflicts',
  description: 'Take over the fields that people wrote with kubectl. Fields of other tools and of autoscalers stay with them.',
};

const plan: Verb = {
  name: 'plan',
  summary: 'Show the rollout plan: waves, steps, gates, durations and risks',
  description:
    'Compares the running state with the requested state. With --live, or without --current and --desired, the running state is the cluster; otherwise it is the manifests of --current. Compared with the cluster, the manifests in -f are the requested state; the API server validates them if you may do a dry run.',
  options: [
    ...planInputs,
    live,
    allNamespacesOption,
    forceConflicts,
    fromReportOption,
    {
      flags: '--out <file>',
      description: 'Also save the plan. If it is compared with the cluster, apply accepts it.',
      completes: 'file',
    },
    { flags: '--detailed-exitcode', description: 'Exit with 2 if there are changes, and with 1 on errors.' },
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
    4: 'a file has errors',
    5: 'a part of the plan is denied, or blocked until a person acts',
    10: 'a file, a revision or a group does not exist',
  },
  usesCluster: true,
  load: async () => (await import('../commands/plan.ts')).run,
};

const directory = (flags: string, description: string): OptionSpec => ({ flags, description, isRepeatable: true, completes: 'directory' });

const review: Verb = {
  name: 'review',
  summary: 'Review a pull request: what rolls, and which decisions of the policies change',
  description:
    'Reads two revisions from Git, without a checkout and without a cluster. Plans the change of the manifests, and asks the policies of both revisions the same questions. Names each decision that differs, loosened or tightened, with its rule and place. Directories come from the flags, or from rollout-group.yaml in the root of the repository.',
  options: [
    {
      flags: '--base <revision>',
      description: 'Revision before the change, such as the merge base of the pull request.',
      isRequired: true,
    },
    { flags: '--head <revision>', description: 'Revision with the change.', default: 'HEAD' },
    directory('--policies <dir>', 'Directory of policies, from the root of the repository.'),
    directory('--manifests <dir>', 'Directory of manifests, from the root of the repository.'),
    directory('--tests <dir>', 'Directory of policy tests. Tests in --policies run too.'),
    { flags: '--environment <name>', description: 'Only this environment of rollout-group.yaml.', isRepeatable: true },
    {
      flags: '--fail-on <effect>',
      description: 'Also fail if a policy is loosened or an environment removed (4), or if the rollout needs an approval (8).',
      choices: ['loosened', 'approval'],
      isRepeatable: true,
    },
    {
      flags: '--out <dir>',
      description: 'Also write DIR/ENVIRONMENT.yaml: the annotations that let the agent compare the rollout with this plan.',
      completes: 'file',
    },
    assumptionsOption,
    { ...instant, description: 'Time of the review for windows and exceptions, for example 2026-01-15T10:00:00Z; default: now.' },
    agentNamespaceBase,
    outputOption('table', 'json', 'yaml', 'markdown', 'sarif', 'junit', 'github'),
  ],
  examples: [
    'review --base origin/main --policies policies --manifests manifests',
    'review --base "$(git merge-base origin/main HEAD)" -o markdown --fail-on loosened',
  ],
  exits: {
    4: 'a file has errors, a policy test of the head fails, or with --fail-on loosened: a policy is loosened or an environment removed',
    5: 'the rollout is denied, or blocked until a person acts',
    8: 'with --fail-on approval: the rollout needs an approval',
    10: 'a revision, a directory or an environment does not exist',
  },
  load: async () => (await import('../commands/review.ts')).run,
};

const diff: Verb = {
  name: 'diff',
  summary: 'Show field differences by zone, and the effect of each difference',
  description:
    'Compares manifests with each other. With --live, or with neither --current nor --desired, compares them with the cluster. With the cluster, the manifests in -f are the requested state; objects missing from them do not count as removed.',
  options: [
    currentState,
    desiredState,
    fileOption,
    { ...setOption, description: setOption.description.replace('Plan', 'Compare with') },
    { flags: '--against <state>', description: 'live, or a source to use as the running state.', completes: 'source' },
    live,
    allNamespacesOption,
    forceConflicts,
    { flags: '--zones', description: 'Compare the zones of one group with each other.' },
    groupOption,
    namespace,
    agentNamespaceOption,
    outputOption('table', 'json', 'yaml', 'markdown', 'external'),
  ],
  examples: [
    'diff --current git:main:manifests --desired manifests/',
    'diff -f policies/ -f manifests/',
    'diff --current manifests/ --zones --group ingester',
  ],
  exits: { 1: 'there are differences', 4: 'a file has errors', 10: 'a file, a revision or a group does not exist' },
  usesCluster: true,
  load: async () => (await import('../commands/diff.ts')).run,
};

const comment: Verb = {
  name: 'comment',
  summary: 'Post a review or a plan as one comment on a pull request',
  description:
    'Creates the comment of the environment on a pull request of GitHub or a merge request of GitLab, or updates the earlier comment. In a job of GitHub Actions or GitLab CI, finds the pull request by the variables of the job. Reads the token from GITHUB_TOKEN or GITLAB_TOKEN.',
  arguments: [
    {
      name: 'files',
      description: 'Output of review -o markdown or plan -o markdown.',
      isVariadic: true,
      isRequired: true,
      completes: 'file',
    },
  ],
  options: [
    { flags: '--environment <name>', description: 'Environment, if the file names no environment; default: default.' },
    {
      flags: '--status',
      description: 'Also set the commit status rollout-group/ENVIRONMENT: success, pending (waits) or failure (blocked).',
    },
    {
      flags: '--forge <name>',
      description: 'Service of the pull request; default: that of the job.',
      choices: ['github', 'gitlab'],
    },
    { flags: '--api <url>', description: 'Address of the REST API; default: that of the job, else of github.com or gitlab.com.' },
    { flags: '--repository <name>', description: 'OWNER/NAME at GitHub, id or path of the project at GitLab.' },
    { flags: '--pull-request <number>', description: 'Number of the pull request, or internal id of the merge request.' },
    { flags: '--commit <id>', description: 'Commit of the plan. The comment stays as it is if the pull request has a newer commit.' },
  ],
  examples: [
    'comment review.md',
    'comment review.md --environment production --status',
    'comment review.md --forge github --repository acme/infra --pull-request 7',
  ],
  exits: {
    4: 'a file has no marker, or has active text such as a mention',
    5: 'GitHub or GitLab does not accept the request',
    9: 'the comment changed at the same time',
    10: 'a file or the pull request does not exist',
    11: 'the token is missing or lacks a permission',
    12: 'GitHub or GitLab cannot be reached, or limits the rate of requests',
  },
  load: async () => (await import('../commands/comment.ts')).run,
};

const apply: Verb = {
  name: 'apply',
  summary: 'Apply policies and manifests, or a saved plan, after showing the plan',
  description:
    'Uses server-side apply, object by object. Takes over no field of another field manager, except with --force-conflicts. The command refuses a saved plan if an object of the plan has changed since. It also refuses objects that another tool syncs from Git.',
  arguments: [{ name: 'plan', description: 'A plan saved by plan --out.', completes: 'file' }],
  options: [
    fileOption,
    desiredState,
    assumptionsOption,
    groupOption,
    forceConflicts,
    { flags: '--yes', description: 'Do not ask for confirmation.' },
    { flags: '--no-input', description: 'Never prompt. Without --yes or --dry-run, the command fails, as without a terminal.' },
    {
      flags: '--dry-run <where>',
      description: 'Change nothing. client: only plan. server: the API server validates every object.',
      choices: ['client', 'server'],
    },
    { flags: '--detailed-exitcode', description: 'With --dry-run: exit with 2 if there are changes, and with 1 on errors.' },
    { flags: '--wait', description: 'After the apply, wait as status does, with the exit codes of status.' },
    { flags: '--for <condition>', description: 'With --wait: the condition to wait for, as in status.', completes: 'condition' },
    { flags: '--timeout <duration>', description: 'With --wait: stop waiting after this time; 0 for never.' },
    namespace,
    allNamespacesOption,
    agentNamespaceOption,
    outputOption('table', 'json', 'yaml'),
  ],
  examples: ['apply -f policies/ -f manifests/ --dry-run=server', 'apply ingester.plan', 'apply ingester.plan --yes --wait'],
  exits: {
    1: 'with --detailed-exitcode: an error',
    2: 'with --dry-run and --detailed-exitcode: there are changes',
    4: 'a file has errors',
    5: 'denied by policy, by another field manager or by another tool, blocked until a person acts, or not confirmed',
    9: 'the plan is stale',
    10: 'a file, a revision, a group or a kind does not exist',
  },
  usesCluster: true,
  load: async () => (await import('../commands/apply.ts')).run,
};

const simulate: Verb = {
  name: 'simulate',
  summary: 'Run the plan on a virtual clock, with failures',
  description:
    'Two agents carry out the change against a model of the API server while faults happen. Invariants are checked at every write. If a simulation breaks an invariant, the command reduces the scenario to the causes and shows a timeline. To see the kinds of fault, run: docs simulate.',
  options: [
    ...planInputs,
    {
      ...fromReportOption,
      description: `${fromReportOption.description} Without another change, simulates the rollout in progress from its beginning.`,
    },
    { flags: '--seed <number>', description: 'Seed of the first simulation; default: 1. The same seed gives the same result.', atLeast: 0 },
    { flags: '--runs <number>', description: 'Number of simulations; default: 8.', atLeast: 1 },
    {
      flags: '--faults <kinds>',
      description: `Random faults: all, none, or a list of ${faultNames.join(', ')}. Default: ${usualFaults.join(', ')}; with --fail: none.`,
    },
    {
      flags: '--fail <what>',
      description:
        'A fault at a time after the start: pod=NAME@DURATION or zone=NAME@DURATION (containers die and start again; with +LENGTH the pods are not ready for that time instead), node=ZONE@DURATION[+LENGTH] (a node of the zone is lost for that time), drain=ZONE@DURATION (a node of the zone is drained), agent=a@DURATION[+LENGTH] (agent a crashes, and starts again after that time).',
      isRepeatable: true,
    },
    { flags: '--until <duration>', description: 'Stop each simulation after this virtual time.' },
    outputOption('table', 'json'),
  ],
  examples: [
    'simulate --current manifests/ --set image=grafana/mimir:2.17.1 --fail pod=ingester-zone-b-1@20m',
    'simulate --current manifests/ --desired next/ -f policies/ --faults all --runs 100',
    'simulate --current manifests/ --set replicas=5 --fail node=zone-a@14m+5m --faults network,crash --seed 7',
  ],
  exits: {
    4: 'an invariant was broken, or a file has errors',
    5: 'a policy denies a part of the change, or members of a group are missing; that part is left out',
    7: 'a simulation did not finish',
    10: 'a file, a revision, a group or the target of --fail does not exist',
  },
  load: async () => (await import('../commands/simulate.ts')).run,
};

const demo: Verb = {
  name: 'demo',
  summary: 'Plan an embedded example and run the plan',
  options: [{ flags: '--fast', description: 'Do not wait between the steps.' }],
  examples: ['demo'],
  isHidden: true,
  load: async () => (await import('../commands/demo.ts')).run,
};

export const previewVerbs: readonly Verb[] = [plan, diff, review, comment, simulate, apply, demo];
