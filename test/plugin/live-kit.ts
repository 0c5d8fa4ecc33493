// Groups as an agent would have published them, decided by the engine from built snapshots.
import { decideGroup } from '../../engine/decide/decide.ts';
import { type PublishInput, publishedDecision } from '../../engine/publish/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { digestOfWaves } from '../../engine/run/requests.ts';
import type { IntentView } from '../../engine/snapshot.ts';
import type { LiveGroup } from '../../plugin/live/groups.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { holdingPartition } from '../../policies/strategies.ts';
import { gate, group, wave } from '../kit/groups.ts';
import { kitNowMs, newRevision, outdatedStatefulSet, type PodChanges } from '../kit/objects.ts';
import { type SnapshotOverrides, snapshotOf } from '../kit/snapshots.ts';

/** Canary, then zone a, then an approval and the rest; one gate. */
export const definition: GroupDefinition = group({
  gates: [gate()],
  rollout: {
    waves: [
      wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: 1_800_000, gates: ['errors'] } }),
      wave('zone-a', ['a']),
      wave('rest', ['b', 'c'], { before: { approval: { count: 1, from: ['oncall'] }, gates: [] } }),
    ],
  },
  sources: { 'waves.rest.before.approval': { file: 'policy/ingester.yaml', line: 31, column: 15 } },
});

const updated: PodChanges[number] = { revision: newRevision };

function sets(replicas: number): SnapshotOverrides['statefulSets'] {
  return definition.zones.map(({ statefulSet: name }) => outdatedStatefulSet({ name, replicas }));
}

function publish(overrides: SnapshotOverrides, rest: Partial<PublishInput> = {}): PublishedDecision {
  const snapshot = snapshotOf({ groups: [definition], statefulSets: sets(20) ?? [], policyDigest: '3f9c2e1b8a40', ...overrides });
  const { group: one = definition } = rest;
  const decision = decideGroup(snapshot, one);
  return publishedDecision({ group: one, decision, snapshot, atMs: kitNowMs, leader: 'agent-0', origin: 'objects', ...rest });
}

const run = {
  id: '4f1c9a02',
  kind: 'rollout',
  target: { a: newRevision, b: newRevision, c: newRevision },
  previous: { a: 'rev-1', b: 'rev-1', c: 'rev-1' },
  startedMs: kitNowMs - 2_040_000,
  lastDisruptionMs: kitNowMs - 2_000_000,
  movableMs: 0,
  movableAsOfMs: kitNowMs,
  isMovable: true,
  outcome: 'running',
} as const;

const allNew: PodChanges = Object.fromEntries(Array.from({ length: 20 }, (_, ordinal) => [ordinal, updated]));
const ledger = { namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations: [] };

/** Zone a is done; zone b has seven new pods, one that starts and one that is gone; zone c is old. */
export const rolling: PublishedDecision = publish(
  {
    ledgers: [{ ...ledger, run: { ...run, wave: 2, waveStartedMs: kitNowMs - 600_000, openZone: 'b' } }],
    podChanges: {
      'ingester-zone-a': allNew,
      'ingester-zone-b': {
        ...Object.fromEntries(Array.from({ length: 7 }, (_, index) => [13 + index, updated])),
        12: { ...updated, isReady: false, readyChangedMs: kitNowMs - 122_000 },
        11: { isTerminating: true, terminatingSinceMs: kitNowMs - 12_000 },
      },
    },
    intents: [approvalOf(run.id)],
  },
  {
    performed: [
      {
        action: {
          kind: 'deletePod',
          namespace: 'mimir',
          zone: 'b',
          statefulSet: 'ingester-zone-b',
          pod: 'ingester-zone-b-11',
          ordinal: 11,
          uid: 'u',
          resourceVersion: '1',
          because: 'outdated',
        },
        result: 'done',
      },
    ],
  },
);

/** Zones a is done; the rest waits for its approval. */
export const waiting: PublishedDecision = publish({
  ledgers: [{ ...ledger, run: { ...run, wave: 2, waveStartedMs: kitNowMs - 600_000 } }],
  podChanges: { 'ingester-zone-a': allNew },
});

