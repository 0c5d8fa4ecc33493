// Between instants and what clocks show in a time zone, with one rule for the two nights on which clocks change.
import { IANAZone } from 'luxon';

const hourMs = 3_600_000;

/** Reports whether an IANA time zone of this name exists. Fixed offsets such as `+01:00` are not time zones. */
export function isTimeZone(name: string): boolean {
  return /^[A-Za-z]/.test(name) && IANAZone.isValidZone(name);
}

/** Returns the wall-clock time of the zone at an instant, as if it were UTC. */
export function wallFromInstant(timeZone: string, instantMs: number): number {
  return instantMs + offsetMs(timeZone, instantMs);
}

/**
 * The instant at which a clock in the zone shows `wallMs` (written as if it were UTC). A time that occurs twice, because clocks were set
 * back, is the first of the two; a time that is skipped, because clocks were set forward, is the end of the gap.
 *
 * ```
 * clock   01:00 ── 02:00 ┐         ┌ 03:00 ── 04:00      spring: 02:30 is never shown, and stands for 03:00
 *                        └─────────┘
 * clock   01:00 ── 02:00 ── 03:00 ┐                      autumn: 02:30 is shown twice, and stands for the first
 *                  02:00 ── 03:00 ┴ 04:00
 * ```
 */
export function instantFromWall(timeZone: string, wallMs: number): number {
  // No offset exceeds 14 hours, so these two instants lie before and after the one that is sought; no zone changes twice in between.
  const before = wallMs - 36 * hourMs;
  const after = wallMs + 36 * hourMs;
  const candidates = [wallMs - offsetMs(timeZone, before), wallMs - offsetMs(timeZone, after)];
  const shown = candidates.filter((instantMs) => wallFromInstant(timeZone, instantMs) === wallMs);
  return shown.length > 0 ? Math.min(...shown) : endOfGap(timeZone, before, after);
}

/** The first instant with the later offset, by bisection: 28 steps to the millisecond. */
function endOfGap(timeZone: string, before: number, after: number): number {
  const later = offsetMs(timeZone, after);
  let low = before;
  let high = after;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetMs(timeZone, middle) === later) high = middle;
    else low = middle;
  }
  return high;
}

function offsetMs(timeZone: string, instantMs: number): number {
  return IANAZone.create(timeZone).offset(instantMs) * 60_000;
}
