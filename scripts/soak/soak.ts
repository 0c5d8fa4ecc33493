// Plays the scenarios of many seeds on several threads, and reports faults, coverage and failures. docs/simulation.md describes its use.
// Exit code 0: all seeds passed; 1: a seed failed, or too few faults happened; 2: an option or a plan is invalid.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { messageOf } from '../../policies/error-message.ts';
import type { Failure } from '../../simulation/run.ts';
import type { Scenario } from '../../simulation/scenario.ts';
import { type SoakArguments, soakArguments } from './arguments.ts';
import { playGenerated } from './generated.ts';
import { faultCount, jsonReport, newTally, progressLine, reportLines, type Tally, tally } from './report.ts';
import { scenarioOf } from './search/draw.ts';
import { type Checks, judge } from './search/judge.ts';
import { PlanError, readScenario } from './search/replay.ts';
import { shrinkAndTell, timelineLines } from './shrink.ts';
import { runWorkers, serveSeeds } from './workers.ts';

/** Number of failed seeds that are shrunk and shown. The report only names the others. */
const shownFailures = 3;

function say(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function soak(asked: SoakArguments): Promise<Tally> {
  const counts = newTally(process.hrtime.bigint());
  const endsAt = asked.minutes === undefined ? undefined : Date.now() + asked.minutes * 60_000;
  let nextSeed = asked.from;
  let toldAt = Date.now();
  await runWorkers({
    workers: asked.workers,
    next: () => {
      if (nextSeed >= asked.from + asked.seeds || (endsAt !== undefined && Date.now() >= endsAt)) return undefined;
      const seed = nextSeed;
      nextSeed += 1;
      return { seed, isRepeated: seed % 100 === 0, compared: comparedOf(seed) };
    },
    onReport: (report) => {
      tally(counts, report);
      if (report.failure !== undefined) tell(`seed ${report.seed}: ${report.failure.id}: ${report.failure.message}`);
      if (Date.now() - toldAt < 5000) return;
      toldAt = Date.now();
      tell(progressLine(counts, asked.seeds));
    },
  });
  return counts;
}

/** Returns what is compared with a run without faults. Of every 40 seeds, one needs 1 more run, and another one needs 2 more runs. */
function comparedOf(seed: number): Checks['compared'] {
  if (seed % 40 === 0) return ['ends'];
  return seed % 40 === 20 ? ['writes'] : [];
}

/** Plays one scenario twice, with the comparisons that fit it, and prints its timeline. A stored plan gets all comparisons. */
async function playOne(asked: SoakArguments): Promise<Failure | undefined> {
  const scenario = asked.plan === undefined ? scenarioOf(asked.seed ?? 0) : scenarioFrom(asked.plan);
  const compared = asked.plan === undefined ? comparedOf(scenario.seed) : (['ends', 'writes'] as const);
  const { result, failure } = await judge(scenario, { isRepeated: true, compared });
  if (failure === undefined || !asked.isShrinking) {
    const told = await playGenerated(failure?.scenario ?? scenario, { keepsTimeline: true });
    say([...timelineLines(told), '', `trace ${told.traceHash}, ${told.events} events, ${Math.round(told.endMs / 1000)} virtual seconds`]);
    for (const violation of told.violations) say([`${violation.invariant} at ${violation.atMs} ms: ${violation.message}`]);
  }
  const injected = Object.values(result.faults).reduce((sum, count) => sum + count, 0);
  say([failure === undefined ? `fine, with ${injected} faults` : `${failure.id} at ${failure.atMs} ms: ${failure.message}`]);
  return failure;
}

/** Reads `FILE`, or the plan `FILE#NAME` of a file of plans. Throws PlanError. */
function scenarioFrom(source: string): Scenario {
  const [file = '', name] = source.split('#');
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new PlanError(`${file} cannot be read: ${messageOf(error)}`);
  }
  return readScenario(text, file, name);
}

async function main(): Promise<number> {
  const asked = soakArguments(process.argv.slice(2));
  if (typeof asked === 'string') {
    tell(asked);
    return 2;
  }
  if (asked.seed !== undefined || asked.plan !== undefined) return await runOne(asked);
  const problem = asked.json === undefined ? undefined : whyUnwritable(asked.json);
  if (problem !== undefined) {
    tell(problem);
    return 2;
  }
  return await runMany(asked);
}

async function runOne(asked: SoakArguments): Promise<number> {
  const failure = await playOne(asked);
  const name = asked.plan === undefined ? `seed ${asked.seed}` : asked.plan;
  if (failure !== undefined && asked.isShrinking) say(await shrinkAndTell(name, failure, replayOf(asked)));
  say([failure === undefined ? '1 passed, 0 failed' : '0 passed, 1 failed']);
  return failure === undefined ? 0 : 1;
}

async function runMany(asked: SoakArguments): Promise<number> {
  const counts = await soak(asked);
  say(reportLines(counts));
  for (const { seed, failure } of asked.isShrinking ? counts.failures.slice(0, shownFailures) : []) {
    // A seed that does not end would not end here either.
    if (failure.scenario !== undefined) {
      say(['', ...(await shrinkAndTell(`seed ${seed}`, failure as Failure, `npm run soak -- --seed ${seed}`))]);
    }
  }
  const injected = faultCount(counts);
  if (injected < asked.leastFaults) {
    counts.failed += 1;
    say([`${injected} faults are fewer than the ${asked.leastFaults} that were asked for`]);
  }
  if (asked.json !== undefined) writeFileSync(asked.json, `${JSON.stringify(jsonReport(counts), undefined, 2)}\n`);
  say([`${counts.passed} passed, ${counts.failed} failed`]);
  return counts.failed === 0 && counts.passed > 0 ? 0 : 1;
}

/** Checks the report file before hours of work, not after them. */
function whyUnwritable(file: string): string | undefined {
  try {
    appendFileSync(file, '');
    return undefined;
  } catch (error) {
    return `${file} cannot be written: ${messageOf(error)}`;
  }
}

function replayOf(asked: SoakArguments): string {
  return `npm run soak -- ${asked.plan === undefined ? `--seed ${asked.seed}` : `--plan ${asked.plan}`}`;
}

if (isMainThread) {
  try {
    process.exitCode = await main();
  } catch (error) {
    tell(error instanceof PlanError ? error.message : `the soak itself failed: ${(error as Error).stack}`);
    process.exitCode = error instanceof PlanError ? 2 : 1;
  }
} else serveSeeds();
