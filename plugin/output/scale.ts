// Renders the result of the verb scale: the zones that follow the change of replicas, and the conditions for which they wait.
import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';

/** Returns a line with the delays of the given zone, if any, and a line per zone that follows it, directly or indirectly. */
export function propagationLines(
  definition: GroupDefinition | undefined,
  zone: ZoneDefinition,
  { from, to }: { readonly from: number; readonly to: number },
): string {
  const zones = definition?.zones ?? [];
  const own = [...delays(zone, from, to)];
  const first = own.length === 0 ? [] : [`  zone ${zone.name}: ${own.join(', ')}\n`];
  return [...first, ...followersOf(zones, zone.name).map((follower) => followerLine(follower, from, to))].join('');
}

/** Returns the followers in the order in which the change reaches them. Stops at a cycle, which lint reports. */
function followersOf(zones: readonly ZoneDefinition[], leader: string): readonly ZoneDefinition[] {
  const reached = new Set([leader]);
  const found: ZoneDefinition[] = [];
  for (const name of reached) {
    for (const zone of zones) {
      if (zone.follows !== name || reached.has(zone.name)) continue;
      reached.add(zone.name);
      found.push(zone);
    }
  }
  return found;
}

function followerLine(zone: ZoneDefinition, from: number, to: number): string {
  const when =
    to > from ? (zone.followersWaitFor === 'leaderReady' ? [`when all pods of ${zone.follows} are ready`] : []) : delays(zone, from, to);
  return `  zone ${zone.name} follows ${zone.follows}${when.length === 0 ? '' : `: ${when.join(', ')}`}\n`;
}

function delays({ betweenZonesMs, delayed, prepare }: ZoneDefinition, from: number, to: number): readonly string[] {
  if (to >= from) return [];
  return [
    ...(betweenZonesMs === undefined ? [] : [`at least ${formatDuration(betweenZonesMs)} after the last scale-down of another zone`]),
    ...(delayed === undefined ? [] : [`after the pods to be removed have been prepared for at least ${formatDuration(delayed.afterMs)}`]),
    ...(prepare === undefined ? [] : ['after the pods to be removed are prepared']),
  ];
}
