// Describes the verbs that act on a group.
import { writeNotes } from '../context.ts';
import { actOptions, agentNamespaceOption, eachGroupArgument, groupArgument, type OptionSpec, type Verb } from './verb.ts';

const zone = { flags: '--zone <name>', description: 'Only this zone.', completes: 'zone' } as const;
/** Returns the flags about the confirmation. Without a terminal the verb does not ask; `needs` says which flag it then requires. */
function prompts(needs = ''): readonly OptionSpec[] {
  return [
    { flags: '--yes', description: 'Do not ask for confirmation.' },
    {
      flags: '--no-input',
      description: `Never prompt: continue without confirmation, as without a terminal. ${needs}`.trim(),
    },
  ];
}
/** Scripts pass this flag to every verb. */
const unasked: OptionSpec = { flags: '--yes', description: 'Has no effect: the verb never asks for confirmation.' };
const exits = { 10: 'the group does not exist, or the CRD of the request is not installed' } as const;

const pause: Verb = {
  name: 'pause',
  summary: 'Pause a group: pods in flight finish, no further pod is replaced',
  description:
    'Creates a RolloutIntent. The agent still scales up, but not down. A pause denies no request of other clients: kubectl scale of a leading zone still removes pods at once. With --zone, the rollout starts no later zone while the wave has a pod of this zone to replace. If the group is already paused, updates only the reason and the end.',
  options: [zone, { flags: '--duration <duration>', description: 'Resume automatically after this time, for example 2h.' }, unasked],
  examples: ['pause ingester --zone zone-c --duration 2h --reason "read latency"'],
  load: async () => (await import('../commands/pause.ts')).pause,
};

const resume: Verb = {
  name: 'resume',
  summary: 'Resume a paused group or zone',
  description:
    'Deletes the RolloutIntents that pause the whole group, or with --zone those that pause this zone, and names the pauses that remain. If nothing is paused, says so and exits with 0.',
  options: [zone, unasked],
  examples: ['resume ingester', 'resume ingester --zone zone-c'],
  load: async () => (await import('../commands/pause.ts')).resume,
};

const restart: Verb = {
  name: 'restart',
  summary: 'Restart all pods in the safe order of the group',
  description:
    'Sets the annotation kubectl.kubernetes.io/restartedAt on the pod templates, like kubectl rollout restart. The agent then rolls out the new revision. Only this annotation differs from the manifests in Git. Prints the images before and after, the run that the restart supersedes, and the approvals that the new run waits for. Replaces only pods that the waves include; without such a pod, the command is refused. A restart is denied if the template failed, was undone or was rolled back: retry rolls this template out, and undo returns to the previous template.',
  options: [zone, ...prompts()],
  examples: ['restart store-gateway -n mimir --reason "new certificates"', 'restart store-gateway --zone zone-a --dry-run=server'],
  exits: {
    5: 'the restart would have no effect, is denied by policy, or was not confirmed',
    9: 'a StatefulSet changed during the command',
    10: 'the group does not exist',
  },
  load: async () => (await import('../commands/restart.ts')).run,
};

const scale: Verb = {
  name: 'scale',
  summary: 'Change the replicas at the object that defines them',
  description:
    'Updates the scale subresource of the leading StatefulSet, of the object whose replicas the group mirrors, or of the group. Shows which zones follow, and when. If Git sets the replicas, change them there too.',
  options: [
    { flags: '--replicas <number>', description: 'Number of replicas.', isRequired: true, atLeast: 0 },
    { flags: '--zone <name>', description: 'The leading zone, if the group has several leading zones.', completes: 'zone' },
    { flags: '--confirm <group>', description: 'Name of the group; required to scale to zero without a prompt.' },
    ...prompts('Scaling to zero needs --confirm.'),
  ],
  examples: ['scale ingester -n mimir --replicas 24 --reason "more tenants"', 'scale ingester --replicas 20 --dry-run=client'],
  exits: { 5: 'denied by policy, or not confirmed', 10: 'the group does not exist' },
  load: async () => (await import('../commands/scale.ts')).run,
};

