// Evaluates the minimum time between the downscales of two zones.

import { formatDuration } from '../../policies/duration.ts';
import { preciseText } from '../../policies/instant.ts';
import { type GroupContext, limitSource, sourceOf, zoneNamed } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { ageSince, byPrecedence, result } from '../rule.ts';
import { isWithinClockSkew } from '../snapshot.ts';
import type { ScaleQuestion } from './scale.ts';

interface Shrunk {
  readonly zone: string;
  readonly atMs: number;
}

/** The annotation in which grafana/rollout-operator keeps the time of the last downscale. */
const lastDownscaleAnnotation = 'grafana.com/last-downscale';

/**
 * Returns whether enough time has passed since the last downscale of another zone. In native groups, the interval of this zone counts. In
 * adopted groups, this interval counts only for a follower. A prepared downscale must also keep the interval of each zone that shrank.
 */
export function zoneGap(question: ScaleQuestion): RuleResult {
  const { context, zone, isForced } = question;
  const { zoneGap: value } = profileOf(context.group);
  const isOwnAsked = !isForced && (value === 'group' || (zone.zone.follows !== undefined && question.asker === 'agent'));
  // A prepared downscale waits for the other zone even if the replicas are forced.
  const isOtherAsked = value === 'zone' && zone.zone.prepare !== undefined;
  if (!isOwnAsked && !isOtherAsked)
    return result('zone-gap', 'skip', isForced ? 'replicas are forced' : 'no interval between zones is set');
  const others = shrunkZones(question);
  if (typeof others === 'string') return result('zone-gap', 'unknown', others);
  const answers: RuleResult[] = [];
  if (isOwnAsked) answers.push(ownGap(question, others));
  if (isOtherAsked)
    answers.push(
      ...others.map((other) => {
        const limitMs = zoneNamed(context, other.zone)?.zone.betweenZonesMs;
        return gapOf(question, other, { limitMs, owner: other.zone, isStrict: false });
      }),
    );
  const worst = answers.sort((a, b) => byPrecedence(a, b) || (b.earliestMs ?? 0) - (a.earliestMs ?? 0))[0];
  return worst ?? result('zone-gap', 'skip', 'no interval between zones is set');
}

function ownGap(question: ScaleQuestion, others: readonly Shrunk[]): RuleResult {
  const { context, zone } = question;
  const isFollower = profileOf(context.group).zoneGap === 'zone';
  const last = others[0];
  if (last === undefined) return result('zone-gap', 'ok', 'no other zone shrank', { source: gapSource(question, zone.zone.name) });
  const own = zone.zone.betweenZonesMs;
  const limitMs = isFollower ? own : Math.max(own ?? 0, context.limits.betweenZonesMs ?? 0);
  if (isFollower && own === undefined) {
    return result('zone-gap', 'no', `zone ${last.zone} shrank, and ${zone.zone.statefulSet} sets no interval between zones`, {
      limit: 'the label grafana.com/min-time-between-zones-downscale',
      source: gapSource(question, zone.zone.name),
    });
  }
  return gapOf(question, last, { limitMs, owner: zone.zone.name, isStrict: isFollower });
}

interface Gap {
  readonly limitMs: number | undefined;
  readonly owner: string;
  /** True if more than the limit must have passed. */
  readonly isStrict: boolean;
}

function gapOf(question: ScaleQuestion, other: Shrunk, { limitMs, owner, isStrict }: Gap): RuleResult {
  const source = gapSource(question, owner);
  if (limitMs === undefined || limitMs === 0) return result('zone-gap', 'skip', 'no interval between zones is set', { source });
  const limit = formatDuration(limitMs);
  const passed = question.context.nowMs - other.atMs;
  const age = ageSince('ago', other.atMs, question.context.nowMs);
  const fact = `zone ${other.zone} shrank ${age.words}`;
  // The age of a time in the future is unknown. Adopted groups wait for the interval after that time.
  if (profileOf(question.context.group).downscaleTime === 'ledger' && !isWithinClockSkew(question.context, other.atMs)) {
    const recorded = `zone ${other.zone} has a recorded scale-down at ${preciseText(other.atMs)}, a time in the future`;
    return result('zone-gap', 'unknown', recorded, { limit, source, earliestMs: other.atMs + limitMs });
  }
  if (isStrict ? passed > limitMs : passed >= limitMs) return result('zone-gap', 'ok', fact, { limit, source, age });
  return result('zone-gap', 'wait', fact, { limit, source, age, earliestMs: other.atMs + limitMs + (isStrict ? 1 : 0) });
}

function gapSource({ context }: ScaleQuestion, zone: string): RuleResult['source'] {
  const own = sourceOf(context, `zones.${zone}.betweenZones`);
  const limitMs = context.limits.betweenZonesMs ?? 0;
  return limitMs > (context.view.zones.find((view) => view.zone.name === zone)?.zone.betweenZonesMs ?? 0)
    ? limitSource(context, 'betweenZonesMs')
    : own;
}

/** Returns the downscales of other zones, the latest first, in native groups also of removed zones; a text if a time is unreadable. */
function shrunkZones({ context, zone }: ScaleQuestion): readonly Shrunk[] | string {
  const shrunk: Shrunk[] = [];
  const others = context.view.zones.filter((view) => view.zone.name !== zone.zone.name);
  for (const view of others) {
    const recorded = downscaleTimes(context, view);
    if (typeof recorded === 'string') return recorded;
    for (const atMs of recorded) shrunk.push({ zone: view.zone.name, atMs });
  }
  if (profileOf(context.group).downscaleTime === 'ledger') {
    const { claims, downscales } = context.view.ledger;
    const records = [...claims.filter(({ verb }) => verb === 'scaleDown'), ...downscales];
    shrunk.push(...records.filter((record) => zoneNamed(context, record.zone) === undefined));
  }
  return shrunk.sort((a, b) => b.atMs - a.atMs || (a.zone < b.zone ? -1 : 1));
}

/** Returns the recorded instants of the zone's downscales; a text if a time is unreadable. */
export function downscaleTimes(context: GroupContext, view: ZoneView): readonly number[] | string {
  return profileOf(context.group).downscaleTime === 'annotation' ? annotatedTimes(view) : ledgerTimes(context, view);
}

function announcedTimes({ claims }: ZoneView): readonly number[] {
  return claims.filter((claim) => claim.verb === 'scaleDown').map((claim) => claim.atMs);
}

function ledgerTimes(context: GroupContext, view: ZoneView): readonly number[] {
  const recorded = context.view.ledger.downscales.filter((record) => record.zone === view.zone.name);
  return [...announcedTimes(view), ...recorded.map((record) => record.atMs)];
}

/** Returns the instant in the annotation, which only prepared downscales write, and the instants of open claims on such downscales. */
function annotatedTimes(view: ZoneView): readonly number[] | string {
  const announced = view.zone.prepare === undefined ? [] : announcedTimes(view);
  const text = view.set?.annotations[lastDownscaleAnnotation];
  if (text === undefined) return announced;
  const atMs = Date.parse(text);
  if (Number.isNaN(atMs))
    return `annotation ${lastDownscaleAnnotation} of ${view.zone.statefulSet} is not a timestamp: ${text.slice(0, 40)}`;
  return [...announced, atMs];
}
