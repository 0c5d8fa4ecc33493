import { afterAll, describe, expect, it } from 'vitest';
import { commitSeed, rounds, shareOf } from '../kit/share.ts';
import { bundled } from './defects/bundle.ts';
import { defects } from './defects/catalogue.ts';
import { foundBy, startPlayer } from './defects/player.ts';
import { judgePlan, recordWorkload, sieveOptions } from './sieve/judge.ts';
import { plansOf, type SievePattern, type SievePlan, sampleOf, scenarioOfPlan, sievePatterns } from './sieve/sieve.ts';
import { type SieveWorkload, sieveWorkloads } from './sieve/workloads.ts';

/** The most plans of each pattern that are played here, of one workload; all of them: test/simulation/sieve-all.ts. */
const most: Readonly<Record<SievePattern, number>> = { intermediate: rounds(12, 4), stale: rounds(10, 3), unobserved: rounds(10, 3) };
/** A run takes a fraction of a second; this is for machines that are busy. */
const timeoutMs = 300_000;

const ofPattern = (plans: readonly SievePlan[], pattern: SievePattern): readonly SievePlan[] =>
  plans.filter((plan) => plan.pattern === pattern);

describe('plans made from a run without faults', () => {
  const totals = new Map<string, string>();
  afterAll(() => {
    for (const [name, counts] of totals) process.stderr.write(`sieve: ${name.padEnd(22)} ${counts}\n`);
  });

  it.each(shareOf(sieveWorkloads, sieveWorkloads.length))(
    'of $name change nothing but the time that it takes',
    async (workload) => {
      const recording = await recordWorkload(workload);
      const plans = plansOf(recording);
      const counts: string[] = [];
      const failures: string[] = [];
      for (const pattern of sievePatterns) {
        const all = ofPattern(plans, pattern);
        const played = sampleOf(all, most[pattern], workload.scenario.seed + commitSeed);
        counts.push(`${pattern} ${played.length} of ${all.length}`);
        for (const plan of played) {
          const failure = await judgePlan(workload, recording, plan);
          if (failure !== undefined) failures.push(`${plan.name}: ${failure.id}: ${failure.message}`);
        }
      }
      totals.set(workload.name, counts.join(', '));
      expect(failures).toEqual([]);
    },
    timeoutMs,
  );

  it('are the same each time, and each has a unique name', async () => {
    const workload = named('delayed-scale-down');
    const [one, other] = [plansOf(await recordWorkload(workload)), plansOf(await recordWorkload(workload))];
    expect(other).toEqual(one);
    expect(new Set(one.map(({ name }) => name)).size).toBe(one.length);
  });

  it('come from causes: what changed nothing, what no turn could have acted upon, and the Lease, are no reason for one', async () => {
    const recording = await recordWorkload(named('rollout'));
    const { writes, lines } = recording;
    expect(writes.filter(({ site }) => site.startsWith('lease.') || site.startsWith('watch.'))).toEqual([]);
    expect(plansOf({ ...recording, writes: [] })).toEqual([]);
    // Both agents hear everything; only one of them acts.
    const [leader] = [...new Set(writes.map(({ process }) => process))];
    expect(new Set(lines.map(({ process }) => process)).size).toBe(2);
    expect(plansOf(recording).filter(({ fault }) => !fault.at.startsWith(`${leader}/`))).toEqual([]);
  });

  it('are sampled evenly: no stretch of them is left out', () => {
    const plans = Array.from({ length: 100 }, (_, index) => ({ name: `${index}` })) as unknown as readonly SievePlan[];
    const places = sampleOf(plans, 10, 3).map(({ name }) => Math.floor(Number(name) / 10));
    expect(places).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(sampleOf(plans, 100, 3)).toBe(plans);
  });
});

describe('each pattern finds a mistake that runs without faults do not show', () => {
  const cases: readonly { readonly pattern: SievePattern; readonly defect: string; readonly workload: string }[] = [
    { pattern: 'intermediate', defect: 'revoke-by-name', workload: 'rollout' },
    { pattern: 'stale', defect: 'stale-snapshot', workload: 'rollout-and-rollback' },
    { pattern: 'unobserved', defect: 'gone-without-list', workload: 'rollout-and-rollback' },
  ];

  it.each(shareOf(cases, 3))(
    '$pattern: $defect',
    async ({ pattern, defect: id, workload: name }) => {
      const workload = named(name);
      const defect = defects.find((one) => one.id === id);
      if (defect === undefined) throw new Error(`there is no defect ${id}`);
      const plans = ofPattern(plansOf(await recordWorkload(workload)), pattern);
      const player = startPlayer(await bundled(defect.edits));
      const options = { stopsAtViolation: true, quietMs: sieveOptions.quietMs ?? 0 };
      try {
        expect(foundBy(await player.play(workload.scenario, { options }))).toBeUndefined();
        let found: string | undefined;
        for (const plan of plans) {
          found = foundBy(await player.play(scenarioOfPlan(workload.scenario, plan), { options }))?.id;
          if (found !== undefined) break;
        }
        expect(defect.breaks).toContain(found);
      } finally {
        await player.close();
      }
    },
    timeoutMs,
  );
});

function named(name: string): SieveWorkload {
  const workload = sieveWorkloads.find((one) => one.name === name);
  if (workload === undefined) throw new Error(`there is no workload ${name}`);
  return workload;
}
