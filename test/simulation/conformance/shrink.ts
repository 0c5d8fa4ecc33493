// Makes a sequence shorter for as long as it still shows what it showed.
interface Shrinkable {
  readonly operations: readonly { readonly isFixed?: boolean }[];
}

/**
 * Leaves out operations, many at first and then one by one, until none can be left out: the result is the last sequence for which `shows`
 * answered something, with that answer.
 */
export async function shrink<Sequence extends Shrinkable, Shown>(
  sequence: Sequence,
  shown: Shown,
  shows: (sequence: Sequence) => Promise<Shown | undefined>,
): Promise<{ readonly sequence: Sequence; readonly shown: Shown }> {
  let best = { sequence, shown };
  for (let size = Math.ceil(sequence.operations.length / 2); size >= 1; ) {
    const shorter = await smaller(best.sequence, size, shows);
    if (shorter !== undefined) best = shorter;
    else size = size === 1 ? 0 : Math.ceil(size / 2);
  }
  return best;
}

async function smaller<Sequence extends Shrinkable, Shown>(
  sequence: Sequence,
  size: number,
  shows: (sequence: Sequence) => Promise<Shown | undefined>,
): Promise<{ readonly sequence: Sequence; readonly shown: Shown } | undefined> {
  const { operations } = sequence;
  for (let from = operations.length - size; from > -size; from -= size) {
    const kept = operations.filter(({ isFixed }, index) => isFixed === true || index < from || index >= from + size);
    if (kept.length === operations.length) continue;
    const candidate = { ...sequence, operations: kept };
    const shown = await shows(candidate);
    if (shown !== undefined) return { sequence: candidate, shown };
  }
  return undefined;
}
