// The values that something has had, and since when.

export interface Timeline<Value> {
  /** From this instant on. Instants never go back; of several at one instant the last one counts afterwards. */
  readonly set: (atMs: number, value: Value) => void;
  /** As it is now; undefined when nothing was said yet. */
  readonly latest: () => Value | undefined;
  /** The value at the instant and every later one, the oldest first. The first value holds for all time before it, too. */
  readonly since: (fromMs: number) => readonly Value[];
}

/** Without values. */
export function createTimeline<Value>(): Timeline<Value> {
  const instants: number[] = [];
  const values: Value[] = [];
  return {
    set: (atMs, value) => {
      if (values.length > 0 && Object.is(values.at(-1), value)) return;
      instants.push(atMs);
      values.push(value);
    },
    latest: () => values.at(-1),
    since: (fromMs) => {
      let first = values.length - 1;
      while (first > 0 && (instants[first] ?? 0) > fromMs) first -= 1;
      return values.slice(Math.max(0, first));
    },
  };
}
