// The progress of one wave: the updated and the outdated pods of each of its zones.
import type { WaveDefinition } from '../../policies/definition.ts';
import { waveTarget } from '../amount.ts';
import { type GroupContext, zoneNamed } from '../context.ts';
import type { ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { isStuck } from '../rules/stuck.ts';
import type { PodView, RunState } from '../snapshot.ts';

export interface ZoneProgress {
  readonly view: ZoneView;
  /** Updated pods when the wave is done. */
  readonly target: number;
  /** Pods of this zone that the wave still replaces, including stuck pods of the open zone. */
  readonly remaining: number;
}

export interface WaveProgress {
  readonly wave: WaveDefinition;
  readonly zones: readonly ZoneProgress[];
  /** Every zone has its number of updated pods. */
  readonly isFilled: boolean;
  /** The wave is filled and every pod of the group is available. */
  readonly isAvailable: boolean;
}

/**
 * Returns the progress of a wave. Every wave includes the stuck pods of the open zone, also when the zone is not in the wave: no other zone may
 * start before they are replaced, so the run would wait forever for pods that an earlier run or wave broke. In native groups every wave also
 * includes stuck pods whose revision is neither `previous` nor the target, which an interrupted run left behind in any zone.
 */
export function waveProgress(
  context: GroupContext,
  wave: WaveDefinition,
  openZone?: string,
  previous: RunState['previous'] = {},
): WaveProgress {
  const isLeftBehind = ({ zone }: ZoneView, pod: PodView): boolean =>
    profileOf(context.group).repairsStuckPodsAcrossZones && previous[zone.name] !== undefined && previous[zone.name] !== pod.revision;
  const stuckIn = (view: ZoneView): number =>
    view.outdated.filter((pod) => (view.zone.name === openZone || isLeftBehind(view, pod)) && isStuck(context, view, pod)).length;
  const broken = context.view.zones.filter((view) => stuckIn(view) > 0).map((view) => view.zone.name);
  const outside = [...(openZone === undefined ? [] : [openZone]), ...broken].filter((name) => !wave.zones.includes(name));
  const zones = [...new Set([...outside, ...wave.zones])].flatMap((name) => {
    const view = zoneNamed(context, name);
    if (view === undefined) return [];
    const isInWave = wave.zones.includes(name);
    const target = isInWave ? waveTarget(wave.amount, view.replicas) : 0;
    // The StatefulSet controller replaces the pods that the partition exposes, also those beyond the wave.
    const exposed = isInWave ? view.exposedByPartition.length : 0;
    // A deleted pod whose successor does not exist yet counts as replaced.
    const left = Math.min(target - view.updated - view.pendingPods, view.outdated.length);
    return [{ view, target, remaining: Math.max(0, stuckIn(view), exposed, left) }];
  });
  const isFilled = zones.every((zone) => zone.remaining === 0 && zone.view.unknown === undefined);
  return { wave, zones, isFilled, isAvailable: isFilled && context.view.zones.every((zone) => zone.isReady) };
}
