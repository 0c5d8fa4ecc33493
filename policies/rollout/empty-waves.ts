// Finds the first waves of a rollout if they have no pods, for lint and for plans.
import type { WaveDefinition } from '../definition.ts';
import { listed } from '../wording.ts';

interface EmptyWaves {
  /** The names of the waves before the first wave with pods; at least one. */
  readonly waves: readonly string[];
  /** The zones of those waves, in the order of `emptyZones`. */
  readonly zones: readonly string[];
  /** The message: `wave canary has no pods: zone a has 0 replicas; ...`. */
  readonly text: string;
}

/** Returns the waves before the first wave with pods; undefined if the first wave has pods or no wave has pods. */
export function emptyFirstWaves(
  waves: readonly Pick<WaveDefinition, 'name' | 'zones'>[],
  emptyZones: readonly string[],
): EmptyWaves | undefined {
  const first = waves.findIndex((wave) => wave.zones.some((zone) => !emptyZones.includes(zone)));
  const [idle, next] = [waves.slice(0, Math.max(0, first)), waves[first]];
  if (idle.length === 0 || next === undefined) return undefined;
  const names = idle.map(({ name }) => name);
  const zones = emptyZones.filter((zone) => idle.some((wave) => wave.zones.includes(zone)));
  const subject = names.length === 1 ? `wave ${names[0]} has` : `waves ${names[0]} to ${names.at(-1)} have`;
  const where = zones.length === 1 ? `zone ${zones[0]} has 0 replicas` : `zones ${listed(zones, 'and')} have 0 replicas`;
  return {
    waves: names,
    zones,
    text: `${subject} no pods: ${where}; wave ${next.name} updates the first pods`,
  };
}
