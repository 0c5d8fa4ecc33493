// Every rule of the engine with what it holds and how it may answer. The documentation and the coverage test read this list.
import type { RuleOutcome } from '../decision.ts';
import { reasonOf } from '../publish/reason.ts';

export interface RuleEntry {
  readonly id: string;
  readonly title: string;
  readonly outcomes: readonly RuleOutcome[];
  /** What it means when the rule holds, and what to do then; absent where the fact says it all. */
  readonly whenHeld?: string;
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
  {
    id: 'eviction-budget',
    title: 'PodDisruptionBudgets let the eviction API take a pod',
    outcomes: ['ok', 'wait', 'no', 'unknown'],
    whenHeld:
      'It waits while the pods that a PodDisruptionBudget covers are not all healthy. It says no where waiting does not help: the budget lets no pod go even when all are healthy (`maxUnavailable: 0`, or `minAvailable: 100%`), or two budgets select the same pods, which the eviction API refuses. Let the budget spare a pod, and leave one budget over each pod. If the group is to stand still on purpose, write `paused: true` into its zones; in a cluster `kubectl rollout-group pause GROUP` does it too. Pods that are stuck on an old version are deleted, not evicted, and go all the same.',
  },
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
  {
    id: 'pin-applied',
    title: 'every pod that was taken away came back at the revision which it was to have',
    outcomes: ['ok', 'wait'],
    whenHeld:
      'Under the strategy `pinned` the StatefulSet controller makes every pod at the old version, and the webhook on the creation of pods gives it the new one. The pods that the rule names came back at the old version: the webhook was not asked, or did not answer. They run and serve. Each goes once more half a minute later; after two attempts no pod of the group goes any more, so that nothing is restarted for nothing. Look at `kubectl rollout-group doctor`: it says whether the webhook configuration `0-rollout-group-pinned` is there and names the StatefulSets. The log of the agent says of each pod why it was left as it was; when it says nothing, the API server does not reach the webhook. Put that right (`kubectl rollout-group install` prints what is missing) and say `kubectl rollout-group retry GROUP`.',
  },
  { id: 'pods-in-flight', title: 'pods that were replaced have come back', outcomes: ['wait'] },
  { id: 'prepare-downscale', title: 'leaving pods are prepared', outcomes: ['ok', 'wait', 'no', 'skip'] },
  { id: 'progress-deadline', title: 'a pod became available recently enough', outcomes: ['ok', 'skip'] },
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
  {
    id: 'revision-known',
    title: 'the revision at which a pod is to come back can be read',
    outcomes: ['ok', 'skip', 'unknown'],
    whenHeld:
      'The agent reads the ControllerRevision of the new template before it takes a pod away, and could not. Most often the right to read `controllerrevisions` is missing, which `kubectl rollout-group doctor` names. It asks again every few seconds, and goes on by itself once it can.',
  },
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
  {
    id: 'zone-budget',
    title: 'fewer pods of the zone are down than may be',
    outcomes: ['ok', 'wait', 'no'],
    whenHeld:
      'It waits until pods that were replaced are available again. It says no when the limit is 0, which neither time nor progress changes: `maxUnavailable: 0` of the group, of the zone or of a policy, or `fromBudget` with a PodDisruptionBudget that lets no pod go. Raise the limit where the rule says that it is written. If the group is to stand still on purpose, write `paused: true` into its zones, or let a policy hold it; in a cluster `kubectl rollout-group pause GROUP` does it too. Then everybody sees who asked for it, and plans say so. Pods that are stuck on an old version are replaced all the same.',
  },
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
    '## When a rule holds',
    '',
    ...ruleCatalog.flatMap(({ id, whenHeld }) => (whenHeld === undefined ? [] : [`### \`${id}\``, '', whenHeld, ''])),
  ].join('\n');
}
