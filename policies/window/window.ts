// Computes windows, the times at which changes may start, from cron schedules in a time zone or from ranges.
import { Cron } from 'croner';
import { IANAZone } from 'luxon';
import type { WindowDefinition } from '../definition.ts';
import { formatDuration } from '../duration.ts';
import { messageOf } from '../error-message.ts';
import type { FindingCode } from '../findings/codes.ts';
import type { PolicyAction } from '../schema/rollout-policy.ts';
import { defined } from '../values/defined.ts';
import { keptByObject, putNewest } from '../values/map.ts';

interface WindowState {
  readonly isOpen: boolean;
  readonly openedMs?: number;
  /** The first instant after the current opening. */
  readonly closesMs?: number;
  /** The start of the next opening; absent if the window is open or no opening follows. A schedule is searched for five years. */
  readonly nextOpensMs?: number;
  /** True if the schedule is invalid. Callers must assume the stricter of open and closed. */
  readonly isUnreadable?: true;
}

/**
 * Returns whether a window is open, and when it opens or closes. A schedule opens when a clock in its time zone shows the time. A time that
 * occurs twice counts once, at its first occurrence; a skipped time counts at the end of the gap. The duration is elapsed time. Overlapping
 * ranges count as one opening. Ranges exclude their end.
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

type Ranges = NonNullable<WindowDefinition['ranges']>;

/** Returns the openings of ranges in the order of time. */
const openingsOf = keptByObject((ranges: Ranges): Ranges => {
  const merged: { fromMs: number; toMs: number }[] = [];
  const sorted = ranges.filter(({ fromMs, toMs }) => fromMs < toMs).sort((a, b) => a.fromMs - b.fromMs);
  for (const { fromMs, toMs } of sorted) {
    const last = merged.at(-1);
    if (last && fromMs <= last.toMs) last.toMs = Math.max(last.toMs, toMs);
    else merged.push({ fromMs, toMs });
  }
  return merged;
});

function rangesState(ranges: Ranges, nowMs: number): WindowState {
  const merged = openingsOf(ranges);
  const open = merged.find(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs);
  return open ? opened(open.fromMs, open.toMs) : closed(merged.find(({ fromMs }) => fromMs > nowMs)?.fromMs);
}

/** Work in progress that may continue after the windows close, the strictest first. */
const inFlightOrder = ['finishPod', 'finishZone', 'finishAll'] as const;

interface WindowsAnswer {
  readonly isOpen: boolean;
  /** The name of the active deny window, the first by name if there are several. */
  readonly deniedBy?: string;
  /** The names of the closed allow windows that block; absent if no allow window blocks. */
  readonly notAllowedBy?: readonly string[];
  /** The next instant at which `isOpen` can change; absent if it never changes. */
  readonly changesMs?: number;
  /** The strictest value of the blocking windows; `finishAll` without a blocking window. */
  readonly inFlight: WindowDefinition['inFlight'];
}

/**
 * Returns whether the windows of all policies allow an action to start. In each policy an active deny window wins. If allow windows name
 * the action, one must be open. Unreadable deny windows are active, and unreadable allow windows are closed.
 */
export function joinWindows(policies: readonly (readonly WindowDefinition[])[], action: PolicyAction, nowMs: number): WindowsAnswer {
  const named = policies.map((windows) => windows.filter((window) => window.actions.includes(action)));
  const relevant = named.filter(({ length }) => length > 0);
  const moment = momentAt(relevant, nowMs);
  const { isOpen, denying, missing } = moment;
  const changesMs = changeAfter(relevant, moment);
  const extents = [...denying, ...missing].map(({ inFlight }) => inFlight);
  return defined({
    isOpen,
    deniedBy: denying.map(({ name }) => name).sort()[0],
    notAllowedBy: missing.length === 0 ? undefined : missing.map(({ name }) => name).sort(),
    changesMs,
    inFlight: inFlightOrder.find((extent) => extents.includes(extent)) ?? 'finishAll',
  });
}

interface Moment {
  readonly isOpen: boolean;
  readonly denying: readonly WindowDefinition[];
  readonly missing: readonly WindowDefinition[];
  /** The value of `isOpen` stays the same until this instant; infinite if it never changes. */
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
    // The answer is closed when the first policy closes, and open when the last policy opens.
    sameUntilMs: isOpen ? Math.min(...untilMs) : Math.max(...untilMs),
  };
}

