// A group of the strategy pinned whose pod came back twice without its revision, as the agent publishes it.
import type { TurnReport } from '../../agent/report.ts';
import { decideGroup } from '../../engine/decide/decide.ts';
import type { GroupDecision } from '../../engine/decision.ts';
import { publishedDecision } from '../../engine/publish/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { holdingPartition } from '../../policies/strategies.ts';
import { group } from '../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision } from '../kit/objects.ts';
import { ago, hourMs, ledgerOf, outdatedSets, runOf } from '../kit/questions.ts';
import { snapshotOf } from '../kit/snapshots.ts';

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
