// Durations and instants of the command line, and how old something is.
import { durationMs } from '../../policies/duration.ts';
import { usageFailure } from '../failure.ts';
import { spanText } from '../output/plan/plan-text.ts';

/** Milliseconds of the value of a flag. @throws Failure when it is no duration. */
export function durationFlag(flag: string, text: string): number {
  try {
    return durationMs(text);
  } catch {
    throw usageFailure(`${flag} ${text} is no duration`, 'write it as 30s, 10m, 2h or 1h30m');
  }
}

/** `12s`, `3h10m`; of an instant that lies ahead of the own clock `0s`. */
export function ageText(atMs: number, nowMs: number): string {
  return spanText(Math.max(0, nowMs - atMs) / 1000);
}

/** `2026-08-22T12:31:04Z`. */
export function secondText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
