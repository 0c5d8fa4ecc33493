// Counts the results of a soak over all seeds, and keeps the first failed seeds. Its memory does not depend on the number of seeds.
import { faultClasses } from '../../simulation/faults/fault.ts';
import { featureNames } from './search/features.ts';
import type { SeedReport } from './workers.ts';

interface Failed {
  readonly seed: number;
  readonly failure: NonNullable<SeedReport['failure']>;
}

export interface Tally {
  readonly startedAt: bigint;
  passed: number;
  failed: number;
  runs: number;
  events: number;
  virtualMs: number;
  /** Number of seeds with the feature or request. */
  readonly features: Map<string, number>;
  readonly faults: Map<string, number>;
  /** Number of seeds with faults of the class. */
  readonly seedsWith: Map<string, number>;
  readonly crashes: Map<string, number>;
  readonly writes: Map<string, number>;
  readonly failureIds: Map<string, number>;
  /** The first failed seeds. */
  readonly failures: Failed[];
  /** Heap of each thread. */
  readonly heaps: Map<number, { first: number; most: number; last: number; readings: number }>;
}

/** Number of failed seeds that are kept with their scenarios. Further failed seeds are only counted. */
const keptFailures = 20;

export function newTally(startedAt: bigint): Tally {
  return {
    startedAt,
    passed: 0,
    failed: 0,
    runs: 0,
    events: 0,
    virtualMs: 0,
    features: new Map(),
    faults: new Map(),
    seedsWith: new Map(),
    crashes: new Map(),
    writes: new Map(),
    failureIds: new Map(),
    failures: [],
    heaps: new Map(),
  };
}

export function tally(counts: Tally, report: SeedReport): void {
  if (report.failure === undefined) counts.passed += 1;
  else {
    counts.failed += 1;
    add(counts.failureIds, report.failure.id, 1);
    if (counts.failures.length < keptFailures) counts.failures.push({ seed: report.seed, failure: report.failure });
  }
  counts.runs += report.runs;
  counts.events += report.events;
  counts.virtualMs += report.virtualMs;
  for (const name of report.features) add(counts.features, name, 1);
  for (const [name, count] of Object.entries(report.faults)) {
    add(counts.faults, name, count);
    add(counts.seedsWith, name, 1);
  }
  for (const [name, count] of Object.entries(report.crashes)) add(counts.crashes, name, count);
  for (const [name, count] of Object.entries(report.writes)) add(counts.writes, name, count);
  noteHeap(counts, report);
}

function noteHeap({ heaps }: Tally, { thread, heapBytes }: SeedReport): void {
  if (heapBytes === 0) return;
  const heap = heaps.get(thread) ?? { first: 0, most: 0, last: 0, readings: 0 };
  heap.readings += 1;
  // Ignores the first seeds, because they fill caches of the compiler.
  if (heap.readings === 20) heap.first = heapBytes;
  heap.most = Math.max(heap.most, heapBytes);
  heap.last = heapBytes;
  heaps.set(thread, heap);
}

function add(counts: Map<string, number>, name: string, count: number): void {
  counts.set(name, (counts.get(name) ?? 0) + count);
}

/** Returns the number of faults of all classes. */
export function faultCount({ faults }: Tally): number {
  return total(faults);
}

export function progressLine(counts: Tally, seeds: number): string {
  const done = counts.passed + counts.failed;
  const of = seeds > 1e9 ? '' : `/${seeds}`;
  const most = Math.max(0, ...[...counts.heaps.values()].map(({ last }) => last));
  const perSecond = (counts.runs / secondsSince(counts)).toFixed(1);
  return `${done}${of} seeds, ${counts.failed} failed, ${total(counts.faults)} faults, ${perSecond} runs/s, heap ${mib(most)}`;
}

