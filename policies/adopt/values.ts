// Single values of labels and annotations: how the original reads them, and what it makes of those it cannot read.

import { formatDuration, goDurationMs } from '../duration.ts';
import type { CountOrPercent } from '../schema/scalars.ts';
import { type AdoptionFinding, adoptionFinding, shown } from './findings.ts';
import { annotationKeys, labelKeys } from './keys.ts';
import { off, type Reading, reads } from './reading.ts';
import type { AdoptedStatefulSet } from './statefulset.ts';

/** Go keeps a duration in 64 bits of nanoseconds and refuses a longer one; no readable duration takes this many characters. */
const longestGoDuration = { ms: 9_223_372_036_854, characters: 64 };

/** The most our schema can say; no StatefulSet has as many pods, so a larger number means the same. */
const mostUnavailable = 100_000;

/** Annotation rollout-max-unavailable: a positive integer or `1%` to `100%`; anything else is 1. */
export function readMaxUnavailable(set: AdoptedStatefulSet): Reading<CountOrPercent> {
  const text = set.annotations[annotationKeys.maxUnavailable];
  if (text === undefined) return reads(1);
  const value = maxUnavailable(text);
  if (value !== undefined) return reads(value);
  const message = `${annotationKeys.maxUnavailable} is ${shown(text)}, neither a positive integer nor 1% to 100%; 1 is used`;
  return reads(1, [adoptionFinding(set, 'maxUnavailableInvalid', annotationKeys.maxUnavailable, message)]);
}

function maxUnavailable(text: string): CountOrPercent | undefined {
  const trimmed = text.trim();
  if (trimmed.endsWith('%')) {
    const percent = goInteger(trimmed.slice(0, -1));
    return percent !== undefined && percent >= 1 && percent <= 100 ? `${percent}%` : undefined;
  }
  const count = goInteger(trimmed);
  return count !== undefined && count >= 1 ? Math.min(count, mostUnavailable) : undefined;
}

/** Label grafana.com/min-time-between-zones-downscale: a Go duration. Undefined value and no finding when it is not there. */
export function readBetweenZones(set: AdoptedStatefulSet): Reading<string> {
  const text = set.labels[labelKeys.minTimeBetweenZones];
  if (text === undefined) return off;
  const ms = withinGoDuration(text, goDurationMs);
  const problem = (message: string) => [adoptionFinding(set, 'minTimeInvalid', labelKeys.minTimeBetweenZones, message)];
  if (ms === undefined) {
    return { findings: problem(`${labelKeys.minTimeBetweenZones} is ${shown(text)}, which is no Go duration such as 12h or 90m`) };
  }
  if (ms < 0) return reads('0s', problem(`${labelKeys.minTimeBetweenZones} is ${shown(text)}; a negative time never makes a zone wait`));
  return reads(formatDuration(ms));
}

/**
 * Annotation grafana.com/rollout-force-replicas: 0 to 2147483647. The original ignores any other value, and the annotation as a whole on
 * a StatefulSet whose replicas it does not write.
 */
export function readForceReplicas(set: AdoptedStatefulSet, ignoredBecause: string | undefined): Reading<number> {
  const field = annotationKeys.forceReplicas;
  const text = set.annotations[field];
  if (text === undefined) return off;
  const value = goInteger(text);
  const reason = value === undefined || value < 0 || value > 2_147_483_647 ? 'is no integer from 0 to 2147483647' : ignoredBecause;
  if (value !== undefined && reason === undefined) return reads(value);
  return { findings: [adoptionFinding(set, 'forceReplicasIgnored', field, `${field} is ${shown(text)} and is ignored: it ${reason}`)] };
}

/** A label or annotation that is on when it is exactly `true`. */
export function readFlag(
  set: AdoptedStatefulSet,
  where: 'labels' | 'annotations',
  key: string,
): { readonly value: boolean; readonly findings: readonly AdoptionFinding[] } {
  const text = set[where][key];
  if (text === undefined || text === 'true') return { value: text === 'true', findings: [] };
  const looksTrue = /^\s*(?:true|t|1|yes|y|on|enabled?)\s*$/i.test(text);
  const message = `${key} is ${shown(text)} and counts as off; only the exact value "true" switches it on`;
  return { value: false, findings: looksTrue ? [adoptionFinding(set, 'almostTrue', key, message)] : [] };
}

/** Reads a duration with `parse`, unless Go would find it too long. */
export function withinGoDuration(text: string, parse: (text: string) => number | undefined): number | undefined {
  const ms = text.length <= longestGoDuration.characters ? parse(text) : undefined;
  return ms !== undefined && Math.abs(ms) <= longestGoDuration.ms ? ms : undefined;
}

/** A boolean as Go's strconv.ParseBool reads it; undefined for anything else. */
export function goBoolean(text: string): boolean | undefined {
  if (/^(?:1|t|T|TRUE|true|True)$/.test(text)) return true;
  return /^(?:0|f|F|FALSE|false|False)$/.test(text) ? false : undefined;
}

/** Parses a decimal integer as Go's strconv.Atoi does; undefined beyond 64 bits. */
function goInteger(text: string): number | undefined {
  const [, sign, digits] = /^([+-]?)0*(\d{1,19})$/.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const isNegative = sign === '-';
  if (BigInt(digits) > 9_223_372_036_854_775_807n + (isNegative ? 1n : 0n)) return undefined;
  return isNegative ? 0 - Number(digits) : Number(digits);
}
