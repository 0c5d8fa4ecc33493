import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { soakArguments } from '../../scripts/soak/arguments.ts';
import { jsonReport, newTally, reportLines, tally } from '../../scripts/soak/report.ts';
import type { SeedReport } from '../../scripts/soak/workers.ts';

describe('the arguments of a soak', () => {
  it('has defaults', () => {
    expect(soakArguments([])).toMatchObject({ seeds: 200, from: 1, isShrinking: true });
    expect(soakArguments([])).not.toHaveProperty('minutes');
  });

  it('is read from words in either form', () => {
    expect(soakArguments(['--seeds', '20', '--from=7', '--workers=3', '--no-shrink', '--json', 'out.json', '--minutes', '1.5'])).toEqual({
      seeds: 20,
      from: 7,
      workers: 3,
      isShrinking: false,
      leastFaults: 0,
      json: 'out.json',
      minutes: 1.5,
    });
  });

  it('continues for the configured time without a number', () => {
    const asked = soakArguments(['--minutes', '60']);
    expect(typeof asked === 'string' ? 0 : asked.seeds).toBeGreaterThan(1e9);
  });

  it.each([
    [['--seeds', '0'], '--seeds needs a whole number above 0, not 0'],
    [['--seeds', 'many'], '--seeds needs a whole number above 0, not many'],
    [['--minutes', '0'], '--minutes needs a number above 0, not 0'],
    [['--workers', '1000'], '--workers needs a whole number from 1 to 99, not 1000'],
    [['--seed', '1', '--plan', 'x.json'], '--seed and --plan exclude each other'],
    [['--sedes', '1'], "Unknown option '--sedes'"],
    [['5'], "Unexpected argument '5'"],
  ])('is rejected if it is invalid: %j', (words, problem) => {
    const asked = soakArguments(words);
    expect(asked).toContain(problem);
    expect(asked).toContain('usage: npm run soak --');
  });
});

describe('the report of a soak', () => {
  const report: SeedReport = {
    seed: 1,
    features: ['waves', 'request: approve'],
    faults: { F1: 3, F17: 1 },
    crashes: { 'act.deletePod afterApply': 1 },
    writes: { 'delete pods': 9 },
    runs: 1,
    events: 100,
    virtualMs: 1_000_000,
    thread: 1,
    heapBytes: 10_485_760,
  };
  const counts = newTally(process.hrtime.bigint());
  tally(counts, report);
  tally(counts, { ...report, seed: 2, faults: { F1: 1 }, runs: 2 });
  tally(counts, { ...report, seed: 3, failure: { id: 'S7', atMs: 47_000, message: 'a second delete of ingester-zone-a-0' } });

  it('adds everything up', () => {
    expect(jsonReport(counts)).toMatchObject({
      passed: 2,
      failed: 1,
      runs: 4,
      events: 300,
      faultCount: 9,
      virtualSeconds: 3000,
      features: { waves: 3, 'request: approve': 3 },
      faults: { F1: 7, F17: 2 },
      seedsWith: { F1: 3, F17: 2 },
      crashes: { 'act.deletePod afterApply': 3 },
      writes: { 'delete pods': 27 },
      failureIds: { S7: 1 },
      failures: [{ seed: 3, id: 'S7', atMs: 47_000, message: 'a second delete of ingester-zone-a-0' }],
    });
  });

  it('shows it, and what was never injected as well', () => {
    const lines = reportLines(counts);
    expect(lines).toContain('waves                                             3');
    expect(lines).toContain('soak of a wave                                    0');
    expect(lines).toContain('request: approve                                  3');
    expect(lines).toContain('F1            7             3');
    expect(lines).toContain('F22           0             0');
    expect(lines).toContain('act.deletePod                               0            3            0');
    expect(lines).toContain('seed 3: S7 at 47 s: a second delete of ingester-zone-a-0');
  });

  it('keeps no more of a million failures than of twenty', () => {
    const many = newTally(process.hrtime.bigint());
    for (let seed = 0; seed < 1000; seed += 1) tally(many, { ...report, seed, failure: { id: 'S1', atMs: 0, message: 'two zones' } });
    expect(many.failed).toBe(1000);
    expect(many.failures).toHaveLength(20);
  });
});

describe('a soak', () => {
  const soak = (...words: readonly string[]) =>
    spawnSync(process.execPath, ['scripts/run.mjs', 'scripts/soak/soak.ts', ...words], { encoding: 'utf8' });

  it('plays every seed once, several on each thread, and adds up', { timeout: 240_000 }, () => {
    const folder = mkdtempSync(join(tmpdir(), 'rollout-group-soak-test-'));
    try {
      const json = join(folder, 'report.json');
      const { status, stdout } = soak('--seeds', '3', '--from', '5', '--workers', '1', '--no-shrink', '--json', json);
      const report = JSON.parse(readFileSync(json, 'utf8'));
      expect(report.passed + report.failed).toBe(3);
      expect(report.faultCount).toBeGreaterThan(0);
      expect(stdout.trimEnd().split('\n').at(-1)).toBe(`${report.passed} passed, ${report.failed} failed`);
      expect(status).toBe(report.failed === 0 ? 0 : 1);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('names the error in a plan that cannot be played', () => {
    const { status, stderr } = soak('--plan', 'package.json');
    expect(status).toBe(2);
    expect(stderr).toContain('package.json cannot be played:');
  });
});