const requestExits = { 5: 'the request would have no effect, or is denied by policy' } as const;
const confirmedExits = { 5: 'the request would have no effect, is denied by policy, or was not confirmed' } as const;
const runEnded = { 9: 'the run failed, or another run superseded it, during the command' } as const;
const inRun = 'Applies only to the current run, and only if the webhook verifies the requester.';
const terms = (of: string) => `The ${of} counts only if the webhook verifies the requester. For a wave, it counts only in the current run.`;
const subject: readonly OptionSpec[] = [
  { flags: '--wave <name>', description: 'The wave; default: the wave that waits now.', completes: 'wave' },
  { flags: '--rule <policy/rule>', description: 'The rule of a RolloutPolicy; default: the rule that waits now.' },
  {
    flags: '--duration <duration>',
    description: 'The request expires after this time. Default: 1h for an approval that is not bound to a run.',
  },
];

const approve: Verb = {
  name: 'approve',
  summary: 'Approve a wave that waits for approval',
  description: `Creates a RolloutIntent. Fails if you belong to none of the user groups that may approve. ${terms('approval')}`,
  options: subject,
  examples: ['approve ingester --reason "canary looks good"', 'approve ingester --wave rest --duration 2h'],
  exits: { ...requestExits, ...runEnded },
  load: async () => (await import('../commands/approve.ts')).approve,
};

const reject: Verb = {
  name: 'reject',
  summary: 'Reject a wave that waits for approval',
  description: `The wave or rule stays blocked until you approve it, or the rejection expires or is cancelled. ${terms('rejection')}`,
  options: subject,
  examples: ['reject ingester --wave rest --reason "errors in the canary"'],
  exits: { ...requestExits, ...runEnded },
  load: async () => (await import('../commands/approve.ts')).reject,
};

const promote: Verb = {
  name: 'promote',
  summary: 'Skip the soak and the gates of a wave',
  description: `Approvals, windows, policy rules and all availability rules still apply. ${inRun}`,
  options: [
    { flags: '--wave <name>', description: 'The wave; default: the current wave.', completes: 'wave' },
    { flags: '--gate <name>', description: 'Skip only this gate, and no soak.', completes: 'gate' },
    { flags: '--full', description: 'Skip the soak and the gates of this wave and of all later waves. Without a terminal it needs --yes.' },
    ...prompts('--full needs --yes.'),
  ],
  examples: ['promote ingester --reason "hotfix, canary is fine"', 'promote ingester --gate errors', 'promote ingester --full --yes'],
  exits: { ...confirmedExits, ...runEnded },
  load: async () => (await import('../commands/promote.ts')).run,
};

const abort: Verb = {
  name: 'abort',
  summary: 'Abort the current run and keep all pods as they are, or roll back',
  description:
    'The run ends as failed. Pods in flight finish; no further pod is replaced until undo, retry or a new pod template. Replicas do not change. If no run is in progress, says so and exits with 0, or with 5 for --rollback.',
  options: [
    {
      flags: '--rollback',
      description: 'Return the updated pods to their previous revision, also if the run has failed. Only for groups with strategy: pinned.',
    },
  ],
  examples: ['abort ingester --reason "bad WAL replay"', 'abort ingester --rollback --reason "bad WAL replay"'],
  exits: requestExits,
  load: async () => (await import('../commands/abort.ts')).abort,
};

const retry: Verb = {
  name: 'retry',
  summary: 'Continue a run that failed or was aborted',
  description: `The run continues from its current state. Soaks, gates and deadlines start over; approvals still count. ${inRun}`,
  options: [],
  examples: ['retry ingester --reason "node was replaced"'],
  exits: requestExits,
  load: async () => (await import('../commands/abort.ts')).retry,
};

const undo: Verb = {
  name: 'undo',
  summary: 'Roll a group back to the previous revision, in its safe order',
  description:
    'Writes the earlier pod template to the members, and a RolloutIntent that blocks the undone revision while manifests in Git still request that revision. A rollback to the revision before the run skips soaks, gates and approvals, unless the group sets skipOnRollback: false. After abort --rollback, it gives the members the template that their pods run.',
  options: [
    {
      flags: '--to-revision <revision>',
      description: 'Revision number from kubectl rollout history, or revision hash. Refused if it is not the same template in all zones.',
      completes: 'revision',
    },
    { flags: '--to-run <run>', description: 'The revisions that the run of history rolled out.', completes: 'run' },
    { flags: '--to-commit <commit>', description: 'The revision that the recorded run of this commit rolled out.' },
    zone,
    ...prompts('--to-revision, --to-run and --to-commit need --yes.'),
  ],
  examples: [
    'undo ingester --reason "memory leak"',
    'undo ingester --to-run 1c8e52f0aa --yes',
    'undo ingester --to-revision 40 --yes',
    'undo ingester --dry-run=client',
  ],
  exits: { 5: 'denied by policy, or not confirmed', 9: 'a StatefulSet changed during the command' },
  load: async () => (await import('../commands/undo.ts')).run,
};

