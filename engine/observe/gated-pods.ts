// The pods that a gate of the wave under way is about: which are updated, and how many are not available.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { GateReading, PodView, RunState } from '../snapshot.ts';
import { type GroupView, isAvailable, type ZoneView } from './view.ts';

/** A pod with what its address is made of. */
export interface GatedPod {
  readonly pod: PodView;
  /** `spec.serviceName` of its StatefulSet. */
  readonly serviceName: string;
}

/**
 * The pods of the group that run what the run is to bring, by zone and ordinal; or why they are not known. Pods on their way out are among
 * them: what they answer is what clients get. Those of a zone in which the run changes nothing are not.
 */
export function updatedPods(
  { zones }: GroupView,
  { target, previous }: Pick<RunState, 'target' | 'previous'>,
): readonly GatedPod[] | string {
  const unknown = zones.find((zone) => zone.unknown !== undefined)?.unknown;
  if (unknown !== undefined) return unknown;
  const changed = zones.filter(({ zone }) => target[zone.name] !== previous[zone.name]);
  return changed.flatMap(({ zone, set, pods }) =>
    pods.filter(({ revision }) => revision === target[zone.name]).map((pod) => ({ pod, serviceName: set?.serviceName ?? '' })),
  );
}

/**
 * Returns how many pods of the wave's zones have not been available for the required time. Before the first pod of the wave every pod
 * counts; afterwards only updated pods, so that a broken outdated pod does not block its own repair. A missing pod is not available at any
 * revision. Returns an error if the pods are unknown, or no wave is current.
 */
export function podsAvailable(
  view: GroupView,
  run: Pick<RunState, 'wave' | 'waveAvailableMs' | 'target'>,
  { atMs, minReadySeconds }: { readonly atMs: number; readonly minReadySeconds: number },
): GateReading {
  const failed = (message: string): GateReading => ({ atMs, result: 'error', message });
  const { group } = view;
  const wave = group.rollout.waves[run.wave];
  if (wave === undefined) return failed('no wave is under way');
  const zones = view.zones.filter(({ zone }) => wave.zones.includes(zone.name));
  const unknown = zones.find((zone) => zone.unknown !== undefined)?.unknown;
  if (unknown !== undefined) return failed(unknown);
  const counts = (zone: ZoneView, pod: PodView): boolean =>
    run.waveAvailableMs === undefined || pod.revision === run.target[zone.zone.name];
  const value = zones.reduce((sum, zone) => sum + unavailableIn(group, zone, { atMs, minReadySeconds, counts }), 0);
  return { atMs, result: 'value', value };
}

interface Counted {
  readonly atMs: number;
  readonly minReadySeconds: number;
  readonly counts: (zone: ZoneView, pod: PodView) => boolean;
}

function unavailableIn(group: GroupDefinition, zone: ZoneView, { atMs, minReadySeconds, counts }: Counted): number {
  const { set, replicas, pods } = zone;
  const first = set?.firstOrdinal ?? 0;
  const seconds = Math.max(minReadySeconds, set?.minReadySeconds ?? 0);
  const standing = pods.filter(({ ordinal }) => ordinal >= first && ordinal < first + replicas);
  const down = standing.filter((pod) => counts(zone, pod) && !isAvailable(pod, group, seconds, atMs));
  return replicas - standing.length + down.length;
}
