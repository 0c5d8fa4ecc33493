// A refusal of the admission webhook, as the Event of it tells.
import type { GroupEvent } from '../live/events.ts';
import { ageText, secondText } from '../live/when.ts';
import type { TableLook } from './plan-table.ts';

export interface Denial {
  readonly id: string;
  /** At least one; the oldest first. */
  readonly events: readonly GroupEvent[];
  readonly last: GroupEvent;
  readonly nowMs: number;
}

/** The text, ending in a line break. The message is never cut. */
export function renderDenial({ id, events, last, nowMs }: Denial, { paint }: Pick<TableLook, 'paint'>): string {
  const rows: readonly (readonly [label: string, text: string])[] = [
    ['refused', `${last.object} in ${last.namespace}`],
    ['reason', last.reason],
    // One is written in ten minutes, however often somebody asks.
    ['when', `${secondText(last.atMs)}, ${ageText(last.atMs, nowMs)} ago${events.length === 1 ? '' : `; ${events.length} times told of`}`],
    ['why', last.note.replace(/; kubectl rollout-group explain decision\/\w+$/, '').replaceAll('\n', ' ')],
  ];
  const lines = rows.map(([label, text]) => `  ${label.padEnd(9)}${text}`);
  return `${[paint('bold', `decision/${id}`), ...lines].join('\n')}\n`;
}
