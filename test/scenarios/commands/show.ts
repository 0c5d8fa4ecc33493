// The commands that only look: status, check.

import { isCrashing } from '../../../engine/observe/view.ts';
import { isUnknown, type PodView, type StatefulSetView } from '../../../engine/snapshot.ts';
import type { Commands } from '../command.ts';
import { observe, policiesNow, type Stage } from '../stage.ts';

export const showCommands: Commands = {
  /** One line a zone; a letter a pod (see `letterOf`). */
  status: (stage) => policiesNow(stage).groups.flatMap(({ zones }) => zones.map((zone) => zoneLine(stage, zone.name, zone.statefulSet))),
  /** Whether every decision of the story kept the invariants. */
  check: (stage) => (stage.violations.length === 0 ? [`ok, ${stage.decisions} decisions`] : stage.violations),
};

function podsOf(stage: Stage, statefulSet: string): readonly PodView[] {
  const pods = observe(stage).pods.find((view) => view.statefulSet === statefulSet)?.pods;
  return pods === undefined || isUnknown(pods) ? [] : pods;
}

function zoneLine(stage: Stage, zone: string, statefulSet: string): string {
  const set = stage.world.snapshot.statefulSets.find(({ name }) => name === statefulSet);
  if (set === undefined) return `${zone}  no StatefulSet`;
  const pods = podsOf(stage, statefulSet);
  const ordinals = Array.from({ length: Math.max(set.replicas, ...pods.map(({ ordinal }) => ordinal + 1)) }, (_, ordinal) => ordinal);
  const bar = ordinals.map((ordinal) =>
    letterOf(
      set,
      pods.find((pod) => pod.ordinal === ordinal),
    ),
  );
  const { readyReplicas, currentRevision, updateRevision } = set.status;
  const revisions = currentRevision === updateRevision ? updateRevision : `${currentRevision} -> ${updateRevision}`;
  return `${zone}  ${bar.join('')}  ${readyReplicas} of ${set.replicas} ready  ${revisions}`;
}

/** `#` updated, `o` outdated, `~` starting, `x` not ready, `!` crashing, `-` leaving, `.` missing. */
function letterOf(set: StatefulSetView, pod: PodView | undefined): string {
  if (pod === undefined) return '.';
  if (pod.isTerminating) return '-';
  if (isCrashing(pod)) return '!';
  const isUpdated = pod.revision === set.status.updateRevision;
  if (!pod.isReady) return isUpdated ? '~' : 'x';
  return isUpdated ? '#' : 'o';
}
