// One run: the scenario played to its end, judged, and told.
import type { FaultClass, PlacedFault } from './faults/fault.ts';
import type { Violation } from './oracles/oracle.ts';
import type { Scenario } from './scenario.ts';

export interface TimelineEntry {
  readonly atMs: number;
  /** `people`, `fault`, `a1` (a process), `cluster`, `verdict`. */
  readonly who: string;
  readonly what: string;
}

export interface RunOptions {
  /** Keeps the timeline, which takes memory. */
  readonly isTold?: boolean;
  /** Ends at the first violation instead of at the end of the scenario. */
  readonly isShort?: boolean;
}

export interface RunResult {
  readonly violations: readonly Violation[];
  /** Why it did not converge, or never became quiet, or left something behind; undefined when it did and was. */
  readonly unfinished?: string;
  /** Faults that happened, by class. */
  readonly faults: Readonly<Partial<Record<FaultClass, number>>>;
  /** Those of them that have a place: with `rates` empty and these as `faults`, the scenario gives the same run. */
  readonly placed: readonly PlacedFault[];
  /** How often each `site moment` was hit by a crash. */
  readonly crashes: Readonly<Record<string, number>>;
  /** Requests of agents that have changed something, by `verb resource[/subresource]`, Leases left out. */
  readonly writes: Readonly<Record<string, number>>;
  /** What has become of each StatefulSet and of what the group mirrors, by name. */
  readonly endState: Readonly<Record<string, string>>;
  readonly events: number;
  /** On the scheduler's clock, when it was over. */
  readonly endMs: number;
  /** Of everything that happened, in its order: equal for equal runs. */
  readonly traceHash: string;
  readonly timeline: readonly TimelineEntry[];
}

/** Plays the scenario with the agent's own loop. Never rejects for what the agent does: that is in the result. */
export async function runScenario(scenario: Scenario, options: RunOptions = {}): Promise<RunResult> {
  await Promise.resolve();
  throw new Error(`the parts of the run are not joined yet: seed ${scenario.seed}, ${options.isTold === true ? 'told' : 'untold'}`);
}
