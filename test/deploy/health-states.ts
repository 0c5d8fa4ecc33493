// The states of a group as the agent publishes them, under the names that the tables of docs/argo-cd.md and docs/flux.md use.
import { decideGroup } from '../../engine/decide/decide.ts';
import { publishedDecision } from '../../engine/publish/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { groupStatus } from '../../engine/publish/status.ts';
import { apiVersion } from '../../policies/schema/kinds.ts';
import { holdingPartition } from '../../policies/strategies.ts';
import { type GroupOverrides, group, wave } from '../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision } from '../kit/objects.ts';
import { freeze, intent, ledgerOf, minuteMs, outdatedSets, policy, policyRule, runOf } from '../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../kit/snapshots.ts';
import { misplacedAfter, soakingWith } from '../plugin/person-needed-kit.ts';

const zones = ['a', 'b', 'c'];
const generation = 4;

function publish(overrides: SnapshotOverrides = {}, groupOverrides: GroupOverrides = {}): PublishedDecision {
  const of = group({ zones, ...groupOverrides });
  const snapshot = snapshotOf({ groups: [of], ...overrides });
  return publishedDecision({ group: of, decision: decideGroup(snapshot, of), snapshot, atMs: kitNowMs });
}

export function groupObject(status: object): object {
  const metadata = { name: 'ingester', namespace: 'mimir', generation };
  return JSON.parse(JSON.stringify({ apiVersion, kind: 'RolloutGroup', metadata, spec: {}, status }));
}

const outdated = { statefulSets: outdatedSets(zones) };
const asking = (action: 'pause' | 'protect' | 'undo', more: object = {}) => ({ intents: [intent({ action, ...more })] });
const podsOfA = (change: object) => ({ podChanges: { 'ingester-zone-a': { 0: { isReady: false, ...change } } } });
const undone = zones.map((zone) => ({ zone, revision: newRevision }));
const target = Object.fromEntries(zones.map((zone) => [zone, newRevision]));
const previous = Object.fromEntries(zones.map((zone) => [zone, oldRevision]));
const failed = runOf({ outcome: 'failed', failure: 'gate errors', target, previous });
const rolledBack = runOf({
  kind: 'rollback',
  target: previous,
  previous: target,
  outcome: 'completed',
  completedMs: kitNowMs - minuteMs,
  rolledBack: { revisions: target, because: 'gate errors' },
});
const approved = {
  rollout: { waves: [wave('canary', ['a'], { before: { gates: [], approval: { count: 1, from: [] } } }), wave('rest', ['b', 'c'])] },
};
const heldSets = outdatedSets(zones, { updateStrategy: 'RollingUpdate', partition: holdingPartition });
const hold = policy({ rules: [policyRule({ effect: 'hold', message: 'the storage moves' })] });

/** Each state with the decision of the engine. */
export const decisions: Readonly<Record<string, PublishedDecision>> = {
  'all pods updated and available': publish(),
  'all pods updated and available, and the group is paused': publish(asking('pause')),
  'a pod is not available': publish(podsOfA({ readyChangedMs: kitNowMs - minuteMs })),
  'a pod crashes': publish(podsOfA({ waitingReasons: ['CrashLoopBackOff'] })),
  'the agent replaces pods': publish(outdated),
  'the agent changes replicas': publish({}, { zones: zones.map((name) => ({ name, replicas: { kind: 'count', count: 4 } })) }),
  'waits for a soak, a gate or another zone': soakingWith(),
  'waits for a window': publish({ ...outdated, policies: [policy({ windows: [freeze()] })] }),
  'a value is unknown': publish({ pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }] }),
  'waits for an approval': publish({ ...outdated, ledgers: [ledgerOf({ run: runOf({ target, previous }) })] }, approved),
  'paused during a run': publish({ ...outdated, ...asking('pause') }),
  'blocked by a policy or a protection that has no end time': publish({ ...outdated, policies: [hold] }),
  'the requested revision was undone': publish({ ...outdated, ...asking('undo', { undone }) }),
  'blocked by a rule': publish({ statefulSets: outdatedSets(zones, { updateStrategy: 'RollingUpdate' }) }),
  'a StatefulSet does not exist': publish({ absent: ['ingester-zone-b'] }),
  'a pod came back at a wrong revision': misplacedAfter(2),
  'the run failed': publish({ ...outdated, ledgers: [ledgerOf({ run: failed })] }),
  'the run was rolled back': publish(
    { statefulSets: heldSets, ledgers: [ledgerOf({ run: rolledBack })] },
    { rollout: { strategy: 'pinned' } },
  ),
};

/** Each state as an object of the API server, with the states in which the agent has not decided. */
export const states: Readonly<Record<string, object>> = {
  'no decision of the agent yet': groupObject({ observedGeneration: -1 }),
  'the RolloutGroup changed after the last decision': groupObject(groupStatus(publish(), { generation: generation - 1 })),
  ...Object.fromEntries(Object.entries(decisions).map(([name, published]) => [name, groupObject(groupStatus(published, { generation }))])),
};
