// The readable entries of a run's timeline: accidents, agent crashes, pods, decisions and verdicts, with names of zones.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { TimelineEntry } from '../../simulation/run.ts';
import type { ScenarioEvent } from '../../simulation/scenario.ts';
import type { LaneSpan } from '../output/timeline.ts';

/** Leaves out single requests of agents and faults of retried requests: there are thousands of them. */
export function readableEntries(timeline: readonly TimelineEntry[], group: GroupDefinition): readonly TimelineEntry[] {
  return timeline
    .filter(({ who, what }) => (who === 'fault' ? isAccident(what) : !/: \d{3} \(/.test(what)))
    .map(({ atMs, who, what }) => ({ atMs: Math.round(atMs), who, what: who === 'fault' ? withZones(what, group) : what }));
}

/** Faults of requests and watches start with their class. Only crashes and pauses of a process are shown. */
function isAccident(what: string): boolean {
  return !/^F\d/.test(what) || /^F1[12] /.test(what);
}

function withZones(what: string, group: GroupDefinition): string {
  return what
    .replace(/\bzone=([a-z])\b/g, (_, letter: string) => `zone=${group.zones[letter.charCodeAt(0) - 97]?.name ?? letter}`)
    .replace(/(\w*)Ms=(\d+)/g, (_, name: string, ms: string) => `${name}=${Math.round(Number(ms) / 100) / 10}s`);
}

/** Faults mark the columns in which they happen, in the lane of their zone. */
export function faultSpans(events: readonly ScenarioEvent[], { zones }: GroupDefinition, endMs: number): readonly LaneSpan[] {
  return events.flatMap((event): readonly LaneSpan[] => {
    const letter = 'zone' in event ? event.zone : undefined;
    const zone = letter === undefined ? undefined : zones[letter.charCodeAt(0) - 97];
    if (zone === undefined || event.atMs > endMs) return [];
    return [{ lane: zone.name, kind: 'fault', startSeconds: event.atMs / 1000, endSeconds: event.atMs / 1000 }];
  });
}