function policyMoment(windows: readonly WindowDefinition[], atMs: number): Moment {
  const never = { closesMs: Number.POSITIVE_INFINITY, nextOpensMs: Number.POSITIVE_INFINITY };
  const states = windows.map((window) => ({ window, kind: window.kind, ...never, ...windowState(window, atMs) }));
  const denies = states.filter(({ kind }) => kind === 'deny');
  const allows = states.filter(({ kind }) => kind === 'allow');
  const denying = denies.filter(({ isOpen, isUnreadable }) => isOpen || isUnreadable);
  const allowing = allows.filter(({ isOpen }) => isOpen);
  const missing = allowing.length === 0 ? allows : [];
  const isOpen = denying.length + missing.length === 0;
  const allowedMs = missing.length === 0 ? Number.NEGATIVE_INFINITY : Math.min(...missing.map(({ nextOpensMs }) => nextOpensMs));
  const opensMs = Math.max(...denying.map(({ closesMs }) => closesMs), allowedMs);
  const endMs = allows.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...allowing.map(({ closesMs }) => closesMs));
  const closesMs = Math.min(...denies.map(({ nextOpensMs }) => nextOpensMs), endMs);
  return {
    isOpen,
    denying: denying.map(({ window }) => window),
    missing: missing.map(({ window }) => window),
    sameUntilMs: isOpen ? closesMs : opensMs,
  };
}

/** The maximum number of openings and closings that the search for the next change visits. Not every one changes the answer. */
const searchSteps = 32;

function changeAfter(policies: readonly (readonly WindowDefinition[])[], { isOpen, sameUntilMs }: Moment): number | undefined {
  let changesMs = sameUntilMs;
  for (let count = 0; count < searchSteps && Number.isFinite(changesMs); count += 1) {
    const moment = momentAt(policies, changesMs);
    if (moment.isOpen !== isOpen) break;
    changesMs = moment.sameUntilMs;
  }
  return Number.isFinite(changesMs) ? changesMs : undefined;
}

interface ScheduleProblem {
  readonly code: FindingCode;
  readonly field: 'cron' | 'duration' | 'timeZone';
  /** The message: one sentence without a full stop, subject first. */
  readonly message: string;
  readonly hint?: string;
}

/** The maximum number of starts that are compared to find the shortest interval. */
const startsCompared = 400;

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
  if (startsOf(cron, 1).length === 0) return [{ code: 'RG2405', field: 'cron', message: 'The schedule never starts' }, ...problems];
  if (durationMs <= leastPeriodMs(text)) return problems;
  const periodMs = shortestPeriodMs(text, cron);
  if (durationMs > periodMs) {
    const message = `The window lasts ${formatDuration(durationMs)} and opens again after ${formatDuration(periodMs)}`;
    problems.push({ code: 'RG2404', field: 'duration', message });
  }
  return problems;
}

/** The shortest periods by pattern: a running agent checks the same schedules again after each change of a policy or StatefulSet. */
const periodsMs = new Map<string, number>();
const maxPeriods = 1_000;

/** Returns a time that two starts have between them at least: a pattern with one minute and one hour starts once a day at most. */
function leastPeriodMs(text: string): number {
  const [minute = '', hour = ''] = text.trim().split(/\s+/);
  const isOne = (field: string): boolean => /^\d+$/.test(field);
  return isOne(minute) && isOne(hour) ? 24 * hourMs : isOne(minute) ? hourMs : minuteMs;
}

/** Returns the shortest time from one start to the next; infinite for a single start. */
function shortestPeriodMs(text: string, cron: Cron): number {
  const known = periodsMs.get(text);
  if (known !== undefined) return known;
  const starts = startsOf(cron, startsCompared);
  const periodMs = Math.min(...starts.slice(1).map((start, index) => start - (starts[index] ?? start)));
  putNewest(periodsMs, text, periodMs, maxPeriods);
  return periodMs;
}

type Schedule = NonNullable<WindowDefinition['schedule']>;

/** The starts around a time: `lastMs` at or before it, `nextMs` after it. Each is absent if the search finds no start. */
interface Starts {
  readonly lastMs?: number;
  readonly nextMs?: number;
}

/** The search range for the next opening; it includes a 29 February. */
const searchMs = 5 * 366 * 86_400_000;
const minuteMs = 60_000;

/** Returns the parsed pattern, or why it is invalid. A pattern has five fields, as in a Kubernetes CronJob. */
function parseCron(cron: string): Cron | string {
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5) return `The schedule has ${fields.length} fields; five are expected`;
  const odd = fields.find((field) => !/^[\dA-Za-z*/,-]+$/.test(field) || /\d[LW]|^[LW]$/i.test(field));
  if (odd !== undefined) return `The field ${JSON.stringify(odd)} is not made of numbers, names, lists, ranges and steps`;
  try {
    // The library only computes calendar times here, so it is paused and in UTC. `instantFromWall` handles clock changes.
    return new Cron(fields.join(' '), { timezone: 'UTC', mode: '5-part', paused: true });
  } catch (error) {
    return `The schedule is not valid: ${messageOf(error).replace(/^CronPattern: /, '')}`;
  }
}

