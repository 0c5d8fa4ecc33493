// The verbs that ask something of a group.
import { actOptions } from './connection.ts';
import { agentNamespaceOption, type OptionSpec, type Verb } from './verb.ts';

const groupArgument = { name: 'group', description: 'A group, or NAMESPACE/GROUP.', isRequired: true } as const;
const zone = { flags: '--zone <name>', description: 'Only this zone.' } as const;
const prompts: readonly OptionSpec[] = [
  { flags: '--yes', description: 'Do not ask.' },
  { flags: '--no-input', description: 'Ask nothing, also on a terminal; what must be confirmed is then refused.' },
];
const exits = {
  10: 'there is no such group, or what records the request is not installed',
  11: 'permission is missing',
  12: 'the cluster cannot be reached',
} as const;

const pause: Verb = {
  name: 'pause',
  group: 'Act',
  summary: 'Let nothing new start; pods already replaced finish',
  description: 'Writes a RolloutIntent. Doing it again changes nothing but the reason and the end. A paused group still scales.',
  arguments: [groupArgument],
  options: [zone, { flags: '--for <duration>', description: 'Go on by itself after this long, as 2h.' }, ...actOptions],
  examples: ['pause ingester --zone zone-c --for 2h --reason "read latency"'],
  exits,
  usesCluster: true,
  load: async () => (await import('../commands/pause.ts')).run,
};

const resume: Verb = {
  name: 'resume',
  group: 'Act',
  summary: 'Take a pause back',
  description: 'Deletes the RolloutIntents that pause the group or the zone. Where nothing is paused it says so and ends with 0.',
  arguments: [groupArgument],
  options: [zone, ...actOptions],
  examples: ['resume ingester', 'resume ingester --zone zone-c'],
  exits,
  usesCluster: true,
  load: async () => (await import('../commands/resume.ts')).run,
};

const restart: Verb = {
  name: 'restart',
  group: 'Act',
  summary: 'Replace all pods in the safe order of the group',
  description:
    'Sets the annotation kubectl.kubernetes.io/restartedAt on the pod templates of the members, as kubectl rollout restart does; the agent then rolls the new revision. Manifests in Git differ from then on in that annotation alone.',
  arguments: [groupArgument],
  options: [zone, ...prompts, ...actOptions, agentNamespaceOption],
  examples: ['restart store-gateway -n mimir --reason "new certificates"', 'restart store-gateway --zone zone-a --dry-run=server'],
  exits: { 5: 'policy refuses it, or a person says no', ...exits },
  usesCluster: true,
  load: async () => (await import('../commands/restart.ts')).run,
};

const scale: Verb = {
  name: 'scale',
  group: 'Act',
  summary: 'Change the number of replicas where the group takes it from',
  description:
    'Writes the leading StatefulSet, the mirrored object or the group itself, through its scale subresource, and shows who follows and when. Replicas that Git names must be changed there too.',
  arguments: [groupArgument],
  options: [
    { flags: '--to <number>', description: 'Replicas.', isRequired: true, atLeast: 0 },
    { flags: '--zone <name>', description: 'The leading zone, where there are several.' },
    { flags: '--confirm <group>', description: 'The name of the group, to scale it to zero.' },
    ...prompts,
    ...actOptions,
    agentNamespaceOption,
  ],
  examples: ['scale ingester -n mimir --to 24 --reason "more tenants"', 'scale ingester --to 20 --dry-run=client'],
  exits: { 5: 'policy refuses it, or a person says no', ...exits },
  usesCluster: true,
  load: async () => (await import('../commands/scale.ts')).run,
};

