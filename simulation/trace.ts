// Hashes the trace of a run: everything in order, so that equal runs have equal hashes.
import { createHash } from 'node:crypto';

export interface Trace {
  /** Adds one event. Parts are separated: `a`, `bc` is not `ab`, `c`. */
  readonly note: (atMs: number, ...parts: readonly (string | number)[]) => void;
  /** Returns the hash of everything so far, 32 hexadecimal digits. Callable at any time. */
  readonly hash: () => string;
}

/** Text is buffered up to this many characters: one hash call per event would cost more than the hash. */
const batchLength = 16_384;

/** Returns an empty trace. Its memory does not depend on the length of the run. */
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
