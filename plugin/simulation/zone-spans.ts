// The decisions of a run as timeline lanes: when each zone changed, soaked or waited.
import type { GroupDecision } from '../../engine/decision.ts';
import type { Turn } from '../../engine/plan/forward.ts';
import type { LaneSpan } from '../output/timeline.ts';

/** Returns the spans of every zone, in seconds from the first decision. Equal consecutive states make one span. */
export function zoneSpans(turns: readonly Turn[]): readonly LaneSpan[] {
  const [first] = turns;
  if (first === undefined) return [];
  const seconds = (ms: number) => (ms - first.nowMs) / 1000;
  const open = new Map<string, { kind: LaneSpan['kind']; startMs: number }>();
  const spans: LaneSpan[] = [];
  const close = (lane: string, atMs: number) => {
    const span = open.get(lane);
    if (span !== undefined && atMs > span.startMs)
      spans.push({ lane, kind: span.kind, startSeconds: seconds(span.startMs), endSeconds: seconds(atMs) });
    open.delete(lane);
  };
  for (const { nowMs, decision } of turns) {
    for (const { zone } of decision.zones) {
      const kind = zoneKind(decision, zone);
      if (open.get(zone)?.kind === kind) continue;
      close(zone, nowMs);
      if (kind !== undefined) open.set(zone, { kind, startMs: nowMs });
    }
  }
  const end = turns.at(-1)?.nowMs ?? first.nowMs;
  for (const lane of [...open.keys()]) close(lane, end);
  return spans.sort((a, b) => a.startSeconds - b.startSeconds || (a.lane < b.lane ? -1 : 1));
}

/** Returns the state of a zone; undefined when it has nothing to do. */
function zoneKind(decision: GroupDecision, name: string): LaneSpan['kind'] | undefined {
  const zone = decision.zones.find((candidate) => candidate.zone === name);
  const step = decision.steps.find((candidate) => candidate.zone === name);
  const isActing = decision.actions.some((action) => 'zone' in action && action.zone === name);
  if (zone === undefined) return undefined;
  if (step !== undefined && step.kind !== 'roll' && isActing) return 'scale';
  if (isActing || zone.available < zone.replicas) return 'roll';
  if (decision.waits.some((result) => result.rule === 'soak' || result.rule === 'gate') && zone.updated > 0) return 'soak';
  return step !== undefined || zone.updated < zone.replicas ? 'wait' : undefined;
}