/** The webhook allowed the eviction of a ready pod of zone c 12 seconds ago. The eviction has not started. */
export const reserved: PublishedDecision = publish({
  ledgers: [
    {
      ...ledger,
      run: { ...run, wave: 2, waveStartedMs: kitNowMs - 600_000 },
      claims: [{ verb: 'evictPod', zone: 'c', uid: 'uid-ingester-zone-c-4', ordinal: 4, atMs: kitNowMs - 12_000, user: 'kim' }],
    },
  ],
  podChanges: { 'ingester-zone-a': allNew },
  intents: [approvalOf(run.id)],
});

/** The API server answered 403 when the agent wanted to replace a pod. */
export const denied: PublishedDecision = publish({
  ledgers: [{ ...ledger, run: { ...run, wave: 2, waveStartedMs: kitNowMs - 600_000 } }],
  podChanges: { 'ingester-zone-a': allNew },
  intents: [approvalOf(run.id)],
  missingAccess: [{ namespaces: ['mimir'], fact: 'rollouts/agent may not create pods/eviction in mimir: no pod is replaced by eviction' }],
});

/** A person paused it. */
export const paused: PublishedDecision = publish({
  ledgers: [{ ...ledger, run: { ...run, wave: 1, waveStartedMs: kitNowMs - 600_000 } }],
  podChanges: { 'ingester-zone-a': { 19: updated } },
  intents: [{ namespace: 'mimir', name: 'pause.ingester', group: 'ingester', action: 'pause', reason: 'read latency' }],
});

/** The StatefulSet of zone b does not exist, in the middle of a rollout. */
export const missing: PublishedDecision = publish({
  absent: ['ingester-zone-b'],
  ledgers: [{ ...ledger, run: { ...run, wave: 1, waveStartedMs: kitNowMs - 600_000 } }],
  podChanges: { 'ingester-zone-a': { 19: updated } },
});

/** The last run is completed. The StatefulSet of zone b does not exist, so no run begins for the new template of the others. */
export const withoutNextRun: PublishedDecision = publish({
  absent: ['ingester-zone-b'],
  ledgers: [
    {
      ...ledger,
      run: {
        ...run,
        target: run.previous,
        wave: 3,
        waveStartedMs: kitNowMs - 600_000,
        outcome: 'completed',
        completedMs: kitNowMs - 300_000,
      },
    },
  ],
});

const partitioned: GroupDefinition = { ...definition, rollout: { ...definition.rollout, strategy: 'partition' } };
const pinned: GroupDefinition = { ...definition, rollout: { ...definition.rollout, strategy: 'pinned' } };

/** The run failed, and every pod is at the revision before it. */
export const rolledBack: PublishedDecision = publish(
  {
    groups: [pinned],
    statefulSets: (sets(20) ?? []).map((set) => ({ ...set, updateStrategy: 'RollingUpdate', partition: holdingPartition })),
    ledgers: [
      {
        ...ledger,
        run: {
          ...run,
          kind: 'rollback',
          target: run.previous,
          previous: run.target,
          wave: 3,
          waveStartedMs: kitNowMs - 600_000,
          outcome: 'completed',
          completedMs: kitNowMs - 300_000,
          rolledBack: { revisions: run.target, because: 'gate errors failed 3 times' },
        },
      },
    ],
  },
  { group: pinned },
);

/** A user lowered the partition of zone b, so the StatefulSet controller replaces pods before their wave. */
export const exposed: PublishedDecision = publish(
  {
    groups: [partitioned],
    statefulSets: (sets(20) ?? []).map((set) => ({
      ...set,
      updateStrategy: 'RollingUpdate',
      partition: set.name === 'ingester-zone-b' ? 18 : holdingPartition,
    })),
    ledgers: [{ ...ledger, run: { ...run, wave: 1, waveStartedMs: kitNowMs - 600_000 } }],
  },
  { group: partitioned },
);

/** Every pod is at the newest revision. */
export const done: PublishedDecision = publish({ statefulSets: [] });

function approvalOf(runId: string): IntentView {
  const requestedBy = { user: 'anna', groups: ['oncall'], atMs: kitNowMs - 660_000 };
  return {
    namespace: 'mimir',
    name: 'ok',
    group: 'ingester',
    action: 'approve',
    wave: 'rest',
    digest: digestOfWaves(definition),
    runId,
    requestedBy,
  };
}

/** As the agent published it. */
export function fromAgent(decision: PublishedDecision): LiveGroup {
  return { decision, from: 'agent', unread: [] };
}
