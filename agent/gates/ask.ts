// Defines how a gate is evaluated, for every provider.
import type { GateReading } from '../../engine/snapshot.ts';

export interface AskedGate {
  /** When the question is asked (wall clock); the reading's own instant. */
  readonly atMs: number;
  /** Until the reading is there. */
  readonly timeoutMs: number;
}

/** A gate with its provider. */
export interface GateAsker {
  /** Limits each query in milliseconds, for every period of the gate. */
  readonly longestMs: number;
  /** Rejects with an Error whose message anybody may read. */
  readonly ask: (asked: AskedGate) => Promise<GateReading>;
}
