// Windows: the times when changes may start, and the windows that block them.
import type { WindowDefinition } from '../definition.ts';
import { formatDuration } from '../duration.ts';
import type { FindingCode } from '../findings/codes.ts';
import type { PolicyAction } from '../schema/rollout-policy.ts';
import { defined } from '../values/defined.ts';
import { parseCron, type Schedule, startsAround, startsOf } from './schedule.ts';
import { isTimeZone } from './wall-clock.ts';

interface WindowState {
  readonly isOpen: boolean;
  /** Since when it is open. */
  readonly openedMs?: number;
  /** When it closes: the first instant outside it. */
  readonly closesMs?: number;
  /** When it opens next; absent while it is open, and when it does not open within five years. */
  readonly nextOpensMs?: number;
  /** The schedule is invalid. Callers must assume the stricter of open and closed. */
  readonly isUnreadable?: true;
}

/**
 * Returns whether a window is open at an instant. A schedule opens when the clock of its time zone shows the time: once, at the first of two, when
 * clocks are set back; at the end of the gap when the time is skipped. It stays open for its duration in elapsed time; of openings that overlap
 * or touch, the latest counts. Ranges include their beginning and not their end, and are one where they overlap or touch.
 */
export function windowState({ schedule, ranges }: WindowDefinition, nowMs: number): WindowState {
  return schedule ? scheduleState(schedule, nowMs) : rangesState(ranges ?? [], nowMs);
}

function scheduleState(schedule: Schedule, nowMs: number): WindowState {
  const starts = startsAround(schedule, nowMs);
  if (starts === undefined) return { isOpen: false, isUnreadable: true };
  const { lastMs, nextMs } = starts;
  if (lastMs !== undefined && nowMs < lastMs + schedule.durationMs) return opened(lastMs, lastMs + schedule.durationMs);
  return closed(nextMs);
}

function opened(openedMs: number, closesMs: number): WindowState {
  return { isOpen: true, openedMs, closesMs };
}

function closed(nextOpensMs: number | undefined): WindowState {
  return { isOpen: false, ...defined({ nextOpensMs }) };
}

function rangesState(ranges: NonNullable<WindowDefinition['ranges']>, nowMs: number): WindowState {
  const merged: { fromMs: number; toMs: number }[] = [];
  const sorted = ranges.filter(({ fromMs, toMs }) => fromMs < toMs).sort((a, b) => a.fromMs - b.fromMs);
  for (const { fromMs, toMs } of sorted) {
    const last = merged.at(-1);
    if (last && fromMs <= last.toMs) last.toMs = Math.max(last.toMs, toMs);
    else merged.push({ fromMs, toMs });
  }
  const open = merged.find(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs);
  return open ? opened(open.fromMs, open.toMs) : closed(merged.find(({ fromMs }) => fromMs > nowMs)?.fromMs);
}

/** Work in progress that may continue after the windows close, the strictest first. */
const inFlightOrder = ['finishPod', 'finishZone', 'finishAll'] as const;

interface WindowsAnswer {
  readonly isOpen: boolean;
  /** The active deny window, the first by name. */
  readonly deniedBy?: string;
  /** The allow windows of which one would have to be open, by name. */
  readonly notAllowedBy?: readonly string[];
  /** The next instant at which the answer could change; absent when it stays as it is. */
  readonly changesMs?: number;
  /** The strictest of the windows that stand in the way; `finishAll` when none does. */
  readonly inFlight: WindowDefinition['inFlight'];
}

/**
 * Returns whether the windows of all policies let an action begin. In each policy an active deny window wins; where an allow window names the action,
 * one must be open; without windows for the action it is open. Each policy must let it begin, so that one more policy never opens what another
 * keeps closed. A deny window that cannot be read is active, an allow window that cannot be read is closed.
 */
export function joinWindows(policies: readonly (readonly WindowDefinition[])[], action: PolicyAction, nowMs: number): WindowsAnswer {
  const relevant = policies.map((windows) => windows.filter((window) => window.actions.includes(action)));
  const { isOpen, denying, missing } = momentAt(relevant, nowMs);
  const changesMs = changeAfter(relevant, nowMs);
  const extents = [...denying, ...missing].map(({ inFlight }) => inFlight);
  const [deniedBy] = namesOf(denying);
  return {
    isOpen,
    ...defined({ deniedBy }),
    ...(missing.length === 0 ? {} : { notAllowedBy: namesOf(missing) }),
    ...defined({ changesMs }),
    inFlight: inFlightOrder.find((extent) => extents.includes(extent)) ?? 'finishAll',
  };
}

interface Moment {
  readonly isOpen: boolean;
  readonly denying: readonly WindowDefinition[];
  readonly missing: readonly WindowDefinition[];
  /** The answer is certainly the same until then; infinite when it is the same for good. */
  readonly sameUntilMs: number;
}

