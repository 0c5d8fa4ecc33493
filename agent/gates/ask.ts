// How a gate is asked, whatever its provider is.
import type { GateReading } from '../../engine/snapshot.ts';

export interface AskedGate {
  /** When the question is asked (wall clock); the reading's own instant. */
  readonly atMs: number;
  /** Until the reading is there. */
  readonly timeoutMs: number;
}

/** A gate with its provider. */
export interface GateAsker {
  /** How long a question may take at most, whatever the period of the gate is, in milliseconds. */
  readonly longestMs: number;
  /** Rejects with an Error whose message anybody may read. */
  readonly ask: (asked: AskedGate) => Promise<GateReading>;
}
