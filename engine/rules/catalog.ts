// Every rule of the engine with what it holds and how it may answer. The documentation and the coverage test read this list.
import type { RuleOutcome } from '../decision.ts';
import { reasonOf } from '../publish/reason.ts';

export interface RuleEntry {
  readonly id: string;
  readonly title: string;
  readonly outcomes: readonly RuleOutcome[];
}

/** The rules by id. A rule of a RolloutPolicy is named `policy/rule` and may answer in every way. */
export const ruleCatalog: readonly RuleEntry[] = [
  { id: 'announced', title: 'the agent has announced what is asked for', outcomes: ['ok'] },
  { id: 'approval', title: 'enough people with the right groups approved the wave', outcomes: ['ok', 'wait', 'no', 'skip', 'unknown'] },
  {
    id: 'delayed-downscale',
    title: 'leaving pods have been prepared for the whole delay, and have just said so again',
    outcomes: ['ok', 'wait', 'no', 'skip'],
  },
  { id: 'disruption-budget', title: 'the disruption budget of the zone or partition has room', outcomes: ['ok', 'wait', 'no', 'unknown'] },
  { id: 'eviction-budget', title: 'PodDisruptionBudgets let the eviction API take a pod', outcomes: ['ok', 'wait', 'no', 'unknown'] },
  { id: 'gate', title: 'the measurements of a gate passed often enough in a row', outcomes: ['ok', 'wait', 'no', 'skip', 'unknown'] },
  { id: 'granted-before', title: 'what was allowed a while ago and never came has ended before it is allowed again', outcomes: ['wait'] },
  { id: 'leader-floor', title: 'a follower does not shrink below its leader', outcomes: ['ok', 'wait', 'skip'] },
  { id: 'leader-ready', title: 'a follower grows when all pods of its leader are ready', outcomes: ['ok', 'wait', 'skip'] },
  { id: 'ledger-full', title: 'fewer disruptions are announced than the ledger holds', outcomes: ['ok', 'wait'] },
  { id: 'min-interval', title: 'the last replacement is long enough ago', outcomes: ['ok', 'wait', 'skip'] },
  { id: 'namespace-ends', title: 'the namespace is being deleted, with everything in it', outcomes: ['ok'] },
  { id: 'no-delete', title: 'the StatefulSet may be deleted', outcomes: ['no'] },
  { id: 'no-downscale', title: 'the zone may shrink at all', outcomes: ['ok', 'no'] },
  { id: 'no-eviction', title: 'pods of the zone may be evicted', outcomes: ['no'] },
  { id: 'ordinals-kept', title: 'a write leaves the first ordinal of a StatefulSet as it is', outcomes: ['no'] },
  { id: 'other-zones-ready', title: 'every other zone of the group is whole', outcomes: ['ok', 'wait', 'skip'] },
  { id: 'partition-kept', title: 'the partition lets no pod go that the wave does not ask for', outcomes: ['ok', 'wait'] },
  { id: 'paused', title: 'neither policy nor a person paused the zone', outcomes: ['ok', 'wait', 'skip', 'unknown'] },
  { id: 'pods-in-flight', title: 'pods that were replaced have come back', outcomes: ['wait'] },
  { id: 'prepare-downscale', title: 'leaving pods are prepared', outcomes: ['ok', 'wait', 'no', 'skip'] },
  { id: 'progress-deadline', title: 'a pod became available recently enough', outcomes: ['ok', 'skip'] },
  {
    id: 'promotion-placed',
    title: 'every pod that was taken away came back at the revision which it was to have',
    outcomes: ['ok', 'wait'],
  },
  { id: 'protected', title: 'nobody protects the zone or the pod', outcomes: ['wait', 'unknown'] },
  {
    id: 'protection-kept',
    title:
      'what protected a StatefulSet holds on for ten minutes after it was taken away, and is not taken away in the middle of something',
    outcomes: ['wait', 'no'],
  },
  { id: 'replica-source', title: 'the number of replicas could be read', outcomes: ['ok', 'no', 'unknown'] },
  { id: 'replica-write-in-flight', title: 'no zone is growing or shrinking at this moment', outcomes: ['ok', 'wait'] },
  {
    id: 'replicas-owned',
    title: 'replicas of a member are written where the group says that they come from',
    outcomes: ['ok', 'no', 'skip'],
  },
  { id: 'restart-version', title: 'a pod that restarts comes back at the revision that it has', outcomes: ['wait'] },
  { id: 'revision-known', title: 'the revision at which a pod is to come back can be read', outcomes: ['ok', 'skip', 'unknown'] },
  { id: 'rolled-back', title: 'a revision that failed is asked for no more', outcomes: ['wait'] },
  { id: 'rollout-in-progress', title: 'no rollout stands against a change of replicas', outcomes: ['ok', 'wait', 'skip'] },
  { id: 'run-deadline', title: 'the run has not moved for longer than it may', outcomes: ['ok', 'skip'] },
  { id: 'run-failed', title: 'the run has not failed', outcomes: ['ok', 'no'] },
  { id: 'scale-ceiling', title: 'a zone grows to no more than its bounds and policies allow', outcomes: ['ok', 'no', 'skip'] },
  { id: 'scale-floor', title: 'a zone keeps at least one pod, and what its bounds and policies ask for', outcomes: ['ok', 'no', 'skip'] },
  { id: 'scaling-hold', title: 'the settings of the zone can be read and let it scale', outcomes: ['ok', 'no'] },
  { id: 'soak', title: 'the wave has been available for long enough', outcomes: ['ok', 'wait', 'skip'] },
  { id: 'undone', title: 'nobody took the revision back', outcomes: ['wait'] },
  { id: 'update-strategy', title: 'the StatefulSets have the update strategy that the engine needs', outcomes: ['ok', 'wait', 'no'] },
  { id: 'view-complete', title: 'every zone of the group was read, and is as new as its spec', outcomes: ['ok', 'wait', 'unknown'] },
  { id: 'wave-available', title: 'all pods of the group are available after a wave', outcomes: ['wait', 'unknown'] },
  { id: 'window', title: 'the windows of all policies are open', outcomes: ['ok', 'wait', 'skip'] },
  { id: 'zone-budget', title: 'fewer pods of the zone are down than may be', outcomes: ['ok', 'wait'] },
  { id: 'zone-gap', title: 'the last decrease of another zone is long enough ago', outcomes: ['ok', 'wait', 'no', 'skip', 'unknown'] },
];

/** The list of rules as a page of the documentation. */
export function rulesMarkdown(): string {
  const rows = ruleCatalog.map(({ id, title, outcomes }) => `| \`${id}\` | \`${reasonOf(id)}\` | ${title} | ${outcomes.join(', ')} |`);
  return [
    '# Rules',
    '',
    'Generated from `engine/rules/catalog.ts`. These names stand in plans, in `explain`, in refusals and in exceptions. A rule of a RolloutPolicy is',
    'named `policy/rule` and may answer in every way.',
    '',
    '- `ok`: it does not hold the step.',
    '- `wait`: it will pass by itself, with time or with progress elsewhere.',
    '- `no`: it refuses; a person must change something.',
    '- `skip`: it does not apply.',
    '- `unknown`: it could not be decided, which holds the step.',
    '',
    '| Rule | Reason of conditions and events | What it asks | How it may answer |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
