// Counts how many mutants random seeds find. `node scripts/run.mjs test/simulation/defects/census.ts [MUTANT ...]`
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { scenarioOf } from '../../../scripts/soak/search/draw.ts';
import type { Scenario } from '../../../simulation/scenario.ts';
import { bundled } from './bundle.ts';
import type { Mutant } from './mutants/mutant.ts';
import { mutants } from './mutants.ts';
import { foundBy, startPlayer } from './player.ts';
import { startReference } from './search.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** The most seeds for one mutant: as many as CI plays. */
    seeds: { type: 'string', default: '180' },
    from: { type: 'string', default: '1' },
    /** No new seed starts after this time. */
    minutes: { type: 'string', default: 'Infinity' },
  },
});

interface Row {
  readonly part: string;
  readonly mutant: Mutant;
  /** The scenarios that may reach the mutant, and the number of them that were played. */
  readonly scenarios: readonly Scenario[];
  played: number;
  /** The seed or group that found the mutant, and the invariant. */
  bySimulation?: string;
  byGroups?: string;
}

const endMs = performance.now() + Number(values.minutes) * 60_000;
const isOver = (): boolean => performance.now() >= endMs;
/** The scenarios of native groups first, because more invariants apply to them. */
const all = Array.from({ length: Number(values.seeds) }, (_, index) => scenarioOf(Number(values.from) + index)).sort(
  (a, b) => Number(a.group.kind === 'adopted') - Number(b.group.kind === 'adopted'),
);
const rows: readonly Row[] = Object.entries(mutants)
  .flatMap(([part, list]) => list.map((mutant): Row => ({ part, mutant, scenarios: all.filter(mutant.needs ?? (() => true)), played: 0 })))
  .filter(({ mutant }) => positionals.length === 0 || positionals.includes(mutant.id));
const reference = await startReference();

/** Plays scenarios until the mutant fails one that passes without the mutant, or until `end` scenarios were played. */
async function play(row: Row, end: number): Promise<void> {
  const player = startPlayer(await bundled(row.mutant.edits));
  for (const scenario of row.scenarios.slice(row.played, end)) {
    if (row.bySimulation !== undefined || isOver()) break;
    row.played += 1;
    const failed = foundBy(await player.play(scenario));
    if (failed !== undefined && (await reference.isFine(scenario)))
      row.bySimulation = `seed ${scenario.seed}: ${failed.id}: ${failed.message}`;
  }
  await player.close();
}

/** Returns the first violation in the decisions of random groups, which run the engine alone; undefined without a violation. */
async function violationInGroups({ edits }: Mutant): Promise<string | undefined> {
  if (!edits.every(({ file }) => file.startsWith('engine/'))) return undefined;
  const worker = new Worker(await bundled(edits, 'test/simulation/defects/random-groups.ts'), { eval: true });
  return await new Promise((resolve) => {
    worker.once('message', resolve);
    worker.once('error', (error: Error) => resolve(error.message));
  });
}

function print({ mutant, played, bySimulation, byGroups }: Row): void {
  process.stdout.write(`${mutant.id.padEnd(38)} ${`${played}`.padStart(4)}  ${(bySimulation ?? byGroups ?? 'not found').slice(0, 160)}\n`);
}

// The scenarios are played in rounds: a census that ends early has played about as many for each mutant that is not found yet.
for (const round of [5, 20, 60, Number(values.seeds)]) {
  for (const row of rows.filter(({ bySimulation, scenarios, played }) => bySimulation === undefined && played < scenarios.length)) {
    if (isOver()) break;
    await play(row, round);
    if (row.bySimulation !== undefined) print(row);
  }
  process.stderr.write(`round ${round} ended\n`);
}
await reference.close();
for (const row of rows.filter(({ bySimulation }) => bySimulation === undefined)) {
  const violation = isOver() ? undefined : await violationInGroups(row.mutant).catch(() => undefined);
  if (violation !== undefined) row.byGroups = violation;
  print(row);
}

const unfinished = rows.filter(({ bySimulation, scenarios, played }) => bySimulation === undefined && played < scenarios.length).length;

function resultsOf(counted: readonly Row[]) {
  const simulation = counted.filter(({ bySimulation }) => bySimulation !== undefined).length;
  const groups = counted.filter(({ byGroups }) => byGroups !== undefined).length;
  return { simulation, groups, neither: counted.length - simulation - groups };
}

process.stdout.write('\n| Part | Mutants | Found by the simulation | Found by random groups | Found by neither |\n|---|---|---|---|---|\n');
for (const part of Object.keys(mutants)) {
  const counted = rows.filter((row) => row.part === part);
  const { simulation, groups, neither } = resultsOf(counted);
  process.stdout.write(`| ${part} | ${counted.length} | ${simulation} | ${groups} | ${neither} |\n`);
}
const { simulation, groups, neither } = resultsOf(rows);
process.stdout.write(
  `${unfinished} not played with all seeds\n${simulation + groups} of ${rows.length} found: ${simulation} by the simulation, ${groups} by random groups, ${neither} by neither\n`,
);
