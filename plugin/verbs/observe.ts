// The verbs that show what happens now, and what happened.
import { namespaceOption } from './connection.ts';
import { currentState, desiredState, instant } from './preview.ts';
import { fileOption, outputOption, type Verb } from './verb.ts';

const explain: Verb = {
  name: 'explain',
  group: 'Observe',
  summary: 'Say why a group moves, waits or is refused, rule by rule',
  description:
    'Lists every rule with the fact, the limit and where it is written: of the cluster, or of manifests when they are named. For the documentation of fields, see schema.',
  arguments: [
    {
      name: 'group',
      description: 'A group, or NAMESPACE/GROUP; of a cluster also a pod or a StatefulSet.',
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
    { flags: '--what-if', description: 'Say what would have to change for the next step to start.' },
    outputOption('table', 'json', 'yaml'),
  ],
  examples: [
    'explain ingester -n mimir',
    'explain ingester-zone-b-7',
    'explain ingester --current manifests/ --set image=grafana/mimir:2.17.1',
  ],
  exits: { 10: 'there is no such group', 11: 'permission is missing', 12: 'the cluster cannot be reached' },
  usesCluster: true,
  load: async () => (await import('../commands/explain.ts')).run,
};

export const observeVerbs: readonly Verb[] = [explain];
