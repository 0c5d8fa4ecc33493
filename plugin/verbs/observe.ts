// The verbs that show what happens now, and what happened.
import { allNamespacesOption, namespaceOption } from './connection.ts';
import { currentState, desiredState, instant } from './preview.ts';
import { agentNamespaceOption, fileOption, outputOption, type Verb } from './verb.ts';

const groupArgument = { name: 'group', description: 'A group, or NAMESPACE/GROUP.', isRequired: true } as const;
const heartbeat = {
  flags: '--heartbeat <duration>',
  description: 'How often a log hears that it still waits; 0 for never.',
  default: '60s',
} as const;

const get: Verb = {
  name: 'get',
  group: 'Observe',
  summary: 'List groups, or show the zones and pods of one',
  description:
    'Shows what the agent published, with its age, and of one group that rolls when it is likely to be done. Where no agent has published, the decision is made here from what can be read, and said so. On a terminal, keys show more of one group and ask before they do anything.',
  arguments: [
    { name: 'groups', description: 'Groups, or NAMESPACE/GROUP; all when left out. One is shown with its zones.', isVariadic: true },
  ],
  options: [
    { flags: '-w, --watch', description: 'Go on, with each change: in place on a terminal, a line per transition elsewhere.' },
    {
      flags: '--pods <which>',
      description: 'Pods of one group that do not move: as ranges per revision, or every pod in a row of its own.',
      choices: ['ranges', 'all'],
      default: 'ranges',
    },
    heartbeat,
    namespaceOption,
    allNamespacesOption,
    agentNamespaceOption,
    outputOption('table', 'wide', 'name', 'json', 'yaml', 'jsonl'),
  ],
  examples: ['get', 'get -A -o wide', 'get ingester -n mimir -w'],
  exits: { 10: 'there is no such group', 11: 'permission is missing', 12: 'the cluster cannot be reached' },
  usesCluster: true,
  load: async () => (await import('../commands/get.ts')).run,
};

const status: Verb = {
  name: 'status',
  group: 'Observe',
  summary: 'Say how far a rollout is, and wait until it ends',
  description:
    'Ends with an exit code that a pipeline can act upon. To stop waiting does not stop the rollout. Says when it is likely to end, as a range, or why that cannot be told. On a terminal, ? shows the keys.',
  arguments: [groupArgument],
  options: [
    {
      flags: '--for <condition>',
      description: 'What to wait for: complete, paused, zone=NAME or wave=NAME (or its number).',
      default: 'complete',
    },
    { flags: '--timeout <duration>', description: 'Stop waiting after this long; 0 for never. Otherwise never, and 30m where CI is set.' },
    { flags: '--fail-on-pause', description: 'End with 8 as soon as it is paused or waits for a person.' },
    { flags: '--watch <when>', description: 'With false it answers at once.', choices: ['true', 'false'], default: 'true' },
    heartbeat,
    namespaceOption,
    outputOption('table', 'json', 'yaml', 'jsonl'),
  ],
  examples: ['status ingester -n mimir', 'status ingester --timeout 2h --fail-on-pause', 'status ingester --watch=false -o json'],
  exits: {
    6: 'the rollout failed or was aborted',
    7: 'time ran out while it was still moving',
    8: 'it is paused or waits for a person, when time is up or with --fail-on-pause',
    10: 'there is no such group',
    11: 'permission is missing',
    12: 'the cluster cannot be reached, or no agent is running',
  },
  usesCluster: true,
  load: async () => (await import('../commands/status.ts')).run,
};

const explain: Verb = {
  name: 'explain',
  group: 'Observe',
  summary: 'Say why a group moves, waits or is refused, rule by rule',
  description:
    'Lists every rule with the fact, the limit and where it is written: of the cluster, or of manifests when they are named. For the documentation of fields, see schema.',
  arguments: [
    {
      name: 'group',
      description: 'A group, or NAMESPACE/GROUP; of a cluster also a pod, a StatefulSet, or decision/ID of a refusal.',
      isRequired: true,
      completes: 'nothing',
    },
  ],
  options: [
    currentState,
    desiredState,
    fileOption,
    { flags: '--set <key=value>', description: 'What if, as with plan.', isRepeatable: true },
    instant,
    namespaceOption,
    agentNamespaceOption,
    { flags: '--what-if', description: 'Say what would have to change for the next step to start.' },
    outputOption('table', 'json', 'yaml'),
  ],
  examples: [
    'explain ingester -n mimir',
    'explain ingester-zone-b-7',
    'explain decision/3f9c2e1b8a40 -n mimir',
    'explain ingester --current manifests/ --set image=grafana/mimir:2.17.1',
  ],
  exits: { 10: 'there is no such group or decision', 11: 'permission is missing', 12: 'the cluster cannot be reached' },
  usesCluster: true,
  load: async () => (await import('../commands/explain.ts')).run,
};

const events: Verb = {
  name: 'events',
  group: 'Observe',
  summary: 'List the decisions about groups as they were recorded',
  arguments: [{ name: 'group', description: 'A group, or NAMESPACE/GROUP; all when left out.' }],
  options: [
    { flags: '-w, --watch', description: 'Go on with each new one.' },
    { flags: '--since <duration>', description: 'Only those of this last while, as 2h.' },
    namespaceOption,
    allNamespacesOption,
    outputOption('table', 'json', 'yaml', 'jsonl'),
  ],
  examples: ['events ingester -n mimir', 'events -A --since 2h -w'],
  exits: { 10: 'there is no such group', 11: 'permission is missing', 12: 'the cluster cannot be reached' },
  usesCluster: true,
  load: async () => (await import('../commands/events.ts')).run,
};

const history: Verb = {
  name: 'history',
  group: 'Observe',
  summary: 'List the rollouts of a group, or the steps of one',
  arguments: [groupArgument, { name: 'run', description: 'A run as the list names it; its steps are shown.' }],
  options: [namespaceOption, outputOption('table', 'json', 'yaml')],
  examples: ['history ingester -n mimir', 'history ingester 4f1c9a02'],
  exits: { 10: 'there is no such group or run, or no record of it', 11: 'permission is missing', 12: 'the cluster cannot be reached' },
  usesCluster: true,
  load: async () => (await import('../commands/history.ts')).run,
};

export const observeVerbs: readonly Verb[] = [get, status, explain, events, history];
