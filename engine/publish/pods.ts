// The pods of a group that are worth naming: those that move, and those that are bad.

import { type GroupView, isAvailable, isCrashing, type ZoneView } from '../observe/view.ts';
import type { PodView } from '../snapshot.ts';
import { type PodState, type PublishedPod, podStates } from './published.ts';

/** Every such pod, the worst first, then in the order of zones and ordinals. */
export function podsWorthNaming(view: GroupView, nowMs: number): readonly PublishedPod[] {
  const rank = (pod: PublishedPod): number => podStates.indexOf(pod.state);
  return view.zones.flatMap((zone) => podsOfZone(view, zone, nowMs)).sort((a, b) => rank(a) - rank(b));
}

function podsOfZone({ group }: GroupView, zone: ZoneView, nowMs: number): readonly PublishedPod[] {
  const { set } = zone;
  if (set === undefined || zone.unknown !== undefined) return [];
  const claimed = new Set(zone.claims.map((claim) => claim.uid));
  const surplus = new Set(zone.surplus);
  const byOrdinal = new Map(zone.pods.map((pod) => [pod.ordinal, pod]));
  const missing = [...zone.unavailable].filter((ordinal) => !byOrdinal.has(ordinal));
  const found = zone.pods.flatMap((pod): PublishedPod[] => {
    const isUp = isAvailable(pod, group, set.minReadySeconds, nowMs);
    const state = stateOf(pod, { isUp, isClaimed: claimed.has(pod.uid), isSurplus: surplus.has(pod), target: set.status.updateRevision });
    return state === undefined ? [] : [namedPod(zone, pod, state)];
  });
  return [...found, ...missing.map((ordinal): PublishedPod => ({ zone: zone.zone.name, pod: `${set.name}-${ordinal}`, state: 'missing' }))];
}

interface PodFacts {
  readonly isUp: boolean;
  readonly isClaimed: boolean;
  readonly isSurplus: boolean;
  readonly target: string;
}

function stateOf(pod: PodView, { isUp, isClaimed, isSurplus, target }: PodFacts): PodState | undefined {
  if (pod.isTerminating) return 'terminating';
  if (isSurplus) return 'leaving';
  if (isClaimed) return 'announced';
  if (isUp) return undefined;
  if (isCrashing(pod)) return 'crashing';
  if (!pod.nodeReady) return 'nodeDown';
  return pod.revision === target ? 'starting' : 'unready';
}

function namedPod({ zone }: ZoneView, pod: PodView, state: PodState): PublishedPod {
  const [reason] = pod.waitingReasons;
  return {
    zone: zone.name,
    pod: pod.name,
    state,
    ...(reason === undefined ? {} : { reason }),
    ...(pod.node === '' ? {} : { node: pod.node }),
    sinceMs: pod.readyChangedMs,
  };
}
