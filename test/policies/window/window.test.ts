import { describe, expect, it } from 'vitest';
import type { WindowDefinition } from '../../../policies/definition.ts';
import { explainCode } from '../../../policies/findings/codes.ts';
import { checkSchedule, joinWindows, windowState } from '../../../policies/window/window.ts';

const hourMs = 3_600_000;

function scheduled(
  cron: string,
  hours: number,
  timeZone = 'Europe/Amsterdam',
  overrides: Partial<WindowDefinition> = {},
): WindowDefinition {
  const schedule = { cron, durationMs: hours * hourMs, timeZone };
  return { name: 'w', kind: 'allow', actions: ['rollout'], schedule, inFlight: 'finishPod', source: {}, ...overrides };
}

function ranged(ranges: readonly (readonly [from: string, to: string])[], overrides: Partial<WindowDefinition> = {}): WindowDefinition {
  const absolute = ranges.map(([from, to]) => ({ fromMs: Date.parse(from), toMs: Date.parse(to) }));
  return { name: 'r', kind: 'deny', actions: ['rollout'], ranges: absolute, inFlight: 'finishPod', source: {}, ...overrides };
}

/** The state in words: `open from – to`, or `closed until …`. */
function stateAt(window: WindowDefinition, at: string): string {
  const { isOpen, openedMs, closesMs, nextOpensMs } = windowState(window, Date.parse(at));
  return isOpen ? `open ${iso(openedMs)} to ${iso(closesMs)}` : `closed until ${iso(nextOpensMs)}`;
}

function iso(ms: number | undefined): string {
  return ms === undefined ? 'ever' : new Date(ms).toISOString().replace(':00.000Z', 'Z');
}

describe('a window by schedule', () => {
  const businessHours = scheduled('0 9 * * 1-4', 8);

  it.each<readonly [at: string, expected: string]>([
    ['2026-01-15T07:59:59.999Z', 'closed until 2026-01-15T08:00Z'],
    ['2026-01-15T08:00:00Z', 'open 2026-01-15T08:00Z to 2026-01-15T16:00Z'],
    ['2026-01-15T15:59:59.999Z', 'open 2026-01-15T08:00Z to 2026-01-15T16:00Z'],
    ['2026-01-15T16:00:00Z', 'closed until 2026-01-19T08:00Z'],
    ['2026-07-15T07:00:00Z', 'open 2026-07-15T07:00Z to 2026-07-15T15:00Z'],
  ])('from nine to five, Monday to Thursday in Amsterdam, at %s is %s', (at, expected) => {
    expect(stateAt(businessHours, at)).toBe(expected);
  });

  it('may last beyond midnight, the end of a month and the end of a year', () => {
    expect(stateAt(scheduled('0 22 * * *', 10, 'UTC'), '2026-12-31T23:30:00Z')).toBe('open 2026-12-31T22:00Z to 2027-01-01T08:00Z');
    expect(stateAt(scheduled('0 0 1 * *', 24, 'UTC'), '2026-02-01T12:00:00Z')).toBe('open 2026-02-01T00:00Z to 2026-02-02T00:00Z');
  });

  it('is open during adjacent openings, until the end of the latest', () => {
    const weekdays = scheduled('0 0 * * 1-5', 24, 'UTC');
    expect(stateAt(weekdays, '2026-01-14T12:00:00Z')).toBe('open 2026-01-14T00:00Z to 2026-01-15T00:00Z');
    expect(joinWindows([[weekdays]], 'rollout', Date.parse('2026-01-14T12:00:00Z')).changesMs).toBe(Date.parse('2026-01-17T00:00:00Z'));
  });

  it('opens on 29 February, and on 30 February never', () => {
    expect(stateAt(scheduled('0 0 29 2 *', 1, 'UTC'), '2026-01-01T00:00:00Z')).toBe('closed until 2028-02-29T00:00Z');
    expect(stateAt(scheduled('0 0 30 2 *', 1, 'UTC'), '2026-01-01T00:00:00Z')).toBe('closed until ever');
  });

  it.each([scheduled('not a cron', 1), scheduled('0 9 * * *', 1, 'Europe/Nowhere'), scheduled('0 9 * * *', 0)])(
    'with an error has a finding: $schedule',
    (window) => {
      expect(windowState(window, 0)).toEqual({ isOpen: false, isUnreadable: true });
    },
  );
});

