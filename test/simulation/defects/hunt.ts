// Looks for defects with random seeds: how many each needs, and what it breaks. `node scripts/run.mjs test/simulation/defects/hunt.ts`
import { parseArgs } from 'node:util';
import { survivors } from './catalogue/survivors.ts';
import { defects } from './catalogue.ts';
import type { Defect } from './defect.ts';
import { defectPlans, storePlan } from './plans.ts';
import { planFrom, type Search, search, startReference } from './search.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** The most seeds for one defect. */
    seeds: { type: 'string', default: '500' },
    from: { type: 'string', default: '1' },
    /** The most minutes for one defect. */
    minutes: { type: 'string', default: '10' },
    /** How many defects at a time. */
    workers: { type: 'string', default: '2' },
    /** Stores the plan of each that is found. */
    store: { type: 'boolean', default: false },
    /** Only defects without a stored plan. */
    missing: { type: 'boolean', default: false },
  },
});

const wanted = positionals.length === 0 ? defects : [...defects, ...survivors].filter(({ id }) => positionals.includes(id));
const known = defectPlans();
const queue: Defect[] = wanted.filter(({ id }) => !values.missing || !known.has(id));
const searches: Search[] = [];

function line({ defect, tried, found, useless, otherwise }: Search): string {
  const seeds = found === undefined ? `none of ${tried}` : `${tried}`;
  const details = found === undefined ? '' : found.id;
  const rest = [
    ...(useless.length === 0 ? [] : [`${useless.length} useless (${useless.slice(0, 3).join(', ')})`]),
    ...(otherwise.length === 0 ? [] : [`${otherwise.length} otherwise`]),
  ];
  return `${defect.id.padEnd(36)} ${seeds.padStart(12)}  ${details.padEnd(12)} ${rest.join(', ')}`;
}

const reference = await startReference();
const lane = async (): Promise<void> => {
  for (let defect = queue.shift(); defect !== undefined; defect = queue.shift()) {
    const done = await search(defect, reference, {
      from: Number(values.from),
      seeds: Number(values.seeds),
      shrinkRuns: values.store ? 250 : 0,
      limitMs: Number(values.minutes) * 60_000,
    });
    searches.push(done);
    process.stdout.write(`${line(done)}\n`);
    if (done.found === undefined) for (const text of done.otherwise.slice(0, 3)) process.stdout.write(`    ${text}\n`);
    if (done.found !== undefined && values.store) {
      storePlan(planFrom(defect, done.found));
      const { group, events, faults, safetyMs } = done.found.scenario;
      process.stdout.write(
        `    ${done.found.message.slice(0, 200)}\n    ${group.zones} x ${group.podsPerZone}, ${events.length} events, ${faults.length} faults, ${safetyMs / 1000} s\n`,
      );
    }
  }
};
await Promise.all(Array.from({ length: Number(values.workers) }, lane));
await reference.close();
const found = searches.filter((one) => one.found !== undefined);
process.stdout.write(`\n${'defect'.padEnd(36)} ${'seeds'.padStart(12)}  invariant\n`);
for (const one of [...searches].sort((a, b) => a.tried - b.tried)) process.stdout.write(`${line(one)}\n`);
process.stdout.write(`${found.length} of ${searches.length} found\n`);
