// Renders Events as a table or as log lines.
import type { GroupEvent } from '../live/events.ts';
import { ageText, secondText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { alignRows, type Column } from './plan/table-layout.ts';

const columns: readonly Column[] = [
  { title: 'LAST SEEN', align: 'left' },
  { title: 'TYPE', align: 'left' },
  { title: 'REASON', align: 'left' },
  { title: 'OBJECT', align: 'left', isFlexible: true },
  { title: 'MESSAGE', align: 'left' },
];

/** Returns the table with a final line break. Messages are never cut. */
export function renderEvents(events: readonly GroupEvent[], nowMs: number, hasNamespaces: boolean, { paint }: TableLook): string {
  const rows = events.map((event) => ({
    cells: [`${ageText(event.atMs, nowMs)} ago`, event.type, event.reason, objectText(event, hasNamespaces), noteText(event)],
  }));
  const [header = '', ...lines] = alignRows(columns, [{ cells: columns.map(({ title }) => title) }, ...rows], {
    width: undefined,
    ellipsis: '',
  });
  const painted = lines.map((line, index) =>
    events[index]?.type === 'Warning' ? line.replace('Warning', () => paint('yellow', 'Warning')) : line,
  );
  return `${[paint('bold', header), ...painted].join('\n')}\n`;
}

/** Returns one log line. */
export function eventLine(event: GroupEvent): string {
  return `${secondText(event.atMs)} ${event.type.toLowerCase()} ${event.reason} ${objectText(event, true)} ${noteText(event)}`;
}

function objectText({ namespace, object }: GroupEvent, hasNamespace: boolean): string {
  return hasNamespace ? `${namespace}/${object}` : object;
}

function noteText({ note, count }: GroupEvent): string {
  return `${note.replaceAll('\n', ' ')}${count > 1 ? ` (${count} times)` : ''}`;
}
