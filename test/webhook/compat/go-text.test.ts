import { describe, expect, it } from 'vitest';
import { secondText } from '../../../policies/instant.ts';
import { goDurationText, goTimeText } from '../../../webhook/compat/go-text.ts';

describe('a time in the notation of Go', () => {
  it.each([
    ['2026-01-15T12:00:00Z', '2026-01-15 12:00:00 +0000 UTC'],
    ['2026-01-15T12:00:00+00:00', '2026-01-15 12:00:00 +0000 UTC'],
    ['2026-01-15T12:00:00.500Z', '2026-01-15 12:00:00.5 +0000 UTC'],
    ['2026-01-15T12:00:00.000Z', '2026-01-15 12:00:00 +0000 UTC'],
    ['2026-01-15T12:00:00-05:30', '2026-01-15 12:00:00 -0530 -0530'],
  ])('%s', (text, expected) => {
    expect(goTimeText(text)).toBe(expected);
  });
});

describe('a duration in the notation of Go', () => {
  it.each([
    [0, '0s'],
    [43_200_000, '12h0m0s'],
    [5_400_000, '1h30m0s'],
    [90_000, '1m30s'],
    [1_500, '1.5s'],
    [300, '300ms'],
    [0.25, '250µs'],
    [0.000001, '1ns'],
    [-60_000, '-1m0s'],
  ])('%d ms', (ms, expected) => {
    expect(goDurationText(ms)).toBe(expected);
  });
});

describe('a recorded time', () => {
  it('has whole seconds, without fractions', () => {
    expect(secondText(Date.UTC(2026, 0, 15, 12, 0, 0, 999))).toBe('2026-01-15T12:00:00Z');
  });
});