describe('on the nights that clocks change', () => {
  it.each<readonly [why: string, cron: string, hours: number, timeZone: string, at: string, expected: string]>([
    ['spring, before the gap', '30 2 * * *', 1.5, 'Europe/Amsterdam', '2026-03-29T00:59:59Z', 'closed until 2026-03-29T01:00Z'],
    [
      'spring, a start in the gap',
      '30 2 * * *',
      1.5,
      'Europe/Amsterdam',
      '2026-03-29T01:00:00Z',
      'open 2026-03-29T01:00Z to 2026-03-29T02:30Z',
    ],
    ['spring, the next day', '30 2 * * *', 1.5, 'Europe/Amsterdam', '2026-03-29T02:30:00Z', 'closed until 2026-03-30T00:30Z'],
    [
      'spring, many starts in the gap',
      '*/10 2 * * *',
      0.1,
      'Europe/Amsterdam',
      '2026-03-29T01:00:00Z',
      'open 2026-03-29T01:00Z to 2026-03-29T01:06Z',
    ],
    ['spring, after many starts', '*/10 2 * * *', 0.1, 'Europe/Amsterdam', '2026-03-29T01:06:00Z', 'closed until 2026-03-30T00:00Z'],
    ['spring, over the gap', '0 22 * * 6', 8, 'Europe/Amsterdam', '2026-03-29T04:59:59Z', 'open 2026-03-28T21:00Z to 2026-03-29T05:00Z'],
    ['autumn, before', '30 2 * * *', 1.5, 'Europe/Amsterdam', '2026-10-25T00:29:59Z', 'closed until 2026-10-25T00:30Z'],
    [
      'autumn, first half past two',
      '30 2 * * *',
      1.5,
      'Europe/Amsterdam',
      '2026-10-25T00:30:00Z',
      'open 2026-10-25T00:30Z to 2026-10-25T02:00Z',
    ],
    ['autumn, second half past two', '30 2 * * *', 0.5, 'Europe/Amsterdam', '2026-10-25T01:30:00Z', 'closed until 2026-10-26T01:30Z'],
    [
      'autumn, in the second pass before the time',
      '30 2 * * *',
      1.5,
      'Europe/Amsterdam',
      '2026-10-25T01:10:00Z',
      'open 2026-10-25T00:30Z to 2026-10-25T02:00Z',
    ],
    [
      'autumn, over the overlap',
      '0 22 * * 6',
      8,
      'Europe/Amsterdam',
      '2026-10-25T03:59:59Z',
      'open 2026-10-24T20:00Z to 2026-10-25T04:00Z',
    ],
    [
      'New York, a start in the gap',
      '15 2 * * *',
      1,
      'America/New_York',
      '2026-03-08T07:00:00Z',
      'open 2026-03-08T07:00Z to 2026-03-08T08:00Z',
    ],
    ['New York, before the gap', '15 2 * * *', 1, 'America/New_York', '2026-03-08T06:59:59Z', 'closed until 2026-03-08T07:00Z'],
    [
      'New York, first half past one',
      '30 1 * * *',
      1,
      'America/New_York',
      '2026-11-01T05:30:00Z',
      'open 2026-11-01T05:30Z to 2026-11-01T06:30Z',
    ],
    ['New York, second half past one', '30 1 * * *', 1, 'America/New_York', '2026-11-01T06:30:00Z', 'closed until 2026-11-02T06:30Z'],
    [
      'Lord Howe, a gap of half an hour',
      '15 2 * * *',
      1,
      'Australia/Lord_Howe',
      '2026-10-03T15:30:00Z',
      'open 2026-10-03T15:30Z to 2026-10-03T16:30Z',
    ],
  ])('%s: %s for %s h in %s at %s is %s', (_, cron, hours, timeZone, at, expected) => {
    expect(stateAt(scheduled(cron, hours, timeZone), at)).toBe(expected);
  });
});

describe('a window by ranges', () => {
  const freeze = ranged([
    ['2027-03-01T00:00:00Z', '2027-03-02T00:00:00Z'],
    ['2026-12-18T17:00:00Z', '2027-01-04T07:00:00Z'],
    ['2027-01-04T07:00:00Z', '2027-01-05T07:00:00Z'],
    ['2026-12-20T00:00:00Z', '2026-12-21T00:00:00Z'],
    ['2026-06-02T00:00:00Z', '2026-06-01T00:00:00Z'],
  ]);

  it.each<readonly [at: string, expected: string]>([
    ['2026-06-01T12:00:00Z', 'closed until 2026-12-18T17:00Z'],
    ['2026-12-18T16:59:59.999Z', 'closed until 2026-12-18T17:00Z'],
    ['2026-12-18T17:00:00Z', 'open 2026-12-18T17:00Z to 2027-01-05T07:00Z'],
    ['2027-01-05T06:59:59.999Z', 'open 2026-12-18T17:00Z to 2027-01-05T07:00Z'],
    ['2027-01-05T07:00:00Z', 'closed until 2027-03-01T00:00Z'],
    ['2027-03-02T00:00:00Z', 'closed until ever'],
  ])('at %s is %s: half-open, and joined if adjacent', (at, expected) => {
    expect(stateAt(freeze, at)).toBe(expected);
  });
});

