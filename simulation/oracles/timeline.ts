// Stores the values of a variable over time.

export interface Timeline<Value> {
  /** Sets the value from this time on. Times never decrease; the last of several at one time counts. */
  readonly set: (atMs: number, value: Value) => void;
  /** Returns the current value; undefined without one. */
  readonly latest: () => Value | undefined;
  /** Returns the value at the time and all later ones, the oldest first. The first value also applies to all earlier times. */
  readonly since: (fromMs: number) => readonly Value[];
}

/** A history without values. */
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
