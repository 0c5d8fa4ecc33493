// The trace of a run as one hash: everything that happens is folded into it in its order, so that equal runs have equal hashes.
import { createHash } from 'node:crypto';

export interface Trace {
  /** Folds in one thing that has happened. Parts are told apart: `a`, `bc` is not `ab`, `c`. */
  readonly note: (atMs: number, ...parts: readonly (string | number)[]) => void;
  /** Of everything so far, 32 hexadecimal digits. May be asked at any time. */
  readonly hash: () => string;
}

/** Text is gathered up to this many characters before it is hashed: one call for each note would cost more than the hash. */
const batchLength = 16_384;

/** A trace in which nothing has happened. Takes the same memory however long the run is. */
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