const override: Verb = {
  name: 'override',
  summary: 'Let one rule pass for a limited time',
  description:
    'Creates a RolloutException with a reason and an end. All other rules still apply. Rules about unknown values, such as view-complete, cannot be overridden.',
  options: [
    { flags: '--rule <rule>', description: 'Name of the rule, from explain.', isRequired: true, completes: 'rule' },
    { flags: '--duration <duration>', description: 'Duration, for example 30m.', isRequired: true },
    zone,
    { flags: '--replicas-at-least <number>', description: 'Allow a scale-down only to this number of replicas.', atLeast: 0 },
    { flags: '--pods-at-most <number>', description: 'Allow at most this many pods at once.', atLeast: 1 },
    ...prompts('An override needs --yes.'),
  ],
  examples: ['override ingester --rule zone-gap --duration 30m --reason "cost event" --yes'],
  exits: confirmedExits,
  load: async () => (await import('../commands/override.ts')).run,
};

const cancel: Verb = {
  name: 'cancel',
  summary: 'Cancel a request, or a scale-down that has not happened yet',
  description:
    'With a name: deletes that RolloutIntent or RolloutException. Without a name: the zone that is about to scale down keeps its replicas, and its prepared pods return to service, until different replicas are requested.',
  arguments: [
    groupArgument,
    { name: 'intent', description: 'Name of a RolloutIntent or RolloutException, from explain.', completes: 'request' },
  ],
  options: [{ flags: '--zone <name>', description: 'The zone whose scale-down is cancelled.', completes: 'zone' }],
  examples: ['cancel ingester --zone zone-b', 'cancel ingester protect.ingester.36a9e7f1c9'],
  load: async () => (await import('../commands/cancel.ts')).run,
};

const protect: Verb = {
  name: 'protect',
  summary: 'Protect a group, a zone or single pods until a given time',
  description:
    'Creates a RolloutIntent. Protected pods are not replaced and not scaled down. The output says whether a webhook also denies their deletion and eviction. The protection ends at the given time, or with cancel.',
  options: [
    zone,
    {
      flags: '--pod <name>',
      description: 'Only this pod: its name, or zone and ordinal such as a-3.',
      isRepeatable: true,
      completes: 'pod',
    },
    { flags: '--duration <duration>', description: 'Duration, for example 2h.' },
    { flags: '--until <instant>', description: 'End, for example 2026-12-18T18:00:00Z.' },
  ],
  examples: ['protect ingester --zone zone-c --duration 2h --reason "restore runs"', 'protect ingester --pod a-3 --duration 1h'],
  load: async () => (await import('../commands/protect.ts')).run,
};

/** Adds the parts that all verbs of this file share, and these flags. */
function acting(flags: readonly OptionSpec[]): (verb: Verb) => Verb {
  return (verb) => ({
    arguments: [eachGroupArgument],
    usesCluster: true,
    ...verb,
    options: [...verb.options, ...flags],
    exits: { ...exits, ...verb.exits },
    load: async () => {
      const parts = verb.options.flatMap(({ flags: text }) => /^--(?:zone|pod)(?= )/.exec(text)?.[0] ?? []);
      const [run, { wholeGroupNotes }, { refuseUnknownGroups }] = await Promise.all([
        verb.load(),
        import('../live/target.ts'),
        import('../live/named-group.ts'),
      ]);
      return async (context, options) => {
        await refuseUnknownGroups(context, options);
        writeNotes(context, wholeGroupNotes(verb.name, parts, options));
        return run(context, options);
      };
    },
  });
}

export const actVerbs: readonly Verb[] = [
  ...[pause, resume].map(acting(actOptions)),
  ...[approve, reject, promote, abort, retry, undo, restart, scale, override, cancel, protect].map(
    acting([...actOptions, agentNamespaceOption]),
  ),
];
