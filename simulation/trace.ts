// Hashes the events of a simulation in order, so that equal simulations have equal hashes.
import { createHash } from 'node:crypto';

export interface Trace {
  /** Adds one event. The parts `a`, `bc` give another hash than `ab`, `c`. */
  readonly note: (atMs: number, ...parts: readonly (string | number)[]) => void;
  /** Returns the hash of all events so far as 32 hexadecimal digits. */
  readonly hash: () => string;
}

/** The number of buffered characters at which the hash is updated. An update for each event would be slower. */
const batchLength = 16_384;

/** The trace of a simulation whose events are not compared. */
export const noTrace: Trace = { note: () => undefined, hash: () => '' };

/** Returns an empty trace. Its memory does not depend on the number of events. */
export function createTrace(): Trace {
  const hash = createHash('sha256');
  let batch = '';
  return {
    note: (atMs, ...parts) => {
      batch += `${atMs}\u001f${parts.join('\u001f')}\u001e`;
      if (batch.length < batchLength) return;
      hash.update(batch);
      batch = '';
    },
    hash: () => hash.copy().update(batch).digest('hex').slice(0, 32),
  };
}
