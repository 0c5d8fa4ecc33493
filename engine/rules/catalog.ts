// Lists every rule of the engine: its title, its outcomes, and the reason that conditions and Events show while it blocks.
import type { RuleOutcome, RuleResult } from '../decision.ts';

export interface RuleEntry {
  readonly id: string;
  /** The state in which the rule passes, as a clause after "passes when". */
  readonly title: string;
  readonly outcomes: readonly RuleOutcome[];
  /** PascalCase name of the blocked state; absent for a rule that never blocks. */
  readonly reason?: string;
  /** True if the agent ends each `wait` by itself; `dated` if only a wait with `earliestMs` ends so. Absent: it may need a person. */
  readonly endsByItself?: true | 'dated';
  /** True for a rule that never blocks: its result is a warning, an Event and a metric. */
  readonly onlyWarns?: true;
  /** The explanation and the remedy of a block; absent if the fact of the result is enough. */
  readonly whenBlocked?: string;
}

/** The rules by id. A rule of a RolloutPolicy is named `policy/rule` and may have every outcome. */
export const ruleCatalog: readonly RuleEntry[] = [
  {
    id: 'agent-access',
    reason: 'AgentAccessMissing',
    title: 'the agent runs, watches the namespace and has the rights that the step needs',
    outcomes: ['wait', 'no'],
    whenBlocked:
      'In a plan of a cluster, the rule waits if the Lease of the agent has expired or is gone. It answers `no` if the agent does not watch the namespace, or if its ServiceAccount lacks a right that the step needs, for example to read an object from which zones mirror their replicas. `get`, `status` and `explain` show the same for a group without a published decision. A plan and these verbs know all missing rights only if you may create SubjectAccessReviews. The agent reports a right as missing when the API server denies an action, and retries the action at least every minute. Run `kubectl rollout-group install` and apply the roles that it prints. `kubectl rollout-group doctor` lists every missing right.',
  },
  { id: 'announced', title: 'the ledger has a claim of the agent for exactly this request', outcomes: ['ok'] },
  {
    id: 'approval',
    reason: 'ApprovalMissing',
    title: 'the wave has the required approvals',
    outcomes: ['ok', 'wait', 'no', 'skip', 'unknown'],
  },
  {
    id: 'approved-plan',
    reason: 'PlanNotFollowed',
    onlyWarns: true,
    title: 'the rollout is the one that the review of its change approved',
    outcomes: ['wait'],
  },
  {
    id: 'delayed-downscale',
    reason: 'DownscaleDelayNotOver',
    endsByItself: true,
    title: 'the pods to be removed have been prepared for at least the delay, and have then confirmed their preparation',
    outcomes: ['ok', 'wait', 'no', 'skip'],
  },
  {
    id: 'disruption-budget',
    reason: 'DisruptionBudgetExhausted',
    endsByItself: true,
    title: 'the disruption budget of the zone or partition allows one more disruption',
    outcomes: ['ok', 'wait', 'no', 'unknown'],
  },
  {
    id: 'drift',
    reason: 'ManifestNotFollowed',
    onlyWarns: true,
    title: 'every field of the StatefulSets has its value from the manifest',
    outcomes: ['wait'],
  },
  {
    id: 'eviction-budget',
    reason: 'EvictionBudgetExhausted',
    endsByItself: true,
    title: 'the PodDisruptionBudgets allow an eviction',
    outcomes: ['ok', 'wait', 'no', 'unknown'],
    whenBlocked:
      'The rule waits while too few of the pods that a PodDisruptionBudget covers are healthy. It answers `no` when waiting does not help: the budget allows no eviction even when all pods are healthy (`maxUnavailable: 0` or `minAvailable: 100%`), or two budgets select the same pods, which the eviction API rejects. Change the budget so that it allows one disruption, and keep one budget per pod. To stop the group on purpose, set `paused: true` in its zones or run `kubectl rollout-group pause GROUP`. Stuck outdated pods are deleted instead of evicted, so this rule does not block them. The webhook denies the eviction of a healthy pod by this rule, so that the eviction opens no claim.',
  },
  {
    id: 'gate',
    reason: 'GateNotPassed',
    endsByItself: true,
    title: 'enough consecutive readings of the gate succeeded',
    outcomes: ['ok', 'wait', 'no', 'skip', 'unknown'],
  },
  {
    id: 'granted-before',
    reason: 'EarlierGrantNotExpired',
    endsByItself: true,
    title: 'the earlier grant of the same request has expired',
    outcomes: ['wait'],
    whenBlocked:
      'The same request was allowed more than 30 seconds ago and was not carried out, for example because another webhook or a PodDisruptionBudget denied it. The grant expires two minutes after it was given. Until then a repetition of this request is denied.',
  },
  {
    id: 'in-no-wave',
    reason: 'PodsNotInWave',
    onlyWarns: true,
    title: 'the waves include every outdated pod',
    outcomes: ['wait'],
  },
  {
    id: 'leader-floor',
    reason: 'LeaderNotShrunk',
    endsByItself: true,
    title: 'the follower keeps at least as many replicas as its leader',
    outcomes: ['ok', 'wait', 'skip'],
  },
  {
    id: 'leader-ready',
    reason: 'LeaderNotReady',
    endsByItself: true,
    title: 'all pods of the leader zone are ready',
    outcomes: ['ok', 'wait', 'skip'],
  },
  {
    id: 'ledger-full',
    reason: 'LedgerFull',
    endsByItself: true,
    title: 'the ledger has room for one more claim',
    outcomes: ['ok', 'wait'],
  },
  {
    id: 'min-interval',
    reason: 'IntervalNotOver',
    endsByItself: true,
    title: 'the minimum interval since the last replacement has passed',
    outcomes: ['ok', 'wait', 'skip'],
  },
  { id: 'namespace-ends', title: 'the namespace is being deleted', outcomes: ['ok'] },
  { id: 'no-delete', reason: 'DeletionForbidden', title: 'the StatefulSet may be deleted', outcomes: ['no'] },
  { id: 'no-downscale', reason: 'DownscaleForbidden', title: 'the zone may shrink', outcomes: ['ok', 'no'] },
  { id: 'no-eviction', reason: 'EvictionForbidden', title: 'pods of the zone may be evicted', outcomes: ['no'] },
  {
    id: 'ordinals-kept',
    reason: 'FirstOrdinalChanged',
    title: 'the write keeps the first ordinal of the StatefulSet',
    outcomes: ['no'],
  },
  {
    id: 'other-zones-ready',
    reason: 'OtherZonesNotReady',
    endsByItself: true,
    title: 'all pods of every other zone are available',
    outcomes: ['ok', 'wait', 'skip'],
  },
  {
    id: 'partition-kept',
    reason: 'PartitionTooLow',
    title: 'the partition exposes only stuck pods and pods that the wave replaces',
    outcomes: ['ok', 'wait'],
  },
  { id: 'paused', reason: 'Paused', title: 'the zone is not paused', outcomes: ['ok', 'wait', 'skip', 'unknown'] },
  {
    id: 'pin-applied',
    reason: 'PinNotApplied',
    endsByItself: 'dated',
    title: 'every replaced pod runs the revision to which it is pinned',
    outcomes: ['ok', 'wait'],
    whenBlocked:
      'Under the strategy `pinned` the StatefulSet controller creates every pod at the current revision, and the webhook on pod creation changes the pod to the pinned revision. The pods that the rule names were created without the webhook: it was not called, or it did not answer. These pods run and serve at the old revision. The agent replaces each of them once more after 30 seconds. After two attempts it replaces no pod of the group. Run `kubectl rollout-group doctor`: it reports whether the webhook configuration `0-rollout-group-pinned` exists and selects the StatefulSets. The log of the agent gives the cause for each pod. If the log has no entry, the API server does not reach the webhook. Repair the webhook (`kubectl rollout-group install` prints the missing parts), then run `kubectl rollout-group retry GROUP`.',
  },
  {
    id: 'pin-webhook',
    reason: 'PinWebhookMissing',
    title: 'the webhook on pod creation is registered',
    outcomes: ['ok', 'wait', 'no', 'unknown'],
    whenBlocked:
      'Under the strategy `pinned` the webhook on pod creation gives each new pod its revision. Without the webhook a replaced pod comes back at the old revision, so the agent replaces no pod. The rule names the missing part of the webhook configuration `0-rollout-group-pinned`, or the right that the agent lacks to read it. Run `kubectl rollout-group install` to see the missing objects, and `kubectl rollout-group doctor` to check the rights. The rollout continues by itself when the webhook is registered.',
  },
  { id: 'pods-in-flight', reason: 'PodsInFlight', endsByItself: true, title: 'the replaced pods are available again', outcomes: ['wait'] },
  {
    id: 'prepare-downscale',
    reason: 'PodsNotPrepared',
    endsByItself: true,
    title: 'the pods to be removed are prepared',
    outcomes: ['ok', 'wait', 'no', 'skip'],
  },
  { id: 'progress-deadline', title: 'no pod is in flight, or the run made progress within the deadline', outcomes: ['ok', 'skip'] },
  { id: 'protected', reason: 'Protected', title: 'neither the zone nor the pod is protected', outcomes: ['wait', 'unknown'] },
  {
    id: 'protection-kept',
    reason: 'ProtectionNotExpired',
    title: 'the request removes no protection during a disruption, and the StatefulSet lost no protecting label in the last ten minutes',
    outcomes: ['wait', 'no', 'unknown'],
  },
  {
    id: 'replica-source',
    reason: 'ReplicaSourceUnreadable',
    title: 'the source of the replica count could be read',
    outcomes: ['ok', 'no', 'unknown'],
  },
  {
    id: 'replica-write-in-flight',
    reason: 'ScalingInProgress',
    endsByItself: true,
    title: 'no zone shrinks or changes replicas',
    outcomes: ['ok', 'wait'],
  },
  {
    id: 'replicas-owned',
    reason: 'ReplicasOwnedElsewhere',
    title: 'the request changes the object that owns the replica count of the zone',
    outcomes: ['ok', 'no', 'skip'],
  },
  {
    id: 'restart-version',
    reason: 'RestartWouldUpdate',
    title: 'a restarted pod keeps its revision',
    outcomes: ['wait'],
  },
  {
    id: 'revision-known',
    reason: 'RevisionUnknown',
    title: 'the ControllerRevision of the replacement could be read',
    outcomes: ['ok', 'no', 'skip', 'unknown'],
    whenBlocked:
      'The agent reads the ControllerRevision of the new template before it replaces a pod, and the read failed. The usual cause is a missing permission for `controllerrevisions`, which `kubectl rollout-group doctor` reports. The agent tries again every 5 seconds and continues when the read succeeds. A rollback fails if the earlier ControllerRevision no longer exists and the ledger has no copy of its template. Apply the earlier pod template again: a new run then brings the pods to it.',
  },
  {
    id: 'rolled-back',
    reason: 'RevisionRolledBack',
    endsByItself: 'dated',
    title: 'the update revision was not rolled back',
    outcomes: ['wait', 'unknown'],
  },
  {
    id: 'rollout-in-progress',
    reason: 'RolloutInProgress',
    endsByItself: true,
    title: 'no rollout blocks the change of replicas',
    outcomes: ['ok', 'wait', 'skip'],
  },
  { id: 'run-deadline', title: 'the run is within its deadline', outcomes: ['ok', 'skip'] },
  { id: 'run-failed', reason: 'RunFailed', title: 'the run has not failed', outcomes: ['ok', 'no'] },
  {
    id: 'scale-ceiling',
    reason: 'TooManyReplicas',
    title: 'the zone has at most the replicas that its bounds and policies allow',
    outcomes: ['ok', 'no', 'skip'],
  },
  {
    id: 'scale-floor',
    reason: 'TooFewReplicas',
    title: 'the zone has at least the replicas that its bounds and policies require, and at least 1',
    outcomes: ['ok', 'no', 'skip'],
    whenBlocked:
      'Except in a drop-in group, a zone keeps at least 1 replica, even if its bounds permit 0. Only an exception permits 0: run `kubectl rollout-group override` with `--rule scale-floor`, and keep the exception in force until each zone has scaled.',
  },
  {
    id: 'scaling-hold',
    reason: 'ScalingBlocked',
    title: 'the settings of the zone are readable and allow scaling',
    outcomes: ['ok', 'no'],
  },
  {
    id: 'soak',
    reason: 'SoakNotOver',
    endsByItself: true,
    title: 'all pods of the group have been available for the soak time of the wave',
    outcomes: ['ok', 'wait', 'skip'],
  },
  { id: 'undone', reason: 'RevisionUndone', title: 'no request undid the update revision', outcomes: ['wait'] },
  {
    id: 'update-strategy',
    reason: 'UpdateStrategyNotReady',
    endsByItself: true,
    title: 'the StatefulSets have the update strategy that the group requires',
    outcomes: ['ok', 'wait', 'no'],
  },
  {
    id: 'updated-by-restart',
    reason: 'UpdatedByRestart',
    onlyWarns: true,
    title: 'no pod is updated before its wave',
    outcomes: ['wait'],
  },
  {
    id: 'view-complete',
    reason: 'ViewIncomplete',
    endsByItself: true,
    title: 'every zone was read and its status is up to date',
    outcomes: ['ok', 'wait', 'no', 'unknown'],
  },
  {
    id: 'wave-available',
    reason: 'WaveNotAvailable',
    endsByItself: true,
    title: 'all pods of the group are available after the wave',
    outcomes: ['wait', 'unknown'],
  },
  {
    id: 'window',
    reason: 'WindowClosed',
    endsByItself: 'dated',
    title: 'the windows of all policies are open',
    outcomes: ['ok', 'wait', 'skip'],
  },
  {
    id: 'write-accepted',
    reason: 'WriteRejected',
    title: 'the API server did not reject the write a moment ago',
    outcomes: ['wait'],
    whenBlocked:
      'The API server rejected a write of the agent: for example a webhook denied it, a quota or a ValidatingAdmissionPolicy forbids it, or the object would be invalid. The rule quotes the answer. It also waits if the API server did not answer a change of replicas. Only this write waits: other zones and the rollout of the group continue. The agent repeats the write at the time that the rule names. The pause begins at 5 seconds and doubles with each rejection, up to a minute; after two conflicts with writes of other clients, it begins at 250 milliseconds. A write with another number, for example of replicas, is sent at once. If the answer names a missing right, `agent-access` blocks instead.',
  },
  {
    id: 'zone-budget',
    reason: 'ZoneBudgetExhausted',
    endsByItself: true,
    title: 'fewer pods of the zone are unavailable than its budget allows',
    outcomes: ['ok', 'wait', 'no'],
    whenBlocked:
      'The rule waits until the replaced pods are available again. It answers `no` when the limit is 0, which neither time nor progress changes: `maxUnavailable: 0` in the group, the zone or a policy, or `fromBudget` with a PodDisruptionBudget that allows no eviction. Raise the limit at the place that the rule names. To stop the group on purpose, set `paused: true` in its zones, use a rule of a policy, or run `kubectl rollout-group pause GROUP`. This request records the requester and the reason. Stuck outdated pods are replaced regardless of this limit.',
  },
  {
    id: 'zone-gap',
    reason: 'ZoneGapNotOver',
    endsByItself: true,
    title: 'the minimum time since the last downscale of another zone has passed',
    outcomes: ['ok', 'wait', 'no', 'skip', 'unknown'],
  },
  {
    id: 'zone-images',
    reason: 'ImagesNotEqual',
    onlyWarns: true,
    title: 'all zones request the same images while the group has no pod to replace',
    outcomes: ['wait'],
  },
  {
    id: 'zones-returned',
    reason: 'ReturnNotRecorded',
    endsByItself: true,
    title: 'the return to the previous template is recorded, and the rollout of the other pods starts',
    outcomes: ['wait'],
  },
];

