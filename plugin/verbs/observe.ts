// Describes the verbs that show the current state and past runs.

import { currentState, desiredState, instant } from './preview.ts';
import {
  agentNamespaceOption,
  allNamespacesOption,
  fileOption,
  fromReportOption,
  groupArgument,
  groupForms,
  groupsArgument,
  namespaceOption,
  outputOption,
  selectorOption,
  type Verb,
} from './verb.ts';

const heartbeat = {
  flags: '--heartbeat <duration>',
  description: 'Interval of the progress line in a log; 0 for never.',
  default: '60s',
} as const;

const groupOptions = [namespaceOption, allNamespacesOption, selectorOption, fromReportOption];

const get: Verb = {
  name: 'get',
  summary: 'List groups, or show the zones and pods of one group',
  description:
    'Shows the status that the agent published, its age, and when a run is likely to end. Without a published status, this command decides itself from the cluster and says so. On a terminal, keys show more details; a key that changes something asks first.',
  arguments: [
    { ...groupsArgument, description: `${groupsArgument.description} Default: all groups. A single group is shown with its zones.` },
  ],
  options: [
    { flags: '-w, --watch', description: 'Watch for changes: redraw on a terminal, otherwise print one line per transition.' },
    {
      flags: '--timeout <duration>',
      description: 'With --watch: exit with 0 as soon as every group is done, and with 7 after this time; 0 for never.',
    },
    {
      flags: '--pods <which>',
      description: 'With one group: ranges shows pods that are not in flight as ranges per revision, all shows a row for each pod.',
      choices: ['ranges', 'all'],
      default: 'ranges',
    },
    heartbeat,
    namespaceOption,
    allNamespacesOption,
    selectorOption,
    agentNamespaceOption,
    fromReportOption,
    outputOption('table', 'wide', 'name', 'json', 'yaml', 'jsonl', 'jsonpath=', 'custom-columns='),
  ],
  examples: ['get', 'get -A -o wide', 'get ingester -n mimir -w', 'get -o custom-columns=NAME:.group.name,PHASE:.phase'],
  exits: { 7: 'timed out before every group was done', 10: 'the group does not exist' },
  load: async () => (await import('../commands/get.ts')).run,
};

const status: Verb = {
  name: 'status',
  summary: 'Show the progress of a rollout and wait until it ends',
  description:
    'The exit code names the result for pipelines. Ctrl-C stops the waiting, not the rollout. Shows when the rollout is likely to end, as a range, or why the end is unknown. On a terminal, ? lists the keys.',
  arguments: [groupsArgument],
  options: [
    {
      flags: '--for <condition>',
      description: 'Condition to wait for: complete, paused, zone=NAME or wave=NAME (or its number).',
      default: 'complete',
      completes: 'condition',
    },
    { flags: '--timeout <duration>', description: 'Stop waiting after this time; 0 for never. Default: never, or 30m if CI is set.' },
    { flags: '--fail-on-pause', description: 'Exit with 8 as soon as the group is paused or needs a person.' },
    { flags: '-w, --watch', description: 'Wait until the rollout ends; --watch=false reports once.', default: 'true' },
    heartbeat,
    ...groupOptions,
    outputOption('table', 'json', 'yaml', 'jsonl', 'jsonpath='),
  ],
  examples: ['status ingester -n mimir', 'status ingester --timeout 2h --fail-on-pause', 'status ingester --watch=false -o json'],
  exits: {
    6: 'the rollout failed or was aborted',
    7: 'timed out while the rollout was in progress',
    8: 'the group is paused or waits for a person, at the timeout or with --fail-on-pause',
    10: 'the group does not exist',
    12: 'the cluster is unreachable, or no agent is running',
  },
  load: async () => (await import('../commands/status.ts')).run,
};

