import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { WindowDefinition } from '../../../policies/definition.ts';
import { joinWindows, windowState } from '../../../policies/window/window.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const yearMs = 365 * dayMs;

const timeZone = fc.constantFrom('Europe/Amsterdam', 'America/New_York', 'Australia/Lord_Howe', 'Africa/Casablanca', 'Asia/Kolkata', 'UTC');

function window(cron: string, durationMs: number, zone: string, overrides: Partial<WindowDefinition> = {}): WindowDefinition {
  return {
    name: 'w',
    kind: 'allow',
    actions: ['rollout'],
    schedule: { cron, durationMs, timeZone: zone },
    inFlight: 'finishPod',
    source: {},
    ...overrides,
  };
}

interface Opening {
  readonly openedMs: number;
  readonly closesMs: number;
}

/** All openings of a year, from edge to edge. */
function openings(of: WindowDefinition, fromMs: number): readonly Opening[] {
  const found: Opening[] = [];
  for (let atMs = fromMs; atMs < fromMs + yearMs; ) {
    const { isOpen, openedMs, closesMs, nextOpensMs } = windowState(of, atMs);
    const edgeMs = isOpen ? closesMs : nextOpensMs;
    if (edgeMs === undefined) break;
    if (isOpen && openedMs !== undefined) found.push({ openedMs, closesMs: edgeMs });
    expect(edgeMs).toBeGreaterThan(atMs);
    atMs = edgeMs;
  }
  return found;
}

/** What a clock in the zone shows, by the formatter of the platform: another way than ours. */
function clock(zone: string, ms: number): { readonly day: string; readonly minute: number } {
  const text = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' }).format(ms);
  const [day = '', time = ''] = text.split(' ');
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return { day, minute: hours * 60 + minutes };
}

describe('a daily window', () => {
  it('opens once each day of a year, at its time or after the skipped hour, for exactly its duration', () => {
    const fromMs = Date.UTC(2026, 0, 10);
    fc.assert(
      fc.property(
        timeZone,
        fc.integer({ min: 0, max: 5 }),
        fc.constantFrom(0, 10, 30, 45),
        fc.integer({ min: 1, max: 20 * 60 }),
        (zone, hour, minute, lasts) => {
          const daily = window(`${minute} ${hour} * * *`, lasts * minuteMs, zone);
          const found = openings(daily, fromMs);
          expect(new Set(found.map(({ openedMs }) => clock(zone, openedMs).day)).size).toBe(found.length);
          expect(found.length).toBeGreaterThanOrEqual(364);
          expect(found.filter(({ openedMs, closesMs }) => closesMs - openedMs !== lasts * minuteMs)).toEqual([]);
          const late = found.filter(({ openedMs }) => clock(zone, openedMs).minute !== hour * 60 + minute);
          for (const { openedMs } of late) {
            // The minute before, the clock had not yet shown the time; now it is past it.
            expect(clock(zone, openedMs - minuteMs).minute).toBeLessThan(hour * 60 + minute);
            expect(clock(zone, openedMs).minute).toBeGreaterThan(hour * 60 + minute);
          }
          expect(late.length).toBeLessThanOrEqual(2);
        },
      ),
      { numRuns: 5, endOnFailure: true },
    );
  });
});

const anyWindow = fc
  .tuple(
    fc.constantFrom('*/30 * * * *', '0 2 * * *', '30 1-3 * * *', '0 9 * * 1-4', '15 2 1 * *', '0 0 * * 0,6'),
    fc.integer({ min: 1, max: 36 * 60 }),
    timeZone,
    fc.constantFrom('allow' as const, 'deny' as const),
  )
  .map(([cron, minutes, zone, kind]) => window(cron, minutes * minuteMs, zone, { kind }));

const instant = fc
  .integer({ min: Date.UTC(2026, 0, 1) / minuteMs, max: Date.UTC(2027, 0, 1) / minuteMs })
  .map((minutes) => minutes * minuteMs);
/** Around the nights on which clocks change. */
const oddInstant = fc
  .tuple(
    fc.constantFrom(Date.UTC(2026, 2, 29), Date.UTC(2026, 9, 25), Date.UTC(2026, 2, 8), Date.UTC(2026, 10, 1)),
    fc.integer({ min: -600, max: 900 }),
  )
  .map(([nightMs, minutes]) => nightMs + minutes * minuteMs);

describe('the state of a window', () => {
  const part = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  it('lasts until the named time, and the named opening is one', () => {
    fc.assert(
      fc.property(anyWindow, fc.oneof(instant, oddInstant), part, (given, atMs, share) => {
        const state = windowState(given, atMs);
        const edgeMs = state.isOpen ? state.closesMs : state.nextOpensMs;
        expect(edgeMs).toBeGreaterThan(atMs);
        if (edgeMs === undefined) return;
        const between = atMs + Math.floor((edgeMs - atMs) * share);
        expect(windowState(given, between).isOpen).toBe(state.isOpen);
        if (!state.isOpen) expect(windowState(given, edgeMs)).toMatchObject({ isOpen: true, openedMs: edgeMs });
      }),
      { numRuns: 150, endOnFailure: true },
    );
  });

  it('does not depend on earlier queries', () => {
    fc.assert(
      fc.property(anyWindow, fc.array(fc.oneof(instant, oddInstant), { minLength: 1, maxLength: 12 }), (given, instants) => {
        const asked = instants.map((atMs) => windowState(given, atMs));
        expect(asked).toEqual(instants.map((atMs) => windowState(structuredClone(given), atMs)));
      }),
      { numRuns: 40, endOnFailure: true },
    );
  });
});

describe('windows of policies', () => {
  it('never open by an additional policy, and name the next change', () => {
    const policies = fc.array(fc.array(anyWindow, { maxLength: 3 }), { maxLength: 3 });
    fc.assert(
      fc.property(policies, fc.array(anyWindow, { maxLength: 2 }), fc.oneof(instant, oddInstant), (given, added, atMs) => {
        const before = joinWindows(given, 'rollout', atMs);
        const after = joinWindows([...given, added], 'rollout', atMs);
        if (!before.isOpen) expect(after.isOpen).toBe(false);
        if (after.changesMs === undefined) return;
        expect(after.changesMs).toBeGreaterThan(atMs);
        expect(joinWindows([...given, added], 'rollout', after.changesMs - 1).isOpen).toBe(after.isOpen);
      }),
      { numRuns: 25, endOnFailure: true },
    );
  });
});