/** Returns the starts around an instant; undefined for an invalid schedule. The newest answers of each calendar are cached. */
function startsAround(schedule: Schedule, nowMs: number): Starts | undefined {
  const calendar = calendarOf(schedule);
  if (calendar === undefined) return undefined;
  if (!calendar.everStarts) return {};
  const remembered = calendar.answers.find(({ lastMs, nextMs }) => lastMs <= nowMs && nowMs < nextMs);
  if (remembered) return remembered;
  const starts = findStarts(calendar, nowMs);
  const { lastMs, nextMs } = starts;
  if (lastMs !== undefined && nextMs !== undefined) {
    calendar.answers.unshift({ lastMs, nextMs });
    calendar.answers.splice(8);
  }
  return starts;
}

interface Calendar {
  readonly cron: Cron;
  readonly timeZone: string;
  /** False for a date such as 30 February, which never occurs. */
  readonly everStarts: boolean;
  readonly answers: Required<Starts>[];
}

/** The calendars by text, because many policies have the same schedule. */
const calendars = new Map<string, Calendar | 'unreadable'>();
const maxCalendars = 1_000;

/** Returns the key of the calendar of a schedule. Decisions ask for the same schedule again and again. */
const calendarKey = keptByObject(({ timeZone, durationMs, cron }: Schedule) => `${timeZone} ${durationMs > 0} ${cron}`);

function calendarOf(schedule: Schedule): Calendar | undefined {
  const key = calendarKey(schedule);
  const known = calendars.get(key) ?? readCalendar(schedule);
  putNewest(calendars, key, known, maxCalendars);
  return known === 'unreadable' ? undefined : known;
}

function readCalendar({ cron: text, timeZone, durationMs }: Schedule): Calendar | 'unreadable' {
  const cron = parseCron(text);
  if (typeof cron === 'string' || !isTimeZone(timeZone) || !(durationMs > 0)) return 'unreadable';
  return { cron, timeZone, everStarts: startsOf(cron, 1).length > 0, answers: [] };
}

function findStarts({ cron, timeZone }: Calendar, nowMs: number): Starts {
  const nowWallMs = wallFromInstant(timeZone, nowMs);
  // `previousRuns` returns runs strictly before its argument. Starts are on whole minutes, so the argument is the next minute.
  const [previous] = cron.previousRuns(1, new Date(Math.floor(nowWallMs / minuteMs) * minuteMs + minuteMs));
  let lastMs = previous && instantFromWall(timeZone, previous.getTime());
  let wallMs: number | undefined = previous?.getTime() ?? nowWallMs;
  for (;;) {
    wallMs = cron.nextRun(new Date(wallMs))?.getTime();
    if (wallMs === undefined || wallMs - nowWallMs > searchMs) return defined({ lastMs });
    const startMs = instantFromWall(timeZone, wallMs);
    if (startMs > nowMs) return defined({ lastMs, nextMs: startMs });
    // In the second pass of a repeated hour, a start may be later on the clock but have happened in the first pass.
    lastMs = startMs;
  }
}

/** Returns the first starts from 2026 on in wall-clock time: at most `count`, within five years. */
function startsOf(cron: Cron, count: number): readonly number[] {
  const begin = Date.UTC(2026, 0, 1) - 1;
  return cron
    .nextRuns(count, new Date(begin))
    .map((start) => start.getTime())
    .filter((start) => start - begin <= searchMs);
}

const hourMs = 3_600_000;

/** Returns whether an IANA time zone of this name exists. Fixed offsets such as `+01:00` are not time zones. */
function isTimeZone(name: string): boolean {
  return /^[A-Za-z]/.test(name) && IANAZone.isValidZone(name);
}

/** Returns the wall-clock time of the zone at an instant, as if it were UTC. */
function wallFromInstant(timeZone: string, instantMs: number): number {
  return instantMs + offsetMs(timeZone, instantMs);
}

/**
 * Returns the instant at which a clock in the zone shows `wallMs` (written as if it were UTC). Returns the first instant of a time that
 * occurs twice, because clocks were set back. Returns the end of the gap for a time that is skipped, because clocks were set forward.
 *
 * ```
 * clock   01:00 ── 02:00 ┐         ┌ 03:00 ── 04:00      spring: 02:30 does not occur, and counts as 03:00
 *                        └─────────┘
 * clock   01:00 ── 02:00 ── 03:00 ┐                      autumn: 02:30 occurs twice, and counts once: the first
 *                  02:00 ── 03:00 ┴ 04:00
 * ```
 */
function instantFromWall(timeZone: string, wallMs: number): number {
  // No offset exceeds 14 hours, so these two instants are before and after the result. No zone changes its clocks twice between them.
  const before = wallMs - 36 * hourMs;
  const after = wallMs + 36 * hourMs;
  const candidates = [wallMs - offsetMs(timeZone, before), wallMs - offsetMs(timeZone, after)];
  const shown = candidates.filter((instantMs) => wallFromInstant(timeZone, instantMs) === wallMs);
  return shown.length > 0 ? Math.min(...shown) : endOfGap(timeZone, before, after);
}

/** Returns the first instant with the later offset, by bisection: 28 steps to the millisecond. */
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
