// Shrinks a failed seed, writes the scenario to a file and prints it.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../policies/error-message.ts';
import type { Failure, RunResult } from '../../simulation/run.ts';
import { shrink } from '../../simulation/shrink.ts';
import { playGenerated } from './generated.ts';
import { tryFor } from './search/judge.ts';
import { writeScenario } from './search/replay.ts';

/** Number of timeline lines shown before the failure. */
const shownLines = 120;

/** Returns the smallest scenario that fails in the same way, its timeline, and the commands that play it again. */
export async function shrinkAndTell(name: string, failure: Failure, replay: string): Promise<readonly string[]> {
  try {
    return await smallAndTold(name, failure, replay);
  } catch (error) {
    // A run that cannot be repeated may not fail again. The report on all seeds must not depend on it.
    const why = messageOf(error);
    return [`${name} fails by ${failure.id}: ${failure.message}`, `it cannot be made small: ${why}`, `again, whole: ${replay}`];
  }
}

async function smallAndTold(name: string, failure: Failure, replay: string): Promise<readonly string[]> {
  const { scenario, runs, isCutShort } = await shrink(failure.scenario, failure.id, (candidate) => tryFor(failure.id, candidate));
  const file = join(mkdtempSync(join(tmpdir(), 'rollout-group-soak-')), `${name.replace(/\W+/g, '-')}-${failure.id}.json`);
  writeFileSync(file, writeScenario(scenario));
  const told = await playGenerated(scenario, { keepsTimeline: true, stopsAtViolation: true });
  const found = told.violations.map((violation) => `${violation.invariant} at ${violation.atMs} ms: ${violation.message}`);
  return [
    `${name} fails by ${failure.id}: ${failure.message}`,
    `what is left of it after ${runs} runs${isCutShort ? ', with more to try' : ''}: ${scenario.group.zones} zones of ${scenario.group.podsPerZone} pods,` +
      ` ${scenario.agents} agents, ${scenario.events.length} events, ${scenario.faults.length} faults, ${Math.round(scenario.safetyMs / 1000)} s`,
    ...timelineLines(told),
    ...found,
    ...(told.unfinished === undefined ? [] : [told.unfinished]),
    `again, whole: ${replay}`,
    `again, small: npm run soak -- --plan ${file}`,
  ];
}

/** Returns the end of the timeline, or all of it. */
export function timelineLines({ timeline }: RunResult): readonly string[] {
  const shown = timeline.slice(-shownLines);
  const left = timeline.length - shown.length;
  return [
    ...(left === 0 ? [] : [`... ${left} lines before`]),
    ...shown.map(({ atMs, who, what }) => `${(atMs / 1000).toFixed(3).padStart(9)} s  ${who.padEnd(8)} ${what}`),
  ];
}
