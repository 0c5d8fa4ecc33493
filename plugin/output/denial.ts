// A refusal of the admission webhook, as the Event of it tells.
import type { Judgement } from '../../engine/decision.ts';
import { blockingResults } from '../../engine/rule.ts';
import type { GroupEvent } from '../live/events.ts';
import { ageText, secondText } from '../live/when.ts';
import { sourceText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';

/** What the engine says of the request now, or why that cannot be told. */
export type Now = Judgement | { readonly unknown: string };

interface Denial {
  readonly id: string;
  /** At least one; the oldest first. */
  readonly events: readonly GroupEvent[];
  readonly last: GroupEvent;
  readonly nowMs: number;
  /** Absent where the Event does not say what was asked. */
  readonly now?: Now | undefined;
}

/** The text, ending in a line break. The message is never cut. */
export function renderDenial({ id, events, last, nowMs, now }: Denial, { paint }: Pick<TableLook, 'paint'>): string {
  const rows: readonly (readonly [label: string, text: string])[] = [
    ['refused', `${last.object} in ${last.namespace}`],
    ['reason', last.reason],
    // One is written in ten minutes, however often somebody asks.
    ['when', `${secondText(last.atMs)}, ${ageText(last.atMs, nowMs)} ago${events.length === 1 ? '' : `; ${events.length} times told of`}`],
    ['why', last.note.replace(/; kubectl rollout-group explain decision\/\w+$/, '').replaceAll('\n', ' ')],
    ...(now === undefined ? [] : nowRows(now)),
  ];
  return text(id, rows, paint);
}

/** A decision of which no Event tells any more, but whose request would be refused in the same way now. */
export function renderFoundAgain(id: string, now: Judgement, { paint }: Pick<TableLook, 'paint'>): string {
  return text(id, [['refused', 'no Event tells of it any more; what follows was worked out again'], ...nowRows(now)], paint);
}

type Row = readonly [label: string, text: string];

function nowRows(now: Now): readonly Row[] {
  if ('unknown' in now) return [['now', `it cannot be told: ${now.unknown}`]];
  const { outcome, message, results } = now;
  if (outcome === 'allow') return [['now', 'it would pass']];
  const written = blockingResults(results).flatMap(({ rule, source }) => {
    const place = sourceText(source);
    return place === undefined ? [] : [['written', `${rule}: ${place}`] as const];
  });
  return [['now', outcome === 'prepare' ? `it would pass once pods are prepared: ${message}` : message], ...written];
}

function text(id: string, rows: readonly Row[], paint: TableLook['paint']): string {
  const lines = rows.map(([label, words]) => `  ${label.padEnd(9)}${words}`);
  return `${[paint('bold', `decision/${id}`), ...lines].join('\n')}\n`;
}