describe('windows together', () => {
  const hours = scheduled('0 9 * * *', 8, 'UTC', { name: 'hours', inFlight: 'finishZone' });
  const night = scheduled('0 0 * * *', 2, 'UTC', { name: 'night', inFlight: 'finishAll' });
  const freeze = ranged([['2026-01-16T00:00:00Z', '2026-01-20T12:00:00Z']], { name: 'freeze' });
  const audit = ranged([['2026-01-20T00:00:00Z', '2026-01-20T15:00:00Z']], { name: 'audit', inFlight: 'finishAll' });

  function ask(windows: readonly WindowDefinition[], at: string): unknown {
    const { changesMs, ...answer } = joinWindows([windows], 'rollout', Date.parse(at));
    return { ...answer, changes: iso(changesMs) };
  }

  it.each<readonly [why: string, windows: readonly WindowDefinition[], at: string, expected: unknown]>([
    ['none at all', [], '2026-01-15T10:00:00Z', { isOpen: true, inFlight: 'finishAll', changes: 'ever' }],
    ['an open allow window', [hours], '2026-01-15T10:00:00Z', { isOpen: true, inFlight: 'finishAll', changes: '2026-01-15T17:00Z' }],
    [
      'a closed allow window',
      [hours],
      '2026-01-15T08:00:00Z',
      { isOpen: false, notAllowedBy: ['hours'], inFlight: 'finishZone', changes: '2026-01-15T09:00Z' },
    ],
    [
      'one of two allow windows',
      [hours, night],
      '2026-01-15T01:00:00Z',
      { isOpen: true, inFlight: 'finishAll', changes: '2026-01-15T02:00Z' },
    ],
    [
      'neither of two allow windows',
      [night, hours],
      '2026-01-15T03:00:00Z',
      { isOpen: false, notAllowedBy: ['hours', 'night'], inFlight: 'finishZone', changes: '2026-01-15T09:00Z' },
    ],
    ['a deny window to come', [freeze], '2026-01-15T10:00:00Z', { isOpen: true, inFlight: 'finishAll', changes: '2026-01-16T00:00Z' }],
    [
      'an active deny window over an open allow window',
      [hours, freeze],
      '2026-01-16T10:00:00Z',
      { isOpen: false, deniedBy: 'freeze', inFlight: 'finishPod', changes: '2026-01-20T12:00Z' },
    ],
    [
      'a deny window whose end falls into another, and outside the hours',
      [
        hours,
        night,
        freeze,
        audit,
        { ...audit, name: 'late', ranges: [{ fromMs: Date.parse('2026-01-20T15:00:00Z'), toMs: Date.parse('2026-01-20T18:00:00Z') }] },
      ],
      '2026-01-16T10:00:00Z',
      { isOpen: false, deniedBy: 'freeze', inFlight: 'finishPod', changes: '2026-01-21T00:00Z' },
    ],
    [
      'a deny window that cannot be read',
      [scheduled('nonsense', 1, 'UTC', { kind: 'deny', name: 'broken' })],
      '2026-01-15T10:00:00Z',
      { isOpen: false, deniedBy: 'broken', inFlight: 'finishPod', changes: 'ever' },
    ],
    [
      'an allow window that cannot be read',
      [scheduled('nonsense', 1, 'UTC', { name: 'broken' })],
      '2026-01-15T10:00:00Z',
      { isOpen: false, notAllowedBy: ['broken'], inFlight: 'finishPod', changes: 'ever' },
    ],
    [
      'a window for another action',
      [{ ...freeze, actions: ['restart'] }],
      '2026-01-17T00:00:00Z',
      { isOpen: true, inFlight: 'finishAll', changes: 'ever' },
    ],
  ])('%s', (_, windows, at, expected) => {
    expect(ask(windows, at)).toEqual(expected);
    expect(ask([...windows].reverse(), at)).toEqual(expected);
  });

  it('of two policies must both be open', () => {
    const at = Date.parse('2026-01-15T10:00:00Z');
    expect(joinWindows([[hours], [night]], 'rollout', at)).toMatchObject({ isOpen: false, notAllowedBy: ['night'], inFlight: 'finishAll' });
    expect(joinWindows([[hours], []], 'rollout', at)).toEqual({
      isOpen: true,
      inFlight: 'finishAll',
      changesMs: Date.parse('2026-01-15T17:00:00Z'),
    });
    const overlapping = scheduled('0 16 * * *', 2, 'UTC', { name: 'late' });
    expect(joinWindows([[hours], [overlapping]], 'rollout', at)).toEqual({
      isOpen: false,
      notAllowedBy: ['late'],
      inFlight: 'finishPod',
      changesMs: Date.parse('2026-01-15T16:00:00Z'),
    });
  });
});

