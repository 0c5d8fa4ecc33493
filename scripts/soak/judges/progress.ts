// Judges the run of each decision by the objects that the decision has read (S37): when a wave soaks and ends, and which zone is open.
import type { TurnReport } from '../../../agent/report.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import type { PodView, Snapshot, StatefulSetView } from '../../../engine/snapshot.ts';
import type { Oracle } from '../../../simulation/oracles/oracle.ts';
import type { Book } from '../../../simulation/oracles/places.ts';

/** Creates the judge. Drop-in groups and the groups of users are exempt. */
export function judgeProgress({ scene }: Book): Oracle {
  if (scene.isGiven === true || scene.group.kind === 'adopted') return {};
  return {
    turnEnded: (process, report) => {
      for (const why of [...wrongEnds(report), ...wrongZones(report)]) scene.violated('S37', `${process} ${why}`);
    },
  };
}

/** Reports a soak or an end of a wave although a pod of the group is unavailable or surplus, or a status is older than its spec. */
function wrongEnds(report: TurnReport): readonly string[] {
  const { group, snapshot, decision } = report;
  const { run } = decision ?? {};
  if (run === undefined || group.rollout.waves.length === 0) return [];
  const [lack] = group.zones.flatMap(({ statefulSet }) => lackOf(snapshot, statefulSet) ?? []);
  const isSoaking = run.outcome !== 'completed' && run.waveAvailableMs !== undefined;
  const old = snapshot.statefulSets.find(
    ({ name, generation, status }) => group.zones.some(({ statefulSet }) => statefulSet === name) && status.observedGeneration < generation,
  );
  const why = lack ?? (old === undefined ? undefined : `the status of ${old.name} is older than its spec`);
  return [
    ...(isSoaking && lack !== undefined ? [`lets wave ${run.wave} soak although ${lack}`] : []),
    ...(hasEnded(run, storedRun(report)) && why !== undefined ? [`ends wave ${run.wave} although ${why}`] : []),
  ];
}

/** Returns whether the decision completed the run or ended one of its waves. */
function hasEnded(run: RunState, before: RunState | undefined): boolean {
  const isSame = before?.id === run.id;
  if (run.outcome === 'completed') return !(isSame && before.outcome === 'completed');
  return isSame && before.outcome !== 'completed' && run.wave > before.wave;
}

/** Reports an open zone that is finished, and a replacement in a zone that is not open. */
function wrongZones(report: TurnReport): readonly string[] {
  const { group, snapshot, decision, performed } = report;
  const { run } = decision ?? {};
  // After a rejected write or a conflict the report has another decision than the performed one.
  if (run === undefined || run.outcome === 'completed' || performed.some(({ result }) => result === 'refused' || result === 'conflict'))
    return [];
  const replaced = performed.flatMap(({ action }) => (action.kind === 'deletePod' || action.kind === 'evictPod' ? [action] : []));
  const other = replaced.find(({ zone }) => zone !== run.openZone);
  if (other !== undefined) return [`replaces ${other.pod}, and the open zone of the run is ${run.openZone ?? 'missing'}`];
  const open = group.zones.find(({ name }) => name === run.openZone);
  if (open === undefined || replaced.length > 0 || group.rollout.waves[run.wave] === undefined) return [];
  const isClaimed = snapshot.ledgers.some(({ claims }) => claims.some(({ zone }) => zone === open.name));
  const isDone = !isClaimed && lackOf(snapshot, open.statefulSet) === undefined && isUpdated(snapshot, open.statefulSet);
  return isDone && run.rolledBack?.revisions[open.name] === undefined ? [`keeps zone ${open.name} open although it is finished`] : [];
}

function storedRun({ snapshot, group }: TurnReport): RunState | undefined {
  return snapshot.ledgers.find((ledger) => ledger.namespace === group.namespace && ledger.group === group.name)?.run;
}

/** Returns, as part of a sentence, the first pod of the zone that is missing, unavailable or surplus in the snapshot; else undefined. */
function lackOf(snapshot: Snapshot, statefulSet: string): string | undefined {
  const { set, pods } = zoneIn(snapshot, statefulSet);
  if (set === undefined || pods === undefined || set.isTerminating) return `${statefulSet} was not read`;
  const isInRange = ({ ordinal }: PodView): boolean => ordinal >= set.firstOrdinal && ordinal < set.firstOrdinal + set.replicas;
  const surplus = pods.find((pod) => !isInRange(pod));
  if (surplus !== undefined) return `${surplus.name} is still there`;
  const down = pods.find((pod) => !isUp(pod, set, snapshot.nowMs));
  if (down !== undefined) return `${down.name} is not available`;
  return pods.length < set.replicas ? `${statefulSet} has only ${pods.length} pods` : undefined;
}

function isUpdated(snapshot: Snapshot, statefulSet: string): boolean {
  const { set, pods = [] } = zoneIn(snapshot, statefulSet);
  return pods.every(({ revision }) => revision === set?.status.updateRevision);
}

function zoneIn(
  snapshot: Snapshot,
  statefulSet: string,
): { readonly set: StatefulSetView | undefined; readonly pods: readonly PodView[] | undefined } {
  const view = snapshot.pods.find((one) => one.statefulSet === statefulSet);
  return {
    set: snapshot.statefulSets.find(({ name }) => name === statefulSet),
    pods: view === undefined || 'unknown' in view.pods ? undefined : view.pods,
  };
}

function isUp({ phase, isTerminating, isReady, nodeReady, readyChangedMs }: PodView, set: StatefulSetView, nowMs: number): boolean {
  if (phase !== 'Running' || isTerminating || !isReady || !nodeReady) return false;
  return set.minReadySeconds === 0 || nowMs - readyChangedMs >= set.minReadySeconds * 1000;
}
