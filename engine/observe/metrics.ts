// Derives the value of a metric input from its readings.
import type { GateReading, MetricView } from '../snapshot.ts';

/** `noData: zero` of an input asks for exactly this. */
export const noData = 'no data';

/** The readings of an input that count: the last one, and the last one that had an answer. Oldest first. */
export function countedInputs(readings: readonly GateReading[]): readonly GateReading[] {
  const last = readings.at(-1);
  if (last === undefined || last.result !== 'error') return readings.slice(-1);
  const answered = readings.findLast(({ result }) => result !== 'error');
  return answered === undefined ? [last] : [answered, last];
}

/**
 * The value of an input by its readings, oldest first; undefined without any. Where the last question had no answer, what the one before it said
 * stands, as old as it is, with the reason why there is nothing newer: until when it counts, the policy says.
 */
export function metricView(
  name: Pick<MetricView, 'namespace' | 'policy' | 'input'>,
  readings: readonly GateReading[],
): MetricView | undefined {
  const counted = countedInputs(readings);
  const last = counted.at(-1);
  const [answered] = counted;
  if (last === undefined || answered === undefined) return undefined;
  const problem = last.result === 'error' ? last.message : undefined;
  return {
    ...name,
    value: knownOf(answered),
    atMs: answered.atMs,
    ...(problem === undefined || answered === last ? {} : { problem }),
  };
}

function knownOf(reading: GateReading): MetricView['value'] {
  switch (reading.result) {
    case 'value':
      return reading.value;
    case 'noData':
      return { unknown: noData };
    case 'notFinite':
      return { unknown: `the value is ${reading.value}` };
    case 'error':
      return { unknown: reading.message };
  }
}
