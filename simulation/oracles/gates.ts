// The judge of gates: no zone is begun unless the metric server was good so many times in a row after the zone before it was done (S8).
import { gateConsecutive } from '../cluster/gate-server.ts';
import { isAgent, placeOf, podResource, readyCondition, revisionLabelOf, statefulSetResource, textAt } from './objects.ts';
import type { Oracle, OracleFactory, Scene } from './oracle.ts';
import { isDisruption } from './places.ts';

/** Of groups without a gate nothing is asked. The first zone has no gate before it. */
export const judgeGates: OracleFactory = (scene) => (scene.group.gate === undefined ? {} : judgeGated(scene));

function judgeGated(scene: Scene): Oracle {
  /** Good answers in a row to each process. */
  const streaks = new Map<string, readonly number[]>();
  /** When the first answer was given of the newest row that was long enough, whoever heard it: that a gate has passed is stored. */
  let passedFromMs = Number.NEGATIVE_INFINITY;
  /** When an outdated pod of the zone was last taken away. */
  const takenMs = new Map<string, number>();
  /** Zones with the revision for which they are under way: further pods need no other reading. */
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
      takenMs.set(statefulSet, commit.atMs);
      // A pod that does not work is replaced in whichever zone is open.
      if (zone === 0 || !readyCondition(before).isTrue || begun.has(`${statefulSet} ${target}`)) return;
      begun.add(`${statefulSet} ${target}`);
      const previous = scene.statefulSets[zone - 1] ?? '';
      if (passedFromMs > (takenMs.get(previous) ?? Number.NEGATIVE_INFINITY)) return;
      const missing = `its gate was not good ${gateConsecutive} times in a row since the last pod of ${previous} was taken`;
      scene.violated('S8', `${actor.process} begins ${statefulSet} with ${name}, and ${missing}`);
    },
  };
}
