// Durations of flags, ages and instants as text.
import { durationMs } from '../../policies/duration.ts';
import { usageFailure } from '../failure.ts';
import { spanText } from '../output/plan/plan-text.ts';

/** Parses the duration of a flag, in milliseconds. @throws Failure when it is not a duration. */
export function durationFlag(flag: string, text: string): number {
  try {
    return durationMs(text);
  } catch {
    throw usageFailure(`${flag} ${text} is not a duration`, 'use a form such as 30s, 10m, 2h or 1h30m');
  }
}

/** Returns an age such as `12s` or `3h10m`; `0s` for an instant in the future. */
export function ageText(atMs: number, nowMs: number): string {
  return spanText(Math.max(0, nowMs - atMs) / 1000);
}

/** Returns an instant such as `2026-08-22T12:31:04Z`. */
export function secondText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
