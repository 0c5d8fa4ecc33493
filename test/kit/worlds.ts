// Builds worlds for tests. Pods drain in 30 s and start in 60 s, and one line per StatefulSet shows its pods.

import type { Action } from '../../engine/decision.ts';
import { type Assumptions, defaultAssumptions } from '../../engine/plan/document.ts';
import type { PodView, StatefulSetView } from '../../engine/snapshot.ts';
import type { World, WorldInput } from '../../engine/world/model.ts';
import { createWorld, nextEventMs, step } from '../../engine/world/world.ts';
import { kitNowMs, knownPods } from './objects.ts';
import { type SnapshotOverrides, snapshotOf } from './snapshots.ts';

export function worldOf(overrides: SnapshotOverrides, assumptions: Partial<Assumptions> = {}): World {
  return createWorld(snapshotOf(overrides), { ...defaultAssumptions, ...assumptions }, 'p50');
}

/** Returns the world after these inputs, one after the other. */
export function afterwards(world: World, ...inputs: readonly WorldInput[]): World {
  return inputs.reduce(step, world);
}

/** Returns an input that advances the time by this many seconds. */
export function seconds(world: World, count: number): WorldInput {
  return { kind: 'elapse', toMs: world.snapshot.nowMs + count * 1000 };
}

export function setIn(world: World, name = 'ingester-zone-a'): StatefulSetView {
  const set = world.snapshot.statefulSets.find((candidate) => candidate.name === name);
  if (set === undefined) throw new Error(`the test expected a StatefulSet ${name}`);
  return set;
}

export function podIn(world: World, name: string): PodView {
  const owner = name.replace(/-\d+$/, '');
  const pod = knownPods(world.snapshot.pods.find((view) => view.statefulSet === owner)).find((candidate) => candidate.name === name);
  if (pod === undefined) throw new Error(`the test expected a pod ${name}`);
  return pod;
}

/** Returns a request to delete or evict the current pod. */
export function removal(world: World, name: string, kind: 'deletePod' | 'evictPod' = 'deletePod'): WorldInput {
  const { uid, resourceVersion, ordinal } = podIn(world, name);
  const statefulSet = name.replace(/-\d+$/, '');
  const target = { namespace: 'mimir', zone: statefulSet.slice(-1), statefulSet, pod: name, ordinal, uid, because: 'outdated' } as const;
  const action: Action = kind === 'deletePod' ? { kind, resourceVersion, ...target } : { kind, ...target };
  return { kind: 'action', action };
}

/** Shows the pods of a StatefulSet in one line: `0:rev-1 ready, 1:rev-1 leaving, 2:rev-2 starting`. */
export function line(world: World, name = 'ingester-zone-a'): string {
  const view = world.snapshot.pods.find((candidate) => candidate.statefulSet === name);
  return knownPods(view)
    .map((pod) => `${pod.ordinal}:${pod.revision} ${pod.isTerminating ? 'leaving' : pod.isReady ? 'ready' : 'starting'}`)
    .join(', ');
}

/** Shows the counters of the StatefulSet: replicas, ready, updated. */
export function counters(world: World, name = 'ingester-zone-a'): string {
  const { replicas, readyReplicas, updatedReplicas } = setIn(world, name).status;
  return `${replicas} replicas, ${readyReplicas} ready, ${updatedReplicas} updated`;
}

/** Returns the lines of the world at each time at which it changes by itself, at most twenty. */
export function story(world: World, name = 'ingester-zone-a'): readonly string[] {
  const lines = [line(world, name)];
  let current = world;
  for (let next = nextEventMs(current); next !== undefined && lines.length < 20; next = nextEventMs(current)) {
    current = step(current, { kind: 'elapse', toMs: next });
    lines.push(`${(next - kitNowMs) / 1000}s ${line(current, name)}`);
  }
  return lines;
}