function momentAt(policies: readonly (readonly WindowDefinition[])[], atMs: number): Moment {
  const moments = policies.map((windows) => policyMoment(windows, atMs));
  const isOpen = moments.every((moment) => moment.isOpen);
  const untilMs = moments.filter((moment) => moment.isOpen === isOpen).map(({ sameUntilMs }) => sameUntilMs);
  return {
    isOpen,
    denying: moments.flatMap(({ denying }) => denying),
    missing: moments.flatMap(({ missing }) => missing),
    // It closes with the first policy that closes, and opens with the last that opens.
    sameUntilMs: isOpen ? Math.min(...untilMs) : Math.max(...untilMs),
  };
}

function policyMoment(windows: readonly WindowDefinition[], atMs: number): Moment {
  const states = windows.map((window) => ({ window, kind: window.kind, ...windowState(window, atMs) }));
  const denies = states.filter(({ kind }) => kind === 'deny');
  const allows = states.filter(({ kind }) => kind === 'allow');
  const denying = denies.filter(({ isOpen, isUnreadable }) => isOpen || isUnreadable);
  const allowing = allows.filter(({ isOpen }) => isOpen);
  const missing = allowing.length === 0 ? allows : [];
  const isOpen = denying.length + missing.length === 0;
  const opensMs = Math.max(...denying.map(closing), missing.length === 0 ? Number.NEGATIVE_INFINITY : Math.min(...missing.map(opening)));
  const closesMs = Math.min(...denies.map(opening), allows.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...allowing.map(closing)));
  return {
    isOpen,
    denying: denying.map(({ window }) => window),
    missing: missing.map(({ window }) => window),
    sameUntilMs: isOpen ? closesMs : opensMs,
  };
}

function opening({ nextOpensMs = Number.POSITIVE_INFINITY }: WindowState): number {
  return nextOpensMs;
}

function closing({ closesMs = Number.POSITIVE_INFINITY }: WindowState): number {
  return closesMs;
}

/** Limit of the search for the next change, which continues after times without a change. */
const searchSteps = 32;

function changeAfter(policies: readonly (readonly WindowDefinition[])[], nowMs: number): number | undefined {
  const { isOpen, sameUntilMs } = momentAt(policies, nowMs);
  let changesMs = sameUntilMs;
  for (let count = 0; count < searchSteps && Number.isFinite(changesMs); count += 1) {
    const moment = momentAt(policies, changesMs);
    if (moment.isOpen !== isOpen) break;
    changesMs = moment.sameUntilMs;
  }
  return Number.isFinite(changesMs) ? changesMs : undefined;
}

function namesOf(windows: readonly WindowDefinition[]): readonly string[] {
  return windows.map(({ name }) => name).sort();
}

interface ScheduleProblem {
  readonly code: FindingCode;
  readonly field: 'cron' | 'duration' | 'timeZone';
  /** One sentence without a full stop, subject first. */
  readonly message: string;
  readonly hint?: string;
}

/** Number of starts that are compared for the shortest interval: more than a year of days, or five years of months. */
const startsLookedAt = 400;

/** Everything that is wrong with a schedule; empty for a good one. */
export function checkSchedule({ cron: text, durationMs, timeZone }: Schedule): readonly ScheduleProblem[] {
  const problems: ScheduleProblem[] = [];
  if (!isTimeZone(timeZone))
    problems.push({ code: 'RG2403', field: 'timeZone', message: `The time zone ${JSON.stringify(timeZone)} does not exist` });
  if (!(durationMs > 0)) problems.push({ code: 'RG2408', field: 'duration', message: 'The duration of the window is zero' });
  const cron = parseCron(text);
  if (typeof cron === 'string') return [{ code: 'RG2401', field: 'cron', message: cron }, ...problems];
  const [, , dayOfMonth, , dayOfWeek] = text.trim().split(/\s+/);
  if (dayOfMonth !== '*' && dayOfWeek !== '*') {
    const message = `The schedule restricts day of month (${dayOfMonth}) and day of week (${dayOfWeek}), which cron joins by or`;
    return [{ code: 'RG2402', field: 'cron', message }, ...problems];
  }
  const starts = startsOf(cron, startsLookedAt);
  if (starts.length === 0) return [{ code: 'RG2405', field: 'cron', message: 'The schedule never starts' }, ...problems];
  const periodMs = Math.min(...starts.slice(1).map((start, index) => start - (starts[index] ?? start)));
  if (durationMs > periodMs) {
    const message = `The window lasts ${formatDuration(durationMs)} and opens again after ${formatDuration(periodMs)}`;
    problems.push({ code: 'RG2404', field: 'duration', message });
  }
  return problems;
}
