// Schedules of windows: cron starts in a time zone, each with a duration.
import { Cron } from 'croner';
import type { WindowDefinition } from '../definition.ts';
import { messageOf } from '../error-message.ts';
import { defined } from '../values/defined.ts';
import { instantFromWall, isTimeZone, wallFromInstant } from './wall-clock.ts';

export type Schedule = NonNullable<WindowDefinition['schedule']>;

/** The starts around a time: `lastMs` at or before it, `nextMs` after it. Absent if out of range. */
interface Starts {
  readonly lastMs?: number;
  readonly nextMs?: number;
}

/** Search range for the next opening; it includes a 29 February. */
const searchMs = 5 * 366 * 86_400_000;
const minuteMs = 60_000;

/** Returns the parsed pattern, or why it is invalid. A pattern has five fields, as in a Kubernetes CronJob. */
export function parseCron(cron: string): Cron | string {
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5) return `The schedule has ${fields.length} fields; five are expected`;
  const odd = fields.find((field) => !/^[\dA-Za-z*/,-]+$/.test(field) || /\d[LW]|^[LW]$/i.test(field));
  if (odd !== undefined) return `The field ${JSON.stringify(odd)} is not made of numbers, names, lists, ranges and steps`;
  try {
    // Paused and in UTC: the library only counts on the calendar here. Clock changes are ours, in instantFromWall.
    return new Cron(fields.join(' '), { timezone: 'UTC', mode: '5-part', paused: true });
  } catch (error) {
    return `The schedule is not valid: ${messageOf(error).replace(/^CronPattern: /, '')}`;
  }
}

/** The starts around an instant; undefined for a schedule that cannot be read. Remembers its last answers by the identity of the schedule. */
export function startsAround(schedule: Schedule, nowMs: number): Starts | undefined {
  const calendar = calendarOf(schedule);
  if (calendar === undefined) return undefined;
  if (!calendar.everStarts) return {};
  const remembered = calendar.answers.find(({ lastMs, nextMs }) => lastMs <= nowMs && nowMs < nextMs);
  if (remembered) return remembered;
  const { lastMs, nextMs } = findStarts(calendar, nowMs);
  if (lastMs !== undefined && nextMs !== undefined) {
    calendar.answers.unshift({ lastMs, nextMs });
    calendar.answers.splice(8);
  }
  return defined({ lastMs, nextMs });
}

interface Calendar {
  readonly cron: Cron;
  readonly timeZone: string;
  /** False for the 30th of February, which would be searched for in vain each time. */
  readonly everStarts: boolean;
  readonly answers: Required<Starts>[];
}

const calendars = new WeakMap<Schedule, Calendar | 'unreadable'>();

function calendarOf(schedule: Schedule): Calendar | undefined {
  const known = calendars.get(schedule) ?? readCalendar(schedule);
  calendars.set(schedule, known);
  return known === 'unreadable' ? undefined : known;
}

function readCalendar({ cron: text, timeZone, durationMs }: Schedule): Calendar | 'unreadable' {
  const cron = parseCron(text);
  if (typeof cron === 'string' || !isTimeZone(timeZone) || !(durationMs > 0)) return 'unreadable';
  return { cron, timeZone, everStarts: startsOf(cron, 1).length > 0, answers: [] };
}

function findStarts(
  { cron, timeZone }: Calendar,
  nowMs: number,
): { readonly lastMs: number | undefined; readonly nextMs: number | undefined } {
  const nowWallMs = wallFromInstant(timeZone, nowMs);
  // The library looks strictly before its argument, in whole seconds; starts are on whole minutes.
  const [previous] = cron.previousRuns(1, new Date(Math.floor(nowWallMs / minuteMs) * minuteMs + minuteMs));
  let lastMs = previous && instantFromWall(timeZone, previous.getTime());
  let wallMs: number | undefined = previous?.getTime() ?? nowWallMs;
  for (;;) {
    wallMs = cron.nextRun(new Date(wallMs))?.getTime();
    if (wallMs === undefined || wallMs - nowWallMs > searchMs) return { lastMs, nextMs: undefined };
    const startMs = instantFromWall(timeZone, wallMs);
    if (startMs > nowMs) return { lastMs, nextMs: startMs };
    // In the second pass of the repeated hour, a start that the clock shows as still to come was in the first pass.
    lastMs = startMs;
  }
}

/** The first starts from 2026 on, as the clock shows them: at most `count`, and of five years. */
export function startsOf(cron: Cron, count: number): readonly number[] {
  const begin = Date.UTC(2026, 0, 1) - 1;
  return cron
    .nextRuns(count, new Date(begin))
    .map((start) => start.getTime())
    .filter((start) => start - begin <= searchMs);
}
