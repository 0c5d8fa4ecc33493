// Renders the result of the verb scale: the zones that change their replicas, when, and what changes or stops the requested number.
import type { ScaleForecast } from '../../engine/plan/estimate.ts';
import { formatDuration } from '../../policies/duration.ts';

/** Returns a line per fact, per change of a zone in the order of time, and for a stop. */
export function forecastLines({ changes, facts, stop }: ScaleForecast): string {
  const lines = [
    ...facts,
    ...changes.map(({ zone, from, to, afterMs, waitsFor }) => {
      const seconds = Math.round(afterMs / 1000);
      const when = seconds === 0 ? '' : ` after about ${formatDuration(1000 * seconds)}`;
      return `zone ${zone}: from ${from} to ${to}${when}${waitsFor.length === 0 ? '' : ` (waits for ${waitsFor.join(', ')})`}`;
    }),
    ...(stop === undefined ? [] : [`${changes.length === 0 ? '' : 'then '}waits for ${stop.rule}: ${stop.fact}`]),
    ...(changes.length === 0 && stop === undefined ? ['no zone changes its replicas'] : []),
  ];
  return lines.map((line) => `  ${line}\n`).join('');
}
