// Judges what agents do in a namespace that is being deleted: they disrupt no pod (S4), report no success (L9), and do not ask too often (L13).
import {
  field,
  groupResource,
  isAgent,
  isTerminating,
  listAt,
  numberAt,
  podResource,
  statefulSetResource,
  textAt,
} from '../../../simulation/objects.ts';
import type { Oracle, Scene } from '../../../simulation/oracles/oracle.ts';
import type { Answered, Commit } from '../../../simulation/server/request.ts';

/** The time until a decision knows that the objects of the namespace go. */
const knownMs = 10_000;
const windowMs = 60_000;
/** The refused creations of a process in a minute: twice the highest observed number. */
const mostRefused = 60;

/** Creates the judge of a group. It is called only after the deletion of the namespace began. */
export function judgeTermination(scene: Scene): Oracle {
  /** The time of the first call: every object of the namespace changes soon. */
  let sinceMs: number | undefined;
  const refusedMs = new Map<string, number[]>();
  const reported = new Set<string>();
  const report = (invariant: string, message: string): void => {
    if (reported.has(invariant)) return;
    reported.add(invariant);
    scene.violated(invariant, `${message} in the namespace ${scene.namespace}, which is being deleted`);
  };
  return {
    committed: (commit) => {
      sinceMs ??= commit.atMs;
      if (!isAgent(commit.actor, scene.agentUser) || (commit.actor.sentAtMs ?? commit.atMs) - sinceMs < knownMs) return;
      const { metadata } = commit.after;
      if (isDisruption(commit)) report('S4', `${commit.actor.process ?? ''} disrupts ${metadata.name}`);
      const missing = commit.resource === groupResource ? missingIn(scene) : undefined;
      if (missing !== undefined && isFine(commit.after))
        report('L9', `the status of ${metadata.name} is Ready although ${missing} is missing`);
    },
    answered: ({ request, status, verb, resource, atMs }: Answered) => {
      const process = request.actor.process ?? '';
      if (!isAgent(request.actor, scene.agentUser) || status !== 403 || verb !== 'create') return;
      const times = [...(refusedMs.get(process) ?? []), atMs].filter((one) => atMs - one < windowMs);
      refusedMs.set(process, times);
      if (times.length > mostRefused)
        report('L13', `${process} was refused ${times.length} creations in a minute, the last of ${resource},`);
    },
  };
}

function isDisruption({ resource, before, after, type }: Commit): boolean {
  if (resource === podResource) return before !== undefined && !isTerminating(before) && (type === 'DELETED' || isTerminating(after));
  return resource === statefulSetResource && (numberAt(after, 'spec', 'replicas') ?? 1) < (numberAt(before, 'spec', 'replicas') ?? 1);
}

/** Returns the name of a StatefulSet or a pod of the group that is missing. */
function missingIn(scene: Scene): string | undefined {
  for (const name of scene.statefulSets) {
    const set = scene.get(statefulSetResource, scene.namespace, name);
    if (set === undefined) return name;
    const first = numberAt(set, 'spec', 'ordinals', 'start') ?? 0;
    const pods = Array.from({ length: numberAt(set, 'spec', 'replicas') ?? 1 }, (_, index) => `${name}-${first + index}`);
    const missing = pods.find((pod) => scene.get(podResource, scene.namespace, pod) === undefined);
    if (missing !== undefined) return missing;
  }
  return undefined;
}

function isFine(group: Commit['after']): boolean {
  const ready = listAt(group, 'status', 'conditions').find((condition) => field(condition, 'type') === 'Ready');
  return textAt(ready, 'status') === 'True';
}