const refusals = { 5: 'it would count for nothing, policy refuses it, or a person says no', ...exits } as const;
/** It lets a run go on, so that it is bound to the run, and counts from vouched people alone. */
const vouched = 'Counts only where the webhook writes down who asks, and for the run under way alone.';
const confirmOption: OptionSpec = { flags: '--confirm <group>', description: 'The name of the group, in place of typing it.' };
const subject: readonly OptionSpec[] = [
  { flags: '--wave <name>', description: 'The wave; otherwise what waits now.' },
  { flags: '--rule <policy/rule>', description: 'The rule of a RolloutPolicy; otherwise what waits now.' },
  { flags: '--for <duration>', description: 'Ends by itself after this long, as 2h.' },
];

const approve: Verb = {
  name: 'approve',
  group: 'Act',
  summary: 'Say yes to what waits for an approval',
  description: `Writes a RolloutIntent. ${vouched} Refused where the API server knows you as a member of none of the groups that may approve.`,
  arguments: [groupArgument],
  options: [...subject, ...actOptions, agentNamespaceOption],
  examples: ['approve ingester --reason "canary looks good"', 'approve ingester --wave rest --for 2h'],
  exits: refusals,
  usesCluster: true,
  load: async () => (await import('../commands/approve.ts')).run,
};

const reject: Verb = {
  name: 'reject',
  group: 'Act',
  summary: 'Say no to what waits for an approval',
  description: `Nothing of it begins until you approve it or take the intent back. ${vouched}`,
  arguments: [groupArgument],
  options: [...subject, ...actOptions, agentNamespaceOption],
  examples: ['reject ingester --wave rest --reason "errors in the canary"'],
  exits: refusals,
  usesCluster: true,
  load: async () => (await import('../commands/reject.ts')).run,
};

const promote: Verb = {
  name: 'promote',
  group: 'Act',
  summary: 'Pass over the soak and the gates of a wave',
  description: `Approvals, windows, rules of policies and everything that keeps pods available hold as before. ${vouched}`,
  arguments: [groupArgument],
  options: [
    { flags: '--wave <name>', description: 'The wave; otherwise the one under way.' },
    { flags: '--gate <name>', description: 'This gate alone, and no soak.' },
    { flags: '--full', description: 'Every wave of the run; the name of the group must be typed or given with --confirm.' },
    confirmOption,
    ...prompts,
    ...actOptions,
    agentNamespaceOption,
  ],
  examples: [
    'promote ingester --reason "hotfix, canary is fine"',
    'promote ingester --gate errors',
    'promote ingester --full --confirm ingester',
  ],
  exits: refusals,
  usesCluster: true,
  load: async () => (await import('../commands/promote.ts')).run,
};

const abort: Verb = {
  name: 'abort',
  group: 'Act',
  summary: 'End the run under way and leave everything as it is, or bring it back',
  description:
    'The run ends as failed: pods on their way finish, and nothing else moves until somebody goes back (undo), on (retry) or forward with a new template. Replicas stay as they are. Where nothing rolls it says so and ends with 0.',
  arguments: [groupArgument],
  options: [
    { flags: '--rollback', description: 'Bring the new pods back to what they ran before. Groups of the strategy pinned only.' },
    ...actOptions,
    agentNamespaceOption,
  ],
  examples: ['abort ingester --reason "bad WAL replay"', 'abort ingester --rollback --reason "bad WAL replay"'],
  exits,
  usesCluster: true,
  load: async () => (await import('../commands/abort.ts')).run,
};

const retry: Verb = {
  name: 'retry',
  group: 'Act',
  summary: 'Let a run that failed or was aborted go on',
  description: `It goes on where it is; soak, gates and deadlines begin anew. ${vouched}`,
  arguments: [groupArgument],
  options: [...actOptions, agentNamespaceOption],
  examples: ['retry ingester --reason "node was replaced"'],
  exits: refusals,
  usesCluster: true,
  load: async () => (await import('../commands/retry.ts')).run,
};

