// Judges a disturbed run: no broken invariant, it comes to rest, and its end state equals the one without faults.

import { playGenerated } from '../../../scripts/soak/generated.ts';
import { differentEnds, differentWrites } from '../../../scripts/soak/search/compare.ts';
import { failureIds } from '../../../scripts/soak/search/judge.ts';
import { failureOf, type RunOptions, type RunResult } from '../../../simulation/run.ts';
import { type Recording, record } from './record.ts';
import { type SievePlan, scenarioOfPlan } from './sieve.ts';
import type { SieveWorkload } from './workloads.ts';

/** Many runs with one fault each: a group counts as quiet sooner than under many faults. */
export const sieveOptions: RunOptions = { quietMs: 90_000 };

interface SieveFailure {
  /** An invariant, or one of `failureIds`; `not-struck` if the place of the fault was never reached. */
  readonly id: string;
  readonly message: string;
}

/** Records the run that plans are made from and compared with. Throws if it fails itself. */
export async function recordWorkload({ name, scenario }: SieveWorkload): Promise<Recording> {
  const recording = await record(scenario, sieveOptions);
  const failure = failureOf(recording.result, scenario);
  if (failure !== undefined) throw new Error(`${name} fails without faults by ${failure.id}: ${failure.message}`);
  return recording;
}

/** Plays the plan. Undefined on success. */
export async function judgePlan(workload: SieveWorkload, recording: Recording, plan: SievePlan): Promise<SieveFailure | undefined> {
  const scenario = scenarioOfPlan(workload.scenario, plan);
  const result = await playGenerated(scenario, sieveOptions);
  return failureOf(result, scenario) ?? differenceOf(workload, recording.result, result);
}

function differenceOf({ isCountable, scenario }: SieveWorkload, faultless: RunResult, result: RunResult): SieveFailure | undefined {
  if (result.placed.length === 0) return { id: 'not-struck', message: 'the place of the fault was not reached' };
  const ends = differentEnds(result, faultless);
  if (ends.length > 0) return { id: failureIds.endsOtherwise, message: ends.join('; ') };
  const writes = isCountable ? differentWrites(result, faultless, scenario.group) : [];
  return writes.length === 0 ? undefined : { id: failureIds.writesOtherwise, message: writes.join('; ') };
}
