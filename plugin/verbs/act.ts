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

export const actVerbs: readonly Verb[] = [pause, resume, restart, scale];