const reasons: ReadonlyMap<string, string> = new Map(ruleCatalog.flatMap(({ id, reason }) => (reason === undefined ? [] : [[id, reason]])));

const endings: ReadonlyMap<string, RuleEntry['endsByItself']> = new Map(ruleCatalog.map(({ id, endsByItself }) => [id, endsByItself]));

const warning: ReadonlySet<string> = new Set(ruleCatalog.flatMap(({ id, onlyWarns }) => (onlyWarns ? [id] : [])));

/** Reports whether the rule never blocks. */
export function onlyWarns(rule: string): boolean {
  return warning.has(rule);
}

/**
 * Reports whether the agent ends this wait by its own steps, or time ends it. False for every other wait, also for a wait of a policy: its
 * condition may stay true.
 */
export function endsByItself({ rule, outcome, earliestMs, endsBy }: RuleResult): boolean {
  const ending = endings.get(rule);
  return outcome === 'wait' && endsBy === undefined && (ending === true || (ending === 'dated' && earliestMs !== undefined));
}

/**
 * Returns the reason of a condition, Event or metric while the rule blocks, such as `StatefulSafetyQueueEmpty` for the policy rule
 * `stateful-safety/queue.empty`. A name that starts with a digit gets the prefix `Rule`.
 */
export function reasonOf(rule: string): string {
  const known = reasons.get(rule);
  if (known !== undefined) return known;
  const words = rule.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const reason = words.map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`).join('');
  return /^[A-Za-z]/.test(reason) ? reason : `Rule${reason}`;
}
