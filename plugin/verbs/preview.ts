// The verbs that show what would happen, without a cluster.
import { fileOption, type OptionSpec, outputOption, type Verb } from './verb.ts';

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
];

const plan: Verb = {
  name: 'plan',
  group: 'Preview',
  summary: 'Show waves, steps, gates, times and risks before anything moves',
  options: [
    ...planInputs,
    { flags: '--out <file>', description: 'Also save the plan.', completes: 'file' },
    { flags: '--detailed-exitcode', description: 'Exit 2 when there are changes, 1 on errors.' },
    outputOption('table', 'wide', 'json', 'yaml', 'markdown', 'html'),
  ],
  examples: [
    'plan --current manifests/ --set image=grafana/mimir:2.17.1',
    'plan --current git:main:manifests --desired manifests/ -f policies/ -o markdown',
  ],
  exits: {
    1: 'with --detailed-exitcode: an error',
    2: 'with --detailed-exitcode: there are changes',
    4: 'a policy has findings',
    5: 'policy refuses a part of it',
    10: 'a file, a revision or a group does not exist',
  },
  load: async () => (await import('../commands/plan.ts')).run,
};

const diff: Verb = {
  name: 'diff',
  group: 'Preview',
  summary: 'Show field differences by zone, with what each one leads to',
  options: [
    currentState,
    desiredState,
    fileOption,
    { flags: '--zones', description: 'Compare the zones of one group with each other.' },
    namespace,
    outputOption('table', 'json', 'yaml', 'markdown', 'external'),
  ],
  examples: ['diff --current git:main:manifests --desired manifests/', 'diff --current manifests/ --zones'],
  exits: { 1: 'there are differences', 10: 'a file or a revision does not exist' },
  load: async () => (await import('../commands/diff.ts')).run,
};

const simulate: Verb = {
  name: 'simulate',
  group: 'Preview',
  summary: 'Carry the plan out on a virtual clock, with failures',
  options: [
    ...planInputs,
    { flags: '--seed <number>', description: 'The seed of the first run; the same seed gives the same runs.', atLeast: 0 },
    { flags: '--runs <number>', description: 'How many runs.', atLeast: 1 },
    {
      flags: '--fail <what>',
      description: 'Pods that are lost: pod=NAME@DURATION or zone=NAME@DURATION from the start.',
      isRepeatable: true,
    },
    { flags: '--until <duration>', description: 'Stop the clock after this long.' },
    outputOption('table', 'json'),
  ],
  examples: ['simulate --current manifests/ --set image=grafana/mimir:2.17.1 --fail pod=ingester-zone-b-1@20m --runs 100'],
  exits: { 4: 'an invariant was broken', 5: 'policy refuses a part of it, which is left out', 10: 'a file or a revision does not exist' },
  load: async () => (await import('../commands/simulate.ts')).run,
};

const demo: Verb = {
  name: 'demo',
  group: 'Preview',
  summary: 'Plan and simulate an embedded example',
  options: [{ flags: '--fast', description: 'Do not wait between the steps.' }],
  examples: ['demo'],
  isHidden: true,
  load: async () => (await import('../commands/demo.ts')).run,
};

export const previewVerbs: readonly Verb[] = [plan, diff, simulate, demo];