/** Returns the report for people. */
export function reportLines(counts: Tally): readonly string[] {
  const seeds = counts.passed + counts.failed;
  const seconds = secondsSince(counts);
  const heaps = [...counts.heaps.entries()].sort(([one], [other]) => one - other);
  return [
    `${seeds} seeds, ${counts.runs} runs in ${Math.round(seconds)} s (${(counts.runs / seconds).toFixed(1)} runs/s),`,
    `${Math.round(counts.virtualMs / 3_600_000)} virtual hours, ${counts.events} events, ${total(counts.faults)} faults injected`,
    ...heaps.map(([thread, heap]) => {
      const first = heap.readings < 20 ? '' : `${mib(heap.first)} after 20 seeds, `;
      return `heap of thread ${thread}: ${first}${mib(heap.last)} at the end, ${mib(heap.most)} at most`;
    }),
    '',
    'feature or request                    seeds with it',
    ...featureRows(counts).map(([name, count]) => `${name.padEnd(38)}${pad(count, 13)}`),
    '',
    'class      faults   seeds with it',
    ...faultClasses.map((name) => `${name.padEnd(6)}${pad(counts.faults.get(name))}${pad(counts.seedsWith.get(name), 14)}`),
    '',
    'crashes at                        before send  after apply  after reply',
    ...crashTable(counts).map(([site, moments]) => `${site.padEnd(32)}${moments.map((count) => pad(count, 13)).join('')}`),
    '',
    'writes of the agents',
    ...sorted(counts.writes).map(([name, count]) => `${pad(count)}  ${name}`),
    ...(counts.failed === 0
      ? []
      : [
          '',
          'failures',
          ...sorted(counts.failureIds).map(([id, count]) => `${pad(count)}  ${id}`),
          ...counts.failures.map(
            ({ seed, failure }) => `seed ${seed}: ${failure.id} at ${Math.round(failure.atMs / 1000)} s: ${failure.message}`,
          ),
        ]),
    '',
  ];
}

/** Returns the report as data, so that reports of several soaks can be added. */
export function jsonReport(counts: Tally): Readonly<Record<string, unknown>> {
  const plain = (map: ReadonlyMap<string, number>): Readonly<Record<string, number>> => Object.fromEntries(sorted(map));
  return {
    passed: counts.passed,
    failed: counts.failed,
    runs: counts.runs,
    seconds: Math.round(secondsSince(counts) * 10) / 10,
    events: counts.events,
    virtualSeconds: Math.round(counts.virtualMs / 1000),
    faultCount: total(counts.faults),
    features: plain(counts.features),
    faults: plain(counts.faults),
    seedsWith: plain(counts.seedsWith),
    crashes: plain(counts.crashes),
    writes: plain(counts.writes),
    failureIds: plain(counts.failureIds),
    failures: counts.failures.map(({ seed, failure }) => ({ seed, id: failure.id, atMs: failure.atMs, message: failure.message })),
    heaps: Object.fromEntries(counts.heaps),
  };
}

/** Returns the features, also those that no seed had, and then the requests. */
function featureRows({ features }: Tally): readonly (readonly [string, number])[] {
  const requests = sorted(features).filter(([name]) => !featureNames.includes(name));
  return [...featureNames.map((name) => [name, features.get(name) ?? 0] as const), ...requests];
}

const moments = ['beforeSend', 'afterApply', 'afterReply'] as const;

function crashTable({ crashes }: Tally): readonly (readonly [string, readonly number[]])[] {
  const sites = [...new Set([...crashes.keys()].map((name) => name.split(' ')[0] ?? ''))].sort();
  return sites.map((site) => [site, moments.map((moment) => crashes.get(`${site} ${moment}`) ?? 0)]);
}

function sorted(counts: ReadonlyMap<string, number>): readonly (readonly [string, number])[] {
  return [...counts].sort(([one], [other]) => (one < other ? -1 : 1));
}

function total(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

function secondsSince({ startedAt }: Tally): number {
  return Number(process.hrtime.bigint() - startedAt) / 1e9;
}

function mib(bytes: number): string {
  return `${Math.round(bytes / 1_048_576)} MiB`;
}

function pad(count = 0, width = 9): string {
  return String(count).padStart(width);
}
