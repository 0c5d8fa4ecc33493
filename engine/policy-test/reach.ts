// Finds the waves that zones of the size in a case can reach.
import type { WaveDefinition } from '../../policies/definition.ts';
import { waveTarget } from '../amount.ts';
import type { GroupContext } from '../context.ts';
import { addsNothing } from '../rules/wave.ts';

/** Indices of waves. */
export interface WaveReach {
  /** Waves that have a pod which no earlier one has: what stands before a wave is asked of these alone. */
  readonly rolled: readonly number[];
  /** Waves whose soak is not passed over. */
  readonly soaking: readonly number[];
}

/** A share of a small zone may be the same pods as the share before it: 1 % and 50 % of one pod are that pod. */
export function reachOf(context: GroupContext): WaveReach {
  const { waves } = context.group.rollout;
  const targetIn = (wave: WaveDefinition, zone: string): number => {
    const replicas = context.view.zones.find((view) => view.zone.name === zone)?.replicas ?? 0;
    return wave.zones.includes(zone) ? waveTarget(wave.amount, replicas) : 0;
  };
  const hasOwnPod = (wave: WaveDefinition, index: number): boolean =>
    wave.zones.some(
      (zone) => waves.slice(0, index).every((earlier) => targetIn(earlier, zone) < targetIn(wave, zone)) && targetIn(wave, zone) > 0,
    );
  const those = (has: (wave: WaveDefinition, index: number) => boolean): readonly number[] =>
    waves.flatMap((wave, index) => (has(wave, index) ? [index] : []));
  return { rolled: those(hasOwnPod), soaking: those((wave) => !addsNothing(context, wave)) };
}
