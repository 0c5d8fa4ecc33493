// Groups that need a person, as the agent publishes them.
import type { TurnReport } from '../../agent/report.ts';
import { decideGroup } from '../../engine/decide/decide.ts';
import type { GroupDecision } from '../../engine/decision.ts';
import { publishedDecision } from '../../engine/publish/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { holdingPartition } from '../../policies/strategies.ts';
import { type GroupOverrides, group, wave } from '../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, statefulSet } from '../kit/objects.ts';
import { ago, hourMs, ledgerOf, minuteMs, outdatedSets, runOf } from '../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../kit/snapshots.ts';

const run = runOf({ target: { a: newRevision }, previous: { a: oldRevision } });

/** One turn after that many attempts; the next one comes by itself after the first. */
export function misplacedTurn(placements: number): TurnReport & { readonly decision: GroupDecision } {
  const of = group({ zones: ['a'], rollout: { strategy: 'pinned' } });
  const atMs = placements < 2 ? ago(1000) : ago(hourMs);
  const pins = [{ zone: 'a', ordinal: 2, revision: newRevision, placements, replaces: 'gone', atMs }];
  const statefulSets = outdatedSets(['a'], { replicas: 4, updateStrategy: 'RollingUpdate', partition: holdingPartition });
  const snapshot = snapshotOf({ groups: [of], statefulSets, ledgers: [ledgerOf({ run, pins })] });
  return { group: of, snapshot, decision: decideGroup(snapshot, of), performed: [], startedMs: kitNowMs, durationMs: 5 };
}

/** The same as it is published. */
export function misplacedAfter(placements: number): PublishedDecision {
  const { group: of, snapshot, decision } = misplacedTurn(placements);
  return publishedDecision({ group: of, decision, snapshot, atMs: kitNowMs, leader: 'agent-0' });
}

/** A group whose zone a is updated and soaks, and whose zones b and c are outdated, as it is published. */
export function soakingWith(overrides: SnapshotOverrides = {}, groupOverrides: GroupOverrides = {}): PublishedDecision {
  const target = { a: newRevision, b: newRevision, c: newRevision };
  const of = group({
    zones: ['a', 'b', 'c'],
    rollout: { waves: [wave('first', ['a'], { after: { soakMs: hourMs, gates: [] } }), wave('rest', ['b', 'c'])] },
    ...groupOverrides,
  });
  const snapshot = snapshotOf({
    groups: [of],
    statefulSets: [
      statefulSet({ name: 'ingester-zone-a', status: { currentRevision: newRevision, updateRevision: newRevision } }),
      ...outdatedSets(['b', 'c']),
    ],
    ledgers: [ledgerOf({ run: runOf({ target, lastDisruptionMs: ago(minuteMs), waveAvailableMs: ago(minuteMs) }) })],
    ...overrides,
  });
  const decision = decideGroup(snapshot, of);
  return publishedDecision({ group: of, decision, snapshot, atMs: kitNowMs, leader: 'agent-0' });
}
