// Renders the progress of a group, for a terminal and for a log.
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import type { Estimation, Facts } from '../live/facts.ts';
import type { LiveGroup } from '../live/groups.ts';
import { endText, startingText, zoneEndText } from './estimate-text.ts';
import { infoText, partText, podTotals, troubledPods, unreadZones, waveText, zoneProgress } from './group-text.ts';
import { changeText } from './image-change-text.ts';
import { type Moment, renderFrame } from './live.ts';
import { ageText, secondText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';

/** Returns the lines of one frame, including the estimated end if there is an estimate. */
export function renderStatus(live: LiveGroup, nowMs: number, look: TableLook, facts: Facts = {}): readonly string[] {
  return renderFrame({ ...momentOf(live.decision, nowMs, facts), change: changeText(facts.changes ?? [], look.glyphs.arrow) }, look);
}

function momentOf(decision: PublishedDecision, nowMs: number, { estimation }: Facts): Moment {
  const zones = decision.zones.map((zone) => zoneProgress(zone, decision.pods));
  const startedMs = decision.run?.startedMs ?? decision.phaseSinceMs;
  const endedMs = decision.run?.completedMs ?? decision.run?.failedMs ?? nowMs;
  const starting = startingText(decision, estimation, nowMs);
  return {
    decision,
    zones,
    nowMs,
    elapsedSeconds: Math.max(0, endedMs - startedMs) / 1000,
    totalSeconds: undefined,
    zoneEnds: Object.fromEntries(
      zones.flatMap(({ zone }) => {
        const end = zoneEndText(estimation, zone, nowMs);
        return end === undefined ? [] : [[zone, end] as const];
      }),
    ),
    more: [
      ...(starting === undefined ? [] : [['pod', starting] as const]),
      ...(estimation === undefined ? [] : [['end', endText(estimation, nowMs)] as const]),
    ],
  };
}

/** Returns one log line: `2026-08-22T12:31:04Z mimir/ingester rolling wave=2/3 updated=27/60 available=55/60`. */
export function statusLine({ decision }: LiveGroup, nowMs: number): string {
  return [secondText(nowMs), `${decision.namespace}/${decision.group}`, ...factsOf(decision)].join(' ');
}

/** Returns the log line printed while nothing changes, with the duration of the phase and the range of the estimated end. */
export function heartbeatLine({ decision }: LiveGroup, nowMs: number, estimation?: Estimation): string {
  const line = [secondText(nowMs), 'heartbeat', `${decision.namespace}/${decision.group}`, ...factsOf(decision)].join(' ');
  return `${line} for=${ageText(decision.phaseSinceMs, nowMs)}${endField(estimation)}`;
}

function endField(estimation: Estimation): string {
  if (estimation === undefined) return '';
  if (isUnknown(estimation)) return ' end=?';
  const { p50Ms, p90Ms } = estimation.end;
  return ` end=${secondText(p50Ms)}..${p90Ms === undefined ? '' : secondText(p90Ms)}`;
}

function factsOf(decision: PublishedDecision): readonly string[] {
  const totals = podTotals(decision);
  const unread = unreadZones(decision);
  const { wave } = decision;
  const info = infoText(decision);
  const working = decision.zones.filter((zone) => zone.available < zone.replicas && !unread.includes(zone.zone)).map(({ zone }) => zone);
  return [
    decision.phase.toLowerCase(),
    ...(wave === undefined ? [] : [`wave=${Math.min(wave.index + 1, wave.count)}/${wave.count}`, `name=${wave.name}`]),
    ...(working.length === 0 ? [] : [`zone=${working.join(',')}`]),
    `updated=${partText(totals, totals.updated)}`,
    `available=${partText(totals, totals.available)}`,
    ...(decision.waits.length === 0 ? [] : [`waits=${decision.waits.map(({ rule }) => rule).join(',')}`]),
    ...(info === '' || (decision.waits.length === 0 && troubledPods(decision).length === 0) ? [] : [JSON.stringify(info)]),
  ];
}

/** Returns a key that changes with every transition: phase, wave, working or finished zones, failing pods, and waits. A single pod is no transition. */
export function statusKey({ decision }: LiveGroup): string {
  const zones = decision.zones.map((zone) => [zone.zone, zone.available < zone.replicas, zone.updated === zone.replicas, zone.replicas]);
  const waits = decision.waits.map(({ rule, outcome }) => [rule, outcome]);
  const troubled = troubledPods(decision).map(({ pod }) => pod);
  return JSON.stringify([decision.phase, waveText(decision), decision.run?.outcome, zones, waits, troubled]);
}
