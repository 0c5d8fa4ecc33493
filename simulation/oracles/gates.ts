// The judge of gates: no zone is begun unless the metric server has just been good to whoever begins it, so many times in a row (S8).
import { gateConsecutive } from '../cluster/gate-server.ts';
import { isAgent, placeOf, podResource, readyCondition, revisionLabelOf, statefulSetResource, textAt } from './objects.ts';
import type { GateAnswered, Oracle, OracleFactory, Scene } from './oracle.ts';
import { isDisruption } from './places.ts';

/** The readings that let a zone begin are no older than this when the request leaves, also where clocks are slow. */
const longestMs = 120_000;

/** Of groups without a gate nothing is asked. The first zone has no gate before it. */
export const judgeGates: OracleFactory = (scene) => (scene.group.gate === undefined ? {} : judgeGated(scene));

function judgeGated(scene: Scene): Oracle {
  const answers = new Map<string, GateAnswered[]>();
  /** Zones with the revision for which they are under way: further pods of it need no other reading. */
  const begun = new Set<string>();
  return {
    gateAnswered: (answer) => {
      const known = answers.get(answer.process) ?? [];
      const first = known.findIndex(({ atMs }) => atMs >= answer.atMs - 2 * longestMs);
      answers.set(answer.process, [...(first === -1 ? [] : known.slice(first)), answer]);
    },
    committed: (commit) => {
      const { resource, before, actor } = commit;
      if (resource !== podResource || before === undefined || !isAgent(actor, scene.agentUser) || !isDisruption(commit)) return;
      const { namespace = '', name } = before.metadata;
      const statefulSet = placeOf(name)?.statefulSet ?? '';
      if (namespace !== scene.namespace || scene.statefulSets.indexOf(statefulSet) < 1) return;
      const target = textAt(scene.get(statefulSetResource, namespace, statefulSet), 'status', 'updateRevision');
      // One that does not work is replaced in whichever zone is open, and one that is up to date is taken for another reason.
      if (target === undefined || revisionLabelOf(before) === target || !readyCondition(before).isTrue) return;
      const zone = `${statefulSet} ${target}`;
      if (begun.has(zone)) return;
      begun.add(zone);
      const { process = '', sentAtMs = commit.atMs } = actor;
      if (hasPassed(answers.get(process) ?? [], sentAtMs)) return;
      scene.violated('S8', `${process} begins ${statefulSet} with ${name}, and its gate was not good ${gateConsecutive} times in a row`);
    },
  };
}

function hasPassed(answers: readonly GateAnswered[], sentAtMs: number): boolean {
  let streak = 0;
  for (const { atMs, isGood } of answers) {
    if (atMs > sentAtMs) return false;
    streak = isGood ? streak + 1 : 0;
    if (streak >= gateConsecutive && atMs >= sentAtMs - longestMs) return true;
  }
  return false;
}
