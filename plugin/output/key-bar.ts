// The last lines of a live screen: the keys, the question that waits for an answer, and what came of it; and the page that explains them.
import { commandText, type KeyState } from '../live/keys.ts';
import type { TableLook } from './plan/table.ts';
import { paragraph, shorten } from './plan/table-layout.ts';

/** What the key `d` changes to. */
export type OtherView = 'details' | 'summary';

/** At most three lines, none wider than the terminal. Of several groups nothing can be asked by a key. */
export function keyBar(state: KeyState, other: OtherView, look: TableLook): readonly string[] {
  const zone = state.zone === undefined ? [] : [`zone ${state.zone} alone; tab for the next, esc for all`];
  const told = state.told === undefined ? [] : paragraph('', state.told, look.columns).slice(0, 2);
  return [...zone, ...told, ...questionLines(state, look), ...(isQuestion(state) ? [] : [look.paint('dim', keysLine(other, look))])];
}

function isQuestion({ asked, sent }: KeyState): boolean {
  return asked !== undefined || sent !== undefined;
}

function questionLines({ asked, sent }: KeyState, { paint, columns }: TableLook): readonly string[] {
  if (sent !== undefined) return paragraph('', `${commandText(sent)} ...`, columns);
  if (asked === undefined) return [];
  return paragraph('', `${commandText(asked)}   press y to do this, any other key to leave it`, columns).map((line) =>
    paint('yellow', line),
  );
}

function keysLine(other: OtherView, { columns, glyphs }: TableLook): string {
  const line = `q quit  d ${other}  e explain  p pause  r resume  a approve  tab zone  ? help`;
  return columns === undefined ? line : shorten(line, columns, glyphs.ellipsis);
}

/** What each key does. */
export function helpLines(other: OtherView): readonly string[] {
  return [
    'keys',
    '  q       stop watching; the rollout goes on (Ctrl-C does so too)',
    `  d       ${other}, and back`,
    '  e       why it moves or waits, rule by rule, and back',
    '  p       pause, or with a zone chosen only that zone',
    '  r       resume',
    '  a       approve what waits for an approval',
    '  tab     the next zone alone; after the last one all of them',
    '  esc     back to what was shown first',
    'p, r and a show the command first, and do nothing without a y.',
  ];
}
