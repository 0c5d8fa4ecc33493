// The record of one rollout or downscale, made turn by turn: a RolloutRun from the one before and what a turn did.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { GroupDecision } from '../decision.ts';
import type { Snapshot } from '../snapshot.ts';
import type { TakenAction } from './published.ts';

export interface RunTurn {
  readonly group: GroupDefinition;
  readonly snapshot: Snapshot;
  readonly decision?: GroupDecision;
  readonly performed: readonly TakenAction[];
  readonly startedMs: number;
}

/** The record after a turn; undefined while there is nothing to record, the same value when the turn adds nothing. */
export declare function runRecord(previous: unknown, turn: RunTurn): unknown;