const explain: Verb = {
  name: 'explain',
  summary: 'Show why a group progresses, waits or is blocked, rule by rule',
  description:
    'Lists every rule that blocks, with its fact, its limit and the place that defines the limit. Counts the other rules. Reads the cluster, or manifests with --current or --desired. With --set, -f or --at, explains the state after the change, as plan does. To see the documentation of fields, use schema.',
  arguments: [
    {
      name: 'group',
      description: `${groupForms} With a cluster also the name of a StatefulSet or pod alone, GROUP/POD such as ingester/a-2, or decision/ID of a denial.`,
      isRequired: true,
      isVariadic: true,
      isEach: true,
      completes: 'group',
    },
  ],
  options: [
    currentState,
    desiredState,
    fileOption,
    { flags: '--set <key=value>', description: 'Explain the state after this change, given as for plan --set.', isRepeatable: true },
    { ...instant, description: 'Evaluate the rules for this time, for example 2026-01-15T10:00:00Z; default: now.' },
    namespaceOption,
    agentNamespaceOption,
    fromReportOption,
    { flags: '--all-rules', description: 'Also list the rules that passed or do not apply.' },
    outputOption('table', 'json', 'yaml', 'jsonpath='),
  ],
  examples: [
    'explain ingester -n mimir',
    'explain ingester-zone-b-7',
    'explain decision/3f9c2e1b8a40 -n mimir',
    'explain ingester --current manifests/ --set image=grafana/mimir:2.17.1',
    'explain ingester --from-report report.tar.gz',
  ],
  exits: { 4: 'a file has errors', 10: 'a file, a revision, the group or the decision does not exist' },
  load: async () => (await import('../commands/explain.ts')).run,
};

const events: Verb = {
  name: 'events',
  summary: 'List the recorded decisions about groups',
  arguments: [{ ...groupsArgument, description: `${groupsArgument.description} Default: all groups.` }],
  options: [
    { flags: '-w, --watch', description: 'Print the recorded events, then each new event.' },
    { flags: '--timeout <duration>', description: 'With --watch: exit with 7 after this time; 0 for never.' },
    { flags: '--since <duration>', description: 'Only events newer than this, for example 2h.' },
    ...groupOptions,
    outputOption('table', 'json', 'yaml', 'jsonl', 'jsonpath='),
  ],
  examples: ['events ingester -n mimir', 'events -A --since 2h -w'],
  exits: { 7: 'the time of --timeout is over', 10: 'the group does not exist' },
  load: async () => (await import('../commands/events.ts')).run,
};

const history: Verb = {
  name: 'history',
  summary: 'List the rollout runs of a group, or the steps of one run',
  arguments: [
    { ...groupArgument, isRequired: false },
    { name: 'run', description: 'A run from the list; shows its steps.', completes: 'run' },
  ],
  options: [...groupOptions, outputOption('table', 'json', 'yaml', 'jsonpath=', 'custom-columns=')],
  examples: ['history ingester -n mimir', 'history -A', 'history ingester 4f1c9a02'],
  exits: { 10: 'the group, the run or its record does not exist' },
  load: async () => (await import('../commands/history.ts')).run,
};

const report: Verb = {
  name: 'report',
  summary: 'Write a file with the data that explain, plan and doctor read',
  description:
    'Attach the file to an issue. Other people run explain, plan, simulate, get, status, events, history, doctor and version with --from-report FILE, and see what you see. Secrets, environment variables, arguments and most annotations are replaced by numbers. To see what the file contains, run: docs output.',
  arguments: [groupArgument],
  options: [
    {
      flags: '-o, --output <file>',
      description: 'File to write; default: rollout-group-report-NAMESPACE-GROUP.tar.gz in the current directory.',
      completes: 'file',
    },
    namespaceOption,
    agentNamespaceOption,
  ],
  examples: ['report ingester -n mimir', 'report ingester -n mimir -o report.tar.gz'],
  exits: { 10: 'the group does not exist', 11: 'permission is missing, or the file is not writable' },
  load: async () => (await import('../commands/report.ts')).run,
};

export const observeVerbs: readonly Verb[] = [get, status, explain, events, history, report].map((verb) => ({
  ...verb,
  usesCluster: true,
}));
