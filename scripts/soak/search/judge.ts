// Judges a scenario: its simulation keeps every invariant, becomes quiet, can be repeated exactly, and ends as without faults.
import { type Failure, failureOf, type RunOptions, type RunResult, unfinishedFailure } from '../../../simulation/run.ts';
import type { Scenario } from '../../../simulation/scenario.ts';
import type { Attempt } from '../../../simulation/shrink.ts';
import { playGenerated } from '../generated.ts';
import { countable, differentEnds, differentWrites, withoutFaults } from './compare.ts';

export const failureIds = {
  /** The group did not converge, writes did not end, or a process left something open. */
  unfinished: unfinishedFailure,
  /** The second simulation of the same scenario differed. */
  unrepeatable: 'unrepeatable',
  /** The end state differs from the end state without faults. */
  endsOtherwise: 'ends-otherwise',
  /** The number of writes differs from that without faults. */
  writesOtherwise: 'writes-otherwise',
} as const;

export interface Checks {
  readonly isRepeated: boolean;
  /** The comparisons with a simulation without faults: the end state, or the writes of countable work. */
  readonly compared: readonly ('ends' | 'writes')[];
}

export interface Judged {
  readonly result: RunResult;
  readonly failure?: Failure;
  readonly runs: number;
}

/** Plays the scenario, and the scenarios with which it is compared. */
export async function judge(scenario: Scenario, checks: Checks, options: RunOptions = {}): Promise<Judged> {
  const result = await playGenerated(scenario, { isTraced: checks.isRepeated, ...options });
  const failed = failureOf(result, scenario);
  if (failed !== undefined) return { result, failure: failed, runs: 1 };
  let runs = 1;
  if (checks.isRepeated) {
    runs += 1;
    const again = await playGenerated(scenario);
    const isSame = again.traceHash === result.traceHash;
    const failure = found(failureIds.unrepeatable, result, scenario, isSame ? [] : ['its trace differs from the first run']);
    if (failure !== undefined) return { result, failure, runs };
  }
  for (const what of checks.compared) {
    const compared = what === 'ends' ? await compareEnds(scenario, result) : await compareWrites(scenario);
    runs += compared.runs;
    if (compared.failure !== undefined) return { result, failure: compared.failure, runs };
  }
  return { result, runs };
}

const untraced: RunOptions = { isTraced: false };

interface Compared {
  readonly failure?: Failure | undefined;
  readonly runs: number;
}

async function compareEnds(scenario: Scenario, result: RunResult): Promise<Compared> {
  const plain = withoutFaults(scenario);
  const faultless = await playGenerated(plain, untraced);
  return {
    // A webhook admits or denies a decrease by hand depending on the state at that time.
    failure:
      failureOf(faultless, plain) ??
      (scenario.group.webhooks === true && scenario.events.some(({ kind }) => kind === 'scaleByHand')
        ? undefined
        : found(failureIds.endsOtherwise, result, scenario, differentEnds(result, faultless))),
    runs: 1,
  };
}

async function compareWrites(scenario: Scenario): Promise<Compared> {
  const simple = countable(scenario);
  const simplePlain = withoutFaults(simple);
  const counted = await playGenerated(simple, untraced);
  const expected = await playGenerated(simplePlain, untraced);
  const failure =
    failureOf(counted, simple) ??
    failureOf(expected, simplePlain) ??
    found(failureIds.endsOtherwise, counted, simple, differentEnds(counted, expected)) ??
    found(failureIds.writesOtherwise, counted, simple, differentWrites(counted, expected, scenario.group));
  return { failure, runs: 2 };
}

function found(id: string, result: RunResult, scenario: Scenario, messages: readonly string[]): Failure | undefined {
  return messages.length === 0 ? undefined : { id, atMs: result.endMs, message: messages.join('; '), scenario };
}

/** Plays the scenario with the checks that can find `failure`, for shrinking. */
export async function tryFor(failure: string, scenario: Scenario): Promise<Attempt> {
  const checks: Checks = {
    isRepeated: failure === failureIds.unrepeatable,
    compared: failure === failureIds.endsOtherwise || failure === failureIds.writesOtherwise ? ['ends', 'writes'] : [],
  };
  const { result, failure: failed } = await judge(scenario, checks, {
    stopsAtViolation: !checks.isRepeated && checks.compared.length === 0,
  });
  return { ...(failed === undefined ? {} : { failure: failed.id, failedAtMs: failed.atMs }), placed: result.placed };
}