const undo: Verb = {
  name: 'undo',
  group: 'Act',
  summary: 'Go back to the revision of before, the whole group in its safe order',
  description:
    'Writes the earlier template into the members and a RolloutIntent that holds what is taken back: as long as manifests in Git ask for it again, it is not rolled. Going back to what ran before the run skips soak and approvals unless the group says otherwise.',
  arguments: [groupArgument],
  options: [
    { flags: '--to-revision <revision>', description: 'A number as kubectl rollout history shows it, or a hash.' },
    { flags: '--to-commit <commit>', description: 'What the recorded run of this commit rolled.' },
    zone,
    confirmOption,
    ...prompts,
    ...actOptions,
    agentNamespaceOption,
  ],
  examples: ['undo ingester --reason "memory leak"', 'undo ingester --to-revision 40 --confirm ingester', 'undo ingester --dry-run=client'],
  exits: { 5: 'policy refuses it, or a person says no', 6: 'only a part of the members could be written', ...exits },
  usesCluster: true,
  load: async () => (await import('../commands/undo.ts')).run,
};

const override: Verb = {
  name: 'override',
  group: 'Act',
  summary: 'Let one named rule pass for a while',
  description:
    'Writes a RolloutException with a reason and an end. Rules that rest on what can be seen, such as view-complete, cannot be overridden; every other rule holds as before.',
  arguments: [groupArgument],
  options: [
    { flags: '--rule <rule>', description: 'The rule, as explain names it.', isRequired: true },
    { flags: '--for <duration>', description: 'How long, as 30m.', isRequired: true },
    zone,
    { flags: '--replicas-at-least <number>', description: 'Only shrinking to this number, no further.', atLeast: 0 },
    { flags: '--pods-at-most <number>', description: 'Only this many pods at once, no more.', atLeast: 1 },
    confirmOption,
    ...prompts,
    ...actOptions,
    agentNamespaceOption,
  ],
  examples: ['override ingester --rule zone-gap --for 30m --reason "cost event" --confirm ingester'],
  exits: refusals,
  usesCluster: true,
  load: async () => (await import('../commands/override.ts')).run,
};

const cancel: Verb = {
  name: 'cancel',
  group: 'Act',
  summary: 'Take back what was asked for, or a decrease that has not happened yet',
  description:
    'With a name: deletes that RolloutIntent or RolloutException of the group. Without: the zone that is about to shrink keeps its replicas, and pods that prepared to leave are told to stay, until another number is asked for.',
  arguments: [groupArgument, { name: 'intent', description: 'The name of an intent or exception, as explain names it.' }],
  options: [{ flags: '--zone <name>', description: 'The zone whose decrease is taken back.' }, ...actOptions, agentNamespaceOption],
  examples: ['cancel ingester --zone zone-b', 'cancel ingester protect.ingester'],
  exits,
  usesCluster: true,
  load: async () => (await import('../commands/cancel.ts')).run,
};

const protect: Verb = {
  name: 'protect',
  group: 'Act',
  summary: 'Keep a group, a zone or some pods as they are until a given time',
  description:
    'Writes a RolloutIntent. What is protected is not replaced and does not shrink; the webhook lets nobody else delete or evict it. It ends by itself, or with cancel.',
  arguments: [groupArgument],
  options: [
    zone,
    { flags: '--pod <name>', description: 'Only this pod.', isRepeatable: true },
    { flags: '--for <duration>', description: 'For this long, as 2h.' },
    { flags: '--until <instant>', description: 'Until then, as 2026-12-18T18:00:00Z.' },
    ...actOptions,
    agentNamespaceOption,
  ],
  examples: ['protect ingester --zone zone-c --for 2h --reason "restore runs"', 'protect ingester --pod ingester-zone-a-3 --for 1h'],
  exits,
  usesCluster: true,
  load: async () => (await import('../commands/protect.ts')).run,
};

export const actVerbs: readonly Verb[] = [
  pause,
  resume,
  approve,
  reject,
  promote,
  abort,
  retry,
  undo,
  restart,
  scale,
  override,
  cancel,
  protect,
];
