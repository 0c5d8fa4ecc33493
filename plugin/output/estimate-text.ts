// The texts about the estimated end of a rollout. Every estimate is a range that starts with "about".
import type { Estimate, LikelyEnd } from '../../engine/plan/estimate.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isUnknown, type Known } from '../../engine/snapshot.ts';
import { ageText, spanText } from './plan/plan-text.ts';
import { plural } from './plural.ts';

/** Returns `in about 21m to 46m, plus 1 approval; pods took 1m3s to start (measured on 7) and 25s to stop`, or why the end is unknown. */
export function endText(estimate: Known<Estimate>, nowMs: number): string {
  if (isUnknown(estimate)) return `unknown: ${estimate.unknown}`;
  const { end, approvals } = estimate;
  const people = approvals === 0 ? '' : `, plus ${plural(approvals, 'approval')}`;
  return `${rangeText(end, nowMs)}${people}; ${timesText(estimate)}`;
}

/** Returns the measured and the assumed durations. */
function timesText({ start, measuredPods, stop, measuredStops }: Estimate): string {
  const [starts, stops] = [spanText(start.p50Seconds), spanText(stop.p50Seconds)];
  if (measuredPods === 0) return `pods are assumed to stop in ${stops} and to start in ${starts}`;
  const started = `pods took ${starts} to start (measured on ${measuredPods})`;
  return measuredStops === 0 ? `${started} and are assumed to stop in ${stops}` : `${started} and ${stops} to stop`;
}

function rangeText({ p50Ms, p90Ms }: LikelyEnd, nowMs: number): string {
  const [soon, late] = [spanOf(p50Ms, nowMs), p90Ms === undefined ? undefined : spanOf(p90Ms, nowMs)];
  if (late === undefined) return `in about ${soon} or much later`;
  return soon === late ? `in about ${soon}` : `in about ${soon} to ${late}`;
}

/** Returns the estimated end of one zone, such as `about 16m`. */
export function zoneEndText(estimate: Known<Estimate> | undefined, zone: string, nowMs: number): string | undefined {
  const end = estimate === undefined || isUnknown(estimate) ? undefined : estimate.zones[zone];
  return end === undefined ? undefined : `about ${spanOf(end.p50Ms, nowMs)}`;
}

/** Rounds up to whole minutes, because seconds would suggest a precision that an estimate does not have. */
function spanOf(atMs: number, nowMs: number): string {
  const seconds = Math.max(0, atMs - nowMs) / 1000;
  return seconds < 60 ? '1m' : spanText(Math.ceil(seconds / 60) * 60);
}

/** Returns `ingester-zone-b-12 has been starting for 2m2s (usually 3m10s)` for the oldest starting pod, or undefined if no pod starts. */
export function startingText({ pods }: PublishedDecision, estimate: Known<Estimate> | undefined, nowMs: number): string | undefined {
  if (estimate === undefined || isUnknown(estimate)) return undefined;
  const starting = pods.flatMap(({ pod, state, sinceMs }) => (state === 'starting' && sinceMs !== undefined ? [{ pod, sinceMs }] : []));
  const [oldest] = starting.sort((a, b) => a.sinceMs - b.sinceMs);
  if (oldest === undefined) return undefined;
  const { p50Seconds, p90Seconds } = estimate.start;
  const isSlow = nowMs - oldest.sinceMs > p90Seconds * 1000;
  const usual = isSlow ? `slower than usual; 90% start within ${spanText(p90Seconds)}` : `usually ${spanText(p50Seconds)}`;
  return `${oldest.pod} has been starting for ${ageText(oldest.sinceMs, nowMs)} (${usual})`;
}

/** Returns the estimate for programs: seconds from now, times, and the waits that it excludes. */
export function etaDocument(estimate: Known<Estimate> | undefined, nowMs: number): Readonly<Record<string, unknown>> {
  if (estimate === undefined) return {};
  if (isUnknown(estimate)) return { eta: { unknown: estimate.unknown } };
  const { end, zones, approvals, start, measuredPods, stop, measuredStops } = estimate;
  return {
    eta: {
      ...instants(end, nowMs),
      excludes: approvals === 0 ? [] : ['human'],
      approvals,
      podStart: { ...start, measuredPods },
      podStop: { ...stop, measuredPods: measuredStops },
      zones: Object.fromEntries(Object.entries(zones).map(([zone, one]) => [zone, instants(one, nowMs)])),
    },
  };
}

function instants({ p50Ms, p90Ms }: LikelyEnd, nowMs: number): Readonly<Record<string, unknown>> {
  const seconds = (atMs: number): number => Math.max(0, Math.round((atMs - nowMs) / 1000));
  return {
    p50Seconds: seconds(p50Ms),
    p50At: new Date(p50Ms).toISOString(),
    ...(p90Ms === undefined ? {} : { p90Seconds: seconds(p90Ms), p90At: new Date(p90Ms).toISOString() }),
  };
}
