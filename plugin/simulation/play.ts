// Plays one scenario of `simulate`, and keeps the decisions of its agents.
import type { GroupDecision } from '../../engine/decision.ts';
import type { Turn } from '../../engine/plan/forward.ts';
import { runStartMs } from '../../simulation/process/clock.ts';
import { type RunOptions, type RunResult, runScenario } from '../../simulation/run.ts';
import type { Scenario } from '../../simulation/scenario.ts';

/** The time that a run continues when nothing is left to do. For one minute the agent may still write, then only Leases. */
const quietMs = 90_000;
export const brief: RunOptions = { endsWhenConverged: true, quietMs };

/** A scenario that was played. A thread can send it to another thread. */
export interface Played {
  readonly scenario: Scenario;
  readonly result: RunResult;
  readonly turns: readonly Turn[];
  readonly last: GroupDecision | undefined;
}

export async function playOne(scenario: Scenario, play = runScenario): Promise<Played> {
  const turns: Turn[] = [];
  const result = await play(scenario, {
    ...brief,
    keepsTimeline: true,
    observer: {
      turnEnded: (_, { decision, startedMs }) => {
        if (decision !== undefined) turns.push({ nowMs: startedMs - runStartMs, decision });
      },
    },
  });
  // The clock of an agent may be wrong during faults, so the times of turns are corrected: turns arrive in order.
  let latestMs = 0;
  const inOrder = turns.map((turn) => {
    latestMs = Math.max(latestMs, Math.min(turn.nowMs, result.endMs));
    return { ...turn, nowMs: latestMs };
  });
  return { scenario, result, turns: inOrder, last: turns.at(-1)?.decision };
}
