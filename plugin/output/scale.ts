// Renders the result of the verb scale: the zones that change their replicas, when, and what changes or stops the requested number.
import type { RuleResult } from '../../engine/decision.ts';
import type { ScaleForecast } from '../../engine/plan/estimate.ts';
import { formatDuration } from '../../policies/duration.ts';
import { listed } from '../../policies/wording.ts';
import { todoOf } from './explain.ts';

/** Returns a text per fact, per change of a zone in the order of time, and for missing approvals and a stop. */
export function forecastTexts({ changes, facts, approvals, stop }: ScaleForecast, name: string): readonly string[] {
  return [
    ...facts,
    ...changes.map(({ zone, from, to, afterMs, waitsFor }) => {
      const seconds = Math.round(afterMs / 1000);
      const when = seconds === 0 ? '' : ` after about ${formatDuration(1000 * seconds)}`;
      return `zone ${zone}: from ${from} to ${to}${when}${waitsFor.length === 0 ? '' : ` (waits for ${waitsFor.join(', ')})`}`;
    }),
    ...(approvals.length === 0
      ? []
      : [`the times assume that ${listed(approvals, 'and')} ${approvals.length === 1 ? 'is' : 'are'} approved at once`]),
    ...(stop === undefined ? [] : [`${changes.length === 0 ? '' : 'then '}${stopText(stop, name)}`]),
    ...(changes.length === 0 && stop === undefined ? ['no zone changes its replicas'] : []),
  ];
}

/** Returns the fact about the stop and, if a rule denies the change, what a person can do. */
function stopText(stop: RuleResult, name: string): string {
  return stop.outcome === 'no'
    ? [`blocked by ${stop.rule}: ${stop.fact}`, ...todoOf(stop, name)].join('; ')
    : `waits for ${stop.rule}: ${stop.fact}`;
}