describe('a schedule', () => {
  type Row = readonly [cron: string, hours: number, timeZone: string, found: readonly (readonly [code: string, field: string])[]];

  it.each<Row>([
    ['0 9 * * 1-4', 8, 'Europe/Amsterdam', []],
    ['0 9 * * MON-THU', 8, 'UTC', []],
    ['*/15 9-17 * JAN,DEC *', 0.25, 'America/New_York', []],
    ['0 0 29 2 *', 1, 'UTC', []],
    ['0 0 * * 1-5', 24, 'UTC', []],
    ['0 9 * *', 8, 'UTC', [['RG2401', 'cron']]],
    ['0 0 9 * * *', 8, 'UTC', [['RG2401', 'cron']]],
    ['@daily', 8, 'UTC', [['RG2401', 'cron']]],
    ['60 9 * * *', 8, 'UTC', [['RG2401', 'cron']]],
    ['0 24 * * *', 8, 'UTC', [['RG2401', 'cron']]],
    ['0 9 L * *', 8, 'UTC', [['RG2401', 'cron']]],
    ['0 9 15W * *', 8, 'UTC', [['RG2401', 'cron']]],
    ['0 9 * * 5#2', 8, 'UTC', [['RG2401', 'cron']]],
    ['0 9 ? * *', 8, 'UTC', [['RG2401', 'cron']]],
    ['0 9 * * FUN', 8, 'UTC', [['RG2401', 'cron']]],
    ['0 0 13 * 5', 8, 'UTC', [['RG2402', 'cron']]],
    ['0 0 */2 * 5', 8, 'UTC', [['RG2402', 'cron']]],
    ['0 9 * * *', 8, 'Europe/Nowhere', [['RG2403', 'timeZone']]],
    ['0 9 * * *', 8, '+01:00', [['RG2403', 'timeZone']]],
    ['0 9 * * *', 8, '', [['RG2403', 'timeZone']]],
    ['0 9 * * *', 25, 'UTC', [['RG2404', 'duration']]],
    ['0 9,12 * * *', 4, 'UTC', [['RG2404', 'duration']]],
    ['0 0 1,28 * *', 48, 'UTC', [['RG2404', 'duration']]],
    ['0 0 30 2 *', 1, 'UTC', [['RG2405', 'cron']]],
    ['0 9 * * *', 0, 'UTC', [['RG2408', 'duration']]],
    [
      'never',
      0,
      'nowhere',
      [
        ['RG2401', 'cron'],
        ['RG2403', 'timeZone'],
        ['RG2408', 'duration'],
      ],
    ],
  ])('%s for %s h in %s has %j', (cron, hours, timeZone, found) => {
    const problems = checkSchedule({ cron, durationMs: hours * hourMs, timeZone });
    expect(problems.map(({ code, field }) => [code, field])).toEqual(found);
  });

  it('has one sentence for the error', () => {
    const messages = (cron: string, hours: number, timeZone: string) =>
      checkSchedule({ cron, durationMs: hours * hourMs, timeZone }).map(({ message }) => message);
    expect([
      ...messages('0 9 * *', 8, 'CEST'),
      ...messages('0 9 ? * *', 8, 'UTC'),
      ...messages('60 9 * * *', 8, 'UTC'),
      ...messages('0 0 13 * 5', 8, 'UTC'),
      ...messages('0 9,12 * * *', 4.5, 'UTC'),
      ...messages('0 0 30 2 *', 1, 'UTC'),
    ]).toEqual([
      'The schedule has 4 fields; five are expected',
      'The time zone "CEST" does not exist',
      'The field "?" is not made of numbers, names, lists, ranges and steps',
      'The schedule is not valid: Invalid value for minute: 60',
      'The schedule restricts day of month (13) and day of week (5), which cron joins by or',
      'The window lasts 4h30m and opens again after 3h',
      'The schedule never starts',
    ]);
  });

  it('has problems with codes in the table of findings', () => {
    const titles = ['RG2401', 'RG2402', 'RG2403', 'RG2404', 'RG2405', 'RG2408'].map((code) => explainCode(code)?.title);
    expect(titles).toEqual([
      'The schedule is not valid',
      'Day of month and day of week are both restricted',
      'The time zone does not exist',
      'The window lasts longer than its period',
      'The window never opens',
      'The duration of the window is zero',
    ]);
  });
});
