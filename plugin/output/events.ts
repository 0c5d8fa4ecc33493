// Renders Events as a table or as log lines, and a denial from its Event.
import type { Judgement } from '../../engine/decision.ts';
import { blockingResults } from '../../engine/rule.ts';
import { secondText } from '../../policies/instant.ts';
import type { GroupEvent } from '../live/events.ts';
import { ageText, overrideText, sourceText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { type ItemColumn, itemTable, paragraph } from './text.ts';

/** Returns the table with a final line break. Messages are never cut. */
export function renderEvents(events: readonly GroupEvent[], nowMs: number, hasNamespaces: boolean, look: TableLook): string {
  const columns: readonly ItemColumn<GroupEvent>[] = [
    { title: 'LAST SEEN', align: 'left', cell: ({ atMs }) => `${ageText(atMs, nowMs)} ago` },
    { title: 'TYPE', align: 'left', cell: ({ type }) => type },
    { title: 'REASON', align: 'left', cell: ({ reason }) => reason },
    { title: 'OBJECT', align: 'left', isFlexible: true, cell: (event) => objectText(event, hasNamespaces) },
    { title: 'MESSAGE', align: 'left', isBelow: true, cell: noteText },
  ];
  const lines = itemTable(columns, events, look, (line, { type }) =>
    type === 'Warning' ? line.replace('Warning', () => look.paint('yellow', 'Warning')) : line,
  );
  return `${lines.join('\n')}\n`;
}

export function eventLine(event: GroupEvent): string {
  return `${secondText(event.atMs)} ${event.type.toLowerCase()} ${event.reason} ${objectText(event, true)} ${noteText(event)}`;
}

function objectText({ namespace, object }: GroupEvent, hasNamespace: boolean): string {
  return hasNamespace ? `${namespace}/${object}` : object;
}

function noteText({ note, count }: GroupEvent): string {
  return `${note.replaceAll('\n', ' ')}${count > 1 ? ` (${count} times)` : ''}`;
}

/** The judgement of the request now, or the reason why it is unknown. */
export type Now = Judgement | { readonly unknown: string };

interface Denial {
  readonly id: string;
  /** At least one; the oldest first. */
  readonly events: readonly GroupEvent[];
  readonly last: GroupEvent;
  readonly nowMs: number;
  /** Absent if the Event does not contain the request. */
  readonly now?: Now | undefined;
}

/** Returns the text with a final line break. The message is never cut. */
export function renderDenial({ id, events, last, nowMs, now }: Denial, look: Pick<TableLook, 'paint' | 'columns'>): string {
  const rows: readonly Row[] = [
    ['denied', `${last.object} in ${last.namespace}`],
    ['reason', last.reason],
    // The webhook writes at most one Event in ten minutes for repeated requests.
    ['when', `${secondText(last.atMs)}, ${ageText(last.atMs, nowMs)} ago${events.length === 1 ? '' : `; reported ${events.length} times`}`],
    ['why', last.note.replace(/; kubectl rollout-group explain decision\/\w+$/, '').replaceAll('\n', ' ')],
    ...(now === undefined ? [] : nowRows(now)),
  ];
  return denialText(id, rows, look);
}

/** Renders a denial that has no Event. The same request would be denied in the same way now. */
export function renderFoundAgain(id: string, now: Judgement, look: Pick<TableLook, 'paint' | 'columns'>): string {
  return denialText(
    id,
    [['denied', 'the denial has no Event: dry runs write no Events, and Events expire; the request is evaluated again'], ...nowRows(now)],
    look,
  );
}

type Row = readonly [label: string, text: string];

function nowRows(now: Now): readonly Row[] {
  if ('unknown' in now) return [['now', `unknown: ${now.unknown}`]];
  const { outcome, message, results, override } = now;
  if (outcome === 'allow') return [['now', 'the request would be allowed']];
  const written = blockingResults(results).flatMap(({ rule, source }) => {
    const place = sourceText(source);
    return place === undefined ? [] : [['source', `${rule}: ${place}`] as const];
  });
  return [
    ['now', outcome === 'prepare' ? `the request would be allowed after its pods are prepared: ${message}` : message],
    ...written,
    ...(override === undefined ? [] : [['do', overrideText(override)] as const]),
  ];
}

function denialText(id: string, rows: readonly Row[], { paint, columns }: Pick<TableLook, 'paint' | 'columns'>): string {
  const lines = rows.flatMap(([label, words]) => paragraph(`  ${label.padEnd(9)}`, words, columns));
  return `${[paint('bold', `decision/${id}`), ...lines].join('\n')}\n`;
}
