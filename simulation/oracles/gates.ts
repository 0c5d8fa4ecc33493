// Judges gates (S8): a zone begins only after the last disruption in the preceding zone and then enough good answers in a row.
import { gateConsecutive } from '../cluster/gate-server.ts';
import { isAgent, placeOf, podResource, readyCondition, revisionLabelOf, statefulSetResource, textAt } from '../objects.ts';
import type { Oracle } from './oracle.ts';
import { type Book, isDisruption } from './places.ts';

interface Known extends Pick<Book, 'scene'> {
  readonly terms: Pick<Book['terms'], 'wasMember'>;
}

/** Creates the judge. Groups without a gate, and the first zone, are exempt. */
export const judgeGates = (book: Known): Oracle => (book.scene.group.gate === undefined ? {} : judgeGated(book));

function judgeGated({ scene, terms }: Known): Oracle {
  /** The times of the consecutive good answers, by process. */
  const streaks = new Map<string, readonly number[]>();
  /** The time of the first answer in the latest sufficient streak of any process. A passed gate is stored, so it counts for all. */
  let passedFromMs = Number.NEGATIVE_INFINITY;
  /** The time of the last deletion of an outdated pod by an agent, for each StatefulSet. */
  const deletedMs = new Map<string, number>();
  /** The zones that have begun, with their revision. Further pods of such a zone need no new reading. */
  const begun = new Set<string>();
  return {
    gateAnswered: ({ process, atMs, isGood }) => {
      const streak = isGood ? [...(streaks.get(process) ?? []), atMs].slice(-gateConsecutive) : [];
      streaks.set(process, streak);
      if (streak.length === gateConsecutive) passedFromMs = Math.max(passedFromMs, streak[0] ?? atMs);
    },
    committed: (commit) => {
      const { resource, before, actor } = commit;
      if (resource !== podResource || before === undefined || !isAgent(actor, scene.agentUser) || !isDisruption(commit)) return;
      const { namespace = '', name } = before.metadata;
      const statefulSet = placeOf(name)?.statefulSet ?? '';
      const zone = scene.statefulSets.indexOf(statefulSet);
      const target = textAt(scene.get(statefulSetResource, namespace, statefulSet), 'status', 'updateRevision');
      if (namespace !== scene.namespace || zone < 0 || target === undefined || revisionLabelOf(before) === target) return;
      deletedMs.set(statefulSet, commit.atMs);
      // The replacement of a pod that is not ready may be a repair, which waits for no gate.
      if (zone === 0 || !readyCondition(before).isTrue || begun.has(`${statefulSet} ${target}`)) return;
      begun.add(`${statefulSet} ${target}`);
      const previous = scene.statefulSets[zone - 1] ?? '';
      const sinceMs = deletedMs.get(previous) ?? Number.NEGATIVE_INFINITY;
      // No gate follows a zone that has left the group, also if the zone returns.
      if (passedFromMs > sinceMs || !terms.wasMember(previous, sinceMs)) return;
      const missing = `the gate after ${previous} was not good ${gateConsecutive} times in a row since the last disruption there`;
      scene.violated('S8', `${actor.process} begins ${statefulSet} with ${name}, and ${missing}`);
    },
  };
}
