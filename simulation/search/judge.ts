// Judges a scenario: it keeps every invariant, comes to rest, repeats identically, and ends as without faults.
import { type RunOptions, type RunResult, runScenario } from '../run.ts';
import type { Scenario } from '../scenario.ts';
import { countable, differentEnds, differentWrites, withoutFaults } from './compare.ts';
import type { Attempt } from './shrink.ts';

export interface Failure {
  /** The first broken invariant, or one of `failureIds`. */
  readonly id: string;
  readonly atMs: number;
  readonly message: string;
  /** The failing scenario: the judged one, or one it was compared with. */
  readonly scenario: Scenario;
}

/** Failures besides broken invariants. */
export const failureIds = {
  /** It did not converge, did not become quiet, or left something behind. */
  unfinished: 'unfinished',
  /** The second run of the same scenario differed. */
  unrepeatable: 'unrepeatable',
  /** Its end state differs from the one without faults. */
  endsOtherwise: 'ends-otherwise',
  /** Faults repeated or omitted a write. */
  writesOtherwise: 'writes-otherwise',
} as const;

export interface Checks {
  /** Runs it twice and compares both traces. */
  readonly isRepeated: boolean;
  /** Compares with a run without faults: the end state, or the writes of a countable workload. */
  readonly compared: readonly ('ends' | 'writes')[];
}

export interface Judged {
  /** Result of the scenario itself. */
  readonly result: RunResult;
  readonly failure?: Failure;
  /** Number of all runs. */
  readonly runs: number;
}

/** Runs the scenario, and the runs it is compared with. */
export async function judge(scenario: Scenario, checks: Checks, options: RunOptions = {}): Promise<Judged> {
  const result = await runScenario(scenario, options);
  const failed = failureOf(result, scenario);
  if (failed !== undefined) return { result, failure: failed, runs: 1 };
  let runs = 1;
  if (checks.isRepeated) {
    runs += 1;
    const again = await runScenario(scenario);
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

interface Compared {
  readonly failure?: Failure | undefined;
  readonly runs: number;
}

/** Compares the end of the scenario with that of the same scenario without faults. */
async function compareEnds(scenario: Scenario, result: RunResult): Promise<Compared> {
  const plain = withoutFaults(scenario);
  const faultless = await runScenario(plain);
  return {
    failure: failureOf(faultless, plain) ?? found(failureIds.endsOtherwise, result, scenario, differentEnds(result, faultless)),
    runs: 1,
  };
}

/** Compares the writes of a countable workload with the faults of the scenario with its writes without faults. */
async function compareWrites(scenario: Scenario): Promise<Compared> {
  const simple = countable(scenario);
  const simplePlain = withoutFaults(simple);
  const counted = await runScenario(simple);
  const expected = await runScenario(simplePlain);
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

/** Returns the failure of the run; undefined on success. */
export function failureOf(result: RunResult, scenario: Scenario): Failure | undefined {
  const [violation] = result.violations;
  if (violation !== undefined) return { id: violation.invariant, atMs: violation.atMs, message: violation.message, scenario };
  if (result.unfinished === undefined) return undefined;
  return { id: failureIds.unfinished, atMs: result.endMs, message: result.unfinished, scenario };
}

/** Runs the scenario until it fails by `failure`; used by shrinking. */
export async function tryFor(failure: string, scenario: Scenario): Promise<Attempt> {
  const checks: Checks = {
    isRepeated: failure === failureIds.unrepeatable,
    compared: failure === failureIds.endsOtherwise || failure === failureIds.writesOtherwise ? ['ends', 'writes'] : [],
  };
  const { result, failure: failed } = await judge(scenario, checks, { isShort: !checks.isRepeated && checks.compared.length === 0 });
  return { ...(failed === undefined ? {} : { failure: failed.id, failedAtMs: failed.atMs }), placed: result.placed };
}
