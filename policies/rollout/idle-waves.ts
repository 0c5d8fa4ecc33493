// Waves at the beginning of a rollout that take no pod: which they are, and how that is said.
import type { WaveDefinition } from '../definition.ts';
import { listed } from '../wording.ts';

interface IdleWaves {
  /** Names of the waves before the first one that has pods, at least one. */
  readonly waves: readonly string[];
  /** Zones of those waves, in the order of `emptyZones`. */
  readonly zones: readonly string[];
  /** What is to be said of them: `wave canary takes no pod, since zone a has none; ...`. */
  readonly text: string;
}

/** The waves before the first that has a zone with pods; undefined where the first wave has one, and where no wave has any. */
export function idleWaves(waves: readonly Pick<WaveDefinition, 'name' | 'zones'>[], emptyZones: readonly string[]): IdleWaves | undefined {
  const first = waves.findIndex((wave) => wave.zones.some((zone) => !emptyZones.includes(zone)));
  const [idle, next] = [waves.slice(0, Math.max(0, first)), waves[first]];
  if (idle.length === 0 || next === undefined) return undefined;
  const names = idle.map(({ name }) => name);
  const zones = emptyZones.filter((zone) => idle.some((wave) => wave.zones.includes(zone)));
  const those = names.length === 1 ? `wave ${names[0]} takes` : `waves ${names[0]} to ${names.at(-1)} take`;
  const where = zones.length === 1 ? `zone ${zones[0]} has none` : `zones ${listed(zones, 'and')} have none`;
  return {
    waves: names,
    zones,
    text: `${those} no pod, since ${where}; the first pods with the new version are those of wave ${next.name}`,
  };
}
