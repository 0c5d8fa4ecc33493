// Renders the last lines of a live screen (keys, question, result) and the help page of the keys.
import { commandText, type KeyState } from '../live/keys.ts';
import type { TableLook } from './plan/table.ts';
import { paragraph, shorten } from './plan/table-layout.ts';

/** The view that the key `d` opens. */
export type OtherView = 'details' | 'summary';

/** Returns at most three lines, none wider than the terminal. */
export function keyBar(state: KeyState, other: OtherView, look: TableLook): readonly string[] {
  const zone = state.zone === undefined ? [] : [`only zone ${state.zone}; tab: next zone, esc: all zones`];
  const told = state.told === undefined ? [] : paragraph('', state.told, look.columns).slice(0, 2);
  return [...zone, ...told, ...questionLines(state, look), ...(isQuestion(state) ? [] : [look.paint('dim', keysLine(other, look))])];
}

function isQuestion({ asked, sent }: KeyState): boolean {
  return asked !== undefined || sent !== undefined;
}

function questionLines({ asked, sent }: KeyState, { paint, columns }: TableLook): readonly string[] {
  if (sent !== undefined) return paragraph('', `${commandText(sent)} ...`, columns);
  if (asked === undefined) return [];
  return paragraph('', `${commandText(asked)}   press y to run this, any other key to cancel`, columns).map((line) =>
    paint('yellow', line),
  );
}

function keysLine(other: OtherView, { columns, glyphs }: TableLook): string {
  const line = `q quit  d ${other}  e explain  p pause  r resume  a approve  tab zone  ? help`;
  return columns === undefined ? line : shorten(line, columns, glyphs.ellipsis);
}

/** Returns the help page of the keys. */
export function helpLines(other: OtherView): readonly string[] {
  return [
    'keys',
    '  q       quit; the rollout continues (also Ctrl-C)',
    `  d       show or hide ${other}`,
    '  e       show or hide the explanation, rule by rule',
    '  p       pause the group or the selected zone',
    '  r       resume the group or the selected zone',
    '  a       approve the wave that waits for approval',
    '  tab     select the next zone; after the last one, all zones',
    '  esc     return to the first view',
    'p, r and a show the command first and run it only after y.',
  ];
}
